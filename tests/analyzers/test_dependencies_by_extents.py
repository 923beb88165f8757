"""Dependencies of programs with completely known calls, against loops over bytes."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest
from call_tables import InventedTrace, create, read, stored, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.analyzers.characterise import characterise
from vani.analyzers.entities.dependencies import app_graph, process_graph
from vani.analyzers.measures import extents
from vani.analyzers.measures.extents import ExchangeCounts, ProcessExtents
from vani.calls import Flag
from vani.engine.cluster import open_executor

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"
KiB = 1024


@contextmanager
def characterised(traces, cuts=()):
    """The profile of traces, and the measurements."""
    with tempfile.TemporaryDirectory() as folder:
        stores = [stored(t, Path(folder) / str(i), cuts=cuts) for i, t in enumerate(traces)]
        yield characterise(stores, [t.app for t in traces], open_executor("synchronous"), version="0")


def edges(view):
    """Pairs of (trace, rank), and whether extents prove them."""

    def process(node):
        _, trace, rank = node.rsplit("/", 2)
        return int(trace), int(rank)

    graph = process_graph(view)
    return {(process(a), process(b)): data["files_by_extents"] > 0 for a, b, data in graph.edges(data=True)}


@st.composite
def programs(draw):
    """One or two traces of processes that write and read small files; the places of some calls are unknown."""
    traces = []
    for index in range(draw(st.integers(1, 2))):
        rows = []
        for rank in range(3):
            now = draw(st.integers(0, 5))
            for _ in range(draw(st.integers(0, 6))):
                now += draw(st.integers(0, 3))
                do = draw(st.sampled_from([read, write]))
                place = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6, None]))
                file, size = draw(st.integers(0, 1)), draw(st.integers(0, 4))
                rows.append(do(file, place, size, rank=rank, at=now, lasts=1))
        start = 1000.0 + index * draw(st.sampled_from([0, 1e-8]))
        app = draw(st.sampled_from(["one", "two"]))
        traces.append(InventedTrace(rows, [0, 0], app=app, ranks=3, start_unix_s=start, path=Path(f"/invented/{index}")))
    return traces


def by_hand(traces):
    """Pairs by extents, and those that only the file shows, from every byte and every call."""
    calls = []
    for number, trace in enumerate(traces):
        shift = round((trace.start_unix_s - min(t.start_unix_s for t in traces)) * 1e9)
        calls += [((number, row["rank"]), row, row["start_ns"] + shift) for row in trace.rows]
    writes, reads = ([c for c in calls if c[1]["kind"] == kind] for kind in (1, 0))
    proven, perhaps = set(), set()
    for reader, row, at in reads:
        before = [c for c in writes if c[1]["file"] == row["file"] and c[2] <= at]
        for byte in range(row["offset"], row["offset"] + row["bytes"]) if row["offset"] is not None else ():
            on = [c for c in before if c[1]["offset"] is not None and 0 <= byte - c[1]["offset"] < c[1]["bytes"]]
            proven |= {(w, reader) for w, _, t in on if t == max(t for *_, t in on) and w != reader}
    for reader, file in {(c[0], c[1]["file"]) for c in reads}:
        mine = [c for c in reads if (c[0], c[1]["file"]) == (reader, file)]
        for writer in {c[0] for c in writes if c[1]["file"] == file} - {reader}:
            his = [c for c in writes if (c[0], c[1]["file"]) == (writer, file)]
            blind = any(c[1]["offset"] is None and c[1]["bytes"] for c in his + mine)
            if blind and max(c[2] for c in mine) >= min(c[2] for c in his):
                perhaps.add((writer, reader))
    return proven, perhaps


program_settings = settings(deadline=None, max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])


@given(traces=programs(), cuts=st.lists(st.integers(1, 2), max_size=2), rows=st.sampled_from([1, 2, 1000]))
@program_settings
@pytest.mark.slow
def test_edges_are_those_of_loops_over_bytes(traces, cuts, rows):
    proven, perhaps = by_hand(traces)
    for trace in traces:
        trace.rows_per_batch = rows
    with characterised(traces, cuts) as (profile, view):
        assert edges(view) == {pair: pair in proven for pair in proven | perhaps}
        for number, app in enumerate(profile.apps):
            mine = {t for t, trace in enumerate(traces) if trace.app == app.name}
            inside = {pair for pair in proven | perhaps if {pair[0][0], pair[1][0]} <= mine}
            found = app.process_dependencies
            assert (found.edges, found.edges_by_extents) == (len(inside), len(inside & proven))
            assert found.edges <= found.file_level.edges
            assert (f"apps[{number}].process_dependencies" in profile.provenance) == bool(inside - proven)


@given(traces=programs(), cuts=st.lists(st.integers(1, 2), max_size=2), rows=st.sampled_from([1, 2, 1000]))
@program_settings
@pytest.mark.slow
def test_merging_many_calls_loses_no_edge_however_the_store_is_divided(traces, cuts, rows):
    with patch.object(extents, "_FEW_CALLS", -1):
        with characterised(traces) as (profile, view):
            plain, found = profile, edges(view)
        for trace in traces:
            trace.rows_per_batch = rows
        with characterised(traces, cuts) as (profile, _):
            assert profile == plain.model_copy(update={"traces": profile.traces})
    proven, perhaps = by_hand(traces)
    assert proven <= {pair for pair, known in found.items() if known}
    assert perhaps <= set(found)


def ring(ranks, *, shift, segments=2, offset=True):
    """Every rank writes blocks of a shared file, then reads those of the rank `shift` further on (IOR)."""
    rows = [create(rank=0, at=0)]
    for rank in range(ranks):
        for segment in range(segments):
            mine, other = (segment * ranks + (rank + by) % ranks for by in (0, shift))
            place = (mine * KiB, other * KiB) if offset else (None, None)
            rows.append(write(0, place[0], KiB, rank=rank, at=1000 + segment * 10, flags=0 if offset else Flag.APPEND))
            rows.append(read(0, place[1], KiB, rank=rank, at=5000 + segment * 10))
    return InventedTrace(sorted(rows, key=lambda row: row["start_ns"]), app="ior")


@pytest.mark.parametrize("few", [1 << 16, -1])
def test_ior_depends_on_the_neighbour_only_if_reordered(few):
    with patch.object(extents, "_FEW_CALLS", few):
        for shift, edges_, pattern in ((0, 0, "none"), (1, 8, "neighbour"), (3, 8, "neighbour")):
            with characterised([ring(8, shift=shift)], cuts=[3]) as (profile, _):
                found = profile.apps[0].process_dependencies
            assert (found.edges, found.edges_by_extents, found.files) == (edges_, edges_, min(edges_, 1))
            assert found.pattern == pattern
            level = found.file_level
            assert (level.edges, level.files, level.pattern) == (56, 1, "all_to_all"), "the coarser graph is kept"
            assert "apps[0].process_dependencies" not in profile.provenance, "nothing is in doubt"


def test_many_calls_count_possibly_overwritten_bytes_with_a_note():
    # Rank 1 replaces rank 0's data before rank 2 reads it; rank 0 writes it again at the end.
    rows = [write(rank=0, at=10), write(rank=1, at=20), read(rank=2, at=30), write(rank=0, at=40)]
    trace = InventedTrace(rows)
    with characterised([trace]) as (profile, view):
        assert edges(view) == {((0, 1), (0, 2)): True}
        assert "apps[0].process_dependencies" not in profile.provenance
    with patch.object(extents, "_FEW_CALLS", 3), characterised([trace]) as (profile, view):
        assert edges(view) == {((0, 1), (0, 2)): True, ((0, 0), (0, 2)): True}
        assert "surely overwritten" in profile.provenance["apps[0].process_dependencies"]


def test_file_gives_the_place_that_calls_lack():
    with characterised([ring(4, shift=0, offset=False)]) as (profile, _):
        found = profile.apps[0].process_dependencies
    assert (found.edges, found.edges_by_extents, found.pattern) == (12, 0, "all_to_all")
    assert "12 of the pairs are known by the file only" in profile.provenance["apps[0].process_dependencies"]


def test_more_extents_than_are_kept_leave_the_file():
    for few, most in ((-1, 7), (-1, 15)):
        with patch.object(extents, "_FEW_CALLS", few), patch.object(extents, "_MAX_EXTENTS", most):
            for cuts in ((), (1, 2, 3)):
                with characterised([ring(4, shift=1)], cuts=cuts) as (profile, view):
                    found = profile.apps[0].process_dependencies
                assert (found.edges, found.edges_by_extents, found.pattern) == (12, None, "all_to_all")
                assert "only the file shows" in profile.provenance["apps[0].process_dependencies"]
                assert {data["files_by_extents"] for *_, data in process_graph(view).edges(data=True)} == {None}
    few, most = patch.object(extents, "_FEW_CALLS", -1), patch.object(extents, "_MAX_EXTENTS", 16)
    with few, most, characterised([ring(4, shift=1)]) as (profile, _):
        assert profile.apps[0].process_dependencies.edges_by_extents == 4, "2 x 4 extents written, as many read"


def test_extents_of_a_process_in_several_phases_are_merged():
    second = 10**9
    rows = [create(0, at=0), create(1, at=0)]
    for phase in range(3):
        # Later phases are further ahead; in one file all are adjacent.
        rows += [write(file, (2 - phase) * (4 - 2 * file), 2, rank=0, at=phase * 9 * second + 1) for file in (1, 0)]
    rows += [read(file, 0, 10, rank=1, at=40 * second) for file in (0, 1)]
    with patch.object(extents, "_FEW_CALLS", -1), characterised([InventedTrace(rows, [0, 0])], [1]) as (profile, view):
        found = view.measured.of(ProcessExtents)
    assert len(profile.phases) > 2
    columns = (found.process, found.file, found.kind, found.start, found.end)
    assert [row for row in zip(*(c.tolist() for c in columns), strict=True) if row[0] == 0] == [
        *((0, 0, 1, start, start + 2) for start in (0, 4, 8)),
        (0, 1, 1, 0, 6),
    ]


def test_files_of_one_process_have_no_extents():
    rows = [row for rank in range(3) for row in (create(rank, rank=rank), write(rank, rank=rank, at=10), read(rank, rank=rank, at=20))]
    with characterised([InventedTrace(rows, [0, 0, 0])]) as (profile, view):
        assert not len(view.measured.of(ProcessExtents).file)
        assert not len(view.measured.of(ExchangeCounts).file)
    assert profile.apps[0].process_dependencies.file_level.edges == 0


@pytest.mark.parametrize(
    ("name", "edges_", "pattern", "file_level"),
    [
        # MANIFEST of the shared traces: IOR without -C, HACC-IO: each rank reads its own data.
        ("v25g-pr-ior-strided-8r", 0, "none", 56),
        ("v3-noipc-rawts-ior-4r", 0, "none", 12),
        ("v3-haccio-ssf-8r", 0, "none", 56),
        # Files of the next rank, and the header of rank 0.
        ("v3-ckpt-then-restart-8r", 8 + 7 - 1, "irregular", 14),
        # Metadata of the file, which three ranks write and all read, and none of each other's blocks.
        ("v3-ior-ssf-hdf5-4r", 9, "all_to_all", 12),
    ],
)
def test_real_programs(name, edges_, pattern, file_level, tmp_path):
    found = vani.profile(DATA / name, store=tmp_path).apps[0].process_dependencies
    assert (found.edges, found.edges_by_extents, found.pattern) == (edges_, edges_, pattern)
    assert found.file_level.edges == file_level


# Apps


def at(ms):
    return {"start": ms * 10_000, "end": ms * 10_000 + 1000}


def workflow(folder, *programs_):
    for number, (app, ranks) in enumerate(programs_):
        write_trace(folder / "w" / f"{number}-{app}", ranks, layout="3.0", start_unix=1.7e9 + 10 * number)
    return folder / "w"


def test_printed_files_link_apps_with_unknown_bytes(tmp_path):
    both = [
        call
        for number, path in enumerate(("/d/t.tbl", "/d/u.tbl"))
        for call in (Call("fopen", (path, "w"), **at(1 + 4 * number)), Call("fclose", (path,), **at(2 + 4 * number)))
    ]
    scan = [Call("fopen", ("/d/t.tbl", "r"), **at(1)), Call("fclose", ("/d/t.tbl",), **at(2))]
    load = [
        Call("open", ("/d/u.tbl", "0"), **at(1)),
        Call("read", ("/d/u.tbl", "%p", "100"), **at(2)),
        Call("close", ("/d/u.tbl",), **at(3)),
    ]
    found = vani.characterise(
        workflow(tmp_path, ("print", [both]), ("scan", [scan]), ("load", [load])), store=tmp_path / "s"
    )
    links = {d.consumer: d for d in found.profile.workflow.app_dependencies}
    assert set(links) == {"scan", "load"}
    assert (links["scan"].files, links["scan"].files_by_extents) == (1, 0)
    assert (links["scan"].bytes_written, links["scan"].bytes_read) == (None, None)
    assert (links["load"].bytes_written, links["load"].bytes_read) == (None, 100)
    why = found.profile.provenance
    assert why["workflow.app_dependencies.bytes_written"].startswith("null in 2 of 2: files were recreated and no write")
    assert why["workflow.app_dependencies.bytes_read"].startswith("null in 1 of 2: files were opened for reading")
    assert {(a, b): data["bytes_written"] for a, b, data in app_graph(found.view).edges(data=True)} == {
        ("print", "scan"): None,
        ("print", "load"): None,
    }
    assert not found.profile.apps[0].process_dependencies.edges


def test_app_depends_on_the_last_writer_and_the_graph_names_the_ranks(tmp_path):
    def half(rank, *, flags="2"):
        place = str(rank * 4096)
        return [
            Call("open", ("/d/field", flags, "420"), **at(1)),
            Call("pwrite", ("/d/field", "%p", "4096", place), **at(2 + rank)),
            Call("close", ("/d/field",), **at(9)),
        ]

    def reader(place):
        return [
            Call("open", ("/d/field", "0"), **at(1)),
            Call("pread", ("/d/field", "%p", "4096", str(place)), **at(2)),
            Call("close", ("/d/field",), **at(3)),
        ]

    sim = [half(0, flags="577"), half(1)]
    # One process rewrites the second rank's half before anyone reads it.
    fix = [half(1)]
    post = [reader(0), reader(4096), reader(8192)]
    found = vani.characterise(workflow(tmp_path, ("sim", sim), ("fix", fix), ("post", post)), store=tmp_path / "s")
    links = {(d.producer, d.consumer): d for d in found.profile.workflow.app_dependencies}
    assert set(links) == {("sim", "post"), ("fix", "post")}
    assert links["sim", "post"].files_by_extents == links["fix", "post"].files_by_extents == 1
    assert (links["fix", "post"].bytes_written, links["fix", "post"].bytes_read) == (4096, 3 * 4096)
    assert dict(process_graph(found.view).edges) == {
        ("sim/0/0", "post/2/0"): {"files": 1, "files_by_extents": 1},
        ("fix/1/0", "post/2/1"): {"files": 1, "files_by_extents": 1},
    }
    assert not any(app.process_dependencies.edges for app in found.profile.apps)
