"""Darshan logs whose regions tests change: inflated, changed, deflated, and put behind a header that lists them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from vani.readers.darshan.regions import LogFile

__all__ = ["JOB", "NAMES", "POSIX", "changed"]

JOB, NAMES, POSIX = 0, 1, 3
"""Numbers of regions in a log of version 3.41: the job's, the name table, and the second module's."""
_AT = 32


def changed(log: Path, region: int, change: Callable[[bytearray], bytes | bytearray]) -> bytes:
    """A log of version 3.41 with other content in one region."""
    content, header = log.read_bytes(), LogFile(log).header
    begin = header.regions[0][0]
    placed = sorted((offset, number) for number, (offset, length) in enumerate(header.regions) if length)
    head, body = bytearray(content[:begin]), b""
    for offset, number in placed:
        stream = content[offset : offset + header.regions[number][1]]
        if number == region:
            stream = zlib.compress(bytes(change(bytearray(_inflated(stream)))))
        if number:
            struct.pack_into("<QQ", head, _AT + 16 * (number - 1), begin + len(body), len(stream))
        body += stream
    return bytes(head) + body


def _inflated(streams: bytes) -> bytes:
    found = b""
    while streams:
        one = zlib.decompressobj()
        found += one.decompress(streams) + one.flush()
        streams = one.unused_data
    return found
