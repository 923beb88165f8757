"""The heat map against an oracle in plain Python, and against the profiles of bundled real traces."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from call_tables import MILLISECOND, InventedTrace, call, invented_traces, read, stored, write
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from invented import examples

import vani
from vani.analyzers import heat_map as module
from vani.analyzers.heat_map import MAX_BINS, MAX_ROWS, heat_map
from vani.calls import FileClass, Flag, Kind, Layer
from vani.engine.cluster import open_executor
from vani.schema.timeline import HeatMap
from vani.store.read import open_store

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"


def heat_of(traces: Sequence[InventedTrace], folder: Path, cuts: Sequence[int] = ()) -> HeatMap:
    stores = [stored(t, folder / str(i), cuts=cuts) for i, t in enumerate(traces)]
    return heat_map(stores, [t.app for t in traces], open_executor("synchronous"))


def counted(trace: InventedTrace) -> list[dict]:
    """The calls that a profile counts as I/O on the data set."""
    return [
        r
        for r in trace.rows
        if r["layer"] <= Layer.STDIO
        and not r["flags"] & Flag.NESTED
        and r["file"] is not None
        and trace.classes[r["file"]] == FileClass.DATASET
    ]


def united(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def expected(traces: Sequence[InventedTrace], bin_ns: int, bins: int):
    """(bytes by direction, row, bin as fractions; ns in calls by row and bin; ns in calls by process)."""
    moved: dict[tuple[str, int, int], Fraction] = defaultdict(Fraction)
    busy: dict[tuple[int, int], int] = defaultdict(int)
    own: dict[int, int] = {}
    base, origin = 0, min(t.start_unix_s for t in traces)
    for trace in traces:
        shift = round((trace.start_unix_s - origin) * 1e9)
        by_rank: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row in counted(trace):
            start = row["start_ns"] + shift
            end = start + row["duration_ns"]
            by_rank[row["rank"]].append((start, end))
            if row["kind"] > Kind.WRITE or not row["bytes"]:
                continue
            side = "read" if row["kind"] == Kind.READ else "written"
            for b in range(bins):
                low, high = b * bin_ns, (b + 1) * bin_ns
                if end == start:
                    inside = Fraction(int(low <= start < high or (b == bins - 1 and start >= high)))
                else:
                    inside = Fraction(max(0, min(end, high) - max(start, low)), end - start)
                if inside:
                    moved[side, base + row["rank"], b] += inside * row["bytes"]
        for rank, intervals in by_rank.items():
            union = united(intervals)
            own[base + rank] = sum(b - a for a, b in union)
            for a, z in union:
                for b in range(a // bin_ns, -(-z // bin_ns)):
                    busy[base + rank, b] += min(z, (b + 1) * bin_ns) - max(a, b * bin_ns)
        base += trace.ranks
    return moved, busy, own


checked = settings(
    max_examples=examples(25),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(traces=invented_traces(most=3), cuts=st.lists(st.integers(1, 3), max_size=2))
@checked
@pytest.mark.slow
def test_cells_contain_their_amounts_and_add_up_exactly(traces, cuts):
    with tempfile.TemporaryDirectory() as folder:
        heat = heat_of(traces, Path(folder), cuts)
    bin_ns = round(heat.bin_s * 1e9)
    moved, busy, own = expected(traces, bin_ns, heat.bins)
    calls = sum(len(counted(t)) for t in traces)
    for side, table, total in (
        ("read", heat.read, heat.processes.bytes_read),
        ("written", heat.written, heat.processes.bytes_written),
    ):
        kind = Kind.READ if side == "read" else Kind.WRITE
        whole = sum(r["bytes"] or 0 for t in traces for r in counted(t) if r["kind"] == kind)
        assert sum(map(sum, table)) == sum(total) == whole
        for row, amounts in enumerate(table):
            assert sum(amounts) == total[row]
            for b, amount in enumerate(amounts):
                # Each boundary rounds each call that spans it by less than a byte.
                assert abs(amount - moved[side, row, b]) <= calls
    for row, seconds in enumerate(heat.busy_s):
        for b, found in enumerate(seconds):
            assert round(found * 1e9) == busy[row, b]
    assert [round(s * 1e9) for s in heat.processes.io_s] == [own.get(i, 0) for i in range(len(heat.rows))]
    assert sum(heat.processes.operations) == calls


@given(traces=invented_traces(most=2), cuts=st.lists(st.integers(1, 3), min_size=1, max_size=3))
@settings(checked, max_examples=examples(25))
@pytest.mark.slow
def test_it_does_not_depend_on_how_the_store_is_cut(traces, cuts):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as many:
        assert heat_of(traces, Path(one)) == heat_of(traces, Path(many), cuts)


def test_a_call_over_several_bins_is_spread_in_proportion(tmp_path):
    # 100 ns from 50 on, in 1 ns bins: 1,000 bytes are 10 in each of bins 50 to 149.
    trace = InventedTrace([write(at=50, lasts=100, size=1000)])
    heat = heat_of([trace], tmp_path)
    assert (heat.bin_s, heat.bins) == (1e-9, 150)
    assert heat.written[0] == [0] * 50 + [10] * 100
    assert heat.busy_s[0] == [0.0] * 50 + [1e-9] * 100


def test_fractions_of_a_byte_are_rounded_down_and_carried_over(tmp_path):
    # 1 byte in 3 bins: it has passed when the call ends.
    trace = InventedTrace([read(at=0, lasts=3, size=1), read(at=147, lasts=3, size=2)])
    heat = heat_of([trace], tmp_path)
    assert heat.read[0][:3] == [0, 0, 1]
    assert heat.read[0][-3:] == [0, 1, 1]


def test_the_largest_number_of_bytes_is_not_lost(tmp_path):
    huge = 2**63 - 1
    heat = heat_of([InventedTrace([write(at=0, lasts=150, size=huge)])], tmp_path)
    assert sum(heat.written[0]) == huge
    assert min(heat.written[0]) > 0


@pytest.mark.parametrize("ranks", [512, 513, 1024, 5000])
def test_more_than_512_processes_share_rows(ranks, tmp_path):
    trace = InventedTrace([write(rank=r, at=r, size=r + 1) for r in range(ranks)])
    heat = heat_of([trace], tmp_path, cuts=[100, 700])
    assert len(heat.rows) <= MAX_ROWS
    assert sum(r.processes for r in heat.rows) == ranks
    assert heat.rows[-1].ranks[1] == ranks - 1
    for row, amounts in zip(heat.rows, heat.written, strict=True):
        first, last = row.ranks
        assert sum(amounts) == sum(r + 1 for r in range(first, last + 1))
    assert heat.processes.bytes_written == list(range(1, ranks + 1))


def test_rows_contain_processes_of_one_trace_if_there_are_few_traces(tmp_path):
    traces = [
        InventedTrace([write(rank=r, at=r) for r in range(300)], app=name, path=Path(f"/i/{name}"))
        for name in ("one", "two", "three")
    ]
    heat = heat_of(traces, tmp_path)
    assert [r.app for r in heat.rows] == ["one"] * 150 + ["two"] * 150 + ["three"] * 150
    assert all(r.ranks is not None and r.processes == 2 for r in heat.rows)


def test_more_traces_than_rows_share_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 4)
    traces = [InventedTrace([write(size=i + 1)], path=Path(f"/i/{i}")) for i in range(6)]
    heat = heat_of(traces, tmp_path)
    assert [(r.first_process, r.processes, r.ranks) for r in heat.rows] == [
        (0, 2, None),
        (2, 2, None),
        (4, 2, None),
    ]
    assert [sum(row) for row in heat.written] == [3, 7, 11]


def test_memory_does_not_grow_with_the_bins_that_calls_span(tmp_path, monkeypatch):
    """Many threads that all wait for the whole run: pieces are divided gradually, and nothing is lost."""
    rows = [write(at=0, lasts=150 * MILLISECOND, size=1_000_003, thread=i) for i in range(500)]
    monkeypatch.setattr(module, "_PIECES_AT_ONCE", 1000)
    heat = heat_of([InventedTrace(rows)], tmp_path)
    assert sum(heat.written[0]) == 500 * 1_000_003
    assert heat.processes.io_s == [0.15]


def test_stored_intervals_are_released_in_long_traces(tmp_path, monkeypatch):
    # A call every other nanosecond, so that nothing merges; nothing beyond a look-back of 10 ns is kept.
    rows = [read(at=2 * i, lasts=1) for i in range(400)]
    wanted = heat_of([InventedTrace(rows, rows_per_batch=7)], tmp_path / "a")
    monkeypatch.setattr(module, "_MAX_HELD", 8)
    monkeypatch.setattr(module, "_LOOK_BACK_NS", 10)
    assert heat_of([InventedTrace(rows, rows_per_batch=7)], tmp_path / "b") == wanted
    assert wanted.processes.io_s == [pytest.approx(400e-9)]


def test_time_in_libraries_is_a_union_and_includes_calls_below(tmp_path):
    rows = [
        call(Kind.WRITE, None, layer=Layer.HDF5, at=0, lasts=100),
        call(Kind.WRITE, 0, layer=Layer.MPIIO, at=10, lasts=50, depth=1, via=Layer.HDF5, size=8),
        # Two layers of one library count their shared time once.
        call(Kind.WRITE, 0, layer=Layer.MPIIO, at=20, lasts=30, depth=2, via=Layer.HDF5, size=8),
        write(at=25, lasts=10, size=8, depth=3, via=Layer.HDF5),
        call(Kind.METADATA, 0, at=200, lasts=7),
        call(Kind.COMMUNICATION, None, layer=Layer.MPI, at=300, lasts=99),
    ]
    heat = heat_of([InventedTrace(rows)], tmp_path)
    assert [c.model_dump() for c in heat.layers] == [
        {"layer": "hdf5", "read": 0.0, "write": 100e-9, "metadata": 0.0, "sync": 0.0},
        {"layer": "mpiio", "read": 0.0, "write": 50e-9, "metadata": 0.0, "sync": 0.0},
        {"layer": "posix", "read": 0.0, "write": 10e-9, "metadata": 7e-9, "sync": 0.0},
    ]


def test_files_differing_in_numbers_are_one_pattern(tmp_path):
    names = ["/run7/out_01.h5", "/run7/out_02.h5", "/run7/out_10.h5", "/run7/in.nc"]
    rows = [
        *(write(file=i, rank=0, at=i * 10, size=100) for i in range(3)),
        *(read(file=i, rank=r, at=100 + i, size=10) for i in range(3) for r in (1, 2)),
        read(file=3, rank=1, at=200, size=1),
    ]
    heat = heat_of([InventedTrace(rows, [FileClass.DATASET] * 4, names)], tmp_path)
    assert [(u.pattern, u.files, u.readers, u.writers, u.bytes_read, u.bytes_written) for u in heat.uses] == [
        ("/run7/out_#.h5", 3, 2, 1, 60, 300),
        ("/run7/in.nc", 1, 1, 0, 1, 0),
    ]


def test_patterns_beyond_the_largest_are_grouped(tmp_path):
    names = [f"/d/{'abcdefgh'[i % 8] * (1 + i // 8)}" for i in range(50)]
    rows = [write(file=i, rank=i % 2, at=i, size=1000 - i) for i in range(50)]
    heat = heat_of([InventedTrace(rows, [FileClass.DATASET] * 50, names)], tmp_path)
    assert len(heat.uses) == 41
    rest = heat.uses[-1]
    assert (rest.pattern, rest.files, rest.writers) == ("", 10, 2)
    assert sum(u.bytes_written for u in heat.uses) == sum(1000 - i for i in range(50))


def test_a_run_without_io_has_empty_cells(tmp_path):
    rows = [call(Kind.COMMUNICATION, None, layer=Layer.MPI, at=0, lasts=5)]
    heat = heat_of([InventedTrace(rows)], tmp_path)
    assert not np.array(heat.read).any() and not np.array(heat.busy_s).any()
    assert heat.uses == [] and heat.layers == []


REAL = sorted(
    p.name for p in TRACES.iterdir() if p.is_dir() and "killed" not in p.name and "truncated" not in p.name
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("stores")


@pytest.mark.parametrize("name", REAL)
@pytest.mark.slow
def test_a_real_trace_adds_up_to_its_profile(name, stores):
    profile = vani.profile(TRACES / name, store=stores, files=0, scheduler="synchronous")
    found = [open_store(p) for p in sorted(stores.glob(f"{name}-*"))][:1]
    heat = heat_map(found, [t.app for t in profile.traces], open_executor("synchronous"))
    io = profile.workflow.io
    assert heat.bins <= MAX_BINS
    assert heat.runtime_s == profile.workflow.runtime_s <= heat.bins * heat.bin_s
    assert sum(map(sum, heat.read)) == sum(heat.processes.bytes_read) == io.bytes.read
    assert sum(map(sum, heat.written)) == sum(heat.processes.bytes_written) == io.bytes.written
    assert sum(heat.processes.operations) == io.ops.all
    assert sum(heat.processes.io_s) == pytest.approx(io.time_s.total, abs=1e-9)
    assert sum(map(sum, heat.busy_s)) == pytest.approx(io.time_s.total, abs=1e-9)
    balance = profile.apps[0].balance
    if balance:
        assert max(heat.processes.io_s) == pytest.approx(balance.slowest_io_time_s)
        assert heat.processes.io_s[balance.slowest_rank] == max(heat.processes.io_s)
    for kind in ("read", "write", "metadata", "sync"):
        # A process may be in a call of either library, so their sum is no less than the time in any.
        own = sum(getattr(c, kind) for c in heat.layers if c.layer in ("posix", "stdio"))
        assert own == pytest.approx(getattr(io.time_s, kind), abs=1e-9)
