"""Small invented tables of calls, and the stores, traces and workloads made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from vani.analyzers.characterise import Options, characterise
from vani.calls import CALLS, FILES, FUNCTIONS, FileClass, Flag, Kind, Layer
from vani.engine.cluster import open_executor
from vani.readers.trace_reader import Limit, Piece
from vani.schema.profile import Profile
from vani.store.read import Store, open_store
from vani.store.write import write_store

Row = dict[str, Any]

MILLISECOND = 1_000_000

FUNCTION_NAMES = (
    "pread", "pwrite", "fsync", "open", "lseek", "ftruncate", "stat", "unlink", "mkdir", "f", "read", "write",
)  # fmt: skip
"""Functions of invented traces by their code."""


def _function(kind: int, flags: int, layer: int, *, follows: bool) -> int:
    """Code of the function with these properties; `follows` means that it starts at the file position."""
    if layer > Layer.STDIO or kind > Kind.SYNC:
        return FUNCTION_NAMES.index("f")
    if kind != Kind.METADATA:
        names = {Kind.READ: ("pread", "read"), Kind.WRITE: ("pwrite", "write"), Kind.SYNC: ("fsync", "fsync")}
        return FUNCTION_NAMES.index(names[Kind(kind)][follows])
    of_flag = {
        Flag.OPEN: "open",
        Flag.SEEK: "lseek",
        Flag.RESIZE: "ftruncate",
        Flag.STAT: "stat",
        Flag.REMOVE: "unlink",
        Flag.DIRECTORY: "mkdir",
    }
    return FUNCTION_NAMES.index(next((name for flag, name in of_flag.items() if flags & flag), "f"))


def call(
    kind: Kind = Kind.METADATA,
    file: int | None = 0,
    *,
    rank: int = 0,
    at: int = 0,
    lasts: int = 10,
    offset: int | None = None,
    size: int | None = None,
    flags: int = 0,
    layer: int = Layer.POSIX,
    thread: int = 0,
    via: int | None = None,
    depth: int = 0,
    follows: bool = False,
) -> Row:
    """One row of `vani.calls.CALLS`; times in ns.

    With `follows`, it moves data at the file position, and advances it.
    """
    return {
        "rank": rank,
        "thread": thread,
        "func": _function(int(kind), int(flags), int(layer), follows=follows),
        "layer": int(layer),
        "kind": int(kind),
        "depth": depth,
        "via": int(layer if via is None else via),
        "within": 1 << layer | 1 << (layer if via is None else via),
        "flags": int(flags),
        "file": file,
        "offset": offset,
        "bytes": size,
        "start_ns": at,
        "duration_ns": lasts,
    }


def read(file: int = 0, offset: int | None = 0, size: int | None = 100, **rest: Any) -> Row:
    return call(Kind.READ, file, offset=offset, size=size, **rest)


def write(file: int = 0, offset: int | None = 0, size: int | None = 100, **rest: Any) -> Row:
    return call(Kind.WRITE, file, offset=offset, size=size, **rest)


def create(file: int = 0, **rest: Any) -> Row:
    return call(file=file, flags=Flag.OPEN | Flag.CREATE | Flag.TRUNCATE | Flag.WRITABLE, **rest)


@dataclass
class InventedTrace:
    """A `TraceReader` over rows given by a test."""

    rows: list[Row]
    classes: list[FileClass] = field(default_factory=lambda: [FileClass.DATASET])
    names: list[str] | None = None
    app: str = "app"
    ranks: int = 0
    start_unix_s: float | None = 1000.0
    rows_per_batch: int = 1000
    path: Path = Path("/invented")
    tool: str = "recorder"
    format: str = "3.0.0"
    layout: str = "3.0"
    limits: tuple[Limit, ...] = ()
    problems: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.rows = sorted(self.rows, key=lambda r: r["rank"])
        self.ranks = self.ranks or 1 + max((r["rank"] for r in self.rows), default=0)

    def digest(self) -> str:
        return "0" * 64

    def changed(self) -> bool:
        return False

    def calls_per_rank(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.bincount([r["rank"] for r in self.rows], minlength=self.ranks).astype(np.int64)

    def functions(self) -> pa.Table:
        rows = [{"func": i, "name": n, "layer": 0, "kind": 0} for i, n in enumerate(FUNCTION_NAMES)]
        return pa.Table.from_pylist(rows, FUNCTIONS)

    def paths(self) -> list[str]:
        return self.names or [f"/data/{i}" for i in range(len(self.classes))]

    def files(self) -> pa.Table:
        return pa.Table.from_pylist(
            [
                {"file": i, "path": p, "class": int(c)}
                for i, (p, c) in enumerate(zip(self.paths(), self.classes, strict=True))
            ],
            FILES,
        )

    def facts(self) -> list[tuple[str, list[str], int]]:
        return []

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        mine = [r for r in self.rows if r["rank"] in ranks]
        piece.records = len(mine)
        piece.functions = {"f": len(mine)}
        piece.span_ns = max((r["start_ns"] + r["duration_ns"] for r in mine), default=0)
        for first in range(0, len(mine), self.rows_per_batch):
            yield pa.RecordBatch.from_pylist(mine[first : first + self.rows_per_batch], CALLS)


def stored(trace: InventedTrace, folder: Path, *, cuts: Sequence[int] = ()) -> Store:
    """The store of a trace, in parts that begin at the ranks in `cuts`."""
    bounds = [0, *sorted({c for c in cuts if 0 < c < trace.ranks}), trace.ranks]
    parts = [range(a, b) for a, b in pairwise(bounds)]
    with patch("vani.store.write.plan_parts", lambda _: parts):
        write_store(trace, folder, version="0", executor=open_executor("synchronous"))
    return open_store(folder)


def profile_of(
    traces: Sequence[InventedTrace],
    folder: Path,
    *,
    cuts: Sequence[int] = (),
    scheduler: str = "synchronous",
    gap_s: float | None = None,
    files: int | None = None,
) -> Profile:
    """The profile of a workload of invented traces."""
    stores = [stored(t, folder / str(i), cuts=cuts) for i, t in enumerate(traces)]
    options = Options(phase_gap_s=gap_s, list_files=files)
    with open_executor(scheduler) as executor:
        return characterise(stores, [t.app for t in traces], executor, version="0", options=options)[0]


OFFSETS = st.one_of(st.none(), st.sampled_from([0, 100, 200, 300, 400, 1000, 5000]))
SIZES = st.sampled_from([0, 1, 100, 100, 100, 200, 1000])


@st.composite
def rows_of_rank(draw: st.DrawFn, rank: int, files: int, unit: int) -> list[Row]:
    """Calls of one process in order of start; they may overlap like those of threads."""
    rows, now = [], draw(st.integers(0, 30)) * unit
    for _ in range(draw(st.integers(0, 14))):
        now += draw(st.sampled_from([0, 1, 2, 5, 40])) * unit
        lasts = draw(st.sampled_from([0, 1, 3, 9])) * unit // 2
        file = draw(st.one_of(st.none(), st.integers(0, files - 1), st.integers(0, files - 1)))
        layer = draw(st.sampled_from([Layer.POSIX, Layer.POSIX, Layer.STDIO]))
        what = draw(
            st.sampled_from(
                ["read", "read", "write", "write", "open", "seek", "resize", "stat", "library", "sync"]
            )
        )
        at = {"rank": rank, "at": now, "lasts": lasts, "layer": layer}
        if what in ("read", "write"):
            offset, size = draw(OFFSETS), draw(st.one_of(SIZES, SIZES, SIZES, st.none()))
            flags = draw(st.sampled_from([0, 0, 0, 0, Flag.NESTED, Flag.APPEND]))
            kind = Kind.READ if what == "read" else Kind.WRITE
            if kind == Kind.READ:
                flags &= ~Flag.APPEND
            rows.append(
                call(
                    kind,
                    file,
                    offset=offset,
                    size=size,
                    flags=flags,
                    via=draw(st.sampled_from([layer, Layer.MPIIO])),
                    follows=draw(st.booleans()),
                    **at,
                )
            )
        elif what == "sync":
            rows.append(call(Kind.SYNC, file, **at))
        elif what == "open":
            extra = draw(st.sampled_from([0, 0, Flag.CREATE, Flag.CREATE | Flag.TRUNCATE, Flag.APPEND]))
            rows.append(call(file=file, flags=Flag.OPEN | extra, **at))
        elif what == "seek":
            rows.append(call(file=file, flags=Flag.SEEK, offset=draw(OFFSETS), **at))
        elif what == "resize":
            rows.append(call(file=file, flags=Flag.RESIZE, offset=draw(OFFSETS), **at))
        elif what == "stat":
            rows.append(
                call(
                    file=file, flags=draw(st.sampled_from([0, Flag.STAT, Flag.REMOVE, Flag.DIRECTORY])), **at
                )
            )
        else:
            kind = draw(st.sampled_from([Kind.READ, Kind.WRITE, Kind.COMMUNICATION, Kind.OTHER]))
            at["layer"] = draw(st.sampled_from([Layer.MPIIO, Layer.HDF5, Layer.MPI, Layer.USER]))
            rows.append(call(kind, file, size=100, flags=draw(st.sampled_from([0, Flag.COLLECTIVE])), **at))
    return rows


@st.composite
def invented_traces(draw: st.DrawFn, most: int = 1, unit: int = MILLISECOND) -> list[InventedTrace]:
    """One or more traces, of one app or two; traces that name the same path share the file."""
    files = draw(st.integers(1, 4))
    classes = [
        draw(st.sampled_from([FileClass.DATASET, FileClass.DATASET, FileClass.DATASET, FileClass.SYSTEM]))
        for _ in range(files)
    ]
    traces = []
    for index in range(draw(st.integers(1, most))):
        ranks = draw(st.integers(1, 4))
        rows = [row for rank in range(ranks) for row in draw(rows_of_rank(rank, files, unit))]
        traces.append(
            InventedTrace(
                rows,
                classes,
                app=draw(st.sampled_from(["one", "two"])),
                ranks=ranks,
                start_unix_s=1000.0 + index * 0.125,
                rows_per_batch=draw(st.sampled_from([1, 2, 3, 7, 1000])),
                path=Path(f"/invented/{index}"),
            )
        )
    return traces
