"""File positions compared with a process simulated call by call, however its calls are divided into batches.

The oracle is `Process` below: it stores a position and an end per file, follows the docstring of
`vani.readers.positions` on what is known and assumed, and shares no code with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.calls import Flag, Kind
from vani.readers.functions import PositionRule
from vani.readers.positions import Positions
from vani.readers.signatures import NO_VALUE

PRIVATE, OTHER, SHARED = 0, 1, 2
"""Files: two that one process uses alone, and one that several use."""


NONE = Flag(0)
NEW = Flag.CREATE | Flag.TRUNCATE


@dataclass(frozen=True)
class Op:
    """One call on a file."""

    rule: PositionRule
    kind: Kind = Kind.METADATA
    value: int | None = None
    size: int | None = None
    flags: Flag = NONE
    file: int = PRIVATE
    rank: int = 0
    rename_to: int | None = None


def opens(flags: Flag = NONE, **where: int) -> Op:
    return Op(PositionRule.OPEN, flags=Flag.OPEN | flags, **where)


def reads(size: int | None, **where: int) -> Op:
    return Op(PositionRule.ADVANCE, Kind.READ, size=size, **where)


def writes(size: int | None, **where: int) -> Op:
    return Op(PositionRule.ADVANCE, Kind.WRITE, size=size, **where)


def pwrites(size: int, offset: int | None, **where: int) -> Op:
    return Op(PositionRule.AT, Kind.WRITE, offset, size, **where)


def preads(size: int, offset: int | None, **where: int) -> Op:
    return Op(PositionRule.AT, Kind.READ, offset, size, **where)


def seeks(rule: PositionRule, value: int, **where: int) -> Op:
    return Op(rule, value=value, flags=Flag.SEEK, **where)


def resizes(length: int | None, **where: int) -> Op:
    return Op(PositionRule.RESIZE, value=length, flags=Flag.RESIZE, **where)


def removes(**where: int) -> Op:
    return Op(PositionRule.GONE, flags=Flag.REMOVE, **where)


def renames(old: int, new: int, **where: int) -> Op:
    return Op(PositionRule.GONE, flags=Flag.RENAME, file=old, rename_to=new, **where)


def duplicates(**where: int) -> Op:
    return Op(PositionRule.FORGET, flags=Flag.WRITABLE, **where)


def offsets(ops: list[Op], cuts: Iterable[int] = ()) -> list[int | None]:
    """The offsets from `Positions`, batch after batch."""
    positions = Positions(np.array([True, True, False]))
    found: list[int | None] = []
    for part in np.split(np.arange(len(ops)), sorted(cut % (len(ops) + 1) for cut in cuts)):
        if not len(part):
            continue
        batch = [ops[i] for i in part]

        def column(name: str, dtype: type, batch: list[Op] = batch) -> np.ndarray:
            values = [getattr(op, name) for op in batch]
            return np.array([NO_VALUE if v is None else int(v) for v in values], dtype=dtype)

        offset = positions.resolve(
            column("rank", np.int32), column("file", np.int32), column("rule", np.int8), column("kind", np.int8),
            column("value", np.int64), column("size", np.int64), column("flags", np.int16),
            np.array([-1 if op.rename_to is None else op.rename_to for op in batch], np.int32),
        )  # fmt: skip
        found += [None if o == NO_VALUE else o for o in offset.tolist()]
    return found


@dataclass
class Process:
    """Files as one process sees them; None is unknown."""

    position: dict[int, int | None] = field(default_factory=dict)
    end: dict[int, int | None] = field(default_factory=dict)
    append: dict[int, bool] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    """Files whose fate is unknown, or that were read or written: O_CREAT reveals nothing about them."""
    gone: set[int] = field(default_factory=set)
    """Names that were removed and not opened since."""
    assumed: set[int] = field(default_factory=set)
    """Files that are empty as far as O_CREAT shows, and have not been read or written since."""

    def forget(self, file: int) -> None:
        """Forget what the process knew about a file."""
        self.position[file] = self.end[file] = None
        self.used.add(file)
        self.assumed.discard(file)

    def offset(self, op: Op) -> int | None:
        """Make one call and return its offset."""
        alone = op.file != SHARED
        position, end = self.position.get(op.file), self.end.get(op.file)
        found = None
        if op.rename_to == op.file:
            return None
        if op.rename_to is not None:
            self.forget(op.rename_to)
        if op.file in self.assumed and op.rule in (PositionRule.AT, PositionRule.ADVANCE):
            self.assumed.discard(op.file)
            if op.kind == Kind.READ:
                end = None
        match op.rule:
            case PositionRule.OPEN:
                position, self.append[op.file] = 0, bool(op.flags & Flag.APPEND)
                anew = op.flags & Flag.TRUNCATE or (op.flags & Flag.CREATE and op.file in self.gone)
                self.gone.discard(op.file)
                if alone and anew:
                    end = 0
                    self.assumed.discard(op.file)
                elif alone and op.flags & Flag.CREATE and end is None and op.file not in self.used:
                    end = 0
                    self.assumed.add(op.file)
            case PositionRule.GONE:
                self.gone.add(op.file)
            case PositionRule.FORGET:
                self.forget(op.file)
                position = end = None
            case PositionRule.RESIZE:
                found = op.value
                end = op.value if alone else None
                self.assumed.discard(op.file)
                if op.value is None:
                    self.used.add(op.file)
            case PositionRule.SEEK_SET | PositionRule.SEEK_CUR | PositionRule.SEEK_END:
                base = {PositionRule.SEEK_SET: 0, PositionRule.SEEK_CUR: position, PositionRule.SEEK_END: end}[op.rule]
                found = position = None if base is None else base + op.value
            case PositionRule.AT:
                found = op.value
                if op.kind == Kind.WRITE and end is not None:
                    end = max(end, op.value + op.size)
            case PositionRule.ADVANCE if op.kind == Kind.READ:
                found = position
                if position is not None:
                    position += op.size if end is None else min(op.size, max(0, end - position))
            case PositionRule.ADVANCE:
                found = end if self.append.get(op.file) else position
                position = None if found is None else found + op.size
                if end is not None and position is not None:
                    end = max(end, position)
        if op.rule in (PositionRule.AT, PositionRule.ADVANCE):
            self.used.add(op.file)
        self.position[op.file], self.end[op.file] = position, end
        return found


def simulated(ops: list[Op]) -> list[int | None]:
    processes: dict[int, Process] = {}
    return [processes.setdefault(op.rank, Process()).offset(op) for op in ops]


SIZES = st.integers(0, 40)
FILES = st.sampled_from([PRIVATE, PRIVATE, OTHER, SHARED])
OPENS = st.sampled_from([NONE, Flag.CREATE, NEW, Flag.TRUNCATE, Flag.APPEND, Flag.CREATE | Flag.APPEND])
OPS = st.one_of(
    st.builds(lambda flags, file: opens(flags, file=file), OPENS, FILES),
    st.builds(lambda size, file: reads(size, file=file), SIZES, FILES),
    st.builds(lambda size, file: writes(size, file=file), SIZES, FILES),
    st.builds(lambda size, offset, file: pwrites(size, offset, file=file), SIZES, SIZES, FILES),
    st.builds(lambda size, offset, file: preads(size, offset, file=file), SIZES, SIZES, FILES),
    # Only forward seeks, since a seek to before the beginning fails.
    st.builds(
        lambda rule, value, file: seeks(rule, value, file=file),
        st.sampled_from([PositionRule.SEEK_SET, PositionRule.SEEK_CUR, PositionRule.SEEK_END]), SIZES, FILES,
    ),
    st.builds(lambda length, file: resizes(length, file=file), st.one_of(SIZES, st.none()), FILES),
    st.builds(lambda file: removes(file=file), FILES),
    st.builds(renames, FILES, FILES),
    st.builds(lambda file: duplicates(file=file), FILES),
)  # fmt: skip
RUNS = st.lists(OPS, max_size=60)


@given(ops=RUNS, cuts=st.lists(st.integers(0, 60), max_size=5))
def test_offsets_equal_a_simulation_for_any_batch_size(ops, cuts):
    assert offsets(ops, cuts) == simulated(ops)


@given(runs=st.lists(st.lists(OPS, max_size=12), max_size=4), cuts=st.lists(st.integers(0, 48), max_size=5))
def test_processes_do_not_see_each_others_positions(runs, cuts):
    ops = [replace(o, rank=rank * 3) for rank, run in enumerate(runs) for o in run]
    assert offsets(ops, cuts) == simulated(ops)


@given(
    # Files whose end moves repeatedly: each call depends on the one before.
    body=st.lists(
        st.sampled_from([seeks(PositionRule.SEEK_END, 0), seeks(PositionRule.SEEK_END, 3), writes(10), reads(25), reads(5), resizes(30)]),
        min_size=2, max_size=8,
    ),
    times=st.integers(20, 60),
    cuts=st.lists(st.integers(0, 400), max_size=3),
)  # fmt: skip
def test_long_chains_of_appends_and_seeks_to_the_end_are_followed(body, times, cuts):
    ops = [opens(NEW), *(body * times)]
    assert offsets(ops, cuts) == simulated(ops)


# The remaining cases are worked out by hand.


def test_reads_and_writes_continue_where_the_previous_call_ended():
    assert offsets([opens(NEW), writes(10), writes(5), opens(), reads(10), reads(10)]) == [
        None,
        0,
        10,
        None,
        0,
        10,
    ]


def test_read_at_the_end_of_a_file_moves_the_remaining_bytes():
    # 15 bytes: the second read requests 10 and gets 5, the third and fourth get none, and 4 more are written
    # at 15.
    ops = [
        opens(NEW),
        writes(15),
        seeks(PositionRule.SEEK_SET, 0),
        reads(10),
        reads(10),
        reads(10),
        reads(10),
        writes(4),
    ]
    assert offsets(ops) == [None, 0, 0, 0, 10, 15, 15, 15]


def test_end_of_a_shared_file_is_unknown():
    ops = [opens(NEW, file=SHARED), writes(15, file=SHARED), seeks(PositionRule.SEEK_SET, 0, file=SHARED)]
    ops += [reads(10, file=SHARED)] * 3 + [seeks(PositionRule.SEEK_END, 0, file=SHARED), writes(1, file=SHARED)]
    assert offsets(ops) == [None, 0, 0, 0, 10, 20, None, None]


def test_end_of_a_file_that_existed_before_is_unknown():
    assert offsets([opens(), reads(10), seeks(PositionRule.SEEK_END, -4), reads(4)]) == [None, 0, None, None]


def test_appended_data_follows_written_data_and_is_marked():
    ops = [
        opens(NEW),
        writes(10),
        opens(Flag.APPEND),
        writes(5),
        writes(5),
        seeks(PositionRule.SEEK_SET, 0),
        writes(5),
    ]
    assert offsets(ops) == [None, 0, None, 10, 15, 0, 20]
    flags = np.array([int(op.flags) for op in ops], dtype=np.int16)
    Positions(np.ones(1, np.bool_)).resolve(
        np.zeros(7, np.int32), np.zeros(7, np.int32), np.array([op.rule for op in ops], np.int8),
        np.array([op.kind for op in ops], np.int8), np.full(7, 0, np.int64), np.full(7, 5, np.int64), flags,
    )  # fmt: skip
    assert [bool(f & Flag.APPEND) for f in flags.tolist()] == [False, False, True, True, True, False, True]


def test_an_append_to_a_shared_file_has_no_known_offset():
    ops = [opens(Flag.CREATE | Flag.APPEND, file=SHARED), writes(5, file=SHARED), writes(5, file=SHARED)]
    assert offsets(ops) == [None, None, None]


def test_pread_and_pwrite_do_not_move_the_position():
    assert offsets([opens(NEW), pwrites(10, 90), preads(5, 7), writes(3), seeks(PositionRule.SEEK_END, 0)]) == [
        None,
        90,
        7,
        0,
        100,
    ]


def test_truncation_moves_the_end_and_not_the_position():
    ops = [
        opens(NEW),
        writes(10),
        resizes(4),
        writes(1),
        seeks(PositionRule.SEEK_END, 0),
        resizes(2),
        seeks(PositionRule.SEEK_END, 0),
    ]
    assert offsets(ops) == [None, 0, 4, 10, 11, 2, 2]


def test_unknown_size_makes_the_position_unknown():
    ops = [
        opens(),
        writes(10),
        reads(None),
        reads(5),
        seeks(PositionRule.SEEK_CUR, 3),
        seeks(PositionRule.SEEK_SET, 40),
        reads(5),
    ]
    found = offsets(ops)
    assert found[:2] == [None, 0] and found[3:] == [None, None, 40, 40]


def test_a_seek_to_before_the_beginning_has_no_offset():
    assert offsets([opens(), seeks(PositionRule.SEEK_SET, -4096)]) == [None, None]


def test_file_read_before_opened_with_o_creat_was_not_empty():
    # Without O_CREAT the first open succeeded on an existing file; the second one truncates nothing.
    ops = [opens(), reads(100), opens(Flag.CREATE), reads(60), reads(60), seeks(PositionRule.SEEK_END, 0)]
    for cuts in ([], [1], [2], [3]):
        assert offsets(ops, cuts) == [None, 0, None, 0, 60, None]


def test_a_failed_look_before_o_creat_does_not_count_as_use():
    # open without O_CREAT of a missing file, then with it: the end is known from then on.
    assert offsets([opens(), opens(Flag.CREATE), writes(5), seeks(PositionRule.SEEK_END, 0)]) == [None, None, 0, 5]


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63 - 1])
def test_offsets_near_the_limits_of_64_bits_neither_warn_nor_fail(value):
    ops = [
        opens(NEW),
        seeks(PositionRule.SEEK_SET, value),
        writes(2**62),
        seeks(PositionRule.SEEK_CUR, value),
        reads(2**62),
        pwrites(2**62, value),
    ]
    assert len(offsets(ops)) == len(ops)


def test_a_batch_without_files_has_no_offsets():
    ops = [Op(PositionRule.NONE), Op(PositionRule.NONE, file=-1), Op(PositionRule.ADVANCE, Kind.READ, size=5, file=-1)]
    assert offsets(ops) == [None, None, None]


def test_file_recreated_under_a_removed_name_starts_empty():
    # 100 bytes, removed; the new file of that name has 10 when its end is requested.
    ops = [opens(NEW), writes(100), removes(), opens(Flag.CREATE), writes(10), seeks(PositionRule.SEEK_END, 0)]
    for cuts in ([], [2], [3], [4]):
        assert offsets(ops, cuts) == [None, 0, None, None, 0, 10]


def test_removed_file_still_open_keeps_its_end():
    assert offsets([opens(NEW), writes(100), removes(), seeks(PositionRule.SEEK_END, 0)])[-1] == 100


def test_renamed_file_has_an_unknown_length():
    # OTHER had 5 bytes; then PRIVATE's 100 get its name, so reads must not stop at 5.
    ops = [
        opens(NEW, file=OTHER),
        writes(5, file=OTHER),
        opens(NEW),
        writes(100),
        renames(PRIVATE, OTHER),
        opens(file=OTHER),
        reads(60, file=OTHER),
        reads(60, file=OTHER),
        seeks(PositionRule.SEEK_END, 0, file=OTHER),
    ]
    for cuts in ([], [4], [5], [6]):
        assert offsets(ops, cuts) == [None, 0, None, 0, None, None, 0, 60, None]


def test_position_and_end_are_unknown_after_an_untracked_descriptor():
    ops = [
        opens(NEW),
        writes(6000),
        duplicates(),
        writes(1),
        seeks(PositionRule.SEEK_END, 0),
        seeks(PositionRule.SEEK_SET, 3),
    ]
    assert offsets(ops) == [None, 0, None, None, None, 3]


def test_file_read_before_it_was_written_existed():
    # Like Fortran opening its inputs without STATUS: O_RDWR | O_CREAT.
    ops = [opens(Flag.CREATE), reads(8192), reads(8192), seeks(PositionRule.SEEK_END, 0)]
    for cuts in ([], [1], [2]):
        assert offsets(ops, cuts) == [None, 0, 8192, None]
