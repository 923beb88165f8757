"""Trees to JSON text, in which nothing moves a terminal's cursor or changes the direction of letters."""

import json
import re
from collections.abc import Callable
from typing import Any

_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""DEL and the control characters C1, marks of the direction of text, and surrogates, which UTF-8 does not have."""


def json_text(
    tree: object,
    *,
    indent: int | None = 2,
    ascii_only: bool = False,
    allow_nan: bool = False,
    default: Callable[[object], Any] | None = None,
) -> str:
    """Write a tree as JSON with a line end; letters of all languages stay, control characters are escaped.

    A parser reads the same values as without escapes. Bytes of a file name that are not UTF-8 become the same text as
    in YAML, such as `\\\\udcff`, since many readers refuse surrogates.

    Parameters
    ----------
    indent
        Columns per level; None: one line without spaces.
    ascii_only
        Escape all letters beyond ASCII, for programs that take no others.
    default
        Makes a plain value of one that JSON does not know.

    Raises
    ------
    ValueError
        A number is not finite, and that is not allowed.
    """
    separators = (",", ":") if indent is None else None
    text = json.dumps(
        tree,
        indent=indent,
        ensure_ascii=ascii_only,
        allow_nan=allow_nan,
        separators=separators,
        default=default,
    )
    return harmless(text)


def harmless(text: str) -> str:
    """JSON with a line end, and with escapes for what a terminal obeys."""
    if text.isascii() and "\x7f" not in text:
        return text + "\n"
    # These characters occur in strings only: JSON has no other place for them.
    return _OBEYED.sub(_escaped, text) + "\n"


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return ("\\\\" if "\ud800" <= char <= "\udfff" else "\\") + f"u{ord(char):04x}"
