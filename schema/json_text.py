"""Documents as JSON text that any reader takes and any screen shows as it stands."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["emit"]


def emit(tree: Any) -> str:
    """Write a tree as indented JSON that ends in a newline.

    What a screen would not show, or would obey, is escaped. Bytes of a file name that are no UTF-8 are the same text
    as in YAML, such as `\\\\udcff`: lone surrogates cannot be written, and many readers refuse their escapes.

    Raises
    ------
    ValueError
        A number is not finite.
    """
    text = json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in text)


def _escape(char: str) -> str:
    escaped = json.dumps(char)[1:-1]
    return "\\" + escaped if "\ud800" <= char <= "\udfff" else escaped
