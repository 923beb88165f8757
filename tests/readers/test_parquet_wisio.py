"""WisIO's Parquet, on the whole CM1 trace: all numbers were counted from the rows, independently of Vani."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import vani
from vani.calls import CALLS, FileClass, Flag, Kind
from vani.errors import InputError, UnknownFormatError
from vani.readers import open_trace
from vani.readers.parquet.reader import RankCounter
from vani.readers.parquet.wisio import WisIOReader, spelled_whole
from vani.readers.trace_reader import BATCH_ROWS, Piece

CM1 = Path(__file__).parent.parent / "data" / "parquet" / "cm1-lassen"
BROKEN = Path(__file__).parent.parent / "data" / "broken"
LOST = 160
"""Ranks of part 3 (480 to 639), counted in its rows and those of the others."""
DIRECTORY = "/p/gpfs1/iopp/temp/cm1r20.3.2846827/config_files/les_ConvBoundLayer"


def read(reader, ranks=None):
    piece = Piece()
    batches = list(reader.batches(range(reader.ranks) if ranks is None else ranks, piece))
    return pa.Table.from_batches(batches, schema=CALLS), piece


def copy(folder: Path) -> Path:
    return Path(shutil.copytree(CM1, folder / "cm1"))


def rewrite(path: Path, change) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def rows(**columns) -> pa.Table:
    """Rows of one rank with sensible defaults; calls last 1 us, one every 10 us."""
    n = len(columns["func_id"])
    middle = np.arange(1, n + 1) * 100
    start = middle * 1e-7 - 5e-7
    table = {
        "index": np.arange(1, n + 1), "proc": np.ones(n, np.int64), "rank": np.zeros(n, np.int32),
        "thread_id": np.ones(n, np.int32), "tstart": start.astype(np.float32),
        "tend": (start + 1e-6).astype(np.float32), "level": np.zeros(n, np.int32),
        "file_name": ["/scratch/a"] * n, "size": np.zeros(n, np.int64),
        "duration": np.full(n, 1e-6, np.float32), "tmid": middle,
    }  # fmt: skip
    return pa.table(table | columns)


def write(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, folder / "part.0.parquet")
    return folder


@pytest.fixture(scope="module")
def cm1():
    reader = open_trace(CM1)
    return reader, *read(reader)


def test_size_is_known_before_calls_are_read(cm1):
    reader, _, _ = cm1
    assert isinstance(reader, WisIOReader)
    assert (reader.tool, reader.layout, reader.app, reader.start_unix_s) == (
        "wisio",
        "wisio",
        "cm1-lassen",
        None,
    )
    assert reader.ranks == 1280
    assert reader.calls_per_rank().sum() == 27463
    assert reader.calls_per_rank().min() >= 1
    assert reader.problems == []
    assert reader.facts() == []


def test_calls_bytes_and_operations_are_those_of_the_rows(cm1):
    _, calls, piece = cm1
    assert calls.schema == CALLS
    assert calls.num_rows == piece.records == 27463
    assert piece.ranks_read == 1280
    assert piece.functions == {
        "__xstat": 5925, "__fxstat": 5685, "open": 4646, "close": 4646, "write": 2303, "lseek": 1854,
        "read": 1282, "ftruncate": 1122,
    }  # fmt: skip
    by_kind = {kind: calls.filter(pc.equal(calls["kind"], int(kind))) for kind in Kind}
    assert by_kind[Kind.READ].num_rows == 1282
    assert pc.unique(by_kind[Kind.READ]["bytes"]).to_pylist() == [16 << 20]
    assert pc.sum(by_kind[Kind.READ]["bytes"]).as_py() == 21_508_390_912
    assert by_kind[Kind.WRITE].num_rows == 2303
    assert pc.sum(by_kind[Kind.WRITE]["bytes"]).as_py() == 1_230_852_944
    assert pc.unique(by_kind[Kind.WRITE]["rank"]).to_pylist() == [0]
    assert by_kind[Kind.METADATA].num_rows == 23878
    # The size of a seek is its destination: no bytes are moved.
    assert by_kind[Kind.METADATA]["bytes"].null_count == 23878


def test_time_comes_from_duration_and_middle(cm1):
    reader, calls, piece = cm1
    names = {f["func"]: f["name"] for f in reader.functions().to_pylist()}
    sums = calls.group_by("func").aggregate([("duration_ns", "sum")]).to_pydict()
    seconds = {names[f]: s / 1e9 for f, s in zip(sums["func"], sums["duration_ns_sum"], strict=True)}
    expected = {
        "open": 96.1763, "write": 0.5794, "ftruncate": 0.1636, "close": 0.0862, "read": 0.0396,
        "__xstat": 0.0347, "__fxstat": 0.0107, "lseek": 0.0040,
    }  # fmt: skip
    assert seconds == pytest.approx(expected, abs=6e-5)
    assert piece.first_ns / 1e9 == pytest.approx(0.4967, abs=1e-4)
    assert piece.span_ns / 1e9 == pytest.approx(668.3056, abs=1e-4)
    assert piece.repaired_times == 0


def test_files_and_their_users_match_the_paper_without_dev_null(cm1):
    reader, calls, _ = cm1
    files = reader.files()
    assert files.num_rows == 775
    data = files.filter(pc.equal(files["class"], int(FileClass.DATASET)))
    assert data.num_rows == 774
    others = files.filter(pc.not_equal(files["class"], int(FileClass.DATASET)))
    assert others["path"].to_pylist() == ["/dev/null"]
    users = calls.group_by(["file", "rank"]).aggregate([]).group_by("file").aggregate([("rank", "count")])
    of_data = users.filter(pc.is_in(users["file"], value_set=data["file"].combine_chunks()))
    assert pc.sum(pc.equal(of_data["rank_count"], 1)).as_py() == 737
    assert pc.sum(pc.greater(of_data["rank_count"], 1)).as_py() == 37
    of_null = users.filter(pc.is_in(users["file"], value_set=others["file"].combine_chunks()))
    assert of_null["rank_count"].to_pylist() == [1279]


def test_calls_are_sorted_by_their_middle_and_appends_have_offsets(cm1):
    reader, calls, _ = cm1
    rank = calls["rank"].to_numpy()
    middle = calls["start_ns"].to_numpy() + calls["duration_ns"].to_numpy() // 2
    assert (np.diff(rank) >= 0).all()
    assert (np.diff(middle)[np.diff(rank) == 0] > -100).all()
    codes = {f["path"]: f["file"] for f in reader.files().to_pylist()}
    stats = calls.filter(pc.equal(calls["file"], codes[f"{DIRECTORY}/cm1out_stats.dat"]))
    written = stats.filter(pc.equal(stats["kind"], int(Kind.WRITE)))
    # The program seeks to the end and appends 272 bytes; its last seek is to 97,920.
    assert written["offset"].to_pylist() == [272 * i for i in range(361)]
    seeks = stats.filter(pc.not_equal(pc.bit_wise_and(stats["flags"], int(Flag.SEEK)), 0))
    assert seeks["offset"].to_pylist() == [v for i in range(1, 361) for v in (0, 272 * i)]


def test_parts_of_the_ranks_together_are_the_whole(cm1):
    reader, calls, _ = cm1
    parts = [read(reader, ranks)[0] for ranks in (range(0, 1), range(1, 700), range(700, 1280))]
    assert pa.concat_tables(parts).combine_chunks() == calls.combine_chunks()
    assert pickle.loads(pickle.dumps(reader)).files() == reader.files()


def test_rows_in_any_order_over_any_files_give_the_same_calls(cm1, tmp_path):
    _, calls, _ = cm1
    table = pa.concat_tables(pq.read_table(p) for p in sorted(CM1.glob("part.*.parquet")))
    # The index restarts in every part: without ties of tmid it decides nothing.
    mixed = table.take(np.random.default_rng(1).permutation(table.num_rows))
    for number in range(3):
        part = mixed.slice(number * 10_000, 10_000)
        pq.write_table(part, tmp_path / f"part.{number}.parquet", row_group_size=700)
    reader = open_trace(tmp_path)
    again, _ = read(reader)
    untouched = [c for c in CALLS.names if c not in ("func", "file")]
    assert again.select(untouched).combine_chunks() == calls.select(untouched).combine_chunks()
    assert reader.files().num_rows == 775


def test_batches_are_bounded(tmp_path):
    n = BATCH_ROWS + 5
    reader = open_trace(write(tmp_path, rows(func_id=["write"] * n, size=np.full(n, 8))))
    piece = Piece()
    assert [b.num_rows for b in reader.batches(range(1), piece)] == [BATCH_ROWS, 5]
    assert piece.records == n


def test_limits_of_the_format_are_stated(cm1):
    limits = {limit.attribute: limit.why for limit in cm1[0].limits}
    assert "float32" in limits["io.time_s"]
    assert "100 ns" in limits["io.time_s"]
    assert "SEEK_SET" in limits["io.footprint"]
    assert "MPI-IO and HDF5 are not in it" in limits["interfaces.layer"]
    assert "traces.start" in limits


def test_ticks_of_another_length_are_found_from_the_float_times(tmp_path):
    table = rows(func_id=["write"] * 50)
    table = table.set_column(table.column_names.index("tmid"), "tmid", pa.array(np.arange(1, 51) * 10))
    calls, _ = read(open_trace(write(tmp_path, table)))
    assert calls["start_ns"].to_pylist()[:2] == [9500, 19500]


def test_sizes_are_bytes_only_if_the_converter_used_the_right_argument(tmp_path):
    names = ["read", "pwrite", "fread", "writev", "vfprintf", "fseek", "fcntl", "MPI_File_write_at"]
    table = rows(
        func_id=names, size=[1, 2, 3, 4, 5, 6, 7, 8], file_name=["/scratch/a"] * 6 + ["1", "UNKNOWN"]
    )
    reader = open_trace(write(tmp_path, table))
    calls, _ = read(reader)
    assert calls["bytes"].to_pylist() == [1, 2, 3, None, None, None, None, None]
    assert calls["offset"].to_pylist()[:2] == [None, None]
    assert calls["offset"].to_pylist()[5] == 6
    assert calls["file"].to_pylist() == [0] * 6 + [None, None]
    assert reader.files()["path"].to_pylist()[0] == "/scratch/a"


@pytest.mark.parametrize(
    ("spelling", "path"),
    [
        ("/p/run//dev/null", "/dev/null"),
        ("/p/run//p/other/x", "/p/other/x"),
        ("/p/run//out.dat", "/p/run//out.dat"),
        ("//p/x", "//p/x"),
        (".//dev/null", "/dev/null"),
        ("a//", "a//"),
    ],
)
def test_directory_before_an_absolute_path_is_removed(spelling, path):
    assert spelled_whole(spelling) == path


def test_dictionary_columns_and_nulls_are_read(tmp_path):
    table = rows(func_id=pa.array(["open", "write", "write"]).dictionary_encode(), size=[None, 5, None],
                 file_name=pa.array(["/scratch/a", "/scratch/a", None]).dictionary_encode())  # fmt: skip
    calls, _ = read(open_trace(write(tmp_path, table)))
    assert calls["bytes"].to_pylist() == [None, 5, None]
    assert calls["file"].to_pylist() == [0, 0, None]


def test_invalid_times_are_repaired_and_counted(tmp_path):
    table = rows(
        func_id=["write"] * 8,
        duration=np.array([np.nan, -1, np.inf, 0, 0, 0, 0, 0], np.float32),
        tmid=[-5, 200, 300, 1 << 62, 500, 600, 700, 800],
    )
    calls, piece = read(open_trace(write(tmp_path, table)))
    assert piece.repaired_times == 2
    # Five ticks before the start of the run: the clock was set back. Two rows have impossible times.
    assert calls["start_ns"].to_pylist() == [-500, 20000, 50000, 60000, 70000, 80000]
    assert calls["duration_ns"].to_pylist() == [0] * 6
    assert piece.problems == ["2 rows left out: a time that no run reaches"]


@pytest.mark.parametrize("keep", [0, 3, 100, 5000, -1])
def test_a_truncated_part_is_reported_and_the_rest_read(tmp_path, keep):
    folder = copy(tmp_path)
    part = folder / "part.3.parquet"
    part.write_bytes(part.read_bytes()[:keep])
    reader = open_trace(folder)
    calls, _ = read(reader)
    assert calls.num_rows == 27463 - 1583
    assert reader.problems[0].startswith("part.3.parquet: left out, ")
    # The ranks of part 3 have rows nowhere else.
    assert reader.problems[1:] == [f"ranks 480, 481, 482, 483, 484, ... ({LOST} in all): left out, no row is of them"]


def test_a_part_with_damaged_pages_is_reported_and_the_rest_read(tmp_path):
    folder = copy(tmp_path)
    part = folder / "part.3.parquet"
    content = bytearray(part.read_bytes())
    content[4:12000] = bytes(11996)
    part.write_bytes(content)
    reader = open_trace(folder)
    calls, piece = read(reader)
    assert calls.num_rows == piece.records == 27463 - 1583
    assert len(reader.problems) == 2 and f"({LOST} in all): left out" in reader.problems[1]


def test_part_lost_after_opening_is_reported_with_its_ranks(tmp_path):
    folder = copy(tmp_path)
    reader = open_trace(folder)
    assert reader.ranks == 1280
    (folder / "part.3.parquet").unlink()
    _, piece = read(reader, range(480, 490))
    assert len(piece.problems) == 1
    assert piece.problems[0].startswith("ranks 480 to 489: ")


@pytest.mark.parametrize("keep", [0, 7, 1000])
def test_trace_without_a_complete_part_gives_one_line(tmp_path, keep):
    (tmp_path / "part.0.parquet").write_bytes((CM1 / "part.1.parquet").read_bytes()[:keep])
    with pytest.raises(InputError, match=r"part\.0\.parquet") as caught:
        open_trace(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("column", ["rank", "func_id", "file_name", "size", "tmid", "duration"])
def test_a_missing_column_is_named(tmp_path, column):
    folder = copy(tmp_path)
    rewrite(folder / "part.0.parquet", lambda t: t.drop_columns([column]))
    with pytest.raises(UnknownFormatError, match=f"has no column '{column}'"):
        open_trace(folder)


def test_a_column_of_another_kind_is_named(tmp_path):
    table = rows(func_id=["write"])
    table = table.set_column(table.column_names.index("tmid"), "tmid", pa.array(["now"]))
    with pytest.raises(UnknownFormatError, match="column 'tmid' contains string"):
        open_trace(write(tmp_path, table))


@pytest.mark.parametrize("rank", [-1, 2**31 - 1, None])
def test_impossible_rank_counts_allocate_nothing(tmp_path, rank):
    table = rows(func_id=["write", "write"], rank=pa.array([0, rank], pa.int32()))
    reader = open_trace(write(tmp_path, table))
    assert reader.calls_per_rank().tolist() == [1]
    assert len(reader.problems) == 1 and reader.problems[0].startswith("1 row left out: ")
    assert read(reader)[0].num_rows == 1


def test_several_processes_of_one_rank_are_reported(tmp_path):
    reader = open_trace(write(tmp_path, rows(func_id=["write", "write"], proc=[1, 2])))
    assert reader.problems == ["column proc has several values: processes of the same rank are taken as one"]


def test_a_trace_without_rows_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no call"):
        open_trace(write(tmp_path, rows(func_id=["write"]).slice(0, 0))).calls_per_rank()


def test_the_digest_changes_with_any_part(tmp_path):
    folder = copy(tmp_path)
    before = open_trace(folder).digest()
    assert before == open_trace(folder).digest()
    rewrite(folder / "part.7.parquet", lambda t: t.slice(1))
    assert open_trace(folder).digest() != before


def test_millions_of_ranks_claimed_by_one_wrong_cell_are_not_allocated(peak_memory):
    with peak_memory(below=64 << 20):
        profile = vani.profile(BROKEN / "parquet-rank-2pow24")
    assert profile.workflow.processes == 1 and profile.traces[0].complete is False
    assert profile.traces[0].problems == [
        "1 row left out: of ranks 16777215, far above all others (1 in all)"
    ]


def test_ranks_without_a_row_between_others_are_listed(tmp_path):
    reader = open_trace(write(tmp_path, rows(func_id=["write"] * 3, rank=np.array([0, 4, 5], np.int32))))
    assert reader.calls_per_rank().tolist() == [1, 0, 0, 0, 1, 1]
    assert reader.problems == ["ranks 1, 2, 3: left out, no row is of them"]


@pytest.mark.parametrize("last", [1 << 20, 1_500_000])
def test_many_ranks_are_counted_with_any_numbers(last):
    ranks = np.concatenate((np.arange(100_000), np.array([last, last, 1 << 23])))
    counter = RankCounter()
    for part in np.array_split(np.random.default_rng(1).permutation(ranks), 7):
        counter.add(part)
    calls, problems = counter.result()
    assert len(calls) == last + 1 and calls[last] == 2 and calls.sum() == 100_002
    assert problems[0] == "1 row left out: of ranks 8388608, far above all others (100001 in all)"
    assert problems[1].startswith("ranks 100000, 100001, ")


def test_duplicate_column_is_refused(tmp_path):
    table = rows(func_id=["write"])
    table = table.append_column("size", table["size"])
    with pytest.raises(UnknownFormatError, match="has 2 columns 'size'"):
        open_trace(write(tmp_path, table))


@pytest.mark.parametrize("column", ["level", "tmid"])
def test_rows_without_a_needed_number_are_left_out_and_counted(column, tmp_path):
    profile = vani.profile(write(tmp_path, rows(func_id=["write"] * 4, **{column: [1, None, None, 300]})))
    assert profile.traces[0].records == 2 and profile.traces[0].complete is False
    assert profile.traces[0].problems == [f"2 rows left out: no number in column {column}"]


def test_durations_that_wrap_together_are_refused_in_one_line(tmp_path):
    table = rows(func_id=["write"] * 6, duration=np.full(6, 9e8, np.float32))
    with pytest.raises(InputError, match=r"its calls take 5,400,000,000 s together, more than can be counted"):
        vani.profile(write(tmp_path, table))


@pytest.mark.parametrize("size", [-1, 2**56, 2**63 - 1])
def test_impossible_size_is_unknown_with_a_note(tmp_path, size):
    profile = vani.profile(write(tmp_path, rows(func_id=["write", "write"], size=[100, size])))
    assert profile.workflow.io.bytes.written == 100
    assert f"calls of write request {size} bytes" in profile.traces[0].problems[0]


def test_reading_in_pieces_gives_the_same_result(tmp_path, monkeypatch):
    names = ["open", "write", "write", "lseek", "read", "close"] * 200
    n = len(names)
    random = np.random.default_rng(2)
    # Rows are up to 20 places away from their position.
    order = np.argsort(np.arange(n) + random.uniform(0, 20, n), kind="stable")
    table = rows(func_id=names, size=random.integers(0, 1000, n)).take(order)
    whole, piece = read(open_trace(write(tmp_path, table)))
    for name, value in (("GROUP_ROWS", 500), ("_HELD", 30)):
        monkeypatch.setattr(f"vani.readers.parquet.reader.{name}", value)
    monkeypatch.setattr("vani.readers.parquet.parts.BATCH_ROWS", 100)
    pieces, other = read(open_trace(tmp_path))
    assert pieces.equals(whole) and len(pieces["rank"].chunks) > 5
    assert (other.records, other.ranks_read, other.span_ns) == (piece.records, 1, piece.span_ns)


def test_unordered_rank_is_cut_at_the_first_such_row(tmp_path, monkeypatch):
    table = rows(func_id=["write"] * 1000)
    write(tmp_path, pa.concat_tables([table.slice(500), table.slice(0, 500)]))
    for name, value in (("GROUP_ROWS", 500), ("_HELD", 30)):
        monkeypatch.setattr(f"vani.readers.parquet.reader.{name}", value)
    monkeypatch.setattr("vani.readers.parquet.parts.BATCH_ROWS", 100)
    calls, piece = read(open_trace(tmp_path))
    assert calls.num_rows == 470
    assert piece.problems[0].startswith("rank 0: 530 of 1,000 calls left out, its rows are out of order")
