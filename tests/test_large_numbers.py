"""Numbers around 2^53, 2^62, 2^63 and 2^64: the full profile and the quick one agree, or both refuse."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.errors import InputError
from vani.readers.signatures import MAX_BYTES, MAX_OFFSET
from vani.schema.profile import Profile

BROKEN = Path(__file__).parent / "data" / "broken"
POWERS = [2**p + d for p in (31, 52, 53, 56, 60, 61, 62, 63, 64) for d in (-1, 0, 1)]
NUMBERS = [-(2**63), -1, 0, 1, 4096, 10**15, 10**17, 10**18 - 1, 10**18, 10**19, *POWERS, 10**25]

numbers = st.sampled_from(NUMBERS).map(str)
path = st.sampled_from(["/s/a", "/s/b", "/s/c"])
call = st.one_of(
    st.tuples(st.sampled_from(["read", "write"]), st.tuples(path, st.just("%p"), numbers)),
    st.tuples(st.sampled_from(["pread", "pwrite"]), st.tuples(path, st.just("%p"), numbers, numbers)),
    st.tuples(st.just("fwrite"), st.tuples(st.just("%p"), numbers, numbers, path)),
    st.tuples(st.just("lseek"), st.tuples(path, numbers, st.sampled_from("012"))),
    st.tuples(st.just("ftruncate"), st.tuples(path, numbers)),
    st.tuples(st.just("open"), st.tuples(path, st.just("66"), st.just("438"))),
    st.tuples(
        st.just("MPI_File_write_at"),
        st.tuples(st.just("0-0"), numbers, st.just("%p"), numbers, st.just("MPI_DOUBLE"), st.just("[0_0]")),
    ),
)


def trace_of(folder: Path, layout: str, ranks: list[list[tuple[str, tuple[str, ...]]]], **settings) -> None:
    calls = [[Call(n, a, 0, 0, 10 * i, 10 * i + 5) for i, (n, a) in enumerate(mine)] for mine in ranks]
    write_trace(folder, calls, layout=layout, **settings)


def both(folder: Path) -> tuple[Profile, Profile] | None:
    """The full profile and the quick one; None if both refuse with the same words."""
    said, found = [], []
    for quick in (False, True):
        try:
            found.append(vani.profile(folder, quick=quick))
        except InputError as error:
            said.append(str(error))
    if said:
        assert len(said) == 2 and said[0] == said[1]
        return None
    return found[0], found[1]


def believed(name: str, args: tuple[str, ...]) -> int | None:
    """Bytes of a call on a file; None if it has none, or an impossible number."""
    if name in ("read", "write", "pread", "pwrite"):
        size, factors = int(args[2]), [args[2]]
    elif name == "fwrite":
        size, factors = int(args[1]) * int(args[2]), [args[1], args[2]]
    else:
        return None
    if any(int(f) < 0 or len(f) > 18 for f in factors):
        return None
    return size if size < MAX_BYTES else None


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "settings_of"), [
    ("2.3", {}), ("2.5p", {}), ("2.5g", {}), ("3.0", {}), ("3.x-dat2", {}),
    ("3.0", {"interprocess_patterns": True, "intraprocess_patterns": True}),
    ("2.5g", {"interprocess_patterns": True, "intraprocess_patterns": True}),
])  # fmt: skip
@settings(max_examples=5)
@given(ranks=st.lists(st.lists(call, min_size=1, max_size=12), min_size=1, max_size=3))
def test_bytes_of_calls_add_up_exactly_or_are_omitted_with_a_note(layout, settings_of, ranks):
    with TemporaryDirectory() as folder:
        trace_of(Path(folder), layout, ranks, **settings_of)
        found = both(Path(folder))
    data = [(n, a) for mine in ranks for n, a in mine if n in ("read", "write", "pread", "pwrite", "fwrite")]
    for direction, functions in (("read", ("read", "pread")), ("written", ("write", "pwrite", "fwrite"))):
        mine = [believed(n, a) for n, a in data if n in functions]
        known = [size for size in mine if size is not None]
        for profile in found or ():
            moved = getattr(profile.workflow.io.bytes, direction)
            assert moved == (sum(known) if known or not mine else None)
            if len(known) < len(mine):
                assert profile.traces[0].complete is False and profile.traces[0].problems


def test_twenty_writes_of_almost_ten_to_the_eighteen_bytes_have_no_sum_and_are_not_complete():
    for profile in both(BROKEN / "bytes-sum-wraps"):
        assert profile.workflow.io.bytes.written is None and profile.workflow.io.bytes.read == 0
        assert profile.workflow.io.footprint.written is None
        assert profile.traces[0].complete is False
        assert profile.traces[0].problems == [
            "calls of write request 999999999999999999 bytes, which no call can move: how many they moved is unknown"
        ]


def test_a_write_of_2_to_the_62_bytes_is_profiled_without_its_bytes():
    for profile in both(BROKEN / "extent-2pow62"):
        assert profile.workflow.io.bytes.written is None and profile.workflow.io.ops.write == 1
        assert "2147483648 x 2147483648 bytes" in profile.traces[0].problems[0]
        moved = [*(i.bytes for i in profile.interfaces), *(f.bytes for f in profile.folders)]
        assert len(moved) == 2
        assert all((one.read, one.written, one.total) == (0, None, None) for one in moved)


@pytest.mark.parametrize("size", ["-1", str(2**64 - 1)])
def test_read_of_minus_one_bytes_is_unknown_and_its_neighbours_count(tmp_path, size):
    trace_of(tmp_path, "3.0", [[("read", ("/s/a", "%p", size)), ("read", ("/s/b", "%p", "100"))]])
    for profile in both(tmp_path):
        assert profile.workflow.io.bytes.read == 100
        by_file = {file.path: file.io for file in profile.files}
        assert by_file["/s/a"].bytes.read is None and by_file["/s/a"].calls[0].bytes is None
        assert by_file["/s/b"].bytes.read == 100
        assert f"calls of read request {size} bytes" in profile.traces[0].problems[0]


@pytest.mark.parametrize(("size", "calls"), [(2**53, 3), (2**55, 127), (2**55, 128), (2**55, 600)])
def test_sums_are_exact_up_to_2_to_the_62_and_refused_beyond(tmp_path, size, calls):
    opened = ("open", ("/s/a", "577", "438"))
    trace_of(tmp_path, "3.0", [[opened, *[("write", ("/s/a", "%p", str(size)))] * calls]])
    found = both(tmp_path)
    if size * calls >= 2**62:
        assert found is None
    else:
        assert [p.workflow.io.bytes.written for p in found] == [size * calls] * 2
        # No position is followed beyond 1 EiB.
        placed = sum(size * (call + 1) < MAX_OFFSET for call in range(calls))
        assert found[0].workflow.io.footprint.written == size * placed


def test_total_size_of_files_of_almost_an_exbibyte_is_their_sum(tmp_path):
    far = 10**18 - 1
    trace_of(tmp_path, "3.0", [[("pwrite", (f"/s/{i}", "%p", "1", str(far))) for i in range(40)]])
    profile = vani.profile(tmp_path, files=None)
    assert profile.workflow.io.footprint.written == 40
    assert [file.size for file in profile.files] == [10**18] * 40
    assert profile.dataset.size == 40 * 10**18


def test_seeks_adding_up_beyond_64_bits_lose_only_the_position(tmp_path):
    seeks = [("lseek", ("/s/a", "9" * 18, "1"))] * 30
    trace_of(tmp_path, "3.0", [[*seeks, ("write", ("/s/a", "%p", "100"))]])
    full, _ = both(tmp_path)
    assert full.workflow.io.bytes.written == 100


def test_traces_that_only_together_move_too_much_are_refused(tmp_path):
    for name in "abc":
        trace_of(tmp_path / name, "3.0", [[("write", ("/s/a", "%p", str(2**55)))] * 60])
    assert vani.profile(tmp_path / "a").workflow.io.bytes.written == 60 * 2**55
    for quick in (False, True):
        with pytest.raises(InputError, match="more than can be counted"):
            vani.profile(*(tmp_path / name for name in "abc"), quick=quick)


@pytest.mark.parametrize("calls", [2, 1200])
def test_times_that_add_up_to_more_than_146_years_are_refused(tmp_path, calls):
    # Each call takes 2^31 - 1 ticks of 7 ms: half a year.
    long = 2**31 - 1
    write_trace(
        tmp_path,
        [[Call("write", ("/s/a", "%p", "1"), 0, i, i, i + long) for i in range(calls)]],
        layout="3.0",
        resolution=0.007,
    )
    if calls == 2:
        assert vani.profile(tmp_path).workflow.io.time_s.write == pytest.approx(long * 0.007)
    else:
        with pytest.raises(
            InputError, match=r"its calls take 18,000,000,000 s together, more than can be counted"
        ):
            vani.profile(tmp_path)
