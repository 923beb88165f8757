"""Every real trace compared with the counts of Recorder's own `recorder2text` and of another decoder.

The expected values are in `reference.json` next to the traces, whose README describes its origin. Traces of 2025
and 2026 have a shorter reference: see `test_recorder_dat_real`.
"""

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from reading import Reading, read_trace

from tests.traces.recorder_oracle import decode_trace
from vani.calls import Flag, Kind, Layer
from vani.errors import TraceError
from vani.readers.paths import normal_path
from vani.readers.recorder.reader import RecorderReader

BUNDLED = Path(__file__).resolve().parents[1] / "data" / "traces"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"
NEWEST = SHARED.with_name("traces-new")
TRACES = SHARED if SHARED.is_dir() else BUNDLED

RECORDERS_LAYER = {
    0: (Layer.POSIX, Layer.STDIO),
    1: (Layer.MPIIO,),
    2: (Layer.MPI,),
    3: (Layer.HDF5,),
    4: (Layer.USER,),
    6: (Layer.PNETCDF, Layer.NETCDF),
}
"""By the number that recorder2text prints; it also prints 6 for PnetCDF, whose own number is 5."""


def references() -> dict[str, dict]:
    stated = json.loads((TRACES / "reference.json").read_text())
    found = {}
    for name, reference in stated.items():
        if name.startswith("n"):
            continue
        steps = reference.get("steps")
        found |= {f"{name}/{step}": r for step, r in steps.items()} if steps else {name: reference}
    return found


REFERENCE = references()
READABLE = [name for name, reference in REFERENCE.items() if reference.get("readable", True)]
UNREADABLE = [name for name in REFERENCE if name not in READABLE]
WITH_PATTERNS = [name for name in READABLE if "resolved_offsets" in REFERENCE[name]]
# Files whose directories recorder2text shows both as `a/b` and as `a//b`.
WITH_SPELLINGS = [name for name in READABLE if name == "v3-mdtest-8r"]
WITH_VFPRINTF = [name for name in READABLE if "vfprintf" in REFERENCE[name]["records_per_function"]]


@functools.lru_cache(maxsize=2)
def reading_of(name: str) -> Reading:
    return read_trace(TRACES / name)


def bytes_per_file(reading: Reading, *, without: str = "") -> dict[str, dict[str, int]]:
    kinds, sizes, counted = reading.column("kind"), reading.column("bytes"), reading.is_file_system()
    counted &= (kinds == Kind.READ) | (kinds == Kind.WRITE)
    files = reading.column("file")
    if without in (names := reading.reader.functions()["name"].to_pylist()):
        counted &= reading.column("func") != names.index(without)
    paths = reading.reader.files()["path"].to_pylist()
    totals = {}
    for file in np.unique(files[counted]).tolist():
        rows = counted & (files == file)
        totals[paths[file]] = {
            "read": int(sizes[rows & (kinds == Kind.READ)].sum()),
            "written": int(sizes[rows & (kinds == Kind.WRITE)].sum()),
        }
    return totals


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_bundled_traces_and_their_reference_match_the_shared_ones():
    bundled = json.loads((BUNDLED / "reference.json").read_text())
    assert set(bundled) == {p.name for p in BUNDLED.iterdir() if p.is_dir()}
    for name, reference in bundled.items():
        folder = NEWEST if name.startswith("n") else SHARED
        shared = json.loads((folder / "reference.json").read_text())
        assert reference.items() <= shared[name].items()
        for file in (BUNDLED / name).iterdir():
            assert file.read_bytes() == (folder / name / file.name).read_bytes(), file


def test_each_layout_and_flag_is_among_the_bundled_traces():
    shared_ranks = ("interprocess", "interprocess_patterns", "intraprocess_patterns")
    both = (*shared_ranks, "compressed_times", "stores_thread", "stores_depth")
    shapes = set()
    for name in (p.parent.name for p in BUNDLED.glob("*/VERSION")):
        meta = RecorderReader(BUNDLED / name).metadata
        shapes |= {(meta.layout.name, flag, getattr(meta, flag)) for flag in both}
    assert {("3.0", flag, value) for flag in both for value in (True, False)} <= shapes
    assert {("2.5g", flag, value) for flag in shared_ranks for value in (True, False)} <= shapes
    assert {("2.5p", "interprocess", value) for value in (True, False)} <= shapes


def test_the_bundled_traces_are_small():
    # The size limit from the issue: 3 MB in total.
    assert sum(f.stat().st_size for f in BUNDLED.rglob("*") if f.is_file()) <= 3_000_000


def check_every_record_is_read_and_nothing_is_reported_as_damaged(reading, reference):
    assert reading.calls.num_rows == reading.piece.records == reference["records_total"]
    assert reading.problems == []
    assert reading.piece.ranks_read == sum(n > 0 for n in reference["records_per_rank"])


def check_every_rank_has_its_records(reading, reference):
    assert reading.reader.ranks == reference["ranks"]
    assert reading.reader.calls_per_rank().tolist() == reference["records_per_rank"]
    counted = np.bincount(reading.column("rank"), minlength=reference["ranks"])
    assert counted.tolist() == reference["records_per_rank"]


def check_every_function_has_its_records(reading, reference):
    assert reading.piece.functions == reference["records_per_function"]
    names = reading.reader.functions()["name"].to_pylist()
    counted = np.bincount(reading.column("func"), minlength=len(names)).tolist()
    assert {n: c for n, c in zip(names, counted, strict=True) if c} == reference["records_per_function"]


def check_every_call_depth_has_its_records(reading, reference):
    counted = np.bincount(reading.column("depth")).tolist()
    assert {str(d): c for d, c in enumerate(counted) if c} == reference["records_per_call_depth"]


def check_the_bytes_of_every_file_are_those_of_recorder2text(reading, reference):
    # The reference omits the bytes of vfprintf: see the test below.
    assert bytes_per_file(reading, without="vfprintf") == reference["posix_bytes_per_file"]


def check_the_bytes_read_and_written_are_those_of_recorder2text(reading, reference):
    totals = bytes_per_file(reading, without="vfprintf").values()
    assert sum(t["read"] for t in totals) == reference["posix_bytes_read_total"]
    assert sum(t["written"] for t in totals) == reference["posix_bytes_written_total"]


@pytest.mark.parametrize("name", WITH_VFPRINTF)
def test_vfprintf_writes_bytes_that_the_reference_tool_does_not_count(name):
    # posix_mix calls fprintf 10 times per rank; the trace stores the bytes of each and one for the NUL
    # (format document, section 6), which is not written. The slow decoder is the reference for the stored
    # data.
    reading, reference = reading_of(name), REFERENCE[name]
    calls = reference["records_per_function"]["vfprintf"]
    everything = bytes_per_file(reading)
    counted = bytes_per_file(reading, without="vfprintf")
    stored = [
        int(c.args[1]) for rank in decode_trace(TRACES / name).calls for c in rank if c.function == "vfprintf"
    ]
    more = sum(t["written"] for t in everything.values()) - sum(t["written"] for t in counted.values())
    assert calls == len(stored) and more == sum(stored) - calls


def files_opened(reading: Reading) -> int:
    files = reading.column("file")
    opened = reading.is_file_system() & ((reading.column("flags") & Flag.OPEN) != 0) & (files >= 0)
    return len(np.unique(files[opened]))


def check_as_many_files_are_opened_as_in_recorder2text(reading, reference):
    assert files_opened(reading) == reference["distinct_files_opened"]


@pytest.mark.parametrize("name", WITH_SPELLINGS)
def test_two_spellings_of_a_path_are_one_file(name):
    # mdtest opens each of its own files twice (to create it, to read it) and unlinks each once.
    functions = REFERENCE[name]["records_per_function"]
    assert (
        functions["open"] == 2 * functions["unlink"]
        and REFERENCE[name]["distinct_files_opened"] > functions["unlink"]
    )
    assert files_opened(reading_of(name)) == functions["unlink"]


def check_as_many_files_have_data_calls_as_in_recorder2text(reading, reference):
    files, kinds = reading.column("file"), reading.column("kind")
    data = reading.is_file_system() & ((kinds == Kind.READ) | (kinds == Kind.WRITE)) & (files >= 0)
    assert len(np.unique(files[data])) == reference["distinct_files_with_data_calls"]


def check_times_begin_and_end_as_the_other_decoder_says_and_repaired_starts_are_counted(reading, reference):
    start, duration = reading.column("start_ns"), reading.column("duration_ns")
    # The reference is rounded to seven decimals.
    assert start.min() == pytest.approx(reference["first_tstart_s"] * 1e9, abs=50)
    assert (start + duration).max() == pytest.approx(
        reference["last_tend_s_if_deltas_read_as_int32"] * 1e9, abs=50
    )
    assert reading.piece.first_ns == start.min()
    assert reading.piece.span_ns == (start + duration).max()
    assert reading.piece.repaired_times == reference["wrapped_negative_tstart_deltas"]


def check_the_first_calls_of_rank_0_are_those_of_recorder2text_with_the_right_times(reading, reference):
    lines = reference["first20_rank0_correct_times"]
    names, paths = reading.names(), reading.paths()
    for row, line in enumerate(lines):
        start, end, function, depth, layer, arguments = re.fullmatch(
            r"(\S+) (\S+) (\S+) (\d+) (\d+) \( ?(.*?) ?\)", line, re.DOTALL
        ).groups()
        call = {name: reading.calls[name][row].as_py() for name in reading.calls.column_names}
        assert call["start_ns"] == pytest.approx(float(start) * 1e9, abs=50)
        assert call["start_ns"] + call["duration_ns"] == pytest.approx(float(end) * 1e9, abs=50)
        assert (names[row], call["depth"]) == (function, int(depth))
        assert call["layer"] in RECORDERS_LAYER[int(layer)]
        if call["layer"] <= Layer.STDIO and paths[row] is not None:
            assert paths[row] in [normal_path(a) for a in arguments.split(" ")]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "v3-large-smallio-8r" else ()) for name in READABLE],
)
@pytest.mark.sampled(40)
def test_trace_is_read_as_by_two_other_decoders(name):
    reading, reference = reading_of(name), REFERENCE[name]
    check_every_record_is_read_and_nothing_is_reported_as_damaged(reading, reference)
    check_every_rank_has_its_records(reading, reference)
    check_every_function_has_its_records(reading, reference)
    check_every_call_depth_has_its_records(reading, reference)
    check_the_bytes_of_every_file_are_those_of_recorder2text(reading, reference)
    check_the_bytes_read_and_written_are_those_of_recorder2text(reading, reference)
    check_as_many_files_have_data_calls_as_in_recorder2text(reading, reference)
    check_times_begin_and_end_as_the_other_decoder_says_and_repaired_starts_are_counted(reading, reference)
    check_the_first_calls_of_rank_0_are_those_of_recorder2text_with_the_right_times(reading, reference)
    if name not in WITH_SPELLINGS:
        check_as_many_files_are_opened_as_in_recorder2text(reading, reference)


@pytest.mark.parametrize("name", WITH_PATTERNS)
def test_offsets_after_patterns_are_resolved(name):
    reading = reading_of(name)
    expected = REFERENCE[name]["resolved_offsets"]["per_rank"]
    functions = {function for rank in expected for function, _ in rank}
    names, offsets, ranks = reading.names(), reading.calls["offset"].to_pylist(), reading.column("rank")
    # The offset of a seek is its destination, which only an absolute seek gives; the arguments of seeks come
    # from the slow decoder.
    whence = [
        c.args[2]
        for rank in decode_trace(TRACES / name).calls
        for c in rank
        if c.function.startswith("lseek")
    ]
    seeks = iter(whence)
    for rank, stated in enumerate(expected):
        found = [
            (names[row], offsets[row], next(seeks) if names[row].startswith("lseek") else "0")
            for row in np.flatnonzero(ranks == rank).tolist()
            if names[row] in functions
        ]
        assert [f[0] for f in found] == [s[0] for s in stated]
        absolute = [(f[:2], tuple(s)) for f, s in zip(found, stated, strict=True) if f[2] == "0"]
        assert [a[0] for a in absolute] == [a[1] for a in absolute]
        assert len(absolute) > len(stated) / 2


@pytest.mark.parametrize("name", UNREADABLE)
def test_aborted_trace_is_refused_naming_its_missing_files(name):
    assert {f.name: f.stat().st_size for f in (TRACES / name).iterdir()} == REFERENCE[name]["files_left"]
    with pytest.raises(TraceError) as refused:
        RecorderReader(TRACES / name)
    message = str(refused.value)
    for missing in ("VERSION", "recorder.mt", ".cst", ".cfg"):
        assert missing in message
    assert str(TRACES / name) in message and "\n" not in message and refused.value.todo
