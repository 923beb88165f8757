"""Kernels that measure calls agree with numpy, and leave odd cases to it."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analyzers"))
from call_tables import FUNCTION_NAMES, InventedTrace, call, invented_traces, profile_of, read, write
from plain_results import plain
from switched import needs_kernels, numpy_alone

from vani.analyzers.batch import Batch
from vani.analyzers.int_table import NO_VALUE, pack
from vani.analyzers.intervals import merge as merged
from vani.analyzers.measures.busy_time import _rolled_up
from vani.analyzers.measures.lengths import _past_end
from vani.analyzers.measures.survey import Last, OverlapFinder, Survey
from vani.analyzers.passes.measure_workload import all_measures
from vani.analyzers.workload import MOMENTS, Context, Ends, SurveyFindings, Workload
from vani.calls import FileClass, Flag, Layer
from vani.kernels import ActivityBit, ReachKind, columns, dtype_of
from vani.kernels import call as run
from vani.readers.trace_reader import Piece

pytestmark = needs_kernels
EXAMPLES = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEW = settings(EXAMPLES, max_examples=8)

NUMBERS = st.one_of(st.just(NO_VALUE), st.integers(0, 60))


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


@st.composite
def workload_and_findings(draw: st.DrawFn, trace: InventedTrace) -> tuple[Context, SurveyFindings]:
    files, span = len(trace.classes), max((r["start_ns"] + r["duration_ns"] for r in trace.rows), default=0)
    workload = Workload(
        paths=trace.paths(),
        file_class=np.array([int(c) for c in trace.classes], np.int8),
        apps=("one",),
        app_of_trace=(0,),
        process_base=(0,),
        processes=trace.ranks,
        shift_ns=(draw(st.sampled_from([0, 5])),),
        span_ns=span + 5,
        known_sizes=np.full(files, NO_VALUE),
        final_name=np.arange(files),
        functions=("(unknown)", *FUNCTION_NAMES),
    )
    codes = np.append(np.arange(1, len(FUNCTION_NAMES) + 1), 0).astype(np.int32)
    starts = ints(sorted(draw(st.sets(st.integers(0, span + 1), min_size=1, max_size=3))))
    keys = sorted(draw(st.sets(st.tuples(st.integers(0, files - 1), st.integers(0, 4000)), max_size=6)))
    reached = ints(sorted(draw(st.sampled_from([0, 100, 150, 250, 1000])) for _ in keys))
    ends = Ends(
        known=np.array([draw(st.booleans()) for _ in range(files)]),
        since=ints([draw(st.integers(0, span)) for _ in range(files)]),
        always=np.zeros(files, np.bool_),
        keys=pack((ints([f for f, _ in keys]), ints([m for _, m in keys])), MOMENTS),
        reach=reached,
        bucket_ns=max(1, (span + 6) // 4096),
    )
    some = [draw(st.booleans()) for _ in range(files)]
    listed = np.append(np.where(some, np.arange(files), -1), -1).astype(np.int32)
    findings = SurveyFindings(
        starts,
        np.zeros(len(starts), np.int64),
        ints([0, len(starts)]),
        ends,
        linked=np.array([draw(st.booleans()) for _ in range(files)]),
        linked_by_open=np.zeros(files, np.bool_),
        written_by_open=np.zeros(files, np.bool_),
        threaded=ints(sorted(draw(st.sets(st.integers(0, trace.ranks - 1))))),
        listed_as=draw(st.sampled_from([None, listed])),
        linked_calls=draw(st.sampled_from([0, 1 << 30])),
    )
    return Context(workload, 0, np.arange(files), codes), findings


def busy_trace(seed: int, rows_per_batch: int) -> InventedTrace:
    """Two processes with many operations on few places of two files."""
    chance = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    jumpy = chance.random()
    for rank in range(2):
        now, at = 0, 0
        for _ in range(int(chance.integers(0, 60))):
            now += int(chance.integers(0, 3))
            file, size = int(chance.integers(0, 2)), int(chance.choice([0, 100, 100, 100, 200]))
            here = {"rank": rank, "at": now, "lasts": int(chance.integers(0, 3))}
            what = chance.random()
            if what < 0.05:
                rows.append(call(file=file, flags=Flag.OPEN, **here))
            elif what < 0.1:
                rows.append(call(file=file, flags=Flag.SEEK, offset=chance.choice([None, 0, 300]), **here))
            else:
                at = int(chance.integers(0, 6)) * 100 if chance.random() < jumpy else at + 200
                known = chance.random() < 0.95
                append = Flag.APPEND if chance.random() < 0.05 else 0
                more = {"flags": append, "follows": bool(chance.random() < 0.5), **here}
                do = read if what < 0.6 and not append else write
                rows.append(do(file, at if known else None, size if chance.random() < 0.95 else None, **more))
    return InventedTrace(rows, [FileClass.DATASET] * 2, ranks=2, rows_per_batch=rows_per_batch)


TRACES = st.one_of(
    invented_traces().map(lambda traces: traces[0]),
    st.builds(busy_trace, st.integers(0, 1 << 30), st.sampled_from([3, 11, 1000])),
)


@pytest.mark.slow
@given(data=st.data(), trace=TRACES)
@EXAMPLES
def test_each_measure_finds_the_same_with_kernels_and_without(data, trace):
    context, findings = data.draw(workload_and_findings(trace))
    batches = list(trace.batches(range(trace.ranks), Piece()))

    def found(measure: Any, findings: SurveyFindings | None) -> Any:
        collector = measure.chunk(context, findings)
        for calls in batches:
            collector.add(Batch(context, calls, findings))
        return plain(measure.combine([collector.result()]))

    for measure in (Survey(), *all_measures()):
        known = None if isinstance(measure, Survey) else findings
        if known is not None and measure.name == "io_time":
            # The survey determines whether processes run calls at the same time, so it cannot be chosen
            # freely.
            continue
        compiled = found(measure, known)
        with numpy_alone():
            assert found(measure, known) == compiled, measure.name


@given(traces=invented_traces(most=2), gap=st.sampled_from([None, 0.002]), files=st.sampled_from([None, 1]))
@FEW
@pytest.mark.slow
def test_profiles_are_the_same_with_kernels_and_without(traces, gap, files):
    with tempfile.TemporaryDirectory() as folder:
        compiled = profile_of(traces, Path(folder) / "a", gap_s=gap, files=files)
        with numpy_alone():
            assert profile_of(traces, Path(folder) / "b", gap_s=gap, files=files) == compiled


@given(rows=st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS), max_size=30))
@EXAMPLES
def test_extents_cover_accessed_bytes(rows):
    codes, offset, size = (ints([row[i] for row in rows]) for i in range(3))
    found = run("extents", codes=codes, offset=offset, bytes=size, side=ints([1, -1, 0]), sides=2)["extents"]
    covered = {(side, at) for side, a, b in found.tolist() for at in range(a, b)}
    assert covered == {
        ((1, -1, 0)[g], at) for g, o, s in rows if g != 1 and NO_VALUE not in (o, s) for at in range(o, o + s)
    }


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS, st.integers(0, 99)), max_size=40),
    length=st.integers(1, 30),
    level=st.integers(0, 2),
    empty=st.booleans(),
)
@EXAMPLES
def test_how_far_writes_reach_is_known_by_moment(rows, length, level, empty):
    calls = {n: ints([row[i] for row in rows]) for i, n in enumerate(("codes", "offset", "bytes", "start"))}
    what = ints([ReachKind.WRITES, ReachKind.LEFT_OUT, ReachKind.CUTS])
    found = run("reach", **calls, what=what, length=length, most=4, level=level, empty=empty)["reached"]
    expected: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for g, offset, size, start in rows:
        if g == 1 or offset == NO_VALUE or (g == 0 and (size == NO_VALUE or (size == 0 and not empty))):
            continue
        end = offset if g == 2 else offset + size if size else 0
        expected.setdefault((g, min(start // length, 4) >> level), []).append((end, start))
    merged_rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for g, moment, end, last in found.tolist():
        merged_rows.setdefault((g, moment), []).append((end, last))
    assert {k: tuple(map(max, zip(*v, strict=True))) for k, v in merged_rows.items()} == {
        k: tuple(map(max, zip(*v, strict=True))) for k, v in expected.items()
    }


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), NUMBERS, st.integers(0, 99), st.integers(0, 9)), max_size=40),
    length=st.integers(1, 30),
)
@EXAMPLES
def test_activity_is_added_up_by_process_and_moment(rows, length):
    calls = {n: ints([row[i] for row in rows]) for i, n in enumerate(("codes", "bytes", "start", "duration"))}
    counted = ActivityBit.COUNTED
    what = ints([counted | ActivityBit.READS, 0, counted | ActivityBit.OPENS])
    process = ints([5, 5, 6])
    found = run("activity", **calls, process=process, what=what, length=length, most=3, level=0)["cells"]
    often, total = Counter(), Counter()
    for g, size, start, _ in rows:
        if g != 1:
            key = (5 if g == 0 else 6, min(start // length, 3))
            often[key] += 1
            total[key] += max(size, 0) * (g == 0)
    rows_of = list(zip(found["process"].tolist(), found["moment"].tolist(), strict=True))
    seen, moved = Counter(), Counter()
    for key, count, size in zip(rows_of, found["calls"].tolist(), found["read"].tolist(), strict=True):
        seen[key] += count
        moved[key] += size
    assert seen == often
    assert moved == total


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), NUMBERS, NUMBERS, st.integers(0, 99), st.integers(0, 9)), max_size=30
    ),
    keys=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), unique=True, max_size=8),
)
@EXAMPLES
def test_bytes_past_the_end_are_those_of_each_read(rows, keys):
    keys = sorted(keys)
    ends = Ends(
        np.ones(2, np.bool_),
        ints([0, 20]),
        np.zeros(2, np.bool_),
        pack((ints([f for f, _ in keys]), ints([m for _, m in keys])), MOMENTS),
        ints([10 * m + 5 for _, m in keys]),
        bucket_ns=10,
    )
    names = ("codes", "offset", "bytes", "start", "duration")
    calls = {n: ints([row[i] for row in rows]) for i, n in enumerate(names)}
    groups = SimpleNamespace(codes=calls["codes"], file=ints([0, -1, 1]))
    batch: Any = SimpleNamespace(groups=groups, **calls, end=calls["start"] + calls["duration"])
    found = _past_end(batch, groups.file >= 0, ends)
    beyond, reads = [0] * 3, [0] * 3
    for g, offset, size, start, took in rows:
        file, now = (0, -1, 1)[g], start + took
        if file < 0 or NO_VALUE in (offset, size) or now < (0, 20)[file]:
            continue
        end = int(ends.at(ints([file]), ints([now]))[0])
        reads[g] += 1
        beyond[g] += min(max(offset + size - max(offset, end), 0), size)
    assert [column.tolist() for column in found] == [beyond, reads]


@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 3), st.integers(-1, 2), st.integers(0, 50), st.integers(0, 9)
        ),
        max_size=30,
    ),
    window=st.tuples(st.integers(0, 30), st.integers(1, 40)),
)
@EXAMPLES
def test_busy_time_of_every_group_is_a_union(rows, window):
    low, high = window[0], window[0] + window[1]
    number, included = (0, 1, 2, 0), (True, True, False, True)
    names = {"layer": np.int8, "kind": np.int8, "file": np.int32, "start_ns": np.int64, "duration_ns": np.int64}
    calls = {n: np.array([row[i] for row in rows], t) for i, (n, t) in enumerate(names.items())}
    found = run(
        "intervals",
        **calls,
        flags=np.zeros(len(rows), np.int16),
        number=ints(number),
        included=np.array(included),
        files=3,
        width=3,
        phase_starts=ints([0, 20]),
        first_phase=0,
        excluded=2,
        most_layer=Layer.STDIO,
        nested=0,
        shift=3,
        low=low,
        high=high,
    )
    findings = SimpleNamespace(phases=2, phase_app=ints([0, 0]))
    inputs: Any = SimpleNamespace(findings=findings, widths=(3, 3, 4), workload=True)
    by_group = _rolled_up(merged(found["code"].astype(np.int64), found["start"], found["end"]), inputs)
    times = np.zeros(42, np.int64)
    times[by_group.keys] = by_group["time"]
    open_at: dict[tuple[int, int], set[int]] = {}
    for one in rows:
        if one[0] > Layer.STDIO:
            continue
        begin = one[3] + 3
        phase = int(begin >= 20) if included[one[2]] else 2
        groups = [phase, *([3 + number[one[2]]] if number[one[2]] else []), *([3, 6] if phase < 2 else [])]
        for group in groups:
            for which in (one[1], 5, *([4] if one[1] in (1, 3) else [])):
                moments = range(max(begin, low), min(begin + one[4], high))
                open_at.setdefault((group, which), set()).update(moments)
    expected = np.zeros((7, 6), np.int64)
    for key, moments in open_at.items():
        expected[key] = len(moments)
    assert times.tolist() == expected.ravel().tolist()


def test_groups_beyond_their_number_are_left_to_numpy():
    calls = {"codes": ints([0, 3]), "offset": ints([0, 0]), "bytes": ints([1, 1])}
    times = {"start": ints([0, 1]), "duration": ints([0, 0])}
    moments = {"length": 1, "most": 1, "level": 0}
    assert run("extents", **calls, side=ints([0]), sides=1) is None
    what = ints([ReachKind.WRITES])
    assert run("reach", **calls, start=times["start"], what=what, empty=False, **moments) is None
    del calls["offset"]
    assert run("activity", **calls, **times, process=ints([0]), what=ints([1]), **moments) is None


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 9)), max_size=40),
    size=st.integers(1, 12),
)
@EXAMPLES
def test_concurrent_calls_are_found_however_they_are_divided(rows, size):
    rows = sorted(rows, key=lambda row: row[0])
    expected, finder, found = set(), OverlapFinder(), set()
    for at, (process, start, _) in enumerate(rows):
        earlier = [row for row in rows[:at] if row[0] == process]
        # Coarse clocks make neighbours touch, so a call may overlap the call just before it.
        if earlier and (start < earlier[-1][1] or any(begin + took > start for _, begin, took in earlier[:-1])):
            expected.add(process)
    for at in range(0, len(rows), size):
        process, start, took = (ints([row[i] for row in rows[at : at + size]]) for i in range(3))
        found |= {*finder.find(process, start, start + took).tolist()}
    assert found == expected


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 9)), max_size=40),
    size=st.integers(1, 12),
    floor=st.integers(0, 6),
)
@EXAMPLES
def test_pauses_and_overlaps_are_those_that_numpy_finds(rows, size, floor):
    rows = sorted(rows, key=lambda row: row[0])
    finder = OverlapFinder()
    for at in range(0, len(rows), size):
        codes, start, took = (ints([row[i] for row in rows[at : at + size]]) for i in range(3))
        included = np.array([True, True, False])
        last = np.zeros(1, dtype_of("busy", "last"))
        before = finder.last
        last[0] = (max(before.process - 3, 0), before.start, before.end, before.reach)
        found = run(
            "busy",
            codes=codes,
            start=start,
            duration=took,
            process=ints([1, 2, 3]),
            included=included,
            processes=4,
            floor=floor,
            last=last,
        )
        processes = np.flatnonzero(found["overlaps"]) + 3
        assert processes.tolist() == finder.find(codes + 4, start, start + took).tolist()
        process, *times = last[0].tolist()
        assert finder.last == Last(process + 3, *times)
        begin, end = columns(found["busy"])
        mine = included[codes]
        one = np.zeros(int(mine.sum()), np.int64)
        expected = merged(one, start[mine], np.maximum(start + took, start + 1)[mine] + floor)
        assert plain(merged(np.zeros(len(begin), np.int64), begin, end + floor)) == plain(expected)
