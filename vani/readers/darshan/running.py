"""Logs of programs that still run: Darshan with --enable-mmap-logs updates one such file per process.

These logs are uncompressed, have free space after the records in the last region, and lack the job's end.
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Final

from vani.errors import TraceError
from vani.readers.darshan.open import open_log
from vani.readers.darshan.probe import MAGIC
from vani.readers.darshan.record_ends import damaged_log
from vani.readers.darshan.totals import Totals, read_totals

_MOST_BYTES: Final = 1 << 28


def read_running(path: Path) -> Totals:
    """Add up a process's counters so far.

    Raises
    ------
    UnknownFormatError
        The file is not a log, or of an unsupported version.
    TraceError
        The log cannot be read, or the process was writing to it at that moment.
    """
    try:
        with path.open("rb") as file:
            content = bytearray(file.read(_MOST_BYTES))
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=path) from error
    order = "<" if content[8:16] == struct.pack("<q", MAGIC) else ">"
    # Start of the region table, number of modules, and numbers per time: version 3.41 increased each.
    at, modules, wide = (32, 64, 2) if content[:4] >= b"3.41" else (24, 16, 1)
    job = -(-(at + 16 * (1 + modules) + 4 * modules) // 8) * 8
    if len(content) < job + 8 * (1 + 2 * wide):
        raise damaged_log(path, f"it ends after {len(content):,} bytes")
    places = struct.unpack_from(f"{order}{2 * (1 + modules)}Q", content, at)
    end = max((place + length for place, length in zip(places[::2], places[1::2], strict=True) if length), default=0)
    # The user is followed by start and end, which is 0 until the program ends.
    begin = 8 * wide
    content[job + 8 + begin : job + 8 + 2 * begin] = content[job + 8 : job + 8 + begin]
    with tempfile.NamedTemporaryFile(prefix="vani-", suffix=".darshan") as copy:
        copy.write(content[:end])
        copy.flush()
        return read_totals(open_log(Path(copy.name)))
