"""strace logs for tests: written by hand, line by line, or by strace itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from vani.calls import CALLS
from vani.readers import open_trace
from vani.readers.trace_reader import Piece, TraceReader

BEGIN = 1700000000


def written(folder: Path, *lines: str, name: str = "log") -> Path:
    """A log of these lines, a millisecond apart; each is `PID call`."""
    path = folder / name
    text = "".join(
        f"{pid} {BEGIN}.{number:03}000 {call}\n"
        for number, (pid, _, call) in enumerate(line.partition(" ") for line in lines)
    )
    path.write_text(text)
    return path


@dataclass(frozen=True)
class Read:
    """Everything that a reader delivers."""

    reader: TraceReader
    table: pa.Table

    @property
    def rows(self) -> list[tuple[int, str, str | None, int | None, int | None]]:
        """(rank, function, path, offset, bytes) of each call."""
        names, paths = self.reader.functions()["name"], self.reader.files()["path"]
        return [
            (
                row["rank"],
                names[row["func"]].as_py(),
                None if row["file"] is None else paths[row["file"]].as_py(),
                row["offset"],
                row["bytes"],
            )
            for row in self.table.to_pylist()
        ]

    @property
    def moved(self) -> list[tuple[str | None, int | None, int | None]]:
        """(path, offset, bytes) of each call that moves data."""
        return [row[2:] for row in self.rows if row[4] is not None]


def read(path: Path) -> Read:
    """Read all ranks of a log, or of a folder of logs."""
    reader = open_trace(path)
    batches = list(reader.batches(range(reader.ranks), Piece()))
    for batch in batches:
        batch.validate(full=True)
    return Read(reader, pa.Table.from_batches(batches, CALLS))


def strace_or_skip() -> str:
    """Path of strace; skips if it is not installed, or must not trace."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    tried = subprocess.run([program, "-o", os.devnull, "true"], capture_output=True, check=False, timeout=30)
    if tried.returncode:
        pytest.skip("strace may not trace here")
    return program
