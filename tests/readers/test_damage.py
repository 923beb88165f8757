"""Damaged traces: complete parts are read, losses are listed, and nothing else happens.

Reading ends in batches (with problems, if something was left out) or in a `TraceError` of one line: no other
exception (numpy's warnings are errors here), no hang, no memory above a bound. The bound for a whole trace is
`MAX_MEMORY`: call tables and grammars have maximum sizes (`MAX_TABLE_BYTES`, `MAX_GRAMMAR_BYTES`), time stamps
are read in pieces. Small damaged traces stay far below it.
"""

import os
import re
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples
from reading import Reading, read_trace
from tiny_traces import FUNCTIONS, PARTS_OF, TINY, write_tiny

import vani
from tests.traces.recorder_writer import (
    Call,
    CallTableEntry,
    encode_cst,
    encode_key,
    encode_metadata,
    encode_rules,
    write_trace,
    zframe,
)
from vani.errors import TraceError
from vani.readers.recorder.grammar import MAX_GRAMMAR_BYTES
from vani.readers.recorder.reader import RecorderReader
from vani.readers.recorder.source import MAX_TABLE_BYTES
from vani.readers.trace_reader import Piece

BUNDLED = Path(__file__).resolve().parents[1] / "data" / "traces"
BROKEN = BUNDLED.parent / "broken"
MAX_MEMORY = 2 << 30
SECONDS = 10.0
"""Processor time for one damaged trace of a few hundred bytes or KB; most take a hundredth of a second."""

PER_RANK = ["2.3", "2.5p", "2.5g-per-rank", "3.0-per-rank-raw-times"]
QUICK = ["2.3", "2.5p-shared", "2.5g", "3.0-per-rank-raw-times", "3.0-patterns", "3.x-dat", "3.x-dat2-sites"]
REAL = sorted(
    p.name for p in BUNDLED.iterdir() if any((p / n).is_file() for n in ("VERSION", "recorder.dat", "recorder.mt"))
)


def attempt(directory: Path) -> Reading | TraceError:
    """Read a trace that may be damaged, and check the properties that every result has."""
    started = time.process_time()
    try:
        reading = read_trace(directory)
    except TraceError as error:
        assert error.exit_code == 2 and str(error).isprintable() and str(directory) in str(error)
        return error
    finally:
        assert time.process_time() - started < SECONDS
    assert reading.calls.num_rows == reading.piece.records == sum(reading.piece.functions.values())
    # Each incomplete rank is named, and no rank is reported without a reason.
    counts = np.bincount(reading.column("rank"), minlength=reading.reader.ranks)
    short = np.flatnonzero(counts < reading.reader.calls_per_rank())
    assert all(any(f"rank {rank}:" in problem for problem in reading.problems) for rank in short.tolist())
    return reading


def rows_of(reading: Reading, rank: int) -> list[dict]:
    """Calls of a rank, with files by path because their codes depend on what else was read."""
    paths = reading.reader.files()["path"].to_pylist()
    rows = reading.calls.filter(reading.column("rank") == rank).to_pylist()
    return [row | {"file": None if row["file"] is None else paths[row["file"]]} for row in rows]


@pytest.fixture
def tiny(request, tmp_path) -> tuple[str, Path]:
    directory = tmp_path / "trace"
    write_tiny(directory, request.param, ranks=2)
    return request.param, directory


def cuts(directory: Path, *, step: int = 1, only: str = "") -> Iterator[tuple[Path, int]]:
    """Truncate each file at every byte, and restore it."""
    for file in sorted(directory.iterdir()):
        if only and not (file.name.startswith(only) or not file.name[0].isdigit()):
            continue
        whole = file.read_bytes()
        for length in range(0, len(whole), step):
            file.write_bytes(whole[:length])
            yield file, length
        file.write_bytes(whole)


def names_loss(outcome: Reading | TraceError, file: Path) -> bool:
    if isinstance(outcome, TraceError):
        return True
    # "3.0" means the same as "3.0.0", and unused functions at the end of the list are no loss.
    if file.name in ("VERSION", "recorder.mt") and not outcome.problems:
        return "(unknown)" not in outcome.piece.functions
    return bool(outcome.problems)


@pytest.mark.slow
@pytest.mark.parametrize("tiny", QUICK, indirect=True)
def test_truncated_trace_is_refused_or_lists_what_is_lost(tiny):
    name, directory = tiny
    # 7 calls of 4 signatures; the files of rank 0 are like those of rank 1.
    write_tiny(directory, name, ranks=2, most=7)
    only = "1." if name in PER_RANK else ""
    for file, length in cuts(directory, step=3, only=only):
        assert names_loss(attempt(directory), file), (file.name, length)


@pytest.mark.slow
@pytest.mark.parametrize("tiny", TINY, indirect=True)
def test_cut_layout_is_refused_or_its_loss_is_listed(tiny):
    for file, length in cuts(tiny[1]):
        assert names_loss(attempt(tiny[1]), file), (file.name, length)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(REAL, key=lambda n: sum(f.stat().st_size for f in (BUNDLED / n).iterdir()))[:4]
)
def test_truncated_real_trace_is_refused_or_lists_what_is_lost(name, tmp_path):
    shutil.copytree(BUNDLED / name, tmp_path / name)
    for file, length in cuts(tmp_path / name):
        assert names_loss(attempt(tmp_path / name), file), (file.name, length)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.slow
def test_cut_trace_is_refused_or_its_loss_is_listed(name, tmp_path):
    shutil.copytree(BUNDLED / name, tmp_path / name)
    for file in sorted((tmp_path / name).iterdir()):
        # Ranks beyond 1 have files of the same kinds.
        if re.match(r"[2-9]|1\d", file.name):
            continue
        whole = file.read_bytes()
        for part in (0, 0.5, 0.999):
            length = int(len(whole) * part)
            file.write_bytes(whole[:length])
            assert names_loss(attempt(tmp_path / name), file), (file.name, length)
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("tiny", "suffix"),
    [(n, s) for n in PER_RANK for s in ("cst", "cfg", "ts") if s != "ts" or n in ("2.3", "2.5p")],
    indirect=["tiny"],
)
@pytest.mark.parametrize("part", [None, 0, 0.5, 0.95])
@pytest.mark.sampled(14)
def test_losses_of_one_rank_do_not_affect_others(tiny, suffix, part):
    _, directory = tiny
    whole = rows_of(read_trace(directory), 0)
    file = directory / f"1.{suffix}"
    if part is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: int(file.stat().st_size * part)])
    reading = read_trace(directory)
    # Files that only rank 1 names remain its own, but a shared file now seems to be used only by rank 0.
    kept = [{k: v for k, v in row.items() if k != "offset"} for row in rows_of(reading, 0)]
    assert kept == [{k: v for k, v in row.items() if k != "offset"} for row in whole]
    assert any(problem.startswith("rank 1:") and f"1.{suffix}" in problem for problem in reading.problems)


@pytest.mark.parametrize(
    ("tiny", "missing"),
    [(n, f) for n, files in PARTS_OF.items() for f in files if n != "3.x-dat"],
    indirect=["tiny"],
)
def test_a_missing_file_is_named(tiny, missing):
    (tiny[1] / missing).unlink()
    outcome = attempt(tiny[1])
    text = str(outcome) if isinstance(outcome, TraceError) else " ".join(outcome.problems)
    assert missing in text


def test_crashed_rank_keeps_calls_with_written_time_stamps(tmp_path):
    # 2.5p flushes time stamps continuously: 8 bytes per call; rank 1 has 18 calls, and its file ends within
    # the sixth.
    write_tiny(tmp_path, "2.5p", ranks=2)
    (tmp_path / "1.ts").write_bytes((tmp_path / "1.ts").read_bytes()[: 5 * 8 + 3])
    reading = read_trace(tmp_path)
    assert np.bincount(reading.column("rank")).tolist() == [19, 5]
    assert reading.problems == [
        f"rank 1: 13 of 18 calls left out, the time stamps in {tmp_path / '1.ts'} end before them"
    ]


# ---------------------------------------------------------------- random damage

FLIP = st.tuples(st.just("flip"), st.integers(0, 1 << 16), st.integers(1, 255))
INSERT = st.tuples(st.just("insert"), st.integers(0, 1 << 16), st.binary(min_size=1, max_size=9))
DELETE = st.tuples(st.just("delete"), st.integers(0, 1 << 16), st.integers(1, 9))
EXTREME = st.tuples(
    st.just("number"), st.integers(0, 1 << 16),
    st.sampled_from([b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\0", b"\1\0\0\0", b"\xff" * 8, b"\xff" * 7 + b"\x7f"]),
)  # fmt: skip


def damaged(content: bytes, changes: list[tuple]) -> bytes:
    changed = bytearray(content)
    for what, place, how in changes:
        at = place % (len(changed) + 1)
        if what == "flip" and at < len(changed):
            changed[at] ^= how
        elif what == "insert":
            changed[at:at] = how
        elif what == "delete":
            del changed[at : at + how]
        elif what == "number":
            changed[at - at % 4 : at - at % 4 + len(how)] = how
    return bytes(changed)


def inside_frames(content: bytes, changes: list[tuple]) -> bytes:
    """Damage the contents of the last frame and pack it again, to reach the checks after zlib."""
    frames, at = [], 0
    while at < len(content):
        (packed,) = struct.unpack_from("<Q", content, at)
        frames.append(content[at : at + 16 + packed])
        at += 16 + packed
    return b"".join(frames[:-1]) + zframe(damaged(zlib.decompress(frames[-1][16:]), changes))


def inside_sections(content: bytes, changes: list[tuple]) -> bytes:
    """Damage the table of sections or the content of one, to reach the checks after the table."""
    (count,) = struct.unpack_from("<I", content, 12)
    place = changes[0][1]
    if place % (count + 1) == count:
        at, size = 16, 24 * count
    else:
        at, size = struct.unpack_from("<QQ", content, 16 + 24 * (place % (count + 1)) + 8)
    part = content[at : at + size]
    new = inside_frames(part, changes) if part[16:17] == b"\x78" else damaged(part, changes)[:size].ljust(size, b"\0")
    # A section of another size moves the bytes after it; its entry is unchanged.
    return content[:at] + new + content[at + size :]


@pytest.fixture(scope="module")
def files_of(tmp_path_factory) -> Callable[[str], dict[str, bytes]]:
    """Contents of the traces that are damaged repeatedly. A function, since hypothesis prints its arguments."""
    found = {}
    for name in REAL:
        found[name] = {f.name: f.read_bytes() for f in (BUNDLED / name).iterdir()}
    for name in TINY:
        directory = tmp_path_factory.mktemp("tiny") / "trace"
        write_tiny(directory, name, ranks=2)
        found[name] = {f.name: f.read_bytes() for f in directory.iterdir()}
    return found.__getitem__


# (which file, how, where and what, which other file)
DAMAGE = st.tuples(
    st.integers(0, 1 << 10),
    st.sampled_from(["bytes", "bytes", "inside", "inside", "section", "section", "remove", "swap", "empty", "repeat"]),
    st.lists(FLIP | INSERT | DELETE | EXTREME, min_size=1, max_size=4),
    st.integers(0, 1 << 10),
)


def fuzz(files: dict[str, bytes], directory: Path, damage: tuple[int, str, list[tuple], int]) -> None:
    files, names = dict(files), sorted(files)
    one, how, changes, another = damage
    file, other = names[one % len(names)], names[another % len(names)]
    if how == "remove":
        del files[file]
    elif how == "swap":
        files[file], files[other] = files[other], files[file]
    elif how == "empty":
        files[file] = b""
    elif how == "repeat":
        files[file] *= 2
    elif how == "section" and file == "recorder.dat" and len(files[file]) > 40:
        files[file] = inside_sections(files[file], changes)
    elif how == "inside" and file.endswith((".cst", ".cfg")) and files[file][16:17] == b"\x78":
        files[file] = inside_frames(files[file], changes)
    else:
        files[file] = damaged(files[file], changes)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    attempt(directory)


QUIET = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
]


@settings(max_examples=examples(300), suppress_health_check=QUIET)
@given(name=st.sampled_from(sorted(TINY)), damage=DAMAGE)
def test_random_damage_ends_in_batches_or_in_one_line(name, damage, files_of, tmp_path):
    fuzz(files_of(name), tmp_path / "trace", damage)


@settings(max_examples=examples(120), suppress_health_check=QUIET)
@given(name=st.sampled_from(REAL), damage=DAMAGE)
@pytest.mark.slow
def test_randomly_damaged_trace_is_read_or_refused(
    name, damage, files_of, tmp_path, peak_memory
):
    with peak_memory(below=MAX_MEMORY // 8):
        fuzz(files_of(name), tmp_path / "trace", damage)


@pytest.mark.slow
@settings(max_examples=20_000, suppress_health_check=QUIET)
@given(name=st.sampled_from([*sorted(TINY), *REAL]), damage=DAMAGE)
def test_much_random_damage_ends_in_batches_or_in_one_line(name, damage, files_of, tmp_path):
    fuzz(files_of(name), tmp_path / "trace", damage)


# ---------------------------------------------------------------- hostile by design


def raw_trace(
    directory: Path,
    rules: dict[int, list[tuple[int, int]]],
    *,
    times: bytes = bytes(8 * 100),
    ranks: int = 1,
    table: bytes | None = None,
) -> Path:
    """A 2.5p trace with one signature (write of 1 byte) and the given grammar, however absurd."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "VERSION").write_text("2.5.0")
    (directory / "recorder.mt").write_bytes(encode_metadata("2.5p", FUNCTIONS, ranks=ranks))
    key = encode_key(FUNCTIONS.index("write"), ("/a", "%p", "1"), layout="2.5p")
    for rank in range(ranks):
        (directory / f"{rank}.cst").write_bytes(
            table or encode_cst([CallTableEntry(0, 0, 1, key)], layout="2.5p")
        )
        (directory / f"{rank}.cfg").write_bytes(encode_rules(rules))
        (directory / f"{rank}.ts").write_bytes(times)
    return directory


def test_looping_grammar_loses_only_its_rank(tmp_path):
    raw_trace(tmp_path, {-1: [(0, 100)]}, ranks=2)
    (tmp_path / "0.cfg").write_bytes(encode_rules({-1: [(-2, 1)], -2: [(-1, 1)]}))
    reading = read_trace(tmp_path)
    assert np.bincount(reading.column("rank")).tolist() == [0, 100]
    assert reading.problems == [f"rank 0: left out, {tmp_path / '0.cfg'}: a grammar rule contains itself"]


@pytest.mark.parametrize("levels", [39, 60, 63, 64, 200])
def test_grammar_with_too_many_calls_is_refused_before_expansion(
    levels, tmp_path, peak_memory
):
    rules = {-1 - k: [(-2 - k, 2)] for k in range(levels)} | {-1 - levels: [(0, 1)]}
    with peak_memory(below=64 << 20), pytest.raises(TraceError, match=r"0\.cfg: grammar claims"):
        read_trace(raw_trace(tmp_path, rules))


def test_grammar_claiming_a_billion_calls_gives_only_calls_with_time_stamps(
    tmp_path, peak_memory
):
    with peak_memory(below=256 << 20):
        reading = read_trace(raw_trace(tmp_path, {-1: [(-2, 10_000)], -2: [(0, 100_000)]}))
    assert reading.calls.num_rows == 100
    assert "999,999,900 of 1,000,000,000 calls left out" in reading.problems[0]


@pytest.mark.slow
def test_trace_with_a_grammar_nested_100_000_deep_is_read(tmp_path):
    depth = 100_000
    rules = {
        -1: [(-2, 1)],
        **{-k: [(-k - 1, 1), *([(0, 1)] if k % 1000 == 0 else [])] for k in range(2, depth)},
        -depth: [(0, 1)],
    }
    started = time.process_time()
    reading = read_trace(raw_trace(tmp_path, rules))
    # One call at the bottom, and one at every thousandth level above it.
    assert reading.calls.num_rows == 100 and reading.problems == []
    assert time.process_time() - started < 30


def bomb(pieces: int) -> bytes:
    """A zlib stream of `pieces` x 16 MiB of zeros, a thousandth of that in size; its checksum is wrong."""
    packer = zlib.compressobj(1)
    begin = packer.flush(zlib.Z_FULL_FLUSH)
    return begin + (packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)) * pieces


@pytest.mark.parametrize("file", ["recorder.cst", "ug.cfg"])
@pytest.mark.parametrize("claim", [4096, 200 << 24, MAX_TABLE_BYTES, 2**63, 2**64 - 1])
@pytest.mark.sampled(3)
def test_zlib_bomb_is_not_inflated(file, claim, tmp_path, peak_memory):
    write_tiny(tmp_path, "3.0", ranks=2)
    stream = bomb(200)
    (tmp_path / file).write_bytes(struct.pack("<QQ", len(stream), claim) + stream)
    del stream
    with peak_memory(below=2 * MAX_TABLE_BYTES), pytest.raises(TraceError, match=file.replace(".", r"\.")):
        read_trace(tmp_path)


@pytest.mark.parametrize("size", [4 << 20, pytest.param(32 << 20, marks=pytest.mark.slow)])
def test_large_grammars_are_not_all_kept(
    size, tmp_path, peak_memory, monkeypatch
):
    # 40 frames of 32 MiB of grammar each, 40 KB each in the file: 1.3 GB in all. The quick test is an eighth of it.
    monkeypatch.setattr("vani.readers.recorder.tables._MAX_GRAMMARS_BYTES", 8 * size)
    ranks, symbols = 40, size // 8 - 2
    write_trace(tmp_path, [[Call("creat", ("/a", "1"))]] * ranks, layout="3.0")
    body = np.tile(np.array([0, 1], "<i4"), symbols)
    large = zframe(np.concatenate((np.array([1, -1, symbols], "<i4"), body)).tobytes())
    del body
    (tmp_path / "ug.cfg").write_bytes(large * ranks)
    (tmp_path / "ug.mt").write_bytes(np.array([*range(ranks), ranks], "<i4").tobytes())
    started = time.process_time()
    with peak_memory(below=MAX_MEMORY):
        reader = RecorderReader(tmp_path)
        problems = reader.problems
    assert any("larger than the" in p for p in problems)
    assert np.count_nonzero(reader.calls_per_rank()) == 8
    assert time.process_time() - started < 60


def test_endless_time_stamps_are_read_up_to_the_number_of_calls(tmp_path, peak_memory):
    write_tiny(tmp_path, "3.0", ranks=1)
    stream = bomb(200)
    segment = struct.pack("<QQ", len(stream), 200 << 24) + stream
    (tmp_path / "recorder.ts").write_bytes(struct.pack("<Q", len(segment)) + segment)
    with peak_memory(below=64 << 20):
        reading = read_trace(tmp_path)
    assert reading.calls.num_rows == 19 and "more time stamps" in reading.problems[0]


@pytest.mark.parametrize("layout", ["2.5p", "2.5g-per-rank", "2.5g", "3.x-mt"])
def test_a_rank_count_of_millions_takes_neither_long_nor_much(layout, tmp_path, peak_memory):
    write_tiny(tmp_path, layout, ranks=2)
    metadata = bytearray((tmp_path / "recorder.mt").read_bytes())
    at = 12 if layout == "3.x-mt" else 0
    metadata[at : at + 4] = struct.pack("<i", 9_999_999)
    (tmp_path / "recorder.mt").write_bytes(metadata)
    started = time.process_time()
    with peak_memory(below=MAX_MEMORY // 2):
        outcome = attempt(tmp_path)
    assert time.process_time() - started < SECONDS
    # The remains of the ranks show how many there were.
    assert outcome.calls.num_rows == 37 and outcome.reader.ranks == 2
    assert "claims 9,999,999 ranks" in outcome.problems[0]


@pytest.mark.parametrize("quick", [False, True])
def test_claimed_ranks_without_calls_are_left_out(quick, peak_memory):
    with peak_memory(below=MAX_MEMORY // 2):
        profile = vani.profile(BROKEN / "ten-million-ranks", quick=quick)
    assert profile.workflow.processes == 4 and profile.traces[0].records == 521
    assert profile.traces[0].complete is False
    assert "claims 10,000,000 ranks, ug.mt has room for 4" in profile.traces[0].problems[0]


def test_endless_empty_frames_are_not_split(tmp_path, peak_memory):
    write_tiny(tmp_path, "3.0", ranks=2)
    with (tmp_path / "ug.cfg").open("r+b") as file:
        file.truncate(0)
        file.truncate(MAX_TABLE_BYTES)
    with peak_memory(below=2 * MAX_TABLE_BYTES), pytest.raises(TraceError, match="no rank can be read"):
        read_trace(tmp_path)


@pytest.mark.parametrize("size", [1 << 40, (1 << 62) + 1, (1 << 64) - 1])
@pytest.mark.parametrize("name", ["3.0", "3.0-per-rank-raw-times"])
def test_segments_beyond_their_file_are_reported(name, size, tmp_path):
    write_tiny(tmp_path, name, ranks=3)
    times = bytearray((tmp_path / "recorder.ts").read_bytes())
    whole = rows_of(read_trace(tmp_path), 0)
    times[8:16] = struct.pack("<Q", size)
    (tmp_path / "recorder.ts").write_bytes(times)
    reading = attempt(tmp_path)
    assert [r | {"offset": 0} for r in rows_of(reading, 0)] == [r | {"offset": 0} for r in whole]
    assert any(f"{tmp_path / 'recorder.ts'}: has" in p for p in reading.problems)
    assert any(p.startswith("rank 2:") for p in reading.problems)


@pytest.mark.parametrize("change", [b"\0" * 8, None])
def test_recorder_ts_that_contradicts_its_table_is_reported(change, tmp_path):
    write_tiny(tmp_path, "3.0-per-rank-raw-times", ranks=2)
    times = (tmp_path / "recorder.ts").read_bytes()
    (tmp_path / "recorder.ts").write_bytes(times + change if change else times[:-8])
    reading = attempt(tmp_path)
    assert any("recorder.ts: has" in p for p in reading.problems)
    assert reading.calls.num_rows == (37 if change else 36)


def test_time_stamps_that_run_backwards_are_repaired_and_counted(tmp_path):
    # A clock set back by a second before the third of four calls; the other differences are positive.
    ticks = [(0, 5), (10, 5), (-10_000_000, 5), (10, 5)]
    times = np.array([(d, d + length) for d, length in ticks], dtype=np.int64) % 2**32
    reading = read_trace(raw_trace(tmp_path, {-1: [(0, 4)]}, times=times.astype("<u4").tobytes()))
    assert reading.column("start_ns").tolist() == [0, 1000, -999_999_000, -999_998_000]
    assert reading.piece.repaired_times == 1 and reading.problems == []


def test_random_time_stamps_give_no_negative_duration(tmp_path):
    times = np.random.default_rng(3).integers(0, 2**32, 2 * 5000, dtype=np.uint64).astype("<u4").tobytes()
    reading = read_trace(raw_trace(tmp_path, {-1: [(0, 5000)]}, times=times))
    assert reading.calls.num_rows == 5000 and reading.column("duration_ns").min() >= 0


def test_time_stamps_beyond_64_bits_lose_only_their_rank(tmp_path):
    raw_trace(tmp_path, {-1: [(0, 100)]}, ranks=2)
    (tmp_path / "recorder.mt").write_bytes(encode_metadata("2.5p", FUNCTIONS, ranks=2, resolution=0.7312))
    (tmp_path / "1.ts").write_bytes(b"\0\0\0\x80" * 200)
    reading = read_trace(tmp_path)
    assert np.bincount(reading.column("rank")).tolist() == [100]
    assert (
        reading.problems[0].startswith("rank 1: 100 of 100 calls left out, ")
        and "1.ts" in reading.problems[0]
    )


def test_ug_mt_naming_absent_grammars_loses_only_their_ranks(tmp_path):
    write_tiny(tmp_path, "3.0", ranks=4)
    ids = np.frombuffer((tmp_path / "ug.mt").read_bytes(), "<i4").copy()
    assert ids.tolist() == [0, 1, 2, 3, 4]
    ids[1], ids[2] = 99, -5
    (tmp_path / "ug.mt").write_bytes(ids.tobytes())
    reading = attempt(tmp_path)
    assert np.bincount(reading.column("rank")).tolist() == [19, 0, 0, 18]
    assert any("ug.mt: ranks 1, 2: left out" in p for p in reading.problems)


def test_a_ug_mt_cut_short_keeps_the_ranks_it_still_names(tmp_path):
    write_tiny(tmp_path, "3.0", ranks=4)
    (tmp_path / "ug.mt").write_bytes((tmp_path / "ug.mt").read_bytes()[:10])
    reading = attempt(tmp_path)
    assert np.bincount(reading.column("rank")).tolist() == [19, 18]
    assert any("ug.mt: ranks 2, 3: left out" in p for p in reading.problems)


def test_damaged_grammar_in_ug_cfg_loses_only_ranks_using_it(tmp_path):
    write_tiny(tmp_path, "3.0", ranks=4)
    content = bytearray((tmp_path / "ug.cfg").read_bytes())
    (first,) = struct.unpack_from("<Q", content)
    content[16 + first + 16 + 5] ^= 0x55
    (tmp_path / "ug.cfg").write_bytes(content)
    reading = attempt(tmp_path)
    assert np.bincount(reading.column("rank")).tolist() == [19, 0, 18, 18]
    assert any("ug.cfg" in p and "ranks 1" in p for p in reading.problems)


def test_unknown_function_ids_are_reported(tmp_path):
    table = encode_cst([CallTableEntry(0, 0, 1, encode_key(200, ("x",), layout="2.5p"))], layout="2.5p")
    reading = read_trace(raw_trace(tmp_path, {-1: [(0, 100)]}, table=table))
    assert reading.piece.functions == {"(unknown)": 100}
    assert any("function number 200" in p for p in reading.problems)


def test_arguments_of_any_bytes_are_read(tmp_path):
    paths = ["/\udcff\udc80", "/a\nb", "/a\rb\x00c", "/\udced\udca0\udc80", "/é\udcc3", "\udca9"]
    write_trace(tmp_path, [[Call("creat", (path, "1")) for path in paths]], layout="3.0")
    reading = read_trace(tmp_path)
    # Decoded with replacement, with newlines and controls unchanged.
    assert reading.paths() == [
        "/\ufffd\ufffd",
        "/a\nb",
        "/a\rb\x00c",
        "/\ufffd\ufffd\ufffd",
        "/é\ufffd",
        "\ufffd",
    ]


def test_a_huge_offset_or_slope_neither_warns_nor_fails(tmp_path):
    big = "9" * 18
    calls = [
        [
            Call("lseek", ("/a", f"{big}*r+{big}", "0")),
            Call("pwrite", ("/a", "%p", big, big)),
            Call("read", ("/a", "%p", big)),
        ]
        * 3
    ]
    write_trace(tmp_path, calls * 4, layout="3.0", interprocess_patterns=True, intraprocess_patterns=True)
    assert read_trace(tmp_path).calls.num_rows == 36


@pytest.mark.parametrize("other", ["2.3", "2.5p-shared", "2.5g", "3.0", "3.x-mt"])
@pytest.mark.parametrize("name", ["2.3", "2.5p-shared", "2.5g", "3.0", "3.x-mt"])
def test_recorder_mt_of_another_layout_always_fails_in_the_same_way(name, other, tmp_path):
    write_tiny(tmp_path / "a", name, ranks=2)
    write_tiny(tmp_path / "b", other, ranks=2)
    shutil.copy(tmp_path / "b" / "recorder.mt", tmp_path / "a" / "recorder.mt")
    attempt(tmp_path / "a")


@pytest.mark.parametrize("flag", range(36, 40))
@pytest.mark.parametrize("value", [2, 0x41, 0xFF])
def test_invalid_boolean_flag_is_damage(flag, value, tmp_path):
    write_tiny(tmp_path, "3.0", ranks=2)
    metadata = bytearray((tmp_path / "recorder.mt").read_bytes())
    metadata[flag] = value
    (tmp_path / "recorder.mt").write_bytes(metadata)
    with pytest.raises(TraceError, match=rf"recorder\.mt: claims {value} for the flag"):
        read_trace(tmp_path)


# ---------------------------------------------------------------- what is no regular file


@pytest.mark.parametrize(("name", "part"), [(n, part) for n, parts in PARTS_OF.items() for part in parts])
@pytest.mark.parametrize("kind", ["pipe", "directory", "loop", "dangling"])
@pytest.mark.sampled(80)
def test_special_file_in_a_trace_is_never_waited_for(name, part, kind, tmp_path):
    write_tiny(tmp_path, name, ranks=1)
    file = tmp_path / part
    file.unlink()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
        case "loop":
            file.symlink_to(file)
        case "dangling":
            file.symlink_to(tmp_path / "nowhere")
    outcome = attempt(tmp_path)
    assert isinstance(outcome, TraceError) or outcome.problems
    digest_or_refusal(tmp_path)


def digest_or_refusal(directory: Path) -> None:
    """The digest of the remains does not fail in any other way, either."""
    try:
        RecorderReader(directory).digest()
    except TraceError:
        return


def whole(file: BinaryIO) -> bytes:
    with file:
        return file.read()


@pytest.mark.parametrize("name", ["2.5p", "3.0", "3.x-dat"])
def test_unreadable_part_is_named(name, tmp_path, monkeypatch):
    # Root may read everything, so the system's refusal is simulated.
    write_tiny(tmp_path, name, ranks=2)
    opened = Path.open
    for file in sorted(tmp_path.iterdir()):

        def refusing(self, *args, refused=file, **kwargs):
            if self == refused:
                raise PermissionError(13, "Permission denied", str(self))
            return opened(self, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", refusing)
            patch.setattr(Path, "read_bytes", lambda self, refusing=refusing: whole(refusing(self, "rb")))
            outcome = attempt(tmp_path)
        text = str(outcome) if isinstance(outcome, TraceError) else " ".join(outcome.problems)
        assert "Permission denied" in text and file.name in text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("part", ["VERSION", "recorder.mt", "recorder.cst", "recorder.ts", "ug.mt", "ug.cfg"])
def test_a_part_without_permission_is_named(part, tmp_path):
    write_tiny(tmp_path, "3.0", ranks=2)
    (tmp_path / part).chmod(0)
    outcome = attempt(tmp_path)
    text = str(outcome) if isinstance(outcome, TraceError) else " ".join(outcome.problems)
    assert part in text


def test_invalid_trace_directory_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("absent", "file", "pipe", "loop"):
        with pytest.raises(TraceError, match=name):
            RecorderReader(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize("text", [b"", b" " * 7, b"/scratch/a %p 4096 "])
def test_largest_call_table_is_below_the_bound(text, tmp_path, peak_memory):
    # Tables of 2.5p slightly below `MAX_TABLE_BYTES`: only entries, mostly separators, and usual calls.
    size = 16 + 15 + len(text)
    entries = (MAX_TABLE_BYTES - 4) // size
    cells = np.zeros((entries, size), np.uint8)
    cells[:, 0:4] = np.arange(entries, dtype="<i4").view(np.uint8).reshape(-1, 4)
    head = (
        struct.pack("<ii", size - 16, 1) + bytes(8) + bytes([FUNCTIONS.index("write"), 0, text.count(b" ")])
    )
    cells[:, 8:] = np.frombuffer(head + struct.pack("<i", len(text)) + text, np.uint8)
    raw_trace(tmp_path, {-1: [(0, 100)]}, table=struct.pack("<i", entries) + cells.tobytes())
    del cells
    with peak_memory(below=MAX_MEMORY):
        outcome = attempt_slowly(tmp_path)
    assert isinstance(outcome, TraceError) or outcome.calls.num_rows == 100


@pytest.mark.slow
def test_largest_grammar_is_below_the_bound(tmp_path, peak_memory):
    symbols = (MAX_GRAMMAR_BYTES - 12) // 8
    raw_trace(tmp_path, {-1: [(0, 1)]}, times=bytes(8 * symbols))
    body = np.tile(np.array([0, 1], "<i4"), symbols)
    (tmp_path / "0.cfg").write_bytes(np.concatenate((np.array([1, -1, symbols], "<i4"), body)).tobytes())
    del body
    reader, rows = RecorderReader(tmp_path), 0
    with peak_memory(below=MAX_MEMORY):
        for batch in reader.batches(range(1), Piece()):
            rows += batch.num_rows
    assert rows == symbols


def attempt_slowly(directory: Path) -> Reading | TraceError:
    try:
        return read_trace(directory)
    except TraceError as error:
        return error
