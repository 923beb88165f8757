"""Small programs that do I/O the costly way (`before`) and as the advice of a rule asks (`after`).

    python programs.py PAIR before|after FOLDER
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path


def flushes(folder: Path, *, after: bool) -> None:
    """Flush each record, or all of them once."""
    with (folder / "records").open("wb", buffering=0) as file:
        for _ in range(1 if after else 400):
            file.write(b"x" * (3_276_800 if after else 8192))
            os.fsync(file)


def commits(folder: Path, *, after: bool) -> None:
    """Commit each row, or all rows in one transaction."""
    db = sqlite3.connect(folder / "rows.db")
    db.execute("CREATE TABLE t (a INTEGER)")
    for row in range(300):
        db.execute("INSERT INTO t VALUES (?)", (row,))
        if not after:
            db.commit()
    db.commit()


def opens(folder: Path, *, after: bool) -> None:
    """Open the file for each line of a log, or once."""
    name = folder / "log"
    if after:
        name.write_text("x" * 99_000)
        return
    for _ in range(3000):
        with name.open("a") as file:
            file.write("x" * 33)


def pieces(folder: Path, *, after: bool) -> None:
    """Write a large file in pieces of 1,000 bytes, or of 4 MB."""
    with (folder / "data").open("wb", buffering=0) as file:
        for _ in range(5 if after else 20_000):
            file.write(b"x" * (4_000_000 if after else 1000))


def again(folder: Path, *, after: bool) -> None:
    """Read a file of 8 MB a hundred times, or once."""
    name = folder / "table"
    name.write_bytes(bytes(8_000_000))
    with name.open("rb", buffering=0) as file:
        for _ in range(1 if after else 100):
            file.seek(0)
            file.read()


PAIRS = {
    "flushes": ("POS010", flushes), "commits": ("POS010", commits), "opens": ("POS003", opens),
    "pieces": ("POS002", pieces), "again": ("POS011", again),
}  # fmt: skip
"""The rule whose advice each program follows."""

if __name__ == "__main__":
    PAIRS[sys.argv[1]][1](Path(sys.argv[3]), after=sys.argv[2] == "after")
