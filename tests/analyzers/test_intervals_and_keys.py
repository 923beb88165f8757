"""The arithmetic behind the measures, compared with sets and dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vani.analyzers.int_table import Factorized, IntTable, Pairs, count_pairs, group, stable_order
from vani.analyzers.intervals import Intervals, merge, total_length

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-50, 50), st.integers(0, 12)), max_size=40)
FAR = st.sampled_from([-(1 << 61), -7, 0, 5, 1 << 40, 1 << 61])
INTS_OF_ALL_SIZES = st.sampled_from(
    [-(1 << 40), -40_000, -129, -128, -1, 0, 1, 127, 128, 40_000, 1 << 31, 1 << 40]
)
INTS = st.lists(st.one_of(st.integers(-5, 5), FAR), max_size=60)


def columns(rows: list[tuple[int, ...]], width: int) -> list[np.ndarray]:
    return [np.array([r[i] for r in rows], dtype=np.int64) for i in range(width)]


def merged(rows: list[tuple[int, int, int]]) -> Intervals:
    number, start, length = columns(rows, 3)
    return merge(number, start, start + length)


def points(intervals: Intervals) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for g, a, b in zip(*(getattr(intervals, n).tolist() for n in ("group", "start", "end")), strict=True):
        assert a < b
        assert not found[g] & set(range(a - 1, b + 1)), "intervals of a group neither overlap nor touch"
        found[g] |= set(range(a, b))
    return dict(found)


@given(rows=ROWS)
def test_merged_intervals_cover_exactly_the_points_of_their_parts(rows):
    wanted: dict[int, set[int]] = defaultdict(set)
    for g, start, length in rows:
        wanted[g] |= set(range(start, start + length))
    found = merged(rows)
    assert points(found) == {g: p for g, p in wanted.items() if p}
    groups, lengths = total_length(found)
    assert dict(zip(groups.tolist(), lengths.tolist(), strict=True)) == {
        g: len(p) for g, p in wanted.items() if p
    }


@given(rows=ROWS, cut=st.integers(0, 40), data=st.data())
def test_merging_parts_and_merging_again_is_merging_all_in_any_order(rows, cut, data):
    whole = merged(rows)
    shuffled = data.draw(st.permutations(rows))
    again = Intervals.joined([merged(shuffled[:cut]), merged(shuffled[cut:])])
    for name in ("group", "start", "end"):
        assert getattr(again, name).tolist() == getattr(whole, name).tolist()


def test_intervals_of_many_groups_far_apart_are_merged_within_their_groups():
    # Groups times span exceeds 62 bits, so one sort for all groups is impossible.
    start = np.array([0, 1 << 60, 5, 1 << 60, (1 << 60) + 5], dtype=np.int64)
    found = merge(np.array([7, 7, 7, 9, 11]), start, start + 10)
    assert list(zip(found.group.tolist(), found.start.tolist(), found.end.tolist(), strict=True)) == [
        (7, 0, 15),
        (7, 1 << 60, (1 << 60) + 10),
        (9, 1 << 60, (1 << 60) + 10),
        (11, (1 << 60) + 5, (1 << 60) + 15),
    ]


@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.integers(-3, 3), FAR), st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9)
        ),
        max_size=40,
    )
)
def test_rows_with_equal_keys_are_added_or_reduced_as_requested(rows):
    key, a, b, c = columns(rows, 4)
    found = group(key, {"a": a, "b": b, "c": c}, {"b": "min", "c": "max"})
    wanted: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for k, *rest in rows:
        wanted[k].append(tuple(rest))
    assert found.keys.tolist() == sorted(wanted)
    for name, fold, i in (("a", sum, 0), ("b", min, 1), ("c", max, 2)):
        assert found[name].tolist() == [fold(r[i] for r in wanted[k]) for k in sorted(wanted)]


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=30),
    cut=st.integers(0, 30),
    asked=st.lists(st.integers(-1, 6)),
)
def test_merged_tables_answer_like_the_table_of_all_rows(rows, cut, asked):
    def table(some: list[tuple[int, int]]) -> IntTable:
        key, value = columns(some, 2)
        return group(key, {"v": value})

    found = IntTable.merged([table(rows[cut:]), IntTable(), table(rows[:cut])])
    sums: dict[int, int] = defaultdict(int)
    for k, v in rows:
        sums[k] += v
    if rows:
        assert found.at(np.array(asked, dtype=np.int64), "v", missing=-99).tolist() == [
            sums.get(k, -99) for k in asked
        ]
    assert found.keys.tolist() == sorted(sums)


@given(values=INTS, weights=st.data())
def test_codes_of_values_lead_back_to_them_and_sums_are_exact(values, weights):
    array = np.array(values, dtype=np.int64)
    dense = Factorized.of(array)
    assert dense.keys.tolist() == sorted(set(values))
    assert dense.keys[dense.codes].tolist() == values
    weight = weights.draw(
        st.lists(st.one_of(st.integers(-9, 9), st.just(1 << 55)), min_size=len(values), max_size=len(values))
    )
    rows = np.array(
        weights.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), dtype=np.bool_
    )
    for some in (None, rows):
        taken = [True] * len(values) if some is None else some.tolist()
        sums, counts = defaultdict(int), defaultdict(int)
        for v, w, keep in zip(values, weight, taken, strict=True):
            sums[v] += w * keep
            counts[v] += keep
        assert dense.sum(np.array(weight, dtype=np.int64), some).tolist() == [
            sums[k] for k in sorted(set(values))
        ]
        assert dense.count(some).tolist() == [counts[k] for k in sorted(set(values))]


@given(values=INTS)
def test_the_stable_order_sorts_and_keeps_equals_in_their_order(values):
    order = stable_order(np.array(values, dtype=np.int64)).tolist()
    assert order == sorted(range(len(values)), key=lambda i: (values[i], i))


@pytest.mark.parametrize("spread", [1 << 10, 1 << 17, 1 << 40])
def test_stable_order_is_equal_for_narrow_and_wide_keys(spread):
    values = np.random.default_rng(1).integers(-spread, spread, 70_000)
    assert (stable_order(values) == np.argsort(values, kind="stable")).all()


@given(
    pairs=st.lists(
        st.tuples(st.one_of(st.integers(-3, 3), FAR), st.one_of(st.integers(-3, 3), FAR)), max_size=40
    )
)
def test_pairs_are_counted_under_both_numbers(pairs):
    found = count_pairs(*columns(pairs, 2))
    counted = list(zip(found.first.tolist(), found.second.tolist(), found.count.tolist(), strict=True))
    assert counted == [(a, b, pairs.count((a, b))) for a, b in sorted(set(pairs))]


@given(
    pairs=st.lists(
        st.tuples(st.sampled_from([-100, -1, 0, 1, 2, 100]), st.one_of(st.integers(-3, 3), FAR, st.just(100))),
        max_size=40,
    ),
    cut=st.integers(0, 40),
    few=st.sampled_from([0, 3, 32]),
    packed=st.booleans(),
)
@example(pairs=[(-100, 0), (1, 0), (0, 100), (100, 1)], cut=2, few=3, packed=True)
def test_merged_pairs_equal_the_pairs_of_all_rows(pairs, cut, few, packed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vani.analyzers.int_table._FEW_FIRST", few)
        parts = [count_pairs(*columns(some, 2)) for some in (pairs[cut:], [], pairs[:cut])]
        once = Pairs.merged([Pairs.merged(some, packed=packed) for some in (parts[:2], parts[2:])], packed=packed)
    whole = count_pairs(*columns(pairs, 2))
    for name in ("first", "second", "count"):
        assert getattr(once, name).tolist() == getattr(whole, name).tolist()


@given(
    rows=ROWS,
    of=st.lists(st.integers(0, 2), min_size=40, max_size=40),
    shift=st.sampled_from([0, 1 << 40]),
)
@example(
    # Two parts contain only a shared group, the third none of it.
    rows=[(0, 0, 5), (0, 20, 5), (2, 0, 1), (2, 2, 1), (2, 4, 1)],
    of=[0, 1] + 38 * [0],
    shift=0,
)
def test_groups_within_one_part_are_merged_like_all_groups(rows, of, shift):
    rows = [(g + shift, a, n) for g, a, n in rows]
    # Most groups are in one part, like files with a single process; those of `of` are anywhere.
    where = [of[i] if g % 3 == 0 else (g % 3) for i, (g, _, _) in enumerate(rows)]
    parts = [
        merged([row for row, place in zip(rows, where, strict=True) if place == one]) for one in range(3)
    ]
    whole = merged(rows)
    joined = Intervals.joined(parts)
    for name in ("group", "start", "end"):
        assert getattr(joined, name).tolist() == getattr(whole, name).tolist()


@given(
    parts=st.lists(
        st.dictionaries(st.integers(-5, 5), st.tuples(INTS_OF_ALL_SIZES, INTS_OF_ALL_SIZES), max_size=6),
        max_size=4,
    ),
    large=st.sampled_from([0, 1 << 18]),
)
def test_tables_in_small_types_add_up_as_those_of_64_bits(parts, large):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vani.analyzers.int_table._LARGE", large)
        tables = []
        for part in parts:
            keys = sorted(part)
            values = {n: np.array([part[k][i] for k in keys], np.int64) for i, n in enumerate(("a", "b"))}
            table = IntTable(np.array(keys, np.int64), values)
            packed = table.packed()
            assert all((packed[n] == table[n]).all() and packed[n].dtype == np.int64 for n in values)
            assert sum(c.nbytes for c in packed.columns.values()) <= sum(c.nbytes for c in values.values())
            tables += [packed, table]
        found = IntTable.merged(tables, {"b": "max"})
    sums: dict[int, int] = defaultdict(int)
    most: dict[int, int] = {}
    for part in parts:
        for key, (a, b) in part.items():
            sums[key] += 2 * a
            most[key] = max(most.get(key, b), b)
    if len(found):
        assert dict(zip(found.keys.tolist(), found["a"].tolist(), strict=True)) == sums
        assert dict(zip(found.keys.tolist(), found["b"].tolist(), strict=True)) == most
        assert found.at(np.array([-5, 99]), "a", -7).tolist() == [sums.get(-5, -7), -7]
    else:
        assert not sums
