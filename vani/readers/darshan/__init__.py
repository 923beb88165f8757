"""Darshan logs: counts of calls by process and file, without the calls."""

import struct
import zlib
from pathlib import Path

from vani.readers.files import head_of

MAGIC = 6567223
_AT = 8
_TEXT = b"# darshan log version:"
_HEAD = 4096
"""A file name that may precede the content of a gzip file."""
SUFFIXES = (".darshan", ".darshan_partial", ".darshan.gz", ".darshan.bz2")


def is_darshan(path: Path) -> bool:
    """Return whether a file is a log, or looks like a damaged one, by its name or first bytes."""
    if not path.is_file():
        return False
    has_magic = head_of(path, _AT + 8)[_AT:] in (struct.pack("<q", MAGIC), struct.pack(">q", MAGIC))
    return path.name.endswith(SUFFIXES) or has_magic or is_parser_text(path)


def is_parser_text(path: Path) -> bool:
    """Return whether a file is a log printed by darshan-parser, compressed or not."""
    head = head_of(path, _HEAD)
    try:
        if head[:2] == b"\x1f\x8b":
            head = zlib.decompressobj(31).decompress(head, len(_TEXT))
    except zlib.error:
        return False
    return head.startswith(_TEXT)


def is_named_darshan(path: Path) -> bool:
    """Return whether a file that the user did not name is a log, by its name only."""
    return path.name.endswith(SUFFIXES) and path.is_file()
