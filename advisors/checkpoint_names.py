"""Which files are checkpoints by their names: simulations call them so, nothing else in a profile does."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_checkpoint"]

_NAMED: Final = re.compile(r"ckpt|chkp|(?<![a-z])chk|checkpoint|restart|(?<![a-z])rst|dmtcp", re.IGNORECASE)


def is_checkpoint(path: str) -> bool:
    """Whether a part of the path says that it holds the state of a program."""
    return _NAMED.search(path) is not None
