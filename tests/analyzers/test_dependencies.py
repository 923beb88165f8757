"""Dependencies by files alone, against loops over every pair, and at a size where loops would take minutes.

The calls of these workloads do not show which bytes they moved; for bytes see test_flows and
test_dependencies_by_extents.
"""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.entities import dependencies
from vani.analyzers.entities import dependencies as module
from vani.analyzers.entities.dependencies import (
    app_dependencies,
    exchanged_files,
    process_dependencies,
    process_graph,
)
from vani.analyzers.entities.flows import Links
from vani.analyzers.measures.extents import NEVER, ExchangeCounts, Extents, ExtentsResult

PROCESSES, FILES = 6, 4
times = st.none() | st.integers(0, 5)
uses = st.dictionaries(
    st.tuples(st.integers(0, PROCESSES - 1), st.integers(0, FILES - 1)),
    st.tuples(times, times).filter(any),
    max_size=16,
)


def view_of(used, *, processes=PROCESSES, files=FILES, apps=("a", "b")):
    """`used` maps (process, file) to the first write and the last read; app a has half of the processes."""
    rows = sorted(((p, f, w, r) for (p, f), (w, r) in used.items()), key=lambda row: row[:2])
    columns = table_of(
        np.array([NEVER if w is None else w for _, _, w, _ in rows], np.int64),
        np.array([-NEVER if r is None else r for *_, r in rows], np.int64),
    )
    columns["bytes_written"] = np.array([0 if w is None else 10 + w for _, _, w, _ in rows], np.int64)
    columns["bytes_read"] = np.array([0 if r is None else 20 + r for *_, r in rows], np.int64)
    process, file = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    return view_with(ExchangeCounts(process, file, columns), processes, files, apps)


def table_of(wrote, read):
    """Columns of the measure for processes whose calls all have unknown places."""
    wrote, read = np.broadcast_arrays(wrote, read)
    writes, reads = wrote != NEVER, read > -NEVER
    return {
        "first_write": wrote,
        "last_write": np.where(writes, wrote, -NEVER),
        "first_read": np.where(reads, read, NEVER),
        "last_read": read,
        "bytes_written": np.zeros(len(wrote), np.int64),
        "bytes_read": np.zeros(len(wrote), np.int64),
        "unplaced_writes": writes.astype(np.int64),
        "unplaced_reads": reads.astype(np.int64),
        "reads": reads.astype(np.int64),
        **{name: np.zeros(len(wrote), np.int64) for name in ("unsized_writes", "unsized_reads", "made", "looked")},
    }


NO_EXTENTS = Extents().aggregate(ExtentsResult(start_ns=np.empty(0, np.int64)), SimpleNamespace(processes=1, files=1), None)


def view_with(exchanges, processes, files, apps):
    half = processes // 2 if len(apps) > 1 else processes
    workload = SimpleNamespace(
        files=files,
        processes=processes,
        apps=apps,
        app_of_trace=tuple(range(len(apps))),
        process_base=(0, half)[: len(apps)],
    )
    trace_of_process = (np.arange(processes) >= half).astype(np.int64)
    return SimpleNamespace(
        workload=workload,
        measured=SimpleNamespace(exchanges=exchanges),
        links=Links(exchanges, NO_EXTENTS, trace_of_process, 0),
        trace_of_process=trace_of_process,
        run_ns=[(0, 9), (1, 9)][: len(apps)],
    )


def app_of(process):
    return int(process >= PROCESSES // 2)


def pairs(used):
    """(writer, reader, file) of every read that may have seen what another process wrote."""
    for (p, f), (wrote, _) in used.items():
        for (q, g), (_, read) in used.items():
            if f == g and p != q and wrote is not None and read is not None and read >= wrote:
                yield p, q, f


@given(used=uses, at_once=st.integers(1, 5))
def test_edges_are_those_of_loops_over_all_pairs(used, at_once):
    with patch.object(module, "_AT_ONCE", at_once):
        view = view_of(used)
        for app in range(2):
            mine = [(p, q, f) for p, q, f in pairs(used) if app_of(p) == app_of(q) == app]
            found, notes = process_dependencies(view, app)
            assert found.edges == found.file_level.edges == len({(p, q) for p, q, _ in mine})
            assert found.files == found.file_level.files == len({f for *_, f in mine})
            assert found.pattern == found.file_level.pattern
            assert found.edges_by_extents == 0
            why = notes.get(f"apps[{app}].process_dependencies", "")
            assert (f"{found.edges:,} of the pairs are known by the file only" in why) == bool(mine)


@given(used=uses, at_once=st.integers(1, 5))
def test_the_graph_has_the_pairs_of_all_apps(used, at_once):
    with patch.object(module, "_AT_ONCE", at_once):
        graph = process_graph(view_of(used))

    def name(process):
        app = app_of(process)
        return f"{'ab'[app]}/{app}/{process - app * PROCESSES // 2}"

    expected = {}
    for p, q, _ in pairs(used):
        expected[name(p), name(q)] = expected.get((name(p), name(q)), 0) + 1
    assert {(a, b): data["files"] for a, b, data in graph.edges(data=True)} == expected
    assert all(data["files_by_extents"] == 0 for *_, data in graph.edges(data=True))


@given(used=uses, at_once=st.integers(1, 5))
def test_exchange_of_apps_equals_loops_over_all_pairs(used, at_once):
    expected = {}
    for p, f in used:
        for q, g in used:
            producer, consumer = app_of(p), app_of(q)
            if f == g and producer != consumer:
                wrote = [w for (x, y), (w, _) in used.items() if y == f and app_of(x) == producer and w is not None]
                read = [r for (x, y), (_, r) in used.items() if y == f and app_of(x) == consumer and r is not None]
                if wrote and read and max(read) >= min(wrote):
                    expected[producer, consumer, f] = (sum(10 + w for w in wrote), sum(20 + r for r in read))
    with patch.object(module, "_AT_ONCE", at_once):
        found, _ = app_dependencies(view_of(used))
    assert {(e.producer, e.consumer): (e.files, e.bytes_written, e.bytes_read) for e in found} == {
        ("ab"[p], "ab"[c]): (
            len(mine := [v for (x, y, _), v in expected.items() if (x, y) == (p, c)]),
            sum(w for w, _ in mine),
            sum(r for _, r in mine),
        )
        for p, c in {(p, c) for p, c, _ in expected}
    }


@given(used=uses)
def test_file_is_exchanged_if_a_process_other_than_its_first_writer_reads_it_later(used):
    expected = set()
    for f in range(FILES):
        wrote = sorted((w, p) for (p, g), (w, _) in used.items() if g == f and w is not None)
        if wrote:
            earliest, first = wrote[0]
            if any(g == f and p != first and r is not None and r >= earliest for (p, g), (_, r) in used.items()):
                # Files used by a single process link nothing.
                expected.add(f)
    assert exchanged_files(view_of(used)) == expected


def pattern(edges):
    used = {}
    for file, (writer, reader) in enumerate(edges):
        used[writer, file] = (0, None)
        used[reader, file] = (None, 1)
    found, _ = process_dependencies(view_of(used, files=max(1, len(edges)), apps=("a",)), 0)
    return found.pattern


def test_patterns_have_the_names_of_the_paper():
    assert pattern([]) == "none"
    assert pattern([(0, 1), (0, 2)]) == "one_to_many"
    assert pattern([(1, 0), (2, 0)]) == "many_to_one"
    assert pattern([(p, (p + 1) % 5) for p in range(5)]) == "neighbour"
    assert pattern([(p, q) for p in range(4) for q in range(4) if p != q]) == "all_to_all"
    assert pattern([(0, 1), (1, 3), (2, 0)]) == "irregular"


def shared_by_all(processes, files, *, later=0):
    """Every process writes every file, then reads it; the last one after `later`."""
    process, file = np.repeat(np.arange(processes), files), np.tile(np.arange(files), processes)
    columns = table_of(np.where(process == processes - 1, later, 0), np.full(len(process), 2))
    return view_with(ExchangeCounts(process, file, columns), processes, files, ("a",))


def test_a_million_pairs_are_counted_without_a_loop_over_them():
    # Formerly six minutes, since each edge searched for the largest and smallest process again.
    view = shared_by_all(1000, 2, later=3)
    found = process_dependencies(view, 0)[0].file_level
    assert (found.edges, found.files, found.pattern) == (999 * 999, 2, "all_to_all"), "all but what the last one wrote"


def test_all_to_all_exchange_is_counted_without_enumerating_pairs():
    with patch.object(dependencies, "pairs", side_effect=AssertionError):
        found = dependencies._by_file(view := shared_by_all(8192, 3), dependencies._links(view), np.ones(3 * 8192, bool))
    assert (found.edges, found.files, found.pattern) == (8192 * 8191, 3, "all_to_all")


def test_uncounted_pairs_are_reported():
    view = shared_by_all(1500, 1, later=3)
    found, notes = process_dependencies(view, 0)
    assert found.edges == 2_000_000
    assert "only the first" in notes["apps[0].process_dependencies"]
    view = shared_by_all(100, 3, later=3)
    with patch.object(module, "MAX_PAIRS", 20_000), patch.object(module, "_AT_ONCE", 5000):
        found, notes = process_dependencies(view, 0)
    assert found.files == 2, "the third file is not looked at"
    assert "only the first" in notes["apps[0].process_dependencies"]
