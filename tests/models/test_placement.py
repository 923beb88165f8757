"""Placement of stripes: the bytes of each, and OSTs for them."""

from __future__ import annotations

from itertools import permutations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.centre.plan.placement.layouts import (
    Writing,
    extents,
    settable,
    stripe_bytes,
    stripe_size_for,
    tarazu_stripe_size,
)
from vani.centre.plan.placement.search import Stripes, Targets, balance, largest_first, least_level, levels
from vani.centre.plan.placement_methods import cheapest
from vani.centre.plan.schema.scenario import Placement
from vani.centre.plan.simulate.machine import Component as Part
from vani.centre.plan.simulate.machine import Placer, in_turn, turns_of
from vani.centre.plan.simulate.machine import Targets as UsableTargets
from vani.models.pfl import CONFIGURATION_1, Component, Layout
from vani.models.striping import LARGEST_STRIPE, STRIPE_UNIT
from vani.units import GiB, MiB

PLAIN = Layout((Component(None, 8),))


def targets_of(size=(10.0,) * 4, base=None, room=None, per_server=2) -> Targets:
    count = len(size)
    return Targets(
        np.array(size, dtype=float),
        np.zeros(count) if base is None else np.array(base, dtype=float),
        np.full(count, 1e18) if room is None else np.array(room, dtype=float),
        np.arange(count) // per_server,
    )


# --- bytes of stripes -----------------------------------------------------------------------------


def test_partly_filled_component_keeps_its_stripe_size():
    # Section 4.2: 50 million particles, 7 of 8 stripes of 192 MiB; the twelfth overall is empty.
    third = extents(CONFIGURATION_1, round(1830.4 * MiB), 35)[2]
    assert (third.size, third.count) == (192 * MiB, 8)
    assert third.stripes[:6] == (192 * MiB,) * 6
    assert 0 < third.stripes[6] < 192 * MiB
    assert third.stripes[7] == 0


def test_refused_stripe_size_is_replaced_by_the_largest_equal_one():
    printed = extents(CONFIGURATION_1, 8 * GiB, 35)
    asked = extents(CONFIGURATION_1, 8 * GiB, 35)
    assert [one.size for one in printed] == [134217728, 134217728, 201326592, 402653184]
    assert [one.settable for one in printed] == [128 * MiB, 128 * MiB, 64 * MiB, 384 * MiB]
    assert [sorted(one.stripes) for one in printed] == [sorted(one.stripes) for one in asked]


def test_stripe_of_4_gib_is_cut_into_equal_parts():
    only = extents(PLAIN, 80 * GiB, 35)[0]
    assert tarazu_stripe_size(80 * GiB, 8) == 10 * GiB
    assert only.settable == 3_579_117_568 or only.settable < 4 * GiB
    assert set(only.stripes) == {10 * GiB}


@given(st.integers(0, 1 << 14), st.integers(1, 1 << 14), st.integers(1, 64))
def test_lustre_accepts_every_stripe_size_set(start, length, count):
    begin, end = start * STRIPE_UNIT, (start + length) * STRIPE_UNIT
    size = settable(end - begin, count, end)
    parts = (Component(begin, 1, STRIPE_UNIT),) if begin else ()
    Layout((*parts, Component(end, count, size), Component(None, 1, STRIPE_UNIT)))
    exact, rest = divmod(end - begin, count)
    if rest == 0 and exact % STRIPE_UNIT == 0:
        assert set(stripe_bytes(begin, end, size, count)) == {exact}


@given(st.integers(1, 1 << 40), st.integers(1, 64))
def test_a_last_component_has_stripes_that_lustre_takes(size, count):
    found = settable(size, count, None)
    assert found % STRIPE_UNIT == 0
    assert STRIPE_UNIT <= found <= LARGEST_STRIPE


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, 400), st.integers(1, 9))
def test_bytes_by_stripe_are_those_of_counting_each(start, length, size, count):
    wanted = [0] * count
    for offset in range(start, start + length):
        wanted[offset // size % count] += 1
    assert list(stripe_bytes(start, start + length, size, count)) == wanted


def test_file_has_the_components_up_to_its_size():
    assert [one.number for one in extents(CONFIGURATION_1, 0, 35)] == [1]
    assert [one.number for one in extents(CONFIGURATION_1, 128 * MiB, 35)] == [1]
    assert [one.number for one in extents(CONFIGURATION_1, 128 * MiB + 1, 35)] == [1, 2]


def test_all_targets_are_limited_to_the_stripes_of_a_file():
    layout = Layout((Component(MiB, 3), Component(None, -1)))
    assert [one.count for one in extents(layout, GiB, 3600)] == [3, 1997]
    assert [one.count for one in extents(layout, GiB, 36)] == [3, 36]
    twice = Layout((Component(MiB, -1), Component(None, -1)))
    assert [one.count for one in extents(twice, GiB, 3600)] == [1000, 1000]


def test_a_part_on_the_metadata_target_needs_no_ost():
    layout = Layout((Component(MiB, None, on_mdt=True), Component(None, 4)))
    found = extents(layout, 5 * MiB, 35)
    assert [(one.number, one.stripes, one.on_mdt) for one in found] == [(1, (), MiB), (2, (MiB,) * 4, None)]
    # Data beyond the metadata target's part needs a component there.
    assert [(one.number, one.on_mdt) for one in extents(layout, 3000, 35)] == [(1, 3000), (2, None)]


@pytest.mark.parametrize(
    ("writing", "length", "count", "end", "size", "purpose"),
    [
        (Writing(), 2 * GiB, 8, None, 4 * MiB, "dealing"),
        (Writing(request=64 * MiB), 2 * GiB, 8, None, 16 * MiB, "dealing"),
        (Writing(request=4096), 2 * GiB, 8, None, MiB, "dealing"),
        (Writing(), 8 * 640 * 1024, 8, None, 640 * 1024, "dealing"),
        (Writing(8, MiB), 2 * GiB, 8, None, 256 * MiB, "regions"),
        # Of 12 regions on 8 targets four would be twice as full.
        (Writing(12, MiB), 3 * GiB, 8, None, MiB, "dealing"),
        (Writing(8, 47_008, strided=True), 2 * GiB, 8, None, MiB, "records"),
        (Writing(8, 3 * MiB, strided=True), 3 * GiB, 8, None, 3 * MiB, "records"),
        (Writing(), 2 * GiB, 8, 2 * GiB, 4 * MiB, "dealing"),
    ],
)
def test_a_stripe_size_follows_from_how_the_file_is_written(writing, length, count, end, size, purpose):
    assert stripe_size_for(writing, 0, length, end, count) == (size, purpose)


@given(st.integers(1, 1 << 36), st.integers(1, 64), st.integers(0, 1 << 26))
def test_dealt_stripes_are_settable_balanced_and_kept_per_client(length, count, request):
    size, purpose = stripe_size_for(Writing(request=request or None), 0, length, None, count)
    assert purpose == "dealing" and size % STRIPE_UNIT == 0
    assert size <= 16 * MiB and (size >= MiB or length < count * MiB)
    stripes = stripe_bytes(0, length, size, count)
    assert sum(stripes) == length and max(stripes) - min(stripes) <= size


# --- balanced -------------------------------------------------------------------------------------


def all_placements(requests, targets):
    """Load of the fullest target and of the fullest server for every placement that fits."""
    ways = [list(permutations(range(len(targets)), len(one))) for one in requests]
    sizes = np.array([size for one in requests for size in one], dtype=float)
    stripes = Stripes.of(requests)
    for chosen in product(*ways):
        place = np.array([one for way in chosen for one in way], dtype=np.int64)
        held = np.bincount(place, weights=sizes, minlength=len(targets))
        if np.all(held <= targets.room):
            yield levels(place, stripes, targets)


SMALL = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=2), min_size=1, max_size=3)


@given(
    SMALL,
    st.lists(st.tuples(st.integers(8, 20), st.integers(0, 8), st.integers(0, 30)), min_size=2, max_size=4),
)
def test_balanced_is_as_good_as_the_best_of_all_placements(requests, kinds):
    size, base, room = zip(*kinds, strict=True)
    targets = targets_of(size, base, room)
    found = balance(requests, targets)
    every = list(all_placements(requests, targets)) if max(map(len, requests)) <= len(targets) else []
    if not every:
        assert np.any(found.place < 0)
        return
    best = min((round(level, 9), round(server, 9)) for level, server in every)
    level, server = levels(found.place, Stripes.of(requests), targets)
    assert np.all(found.place >= 0)
    assert (round(level, 9), round(server, 9)) == best
    assert found.bound <= level * (1 + 1e-9)
    assert found.is_least


@given(
    st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=6), min_size=1, max_size=12),
    st.integers(1, 12),
    st.integers(200, 4000),
)
@pytest.mark.slow
def test_stripes_of_a_request_use_distinct_targets_with_room_or_fail(
    requests, count, room
):
    targets = targets_of((5000.0,) * count, room=(room,) * count)
    found = balance(requests, targets)
    stripes = Stripes.of(requests)
    held = np.zeros(count)
    for number, one in enumerate(requests):
        place = found.place[stripes.first[number] : stripes.first[number + 1]]
        assert np.all(place < 0) or len(set(place.tolist())) == len(one)
        np.add.at(held, place[place >= 0], np.array(one, dtype=float)[place >= 0])
    assert np.all(held <= room)
    assert levels(found.place, stripes, targets)[0] >= 0


def test_exchanges_improve_on_largest_first():
    requests = [one.stripes for _ in range(16) for one in extents(CONFIGURATION_1, 2 * GiB, 35)]
    targets = targets_of((10.0 * GiB,) * 35, per_server=5)
    stripes = Stripes.of(requests)
    mean = stripes.bytes.sum() / 35 / (10 * GiB)
    alone = levels(largest_first(requests, stripes, targets), stripes, targets)[0] / mean
    found = balance(requests, targets)
    assert alone == pytest.approx(1.0938, abs=1e-4)
    assert levels(found.place, stripes, targets)[0] / mean == pytest.approx(1.0254, abs=1e-4)
    assert found.is_least


def test_past_use_is_filled_up_first():
    found = balance([[4], [4], [4]], targets_of((10.0, 10.0), base=(8, 0), per_server=1))
    assert found.place.tolist().count(1) >= 2


def test_one_wide_file_is_bounded_by_its_own_stripes():
    targets = targets_of((10.0,) * 35)
    assert least_level(Stripes.of([[2] * 8]), targets) == pytest.approx(0.2)


def test_the_same_requests_are_placed_the_same():
    requests = [[7, 3, 5], [2, 2], [9]] * 20
    targets = targets_of((100.0,) * 7)
    assert np.array_equal(balance(requests, targets).place, balance(requests, targets).place)


# --- algorithm 1 ----------------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=6),
)
def test_cost_of_algorithm_1_equals_a_minimum_cost_maximum_flow(counts, kinds):
    costs = np.array([cost for cost, _ in kinds], dtype=float)
    capacity = np.array([most for _, most in kinds], dtype=np.int64)
    found = cheapest(counts, costs, capacity)
    assert all(len(set(one)) == len(one) for one in found)
    graph = nx.DiGraph()
    for request, count in enumerate(counts):
        graph.add_edge("source", ("r", request), capacity=count, weight=0)
        for target in range(len(kinds)):
            graph.add_edge(("r", request), ("o", target), capacity=1, weight=0)
    for target, (cost, most) in enumerate(kinds):
        graph.add_edge(("o", target), "sink", capacity=most, weight=cost)
    flow = nx.max_flow_min_cost(graph, "source", "sink")
    taken = np.bincount([target for targets in found for target in targets], minlength=len(costs))
    assert (taken.sum(), taken @ costs) == (sum(flow["source"].values()), nx.cost_of_flow(graph, flow))


# --- Lustre's allocator ---------------------------------------------------------------------------


def test_targets_are_chosen_server_by_server():
    assert in_turn(np.array([0, 0, 0, 1, 1, 2])).tolist() == [0, 3, 5, 1, 4, 2]


def placer(free, *, policy="lsa", seed=0, sound=None, window=0.17) -> Placer:
    """Lustre's allocator on targets of 1,000 bytes, each with its own server."""
    count = len(free)
    is_sound = np.ones(count, dtype=bool) if sound is None else np.array(sound)
    size, used = np.full(count, 1000.0), 1000.0 - np.array(free, dtype=float)
    targets = UsableTargets(np.arange(count), np.arange(count), size, used, np.ones(count, dtype=bool), is_sound)
    return Placer(targets, Placement(policy=policy, window=window), seed)


def files_of(number, count, size=0.0):
    return [(size, (Part(0.0, None, count, 1.0),))] * number


def test_round_robin_continues_from_file_to_file():
    place = np.concatenate([row[0] for row in placer([1000] * 6, seed=3).place(files_of(3, 4))])
    assert np.bincount(place).tolist() == [2] * 6
    assert np.all(np.diff(place) % 6 == 1)


def test_components_get_their_targets_when_files_reach_them():
    parts = (Part(0.0, 4.0, 1, 1.0), Part(4.0, None, 2, 1.0))
    together = placer([1000] * 6).place([(9.0, parts)] * 2)
    begin = int(together[0][0][0])
    # Both first components, then both second ones; one after the other if a process writes both files.
    assert [row.tolist() for file in together for row in file] == [
        [begin], [(begin + 2) % 6, (begin + 3) % 6], [(begin + 1) % 6], [(begin + 4) % 6, (begin + 5) % 6]
    ]  # fmt: skip
    turns = turns_of([0, 0])
    assert turns == [0, 1]
    in_sequence = placer([1000] * 6).place([(9.0, parts)] * 2, turns)
    assert np.concatenate([row for file in in_sequence for row in file]).tolist() == [(begin + n) % 6 for n in range(6)]


def test_beyond_the_window_targets_are_drawn_by_free_space():
    def counts(window):
        rows = placer([1000, 1000, 1, 1], window=window).place(files_of(400, 1))
        return np.bincount([int(row[0][0]) for row in rows], minlength=4)

    assert counts(0.17)[:2].min() > 150
    assert counts(1.0).tolist() == [100] * 4


def test_equal_seeds_give_equal_draws_and_different_seeds_different_ones():
    draws = [
        np.concatenate([row[0] for row in placer([1000] * 9, policy="weighted", seed=seed).place(files_of(9, 3))]).tolist()
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_degraded_targets_are_passed_over_unless_the_others_do_not_suffice():
    few = placer([1000] * 4, sound=[True, False, True, True]).place(files_of(9, 3))
    assert {int(target) for row in few for target in row[0]} == {0, 2, 3}
    assert sorted(placer([1000] * 4, sound=[True, False, True, True]).place(files_of(1, 4))[0][0].tolist()) == [0, 1, 2, 3]
