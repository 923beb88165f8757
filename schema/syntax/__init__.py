"""Text of documents: YAML, JSON and TOML to plain trees with the line of each value, and trees to YAML and JSON."""

import re
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Final

_BYTES: Final = 4096
_SCHEMA: Final = re.compile(
    rb"""(?:^|[{,])[ \t\r\n]*["']?schema["']?[ \t]*:[ \t]*["']?vani\.""", re.MULTILINE
)
_MAPPING: Final = re.compile(r"""^\ufeff?[ \t]*(?:\{[ \t\r\n]*)?["']?\w+["']?[ \t]*:""", re.MULTILINE)
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def first_bytes(path: Path) -> bytes | None:
    """The first bytes of a regular file; None for anything else: a pipe can be read only once."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_BYTES)
    except (OSError, ValueError):
        return None


def is_document(path: Path) -> bool:
    """Whether a file names a schema of Vani in its first lines, like every document that Vani writes."""
    content = first_bytes(path)
    return content is not None and _SCHEMA.search(content) is not None


def may_be_document(path: Path) -> bool:
    """Whether errors about a file as a document make sense.

    True for pipes and devices, for names of YAML and JSON files, and for text with a key in its first lines.
    """
    content = first_bytes(path)
    if content is None or path.suffix.lower() in _SUFFIXES:
        return True
    try:
        # A truncated character at the end does not matter.
        text = getincrementaldecoder("utf-8")().decode(content)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and _MAPPING.search(text) is not None



