"""Darshan logs (format 3.41) of the programs in `vani centre demo`, with POSIX and Lustre records."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np

from vani.centre.demo.programs import FileUse
from vani.readers.darshan.record_layouts import LAYOUTS, module_numbers

_VERSION: Final = "3.41"
_MAGIC: Final = 6567223
_MODULES: Final = 64
_POSIX: Final = 4
_LUSTRE: Final = 2
"""Versions of the records."""
_HEADER: Final = 32
_JOB: Final = 1024
"""Bytes for library metadata after the job's numbers."""


@dataclass(frozen=True)
class LoggedRun:
    """A run to log. `stripes` has the stripe size and the targets of each file."""

    program: str
    job: int
    processes: int
    start_s: float
    end_s: float
    uses: Sequence[FileUse]
    stripes: Mapping[str, tuple[int, Sequence[int]]]
    mount: str


def log_bytes(run: LoggedRun) -> bytes:
    """The log of a run as bytes."""
    paths = dict.fromkeys([*(use.path for use in run.uses), *run.stripes])
    table = b"".join(struct.pack("<Q", _id(path)) + path.encode() + b"\0" for path in paths)
    numbers = module_numbers(_VERSION)
    modules = {
        numbers["POSIX"]: (_POSIX, b"".join(map(_record, run.uses))),
        numbers["LUSTRE"]: (_LUSTRE, b"".join(_striped(path, *stripes) for path, stripes in run.stripes.items())),
    }
    regions = {0: table, **{1 + number: content for number, (_, content) in modules.items()}}
    versions = [0] * _MODULES
    for number, (version, _) in modules.items():
        versions[number] = version
    body, places = zlib.compress(_job(run)), [(0, 0)] * (1 + _MODULES)
    begin = _HEADER + 16 * len(places) + 4 * _MODULES
    for region, content in regions.items():
        packed = zlib.compress(content)
        places[region] = (begin + len(body), len(packed))
        body += packed
    head = _VERSION.encode().ljust(8, b"\0") + struct.pack("<qB7xQ", _MAGIC, 0, 0)
    head += b"".join(struct.pack("<QQ", *place) for place in places)
    return head + struct.pack(f"<{_MODULES}I", *versions) + body


def _id(path: str) -> int:
    return int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "little")


def _job(run: LoggedRun) -> bytes:
    moments = [part for moment in (run.start_s, run.end_s) for part in (int(moment), round(moment % 1 * 1e9))]
    numbers = struct.pack("<7q", 1000, *moments, run.processes, run.job)
    words = "\n".join([run.program, f"lustre\t{run.mount}", "ext4\t/"])
    return numbers + b"lib_ver=3.4.4\n".ljust(_JOB, b"\0") + words.encode() + b"\0"


def _record(use: FileUse) -> bytes:
    layout = LAYOUTS["POSIX"][_POSIX]
    counters, times = np.zeros(len(layout.counters), "<i8"), np.zeros(len(layout.times), "<f8")
    for name, value in use.counters.items():
        (times if name.startswith("F_") else counters)[layout.at[name]] = value
    return struct.pack("<Qq", _id(use.path), use.rank) + counters.tobytes() + times.tobytes()


def _striped(path: str, size: int, targets: Sequence[int]) -> bytes:
    part = struct.pack("<7q16s", size, len(targets), 0, 0, 0, -1, 0, b"")
    head = struct.pack("<Qqqq", _id(path), -1, 1, len(targets))
    return head + part + struct.pack(f"<{len(targets)}q", *targets)
