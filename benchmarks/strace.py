"""`python -m benchmarks.strace`: how fast logs of strace are read, in how much memory, and what strace costs a program.

The log is of a real `dd` that copies 512 bytes at a time, under the options of `vani trace`, repeated to `--lines`.
`findall` is one regular expression over the same bytes, which is what parsing costs at least in Python.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vani.collect.tracing.line import STRACE
from vani.errors import InputError
from vani.readers.strace.reader import StraceReader
from vani.readers.trace_reader import Piece

__all__ = ["main", "measured"]

_ALONE = re.compile(rb"^(\d+) +(\d+\.\d+) (\w+)\((.*)\) += (-?\d+)(.*?) <(\d+\.\d+)>$", re.MULTILINE)
_CALLS = 20_000


def measured(lines: int, folder: Path) -> dict[str, float]:
    """Lines per second of a regular expression alone and of a reader, peak memory in MiB, microseconds per call.

    Raises
    ------
    InputError
        strace is not installed.
    """
    strace = shutil.which("strace")
    if strace is None:
        raise InputError("strace is not installed", todo="apt install strace")
    copy = ["dd", "if=/dev/zero", f"of={folder / 'out'}", "bs=512", f"count={_CALLS}", "status=none"]
    log = folder / "log"
    plain_s = min(_seconds(lambda: subprocess.run(copy, check=True)) for _ in range(3))
    traced = [strace, *STRACE, "-o", str(log), "--", *copy]
    traced_s = min(_seconds(lambda: subprocess.run(traced, check=True)) for _ in range(3))
    data = log.read_bytes()
    body = data[: data.rindex(b"\n", 0, len(data) - 1) + 1]
    times = max(1, lines // body.count(b"\n"))
    with log.open("wb") as file:
        for _ in range(times):
            file.write(body)
    number = times * body.count(b"\n")
    alone_s = _seconds(lambda: _ALONE.findall(body)) * times
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_s = _seconds(lambda: _read(log))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "lines": number,
        "findall_lines_per_s": number / alone_s,
        "reader_lines_per_s": number / read_s,
        "memory_mib": (after - before) / 1024,
        "us_per_call": (traced_s - plain_s) / (2 * _CALLS) * 1e6,
    }


def _read(log: Path) -> None:
    reader = StraceReader(log)
    for _ in reader.batches(range(reader.ranks), Piece()):
        pass


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strace", description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(parser.parse_args().lines, Path(folder))
    print(f"lines of the log                    {found['lines']:12,.0f}")
    print(f"one regular expression alone        {found['findall_lines_per_s']:12,.0f} lines/s")
    print(f"read, to batches of calls           {found['reader_lines_per_s']:12,.0f} lines/s")
    print(f"memory for it, at most              {found['memory_mib']:12,.0f} MiB")
    print(f"what strace adds to a call          {found['us_per_call']:12.1f} us")


if __name__ == "__main__":
    main()
