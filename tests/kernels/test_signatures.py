"""The kernel of signatures groups calls as the columns require, however Arrow stores them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vani.analyzers.int_table import NO_VALUE
from vani.columns import raw
from vani.kernels import available
from vani.kernels.signatures import COLUMNS, Column, signatures

pytestmark = pytest.mark.skipif(not available(), reason="no kernels are here")
EXAMPLES = settings(max_examples=30, deadline=None)

NUMBERS = st.one_of(st.just(NO_VALUE), st.integers(0, 60))
ROWS = st.lists(
    st.tuples(*[st.integers(0, 1)] * 8, NUMBERS, NUMBERS, st.integers(0, 100), st.integers(0, 9)),
    max_size=40,
)


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def grouped(columns: dict[str, np.ndarray], starts: list[int] | None = None, shift: int = 7) -> Any:
    """Groups of calls; those of layer 0 count, except those with flag 1."""
    unknown = {"file": -1, "offset": NO_VALUE, "bytes": NO_VALUE}
    calls = {}
    for name, values in columns.items():
        null = values == unknown[name] if name in unknown else np.zeros(len(values), np.bool_)
        # The value behind a null is arbitrary, and Arrow may begin in the middle of a byte.
        filled = pa.array(np.append([0] * 3, np.where(null, 77, values)).astype(values.dtype))
        bits = np.packbits(np.append([True] * 3, ~null), bitorder="little")
        buffers = [pa.py_buffer(bits) if null.any() else None, filled.buffers()[1]]
        calls[name] = raw(pa.Array.from_buffers(filled.type, len(filled), buffers).slice(3))
    n = len(columns["rank"])
    return signatures(calls, n, ints(sorted(starts or [])), shift, most_layer=0, nested=1)


@given(
    rows=ROWS,
    phases=st.lists(st.integers(0, 100), max_size=3, unique=True),
    shift=st.sampled_from([0, 7]),
    room=st.sampled_from([1, 3, 100]),
)
@EXAMPLES
def test_signatures_are_all_that_calls_share(rows, phases, shift, room):
    columns = {name: np.array([row[i] for row in rows], t) for i, (name, t) in enumerate(COLUMNS.items())}
    columns["file"] -= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vani.kernels.signatures._FEW_GROUPS", room)
        found = grouped(columns, phases, shift)
    assert found is not None
    counting = [i for i, row in enumerate(rows) if row[5] == 0 and row[4] == 0]
    assert (found.counted.rows is None) == (len(counting) == len(rows))
    groups: dict[Any, list[tuple[int, ...]]] = {}
    for place, i in enumerate(counting):
        row = rows[i]
        phase = max(int(np.searchsorted(sorted(phases), row[10] + shift, side="right")) - 1, 0)
        groups.setdefault((*row[:8], phase), []).append((place, *row[8:]))
        code = found.counted.codes[place]
        assert found.counted.phase[code] == phase
        assert {n: found.counted.columns[n][code] for n in list(COLUMNS)[:8]} == {
            n: columns[n][i] for n in list(COLUMNS)[:8]
        }
        for name, value in zip(("offset", "bytes"), row[8:10], strict=True):
            assert found.columns[name][place] == value
        assert (found.columns["start_ns"][place], found.columns["duration_ns"][place]) == (
            row[10] + shift,
            row[11],
        )
    assert found.counted.rows is None or found.counted.rows.tolist() == counting
    assert len(found.counted.row) == len(groups)
    for mine in groups.values():
        (code,) = {int(found.counted.codes[place]) for place, *_ in mine}
        kind = rows[counting[mine[0][0]]][6]
        sizes = [size for _, _, size, _, _ in mine if size != NO_VALUE]
        begins = [start + shift for *_, start, _ in mine]
        assert found.counted.row[code] == max(place for place, *_ in mine)
        assert (found.counted.count[code], found.bytes[code]) == (len(mine), sum(sizes))
        assert found.time[code] == sum(took for *_, took in mine)
        assert found.unsized[code] == (len(mine) - len(sizes)) * (kind <= 1)
        placeless = [size for _, offset, size, _, _ in mine if offset == NO_VALUE]
        assert found.placeless[code] == len(placeless)
        assert found.displaced[code] == sum(size > 0 for size in placeless)
        assert (found.first[code], found.last[code]) == (min(begins), max(begins))
        assert found.end[code] == max(start + shift + took for *_, start, took in mine)
    others = [i for i in range(len(rows)) if i not in set(counting)]
    assert found.others.rows.tolist() == others
    for place, i in enumerate(others):
        code = found.others.codes[place]
        assert {n: found.others.columns[n][code] for n in ("rank", "layer", "kind", "flags")} == {
            n: columns[n][i] for n in ("rank", "layer", "kind", "flags")
        }
    for code in set(found.others.codes.tolist()):
        mine = [i for place, i in enumerate(others) if found.others.codes[place] == code]
        sizes = [columns["bytes"][i] for i in mine]
        known = [int(size) for size in sizes if size != NO_VALUE]
        assert found.other_bytes[code] == sum(known)
        data = columns["kind"][mine[0]] <= 1
        assert found.other_unsized[code] == (len(sizes) - len(known) if data else 0)
    assert sorted(found.others.count.tolist()) == sorted(Counter(found.others.codes.tolist()).values())


def test_groups_are_distinguished_however_many_there_are():
    # More than the initial capacity.
    files = np.random.default_rng(1).permutation(np.arange(40000) % 17000)
    columns = {name: np.zeros(40000, t) for name, t in COLUMNS.items()}
    found = grouped(columns | {"file": files.astype(np.int32)})
    assert found.counted.columns["file"][found.counted.codes].tolist() == files.tolist()
    assert len(found.counted.row) == 17000


def test_unread_column_contains_zeros():
    columns = {"rank": np.array([3], np.int32), "layer": np.array([0], np.int8)}
    found = grouped(columns, shift=0)
    assert (found.counted.count.tolist(), found.time.tolist(), found.counted.columns["rank"].tolist()) == (
        [1],
        [0],
        [3],
    )
    assert set(found.counted.columns) == set(columns)


@pytest.mark.parametrize(
    ("column", "value"),
    [("bytes", -5), ("duration_ns", -1), ("kind", -1), ("layer", -1), ("start_ns", 2**63 - 1)],
)
@pytest.mark.parametrize("before", [0, 1])
def test_odd_calls_are_left_to_numpy(column, value, before, monkeypatch):
    monkeypatch.setattr("vani.kernels.signatures._FEW_GROUPS", 1)
    columns = {name: np.array([0] * before + [value if name == column else 0], t) for name, t in COLUMNS.items()}
    assert grouped(columns) is None


def test_odd_times_of_calls_that_do_not_count_are_ignored():
    columns = {name: np.array([-1 if name == "duration_ns" else 0], t) for name, t in COLUMNS.items()}
    found = grouped(columns | {"layer": np.array([5], np.int8)})
    assert (len(found.counted.row), found.others.count.tolist()) == (0, [1])


def test_odd_sizes_of_calls_that_do_not_count_are_left_to_numpy():
    columns = {name: np.array([-5 if name == "bytes" else 0], t) for name, t in COLUMNS.items()}
    assert grouped(columns | {"layer": np.array([5], np.int8)}) is None


def test_too_few_bits_are_declined():
    column = Column(np.zeros(9, np.int32), np.zeros(1, np.uint8))
    assert signatures({"file": column}, 9, ints([]), 0, most_layer=0, nested=1) is None
