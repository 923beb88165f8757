"""Recorder's own Parquet: real traces, converted here like its tool does, compared with the traces' reader."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from reading import decode_call_table

import vani
from vani.calls import CALLS
from vani.errors import InputError, UnknownFormatError
from vani.readers import open_trace
from vani.readers.functions import layer_of
from vani.readers.parquet.recorder2parquet import Recorder2ParquetReader
from vani.readers.recorder.call_table import CallTableFiles
from vani.readers.recorder.reader import RecorderReader
from vani.readers.recorder.source import Source
from vani.readers.trace_reader import Piece

BROKEN = Path(__file__).parent.parent / "data" / "broken"
TRACES = Path(__file__).parent.parent / "data" / "traces"
WITHOUT_PATTERNS = (
    "v3-posix-mix-4r", "v3-ior-ssf-hdf5-4r", "v3-netcdf-pnetcdf-4r", "v2-ipc-mpiio-mix-4r", "v2-cm1like-8r",
    "v25g-mpiio-mix-4r", "v25g-noipc-ior-fpp-4r", "v3-posix-mix-nonmpi", "v3-nodepth-us-mpiio-mix-2r",
)  # fmt: skip
_CATEGORIES = {0: 0, 1: 0, 2: 1, 3: 3, 4: 5, 5: 6, 6: 2, 7: 0, 8: 0}
"""Recorder's layer numbers by ours."""


def read(reader, ranks=None):
    piece = Piece()
    batches = list(reader.batches(range(reader.ranks) if ranks is None else ranks, piece))
    return pa.Table.from_batches(batches, schema=CALLS), piece


def signatures_of(reader: RecorderReader, rank: int):
    layout = reader.metadata.layout
    shared = "recorder.cst" if layout.framed else "0.cst"
    name = shared if reader.metadata.interprocess else f"{rank}.cst"
    files = CallTableFiles(Source(reader.path), reader.metadata)
    return decode_call_table(
        files.content(name), function_bytes=layout.function_bytes, counted=layout.counted, where=name
    )


def convert(reader: RecorderReader) -> pa.Table:
    """Rows as recorder2parquet makes them, but with the right times, which the tool lacks."""
    tables = []
    for rank in range(reader.ranks):
        calls, _ = read(reader, range(rank, rank + 1))
        table = signatures_of(reader, rank)
        _, grammar = reader._of_rank(rank)
        ids = np.concatenate([np.asarray(x) for x in grammar.expand(1 << 18)])
        args = table.args.take(pa.array(ids)).to_pylist()
        names = [reader.metadata.functions[f] for f in table.func[ids]]
        start = calls["start_ns"].to_numpy() / 1e9
        columns = {
            "rank": np.full(len(ids), rank, np.int32),
            "thread_id": (table.thread[ids] & 0x7FFFFFFF).astype(np.int32),
            "cat": np.array([_CATEGORIES[layer_of(n)] for n in names], np.int32),
            "tstart": start.astype(np.float32),
            "tend": (start + calls["duration_ns"].to_numpy() / 1e9).astype(np.float32),
            "func_id": names,
            "level": table.depth[ids].astype(np.int32),
            "arg_count": np.array([len(a) for a in args], np.int32),
        }
        for i in range(10):
            columns[f"args_{i + 1}"] = [a[i] if i < len(a) else "" for a in args]
        tables.append(pa.table(columns))
    whole = pa.concat_tables(tables)
    return whole.add_column(0, "index", pa.array(np.arange(1, len(whole) + 1, dtype=np.int32)))


def write(folder: Path, table: pa.Table, name: str = "0_0.parquet") -> Path:
    (folder / "_parquet").mkdir(exist_ok=True, parents=True)
    pq.write_table(table, folder / "_parquet" / name, row_group_size=1024)
    return folder


def named(reader, calls: pa.Table) -> pa.Table:
    """Columns that do not depend on the numbering of functions and files."""
    functions = {f["func"]: f["name"] for f in reader.functions().to_pylist()}
    files = reader.files()["path"].to_pylist()
    plain = calls.drop_columns(["func", "file", "start_ns", "duration_ns"])
    plain = plain.append_column("name", pa.array([functions[f] for f in calls["func"].to_pylist()]))
    paths = [None if f is None else files[f] for f in calls["file"].to_pylist()]
    return plain.append_column("path", pa.array(paths, pa.string())).combine_chunks()


def row(func: str, *args: str, **other) -> dict:
    columns = {"index": 1, "rank": 0, "thread_id": 0, "cat": 0, "tstart": 1.0, "tend": 2.0, "func_id": func,
               "level": 0, "arg_count": len(args)}  # fmt: skip
    columns |= {f"args_{i + 1}": args[i] if i < len(args) else "" for i in range(10)}
    return columns | other


def table_of(*rows: dict) -> pa.Table:
    types = {"index": pa.int32(), "rank": pa.int32(), "tstart": pa.float32(), "tend": pa.float32()}
    table = pa.Table.from_pylist([r | {"index": r["index"] + i} for i, r in enumerate(rows)])
    return table.cast(pa.schema([(f.name, types.get(f.name, f.type)) for f in table.schema]))


@pytest.mark.parametrize("name", WITHOUT_PATTERNS)
@pytest.mark.sampled(4)
def test_converted_trace_agrees_with_the_trace(tmp_path, name):
    original = RecorderReader(TRACES / name)
    expected, piece = read(original)
    converted = open_trace(write(tmp_path / name, convert(original)))
    assert isinstance(converted, Recorder2ParquetReader)
    assert converted.app == original.app
    assert converted.ranks == original.ranks
    assert converted.calls_per_rank().tolist() == original.calls_per_rank().tolist()
    calls, again = read(converted)
    assert calls.schema == CALLS
    assert named(converted, calls) == named(original, expected)
    for column in ("start_ns", "duration_ns"):
        # float32 has 24 bits, so the error of an end grows with the time since the start.
        error = np.abs(calls[column].to_numpy() - expected[column].to_numpy())
        assert error.max() <= piece.span_ns * 2.0**-22 + 1
    classes = [
        dict(zip(*(t.files()[c].to_pylist() for c in ("path", "class")), strict=True))
        for t in (converted, original)
    ]
    assert classes[0] == classes[1]
    assert again.functions == piece.functions
    assert len(again.renames) == len(piece.renames)
    # An argument after the tenth is lost, so the remaining ones are compared.
    kept = sorted((f, a[:10], n) for f, a, n in original.facts())
    assert sorted((f, a, n) for f, a, n in converted.facts()) == kept


def test_ranks_split_over_files_and_rows_in_any_order_change_nothing(tmp_path):
    original = RecorderReader(TRACES / "v3-ior-ssf-hdf5-4r")
    table = convert(original)
    mixed = table.take(np.random.default_rng(2).permutation(len(table)))
    write(tmp_path, mixed.slice(0, 300), "part.0.parquet")
    write(tmp_path, mixed.slice(300), "part.1.parquet")
    reader = open_trace(tmp_path / "_parquet")
    calls, _ = read(reader)
    assert named(reader, calls) == named(original, read(original)[0])
    some, _ = read(reader, range(1, 3))
    inside = pc.and_(pc.greater_equal(calls["rank"], 1), pc.less(calls["rank"], 3))
    assert some.combine_chunks() == calls.filter(inside).combine_chunks()
    assert pickle.loads(pickle.dumps(reader)).functions() == reader.functions()


def test_offsets_stored_as_patterns_over_ranks_are_unknown_and_reported(tmp_path):
    table = table_of(
        row("open", "/scratch/a", "66", "438"),
        row("pwrite", "/scratch/a", "%p", "4096", "4096*r+0"),
        row("pwrite", "/scratch/a", "%p", "4096", "8192"),
        row("lseek", "/scratch/a", "4096*r+0", "0"),
        row("write", "/scratch/a", "%p", "10"),
    )
    reader = open_trace(write(tmp_path, table))
    calls, _ = read(reader)
    assert calls["offset"].to_pylist()[1:] == [None, 8192, None, None]
    assert calls["bytes"].to_pylist()[1:] == [4096, 4096, None, 10]
    assert reader.problems == ["offsets of 2 calls are patterns such as 4096*r+0: unknown"]


def test_calls_keep_the_recorded_order_when_times_are_too_coarse(tmp_path):
    rows = [row("write", "/scratch/a", "%p", str(i)) for i in range(1, 40)]
    calls, _ = read(open_trace(write(tmp_path, table_of(row("creat", "/scratch/a", "438"), *rows))))
    assert calls["bytes"].to_pylist()[1:] == list(range(1, 40))
    assert calls["offset"].to_pylist()[1:] == np.cumsum([0, *range(1, 39)]).tolist()


def test_a_number_that_wrapped_at_31_bits_still_orders(tmp_path):
    table = table_of(*(row("write", "/scratch/a", "%p", str(i)) for i in range(4)))
    index = np.arange(2**31 - 2, 2**31 + 2).astype(np.uint32).astype(np.int32)
    table = table.set_column(0, "index", pa.array(index)).take([2, 0, 3, 1])
    calls, _ = read(open_trace(write(tmp_path, table)))
    assert calls["bytes"].to_pylist() == [0, 1, 2, 3]


def test_user_functions_are_never_file_system_calls(tmp_path):
    table = table_of(row("write", cat=4), row("write", "/scratch/a", "%p", "5"))
    reader = open_trace(write(tmp_path, table))
    _, piece = read(reader)
    assert piece.functions == {"user_function": 1, "write": 1}


def test_arguments_beyond_ten_and_odd_bytes_are_survived(tmp_path):
    table = table_of(
        row("H5Dcreate2", *"abcdefghij", arg_count=12),
        row("open", "/scratch/a\x1fb", "66", "438"),
        row("open", "/scratch/ä", "66", "438"),
    )
    raw = pa.array([t.encode() for t in table["args_1"].to_pylist()[:2]] + [b"/scratch/\xff"], pa.binary())
    table = table.set_column(table.column_names.index("args_1"), "args_1", raw.view(pa.string()))
    reader = open_trace(write(tmp_path, table))
    calls, _ = read(reader)
    assert calls.num_rows == 3
    assert reader.files()["path"].to_pylist() == ["/scratch/a?b", "/scratch/\ufffd"]
    assert reader.facts() == [("H5Dcreate2", list("abcdefghij"), 1)]


def test_times_that_run_backwards_are_repaired_and_counted(tmp_path):
    table = table_of(row("fsync", "/a", tstart=2.0, tend=1.0), row("fsync", "/a", tstart=float("nan")))
    calls, piece = read(open_trace(write(tmp_path, table)))
    assert piece.repaired_times == 2
    assert pc.min(calls["duration_ns"]).as_py() == 0


def test_two_conversions_in_one_folder_are_refused(tmp_path):
    write(tmp_path, table_of(row("fsync", "/a"), row("fsync", "/a", rank=1)), "0_0.parquet")
    write(tmp_path, table_of(row("fsync", "/a", rank=1)), "1_0.parquet")
    with pytest.raises(InputError, match="rank 1 is in files 0_\\* and 1_\\*: two conversions mixed"):
        open_trace(tmp_path).calls_per_rank()


def test_a_missing_column_is_named(tmp_path):
    table = table_of(row("fsync", "/a")).drop_columns(["args_7"])
    with pytest.raises(UnknownFormatError, match="has no column 'args_7'"):
        open_trace(write(tmp_path, table))


def test_limits_of_the_format_are_stated(tmp_path):
    reader = open_trace(write(tmp_path, table_of(row("fsync", "/a"))))
    said = " ".join(limit.why for limit in reader.limits)
    for word in ("float32", "ten arguments", "return values", "start of the run", "patterns", "time stamps"):
        assert word in said


@pytest.mark.parametrize("column", ["level", "arg_count"])
def test_rows_without_a_needed_number_are_left_out_and_counted(column, tmp_path):
    table = table_of(row("fsync", "/a"), row("fsync", "/a"))
    place = table.column_names.index(column)
    table = table.set_column(place, column, pa.array([1, None], table[column].type))
    calls, piece = read(open_trace(write(tmp_path, table)))
    assert calls.num_rows == 1
    assert piece.problems == [f"1 row left out: no number in column {column}"]


def test_a_null_level_does_not_end_in_a_fault():
    profile = vani.profile(BROKEN / "parquet-null-level")
    assert profile.traces[0].records == 5
    assert profile.traces[0].problems == ["1 row left out: no number in column level"]


def test_early_start_of_a_clock_set_back_is_kept(tmp_path):
    table = table_of(
        row("fsync", "/a", tstart=0.0, tend=0.5),
        row("fsync", "/a", tstart=-1.0, tend=-0.5),
        row("fsync", "/a", tstart=1e30, tend=1e30),
    )
    calls, piece = read(open_trace(write(tmp_path, table)))
    assert calls["start_ns"].to_pylist() == [0, -1_000_000_000]
    assert piece.repaired_times == 1
    assert piece.problems == ["1 row left out: a time that no run reaches"]
    profile = vani.profile(tmp_path)
    assert profile.workflow.runtime_s == 1.5 and profile.traces[0].repaired_times == 1
