"""Parquet traces with wrong bytes, cells and columns: a result or one line, never another exception.

`pytest -m slow tests/readers/test_parquet_mutants.py` reads 10,000 mutants, each identified by its seed.
"""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from invented import NIGHTLY_SEED

import vani
from vani.errors import InputError
from vani.readers import open_trace
from vani.readers.trace_reader import Piece

CM1 = Path(__file__).parent.parent / "data" / "parquet" / "cm1-lassen"
MAX_MEMORY = 1 << 30
EVERY = 20
"""One mutant in this many is profiled, the others are only read."""

INTEGERS = [
    -(2**63),
    -(2**31),
    -1,
    0,
    1,
    127,
    128,
    2**15,
    2**24 - 1,
    2**24,
    2**31 - 1,
    2**53,
    2**56,
    2**62,
    2**63 - 1,
]
FLOATS = [np.nan, np.inf, -np.inf, -1.0, -1e30, 1e-30, 1e6, 9e8, 4e9, 1e18, 3e38]
TEXTS = [
    "",
    "write",
    "MPI_File_write_at",
    "%p",
    "-1",
    "9" * 18,
    "9" * 30,
    "4096*r+0",
    "\x1f",
    "/a\n",
    "ü" * 300,
    "no\0name",
]


def recorder2parquet() -> pa.Table:
    """40 rows of 4 ranks: a file is opened, written, searched and closed, below calls of MPI-IO."""
    calls = [
        ("MPI_File_open", ["MPI_COMM_WORLD", "/s/b", "5", "%p", "0-0"], 0),
        ("open", ["/s/b", "66", "438"], 1),
        ("MPI_File_write_at", ["0-0", "0", "%p", "512", "MPI_DOUBLE", "%p"], 0),
        ("pwrite", ["/s/b", "%p", "4096", "0"], 1),
        ("open", ["/s/a", "66", "438"], 0),
        ("write", ["/s/a", "%p", "4096"], 0),
        ("lseek", ["/s/a", "0", "0"], 0),
        ("read", ["/s/a", "%p", "100"], 0),
        ("rename", ["/s/a", "/s/c"], 0),
        ("close", ["/s/b"], 0),
    ]
    n = 4 * len(calls)
    start = np.arange(n) * 1e-3
    columns = {
        "index": pa.array(np.arange(1, n + 1), pa.int32()),
        "rank": pa.array(np.repeat(np.arange(4), len(calls)), pa.int32()),
        "thread_id": pa.array(np.ones(n), pa.int32()),
        "cat": pa.array(np.zeros(n), pa.int32()),
        "tstart": pa.array(start.astype(np.float32)),
        "tend": pa.array((start + 5e-4).astype(np.float32)),
        "func_id": [name for name, _, _ in calls] * 4,
        "level": pa.array([level for _, _, level in calls] * 4, pa.int32()),
        "arg_count": pa.array([len(args) for _, args, _ in calls] * 4, pa.int32()),
    }
    for i in range(10):
        columns[f"args_{i + 1}"] = [args[i] if i < len(args) else "" for _, args, _ in calls] * 4
    return pa.table(columns)


def wisio() -> pa.Table:
    """60 rows of a real trace."""
    return pq.read_table(CM1 / "part.0.parquet").slice(0, 60)


def wrong_cells(table: pa.Table, random: np.random.Generator) -> pa.Table:
    for _ in range(int(random.integers(1, 4))):
        place = int(random.integers(table.num_columns))
        column = table.column(place).to_pylist()
        kind = table.schema.field(place).type
        row = int(random.integers(len(column)))
        if random.random() < 0.2:
            column[row] = None
        elif pa.types.is_integer(kind):
            value = int(random.choice(INTEGERS))
            bits = kind.bit_width - 1
            column[row] = max(-(2**bits), min(2**bits - 1, value))
        elif pa.types.is_floating(kind):
            column[row] = float(np.float32(random.choice(FLOATS)))
        else:
            column[row] = str(random.choice(TEXTS))
        if random.random() < 0.1:
            column = [column[row]] * len(column)
        table = table.set_column(place, table.schema.field(place), pa.array(column, kind))
    return table


def wrong_columns(table: pa.Table, random: np.random.Generator) -> pa.Table:
    place = int(random.integers(table.num_columns))
    name, column = table.column_names[place], table.column(place)
    kinds = [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.float64(),
        pa.int8(),
        pa.uint64(),
        pa.bool_(),
        pa.null(),
    ]
    match int(random.integers(6)):
        case 0:
            return table.append_column(name, column)
        case 1:
            return table.drop_columns([name])
        case 2:
            return table.set_column(place, name, column.combine_chunks().dictionary_encode())
        case 3:
            kind = kinds[int(random.integers(len(kinds)))]
            try:
                return table.set_column(place, name, column.cast(kind))
            except pa.ArrowException:
                return table.set_column(place, name, pa.nulls(len(table), kind))
        case 4:
            return table.set_column(place, name, pa.array([[1]] * len(table)))
        case _:
            return table.rename_columns(
                [
                    table.column_names[int(random.integers(table.num_columns))] if n == name else n
                    for n in table.column_names
                ]
            )


def other_rows(table: pa.Table, random: np.random.Generator) -> pa.Table:
    return table.take(pa.array(random.integers(0, len(table), int(random.integers(0, 2 * len(table))))))


def wrong_bytes(content: bytes, random: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 6))):
        # Half of the changes are in the footer.
        low = len(changed) // 2 if random.random() < 0.5 else 0
        changed[int(random.integers(low, len(changed)))] ^= 1 << int(random.integers(8))
    if random.random() < 0.1:
        del changed[int(random.integers(len(changed))) :]
    return bytes(changed)


def mutant(table: pa.Table, seed: int) -> bytes:
    """The content of a mutated file."""
    random = np.random.default_rng(seed)
    changes: list[Callable[[pa.Table, np.random.Generator], pa.Table]] = [
        wrong_cells,
        wrong_cells,
        wrong_columns,
        other_rows,
    ]
    what = int(random.integers(7))
    for change in changes[what : what + 1] if what < 4 else [wrong_cells] if what == 4 else []:
        table = change(table, random)
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        row_group_size=int(random.choice([8, 1024])),
        use_dictionary=bool(random.random() < 0.5),
        write_statistics=bool(random.random() < 0.8),
        compression="none" if random.random() < 0.5 else "zstd",
    )
    return wrong_bytes(buffer.getvalue(), random) if what >= 4 else buffer.getvalue()


def outcome(folder: Path, *, whole: bool) -> str:
    try:
        if whole:
            profile = vani.profile(folder, store=folder.parent / "store")
            return "complete" if profile.traces[0].complete else "problems"
        reader, piece = open_trace(folder), Piece()
        for batch in reader.batches(range(reader.ranks), piece):
            batch.validate(full=True)
        return "problems" if reader.problems or piece.problems else "complete"
    except InputError as error:
        assert error.exit_code == 2 and "\n" not in str(error)
        return "refused"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mutants", [200, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("made", [recorder2parquet, wisio])
@pytest.mark.sampled(1)
def test_every_mutant_gives_a_result_or_one_line(made, mutants, tmp_path):
    table = made()
    folder = tmp_path / "trace"
    folder.mkdir()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen: dict[str, int] = {}
    for seed in range(NIGHTLY_SEED * mutants, NIGHTLY_SEED * mutants + mutants // 2):
        (folder / "0_0.parquet").write_bytes(mutant(table, seed))
        try:
            found = outcome(folder, whole=seed % EVERY == 0)
        except Exception as error:
            raise AssertionError(f"mutant {seed} of {made.__name__}") from error
        seen[found] = seen.get(found, 0) + 1
    # Damage of every kind occurred.
    assert all(seen.get(kind, 0) > mutants // 100 for kind in ("complete", "problems", "refused")), seen
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < MAX_MEMORY


@pytest.mark.parametrize("seed", [434, 1133])
@pytest.mark.slow
def test_fatal_statistics_of_a_footer_are_not_read(seed, tmp_path):
    # pyarrow 26 throws through its own bindings; the seeds of `recorder2parquet` were found by the slow test.
    (tmp_path / "0_0.parquet").write_bytes(mutant(recorder2parquet(), seed))
    command = [
        sys.executable,
        "-m",
        "vani",
        "profile",
        str(tmp_path),
        "--quiet",
        "-o",
        str(tmp_path / "p.yaml"),
    ]
    assert subprocess.run(command, check=False, capture_output=True).returncode in (0, 2)
