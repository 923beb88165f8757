"""The bundled libraries that draw plots in a browser.

They are Vega, Vega-Lite and vega-embed; `vendor/README.md` lists their versions. Pages contain or serve them, so
that no network is needed.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

LIBRARIES: Final = ("vega", "vega-lite", "vega-embed")
"""Names in loading order."""


@cache
def library(name: str) -> str:
    """The script of one of `LIBRARIES`."""
    text = (files("vani.render.report") / "vendor" / f"{name}.min.js").read_text(encoding="utf-8")
    # Otherwise developer tools would request it from the network.
    return re.sub(r"\n//# sourceMappingURL=\S*\s*$", "\n", text)
