"""How documents are laid out as text: what the writer keeps to, and readers of what it wrote rely on.

Collections stand in block style, unless they fit on one line. A mapping in a mapping is indented by one step; a list
in a mapping is not. The first key of a mapping in a list stands behind the list's dash.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, TypeAlias

__all__ = ["BARE", "DASH", "INDENT", "NAME", "STEP", "WORDS", "Tree"]

Tree: TypeAlias = "dict[str, Any] | list[Any] | str | int | float | bool | None"

INDENT: Final = "  "
STEP: Final = len(INDENT)
DASH: Final = "- "
"""As wide as one step of indentation, so that the keys of an entry stand below each other."""

NAME: Final = r"[A-Za-z_/][A-Za-z0-9_./+()%-]*"
"""Keys without quotes, as far as readers of the writer's own form know them."""

# What is written without quotes. Every reader takes it for text unless it is one of the writer's reserved words.
BARE: Final = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9_./+()% -]*[A-Za-z0-9_./+()%-])?")

WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
"""What words without quotes mean."""
