"""Traces written in every layout are read back call for call.

The writer in `tests/traces/recorder_writer.py` is the counterpart; it is compared with real traces byte for byte.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples
from reading import read_trace
from tiny_traces import FUNCTIONS, TINY, sites_of, write_tiny

from tests.traces.recorder_oracle import decode_trace
from tests.traces.recorder_writer import Call, write_trace
from vani.calls import DIRECT, SYNCHRONOUS, FileClass, Flag, Kind, Layer
from vani.errors import TraceError, UnknownFormatError
from vani.readers.recorder import is_recorder, probe
from vani.readers.recorder.reader import RecorderReader
from vani.readers.trace_reader import Piece

RAW = ["2.3", "2.4", "2.5p"]


@pytest.mark.parametrize("name", TINY)
def test_every_layout_returns_the_written_calls(name, tmp_path):
    calls = [call for rank in write_tiny(tmp_path, name) for call in rank]
    ranks = [rank for rank, made in enumerate(write_tiny(tmp_path, name)) for _ in made]
    reading = read_trace(tmp_path)
    assert reading.problems == [] and reading.names() == [c.function for c in calls]
    assert reading.column("rank").tolist() == ranks
    assert reading.column("depth").tolist() == [c.depth for c in calls]
    assert reading.column("start_ns").tolist() == [100 * c.start for c in calls]
    assert reading.column("duration_ns").tolist() == [100 * (c.end - c.start) for c in calls]
    assert reading.piece.ranks_read == 3 and reading.piece.records == len(calls)


@pytest.mark.parametrize("name", TINY)
def test_every_layout_gives_the_same_files_bytes_and_offsets(name, tmp_path):
    write_tiny(tmp_path, name)
    reading = read_trace(tmp_path)
    rank = reading.column("rank") == 1
    paths = [path for path, of_rank in zip(reading.paths(), rank, strict=True) if of_rank]
    # Worked out by hand from `tiny_traces.calls_of`: 4 writes of 100, then 3 reads of 150 of those 400 bytes.
    own, shared = ["/s/own.1"] * 10, ["/s/shared"] * 7
    assert paths == [*own, None, *shared]
    offsets = reading.calls["offset"].filter(rank).to_pylist()
    posix = [None, 0, 100, 200, 300, 0, 0, 150, 300, None, None, None, None]
    assert [o for o, p in zip(offsets[:10], paths, strict=False)] == posix[:10]
    assert [offsets[i] for i in (14, 16)] == [64, (3 + 1) * 64]
    sizes = reading.calls["bytes"].filter(rank).to_pylist()
    assert sizes[1:5] == [100] * 4 and sizes[6:9] == [150] * 3 and sizes[13:17] == [64] * 4
    via = reading.calls["via"].filter(rank).to_pylist()
    assert via[12] == via[14] == via[16] == Layer.MPIIO and via[1] == Layer.POSIX


@pytest.mark.parametrize("name", TINY)
def test_ranks_read_individually_equal_ranks_read_together(name, tmp_path):
    write_tiny(tmp_path, name)
    reading = read_trace(tmp_path)
    reader = RecorderReader(tmp_path)
    rows = [row for r in range(3) for b in reader.batches(range(r, r + 1), Piece()) for row in b.to_pylist()]
    assert rows == reading.calls.to_pylist()
    assert [b.num_rows for b in reader.batches(range(2, 2), Piece())] == []


def test_function_list_may_have_any_order_and_unknown_names(tmp_path):
    functions = ["creat", "a_new_call", "pwrite64", "MPI_File_iwrite_all", "open64"]
    calls = [[Call("pwrite64", ("/a", "%p", "7", "9")), Call("a_new_call", ("x", "y"), 0, 0, 5, 6)]]
    write_trace(tmp_path, calls, layout="3.0", functions=functions)
    reading = read_trace(tmp_path)
    assert reading.reader.functions()["name"].to_pylist() == functions
    rows = reading.calls.to_pylist()
    assert (rows[0]["func"], rows[0]["bytes"], rows[0]["offset"], rows[0]["kind"]) == (2, 7, 9, Kind.WRITE)
    assert (rows[1]["func"], rows[1]["file"], rows[1]["kind"]) == (1, None, Kind.METADATA)


@pytest.mark.parametrize("layout", ["2.5p", "3.0"])
@pytest.mark.parametrize("interprocess", [True, False])
def test_a_trace_without_calls_is_an_empty_trace(layout, interprocess, tmp_path):
    write_trace(tmp_path, [[], []], layout=layout, interprocess=interprocess)
    reading = read_trace(tmp_path)
    assert reading.calls.num_rows == 0 and reading.problems == []
    assert (reading.reader.ranks, reading.reader.calls_per_rank().tolist()) == (2, [0, 0])


@pytest.mark.parametrize("name", ["2.5p", "2.5g", "3.0-per-rank-raw-times"])
def test_rank_without_calls_is_not_damage(name, tmp_path):
    calls = [[Call("creat", ("/a", "1"))], [], [Call("creat", ("/b", "1"), 0, 0, 3, 4)]]
    write_trace(tmp_path, calls, functions=FUNCTIONS, **TINY[name])
    reading = read_trace(tmp_path)
    assert reading.column("rank").tolist() == [0, 2] and reading.problems == []


def test_batches_are_bounded_though_a_loop_is_long(tmp_path, monkeypatch):
    # 6,000 calls of one signature in one rank, and 20 of another.
    monkeypatch.setattr("vani.readers.recorder.batches.BATCH_ROWS", 2_000)
    calls = [
        [Call("write", ("/a", "%p", "1"), 0, 0, i, i) for i in range(6_000)],
        [Call("creat", ("/b", "1"))] * 20,
    ]
    write_trace(tmp_path, calls, layout="3.0")
    reader, piece = RecorderReader(tmp_path), Piece()
    sizes = [batch.num_rows for batch in reader.batches(range(2), piece)]
    assert len(sizes) > 2 and max(sizes) <= 4_000 and piece.records == sum(sizes) == 6_020
    offsets = np.concatenate(
        [b["offset"].to_numpy(zero_copy_only=False) for b in reader.batches(range(1), Piece())]
    )
    # Never opened in the trace, so no position is known.
    assert np.isnan(offsets.astype(float)).all()


def test_batches_have_the_calls_of_as_many_ranks_as_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("vani.readers.recorder.batches.BATCH_ROWS", 100)
    counts = (90, 150, 40, 60, 30, 60, 201, 10)
    # Each rank repeats a different call, so no two have the same grammar.
    calls = [[Call("write", ("/a", "%p", str(n)))] * n for n in counts]
    write_trace(tmp_path, calls, layout="3.0")
    reader, piece = RecorderReader(tmp_path), Piece()
    batches = list(reader.batches(range(len(counts)), piece))
    assert [batch.num_rows for batch in batches] == [90, 150, 100, 191, 100, 10]
    assert [n for batch in batches for n in batch["bytes"].to_pylist()] == [n for n in counts for _ in range(n)]


def test_user_function_and_hdf5_call_with_id_255_are_distinguished(tmp_path):
    user, hdf5 = ("/bin/app", "solve"), ("1", "name", "2", "%p")
    write_trace(tmp_path, [[Call("user_function", user), Call("user_function", hdf5)]], layout="3.0")
    assert read_trace(tmp_path).column("layer").tolist() == [Layer.USER, Layer.HDF5]


@pytest.mark.parametrize("layout", ["2.5p", "3.0"])
def test_threads_are_kept_if_the_trace_stores_them(layout, tmp_path):
    calls = [[Call("creat", ("/a", "1"), 0, thread) for thread in (41, 42, 41)]]
    write_trace(tmp_path / "with", calls, layout=layout)
    write_trace(tmp_path / "without", calls, layout=layout, store_thread=False)
    assert read_trace(tmp_path / "with").column("thread").tolist() == [41, 42, 41]
    assert read_trace(tmp_path / "without").column("thread").tolist() == [0, 0, 0]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" "), max_size=12)
RANDOM_CALLS = st.builds(
    Call, st.sampled_from(["open", "write", "fread", "lseek", "rename", "MPI_File_open", "H5Dwrite", "nc_open", "symlinkat"]),
    st.lists(TEXTS | st.integers(-(2**70), 2**70).map(str), max_size=6).map(tuple), st.integers(0, 3), st.integers(0, 2),
    st.integers(0, 1000), st.integers(0, 2000),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(80))
@given(
    ranks=st.lists(st.lists(RANDOM_CALLS, max_size=8), min_size=1, max_size=4),
    name=st.sampled_from(sorted(set(TINY) - {"2.3"})),
)
def test_calls_with_any_arguments_are_read_in_every_layout(ranks, name, tmp_path_factory):
    directory: Path = tmp_path_factory.mktemp("trace")
    # Without VERSION and call sites the reference decoder could not determine whether keys have sites.
    sites = [sites_of(rank) for rank in range(len(ranks))] if "sites" in name else None
    write_trace(directory, ranks, call_sites=sites, **TINY[name])
    reading = read_trace(directory)
    assert reading.names() == [c.function for rank in ranks for c in rank]
    # The slow decoder is the reference for the stored data.
    stored = [c for rank in decode_trace(directory).calls for c in rank]
    assert reading.column("depth").tolist() == [c.depth for c in stored]
    assert reading.column("start_ns").tolist() == [100 * c.start for c in stored]
    assert not [p for p in reading.problems if "left out" in p]


# ---------------------------------------------------------------- hostile paths


def opened(path: str, tmp_path: Path):
    calls = [[Call("creat", (path, "1")), Call("write", (path, "%p", "5"), 0, 0, 2, 3)]]
    write_trace(tmp_path / "trace", calls, layout="3.0")
    return read_trace(tmp_path / "trace")


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("/a//b/./c/../d", "/a/b/d"),
        ("//a/b/", "/a/b"),
        ("/../../../../etc/passwd", "/etc/passwd"),
        ("../../x", "../../x"),
        ("/a/" + "../" * 100_000 + "x", "/x"),
        (".//scratch/a", "/scratch/a"),
        ("/a\nb\tc\x1b[31m\x00d", "/a\nb\tc\x1b[31m\x00d"),
        ("/\udcff\udcfe", "/\ufffd\ufffd"),
        ("/données_数据", "/données_数据"),
        ("/" + "x" * (1 << 20), "/" + "x" * (1 << 20)),
        ("/a%2Fb*?[]{}$(x)`y`'\"", "/a%2Fb*?[]{}$(x)`y`'\""),
    ],
    ids=["dots", "slashes", "above the root", "relative", "long chain", "no directory", "controls", "bytes", "UTF-8", "1 MB", "shell"],
)  # fmt: skip
def test_a_path_of_any_bytes_is_one_file(stored, shown, tmp_path):
    reading = opened(stored, tmp_path)
    assert reading.paths() == [shown, shown] and reading.problems == []
    assert reading.calls["offset"].to_pylist() == [None, 0]


@pytest.mark.parametrize("nothing", ["???", "NULL", "%p", ""])
def test_placeholder_for_an_unknown_path_is_not_a_file(nothing, tmp_path):
    assert opened(nothing, tmp_path).paths() == [None, None]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/shm/a", FileClass.DATASET), ("/dev/null", FileClass.SYSTEM), ("/proc/self/maps", FileClass.SYSTEM),
        ("/sys/x", FileClass.SYSTEM), ("/usr/lib/libc.so.6", FileClass.SHARED_LIBRARY), ("/a/x.so", FileClass.SHARED_LIBRARY),
        ("/scratch/x.sock", FileClass.DATASET), ("stdin", FileClass.STANDARD_STREAM), ("stderr", FileClass.STANDARD_STREAM),
        ("/device/x", FileClass.DATASET), ("pipe:[123]", FileClass.SOCKET_OR_PIPE), ("socket:[5]", FileClass.SOCKET_OR_PIPE),
        ("/dev/../scratch/x", FileClass.DATASET), ("/scratch/../dev/zero", FileClass.SYSTEM),
    ],
)  # fmt: skip
def test_files_outside_the_data_set_are_recognised_by_path(path, kind, tmp_path):
    # Contract, "file".
    assert opened(path, tmp_path).reader.files()["class"].to_pylist() == [kind]


@pytest.mark.parametrize("size", ["-1", "99999999999999999999", "abc", "1e5", "0x10", "", "4096_", "٣"])
def test_invalid_number_of_bytes_is_unknown(size, tmp_path):
    write_trace(tmp_path, [[Call("write", ("/a", "%p", size))]], layout="3.0")
    reading = read_trace(tmp_path)
    assert reading.calls["bytes"].to_pylist() == [None]
    # A write of -1 (an error value passed on) is a number, but its effect is unknown.
    assert [f"request {size} bytes" in p for p in reading.problems] == [True] * (size in ("-1", "9" * 20))


def test_a_product_beyond_64_bits_is_unknown(tmp_path):
    calls = [[Call("fwrite", ("%p", "999999999999999999", "999999999999999999", "/a"))]]
    write_trace(tmp_path, calls, layout="3.0")
    assert read_trace(tmp_path).calls["bytes"].to_pylist() == [None]


def test_opens_are_known_by_their_flags(tmp_path):
    # O_WRONLY 1, O_RDWR 2, O_CREAT 64, O_TRUNC 512, O_APPEND 1024, O_DSYNC 4096, O_DIRECT 16384, O_SYNC 1052672 on Linux (format document, section 6).
    modes = [("open", "0"), ("open", "1"), ("open", "66"), ("open", "577"), ("open", "1089"), ("fopen", "r"), ("fopen", "w"),
             ("fopen", "a+"), ("fopen", "r+"), ("fopen", "rb+"), ("creat", "420"), ("open", "16385"), ("open", "1052673"), ("open", "4097")]  # fmt: skip
    write_trace(tmp_path, [[Call(f, (f"/{i}", mode)) for i, (f, mode) in enumerate(modes)]], layout="3.0")
    o, w, c, t, a = Flag.OPEN, Flag.WRITABLE, Flag.CREATE, Flag.TRUNCATE, Flag.APPEND
    assert read_trace(tmp_path).column("flags").tolist() == [
        o, o | w, o | w | c, o | w | c | t, o | w | c | a, o, o | w | c | t, o | w | c | a, o | w, o | w, o | w | c | t,
        DIRECT | int(o | w), o | w | SYNCHRONOUS, o | w | SYNCHRONOUS,
    ]  # fmt: skip


# ---------------------------------------------------------------- recognition


def files_in(directory: Path, *names: str, version: str | None = None) -> Path:
    for name in names:
        (directory / name).write_bytes(b"")
    if version is not None:
        (directory / "VERSION").write_text(version)
    return directory


@pytest.mark.parametrize(
    ("version", "others", "layout"),
    [
        ("2.3.0", ["0.ts"], "2.3"), ("2.3.3", ["0.ts"], "2.3"), ("2.4.0", ["0.ts"], "2.5p"), ("2.5.0", ["0.ts"], "2.5p"),
        ("2.5.0", ["recorder.ts"], "2.5g"), ("3.0.0", ["recorder.ts"], "3.0"), ("3.0.0\n", ["recorder.ts"], "3.0"),
        ("2.5.0\0", ["recorder.ts"], "2.5g"),
    ],
)  # fmt: skip
def test_layout_is_recognised_by_version_and_files(version, others, layout, tmp_path):
    # Format document, section 9, "Recognition summary".
    assert probe(files_in(tmp_path, "recorder.mt", *others, version=version)).layout == layout


@pytest.mark.parametrize("version", ["3.1.0", "4.1"])
def test_newer_version_of_a_known_layout_is_noted(version, tmp_path):
    write_tiny(tmp_path, "3.0")
    whole = read_trace(tmp_path)
    (tmp_path / "VERSION").write_text(version)
    reading = read_trace(tmp_path)
    assert reading.calls == whole.calls
    assert f"VERSION says {version}, known are 2.3 to 2.5 and 3.0: read as 3.0, which" in reading.problems[0]


@pytest.mark.parametrize(
    "version", ["2.0.0", "2.2.0", "2.6.0", "3.1.0.1", "4", "", "x" * 5000, "\x1b[31m", "3.0.0 # ", "300"]
)
def test_unknown_version_is_refused_by_name(version, tmp_path):
    with pytest.raises(TraceError) as refused:
        probe(files_in(tmp_path, "recorder.mt", "recorder.ts", version=version))
    message = str(refused.value)
    assert "VERSION" in message and "\n" not in message and "\x1b" not in message and len(message) < 1000


def test_recorder_2_0_to_2_2_is_refused_with_a_next_step(tmp_path):
    with pytest.raises(UnknownFormatError, match=r"2\.0-2\.2 .*trace again"):
        probe(files_in(tmp_path, "0.itf", "0.mt", "recorder.mt", version="2.2.0"))


def test_unrelated_directory_is_not_a_trace(tmp_path):
    files_in(tmp_path, "a.out", "results.csv")
    assert not is_recorder(tmp_path)
    with pytest.raises(UnknownFormatError, match=r"is not a Recorder trace; name a folder"):
        probe(tmp_path)




def test_files_of_open_mpi_are_not_data_under_recorder(tmp_path):
    paths = ["/tmp/ompi.vm.0/pid.7/1/x.nc_cid-0-9.sm", "/s/x.nc.locktest.0", "/s/x.nc"]
    calls = [Call(name, (path, *rest), 0, 0, 10 * i, 10 * i + 5)
             for i, path in enumerate(paths) for name, rest in (("open", ("578", "420")), ("close", ()))]  # fmt: skip
    write_trace(tmp_path, [calls], functions=["open", "close"], layout="3.0")
    files = RecorderReader(tmp_path).files()
    data = [kind == FileClass.DATASET for kind in files["class"].to_pylist()]
    assert dict(zip(files["path"].to_pylist(), data, strict=True)) == dict.fromkeys(paths[:2], False) | {paths[2]: True}
