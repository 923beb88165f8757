"""JSON that a terminal can show: nothing in it moves the cursor, changes colours or turns the order of letters."""

from __future__ import annotations

import json
import re

__all__ = ["json_text"]

_SPEAKS_TO_A_TERMINAL = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""DEL and the control characters C1, what sets the direction of text, and halves of characters, which UTF-8 has not."""


def json_text(tree: object, *, indent: int = 2, allow_nan: bool = True) -> str:
    """Write a tree as JSON with a line end; letters of all languages stay, what a terminal obeys is escaped.

    A parser reads the same values as without escapes.

    Raises
    ------
    ValueError
        A number is not finite, and that is not allowed.
    """
    text = json.dumps(tree, indent=indent, ensure_ascii=False, allow_nan=allow_nan)
    # These stand inside of strings only: JSON has no other place for them.
    return _SPEAKS_TO_A_TERMINAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
