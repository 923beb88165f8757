"""What a file begins with: enough to tell a document of Vani from all else, without loading what reads either."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Final

__all__ = ["beginning", "is_document", "may_be_document"]

_BYTES: Final = 4096
_SCHEMA: Final = re.compile(
    rb"""(?:^|[{,])[ \t\r\n]*["']?schema["']?[ \t]*:[ \t]*["']?vani\.""", re.MULTILINE
)
_MAPPING: Final = re.compile(r"""^\ufeff?[ \t]*(?:\{[ \t\r\n]*)?["']?\w+["']?[ \t]*:""", re.MULTILINE)
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def beginning(path: Path) -> bytes | None:
    """The first bytes of a plain file; None for all else, above all for pipes, which can be read only once."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_BYTES)
    except (OSError, ValueError):
        return None


def is_document(path: Path) -> bool:
    """Whether a file names a schema of Vani in its first lines, as all that Vani writes does."""
    found = beginning(path)
    return found is not None and _SCHEMA.search(found) is not None


def may_be_document(path: Path) -> bool:
    """Whether it is worth telling what is wrong with a file as a document, whatever else it is.

    True for what is no plain file, for names of YAML and JSON files, and for text with a key in its first lines.
    """
    found = beginning(path)
    if found is None or path.suffix.lower() in _SUFFIXES:
        return True
    try:
        # A letter that is cut at the end is no fault.
        text = getincrementaldecoder("utf-8")().decode(found)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and _MAPPING.search(text) is not None
