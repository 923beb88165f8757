"""Sort order in which `step9` comes before `step10`."""

from __future__ import annotations

import re


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts `part.10` after `part.9`."""
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in re.split(r"(\d{1,18})", name)]
