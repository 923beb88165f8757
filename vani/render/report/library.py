"""The libraries that draw plots in a browser, as the package has them.

Vega, Vega-Lite and vega-embed; `vendor/README.md` names their versions. Pages carry or serve them themselves, so that
they need no network.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["LIBRARIES", "library"]

LIBRARIES: Final = ("vega", "vega-lite", "vega-embed")
"""In the order in which they are loaded."""


@cache
def library(name: str) -> str:
    """The script of one of `LIBRARIES`."""
    text = (files("vani.render.report") / "vendor" / f"{name}.min.js").read_text(encoding="utf-8")
    # Tools of developers would ask the network for it.
    return re.sub(r"\n//# sourceMappingURL=\S*\s*$", "\n", text)
