"""Darshan logs: counts of calls by process and file, without the calls."""

import struct
import zlib
from pathlib import Path

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
    return path.name.endswith(SUFFIXES) or _has_magic(path) or is_parser_text(path)


def is_parser_text(path: Path) -> bool:
    """Return whether a file is a log printed by darshan-parser, compressed or not."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if head[:2] == b"\x1f\x8b":
            head = zlib.decompressobj(31).decompress(head, len(_TEXT))
    except (OSError, zlib.error):
        return False
    return head.startswith(_TEXT)


def is_darshan_part(name: str) -> bool:
    """Return False, because a log is a single file."""
    del name
    return False


def is_named_darshan(path: Path) -> bool:
    """Return whether a file that the user did not name is a log, by its name only."""
    return path.name.endswith(SUFFIXES) and path.is_file()


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_AT + 8)
    except OSError:
        return False
    return len(head) == _AT + 8 and MAGIC in (
        struct.unpack_from("<q", head, _AT)[0],
        struct.unpack_from(">q", head, _AT)[0],
    )
