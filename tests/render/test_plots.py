"""Plots of golden profiles: their numbers match the profile, and their size is bounded."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter, defaultdict
from functools import cache
from operator import truediv
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from report_inputs import profiled, seconds_like

from vani.errors import InputError
from vani.render.formats import IMAGE
from vani.render.plots.catalogue import draw, kinds
from vani.render.plots.drawing import Drawing, Missing, theme
from vani.render.plots.encoding import KINDS, log_marks
from vani.schema.profile import Profile
from vani.schema.profile.storage import Mount, TargetUse
from vani.schema.timeline import (
    Call,
    CallTimes,
    FileUse,
    HeatMap,
    HeatRow,
    LayerCost,
    ProcessTotals,
)
from vani.units import format_share

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
NAMES = sorted(p.stem for p in GOLDEN.glob("*.yaml"))
LARGEST = 150_000
ALL = list(kinds())


@cache
def golden(name: str) -> Profile:
    return Profile.load(GOLDEN / f"{name}.yaml")


def heat_like(profile: Profile, *, bins: int = 50, seed: int = 1) -> HeatMap:
    """Time-resolved data with the totals of a profile, spread at random."""
    rng = random.Random(seed)
    processes = profile.workflow.processes
    apps = [t.app for t in profile.traces]
    first, rows = [], []
    for index, trace in enumerate(profile.traces):
        first.append(sum(t.ranks for t in profile.traces[:index]))
        rows += [
            HeatRow(app=trace.app, trace=index, first_process=first[-1] + r, processes=1, ranks=(r, r))
            for r in range(trace.ranks)
        ]

    def table(total: int) -> list[list[int]]:
        cells = [[0] * bins for _ in rows]
        while total > 0:
            some = min(total, rng.randint(1, max(1, total // 7)))
            cells[rng.randrange(len(rows))][rng.randrange(bins)] += some
            total -= some
        return cells

    io = profile.workflow.io
    read, written = table(io.bytes.read or 0), table(io.bytes.written or 0)
    runtime = profile.workflow.runtime_s or 1.0
    return HeatMap(
        bin_s=runtime / bins,
        bins=bins,
        runtime_s=runtime,
        rows=rows,
        read=read,
        written=written,
        busy_s=[[0.0] * bins for _ in rows],
        seconds=seconds_like(read, written),
        calls=[
            CallTimes(kind="write", least_s=2e-6, calls=90, seconds=3e-4),
            CallTimes(kind="sync", least_s=0.5, calls=10, seconds=6.0),
        ],
        longest=[
            Call(
                app=apps[0], rank=0, function="fsync", path="/d/out_1.h5", kind="sync", start_s=0.0, duration_s=0.75, bytes=None
            )
        ],
        sampled=[
            Call(
                app=apps[0], rank=i % 2, function="write", path="/d/out_1.h5", kind="write", start_s=runtime * i / 9,
                duration_s=runtime / 90, bytes=4096 << i, offset=i * 65536,
            )
            for i in range(8)
        ],
        processes=ProcessTotals(
            bytes_read=[sum(r) for r in read],
            bytes_written=[sum(w) for w in written],
            operations=[1] * processes,
            io_s=[1.0 + i for i in range(processes)],
        ),
        app_of_trace=apps,
        first_process=first,
        layers=[
            LayerCost(layer="hdf5", read=1.5, write=0.25, metadata=0.0),
            LayerCost(layer="posix", read=1.0, write=0.125, metadata=3.0),
        ],
        uses=[
            FileUse(
                pattern="/d/out_#.h5",
                files=7,
                app=apps[0],
                readers=0,
                writers=1,
                bytes_read=0,
                bytes_written=5000,
            ),
            FileUse(
                pattern="/d/in.nc",
                files=1,
                app=apps[-1],
                readers=processes,
                writers=0,
                bytes_read=300,
                bytes_written=0,
            ),
        ],
    )


def drawing(kind: str, profile: Profile, heat: HeatMap | None = None) -> Drawing:
    found = draw(kind, profile, heat=heat)
    assert isinstance(found, Drawing), f"{kind}: {found.why}"
    return found


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the first layer that has its own data, or of the plot."""
    data = spec["data"]
    if isinstance(data["values"], str):
        head, *lines = data["values"].split("\n")
        return [dict(zip(head.split(","), map(int, line.split(",")), strict=True)) for line in lines]
    return data["values"]


def drawn_values(found: Drawing, of: str) -> list[dict[str, Any]]:
    """Vega's data after its transforms: the items of marks of a type, from the scene graph."""
    spec = {**found.spec, "width": 600, "config": theme(False)}
    scene = vl_convert.vegalite_to_scenegraph(spec, vl_version="6.4")
    items: list[dict[str, Any]] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("marktype") == of and node.get("role") == "mark":
                items.extend(node["items"])
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(scene)
    return items


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", NAMES)
def test_golden_plots_are_drawn_or_give_a_reason(name, kind):
    profile = golden(name)
    for heat in (None, heat_like(profile)):
        found = draw(kind, profile, heat=heat)
        assert found.kind == kind and found.title
        if isinstance(found, Missing):
            assert len(found.why) > 10
            continue
        assert found.spec["width"] == "container" and "config" not in found.spec
        assert found.caption.endswith(".") and found.description.rstrip().endswith(".")
        assert len(json.dumps(found.spec)) < LARGEST
        columns, rows = found.table
        assert rows and all(len(row) == len(columns) for row in rows)
        assert "None" not in found.caption + found.description
        assert "nan" not in json.dumps(found.spec).lower().replace("nanosecond", "")


def on_targets(profile: Profile) -> Profile:
    """The profile with the storage targets of its files."""
    uses = [TargetUse(target=i, files=i, bytes=i, read_s=i, write_s=9 - i) for i in range(1, 9)]
    mounts = [Mount(dir="/lustre", type="lustre", slowest_targets=uses)]
    return profile.model_copy(update={"storage": profile.storage.model_copy(update={"mounts": mounts})})


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.sampled(4)
def test_plot_is_valid_and_reproducible(kind):
    profile = golden("v3-netcdf-pnetcdf-4r")
    heat = heat_like(profile)
    if isinstance(draw(kind, profile, heat=heat), Missing):
        profile, heat = workflow(), heat_like(workflow())
    if kind == "targets":
        profile = on_targets(profile)
    first, second = (IMAGE.render("svg", drawing(kind, profile, heat)) for _ in range(2))
    assert first == second
    assert first.startswith(b"<svg") and first.count(b"<path") + first.count(b"<text") > 5
    assert b"NaN" not in first and b"undefined" not in first and b"Infinity" not in first


def test_a_machine_that_refuses_a_process_draws_no_image(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("vani.render.plots.drawing.subprocess.run", refuse)
    with pytest.raises(InputError, match="no image can be drawn: Resource temporarily unavailable"):
        IMAGE.render("svg", drawing("ops", golden("v3-cm1like-16r")))


def test_plot_over_time_without_calls_explains_the_remedy():
    why = "the trace is gone"
    assert draw("heat-map", golden("v3-cm1like-16r"), heat=why).why == why
    assert "calls" in draw("heat-map", golden("v3-cm1like-16r")).why


def test_unknown_kind_is_named_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'heat-map'"):
        draw("heatmap", golden("v3-cm1like-16r"))
    with pytest.raises(InputError, match="known are heat-map, io-time, offsets"):
        draw("xyzzy", golden("v3-cm1like-16r"))


@pytest.mark.parametrize("name", NAMES)
def test_cells_of_the_heat_map_add_up_to_the_profile(name):
    profile = golden(name)
    heat = heat_like(profile)
    if not (profile.workflow.io.bytes.total or 0):
        return
    found = drawing("heat-map", profile, heat)
    titles = next(p["value"] for p in found.spec["params"] if p["name"] == "field_name")
    sums: Counter[str] = Counter()
    for cell in values_of(found.spec):
        sums[titles[cell["f"]]] += cell["v"]
        table = heat.read if titles[cell["f"]] == "read" else heat.written
        assert table[cell["r"]][cell["t"]] == cell["v"]
    assert sums["read"] == profile.workflow.io.bytes.read
    assert sums["written"] == profile.workflow.io.bytes.written


def test_heat_map_cells_have_their_places():
    profile = golden("v3-cm1like-16r")
    heat = heat_like(profile)
    cells = sum(1 for t in (heat.read, heat.written) for row in t for v in row if v)
    rects = [
        i
        for i in drawn_values(drawing("heat-map", profile, heat), "rect")
        if (i.get("fill") or "").startswith("rgb")
    ]
    assert len(rects) == cells
    # 16 rows in each of two fields, 50 columns.
    assert len({round(r.get("y", 0), 3) for r in rects}) == 32
    assert all(r["width"] > 1 and r["height"] > 1 for r in rects)


def big_heat(rows: int, bins: int) -> HeatMap:
    rng = random.Random(3)

    def table() -> list[list[int]]:
        return [
            [int(10 ** rng.uniform(0, 12)) if rng.random() < 0.9 else 0 for _ in range(bins)]
            for _ in range(rows)
        ]

    none = [0] * rows
    return HeatMap(
        bin_s=0.5,
        bins=bins,
        runtime_s=bins / 2,
        rows=[HeatRow(app="a", trace=0, first_process=i, processes=1, ranks=(i, i)) for i in range(rows)],
        read=table(),
        written=table(),
        busy_s=[[0.0] * bins for _ in range(rows)],
        seconds=seconds_like(table(), table()),
        processes=ProcessTotals(bytes_read=none, bytes_written=none, operations=none, io_s=[1.0] * rows),
        app_of_trace=["a"],
        first_process=[0],
        layers=[],
        uses=[],
    )


def test_full_heat_map_is_small_and_accurate():
    heat = big_heat(512, 150)
    found = drawing("heat-map", golden("v3-cm1like-16r"), heat)
    assert len(json.dumps(found.spec)) < LARGEST
    letters = re.search(r"indexof\('([^']*)'", json.dumps(found.spec["layer"][0]["transform"]))[1]
    letters = json.loads(f'"{letters}"')
    assert len(set(letters)) == len(letters) > 80
    low, high = found.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    lines = found.spec["data"]["values"]
    assert {(line["f"], line["r"]) for line in lines} == {(f, r) for f in (0, 1) for r in range(512)}
    for line in lines[:40]:
        table = heat.read if line["f"] == 0 else heat.written
        for t, letter in enumerate(line["c"]):
            exact = sum(table[line["r"]][2 * t : 2 * t + 2])
            if letter == " ":
                assert exact == 0
            else:
                about = low * (high / low) ** (letters.index(letter) / (len(letters) - 1))
                assert about == pytest.approx(exact, rel=0.25)


def test_vega_reads_the_letters_of_a_full_heat_map():
    heat = big_heat(60, 100)
    rects = [
        i
        for i in drawn_values(drawing("heat-map", golden("v3-cm1like-16r"), heat), "rect")
        if (i.get("fill") or "").startswith("rgb")
    ]
    assert len(rects) == sum(1 for t in (heat.read, heat.written) for row in t for v in row if v)


@pytest.mark.parametrize("name", NAMES)
def test_bandwidth_adds_up_to_the_profile(name):
    profile = golden(name)
    heat = heat_like(profile)
    found = draw("bandwidth", profile, heat=heat)
    if isinstance(found, Missing):
        assert not profile.workflow.io.bytes.total
        return
    sums: Counter[str] = Counter()
    for value in values_of(found.spec):
        sums[value["kind"]] += value["bytes"]
        rate = value["bytes"] / heat.bin_s
        assert value["high"] - value["low"] == pytest.approx(rate, abs=1e-6 * value["high"])
    assert (sums["read"], sums["write"]) == (
        profile.workflow.io.bytes.read,
        profile.workflow.io.bytes.written,
    )


@pytest.mark.parametrize("name", NAMES)
def test_layers_have_the_seconds_of_the_profile(name):
    profile = golden(name)
    time = profile.workflow.io.time_s
    found = drawing("layers", profile)
    got = {v["kind"]: v["seconds"] for v in values_of(found.spec)}
    for kind in ("read", "write", "metadata"):
        assert got.get(kind, 0.0) == pytest.approx(getattr(time, kind), rel=1e-6)


def test_layers_with_calls_distinguish_libraries():
    profile = golden("v3-ior-ssf-hdf5-4r")
    found = drawing("layers", profile, heat_like(profile))
    got = {(v["layer"], v["kind"]): v["seconds"] for v in values_of(found.spec)}
    assert got == {
        ("HDF5", "read"): 1.5,
        ("HDF5", "write"): 0.25,
        ("POSIX", "read"): 1.0,
        ("POSIX", "write"): 0.125,
        ("POSIX", "metadata"): 3.0,
    }
    assert "HDF5: read 1.5 s, write 250 ms" in found.description


@pytest.mark.parametrize("name", NAMES)
def test_transfer_sizes_are_the_histograms_of_the_profile(name):
    profile = golden(name)
    sizes = profile.workflow.io.transfer_size
    found = drawing("transfer-sizes", profile)
    rows = [row for row in profile.accesses if row.file is None and row.layer in ("posix", "stdio")]
    got: dict[str, dict[str, int]] = defaultdict(dict)
    for value in values_of(found.spec):
        got[value["kind"]][value["size"]] = value["operations"]
        if "rate" in value:
            timed = [row for row in rows if row.direction == value["kind"] and value["size"] in (row.time_by_size or {})]
            seconds = sum(row.time_by_size[value["size"]] for row in timed)
            moved = sum(row.bytes_by_size[value["size"]] for row in timed)
            assert (value["bytes"], value["rate"]) == (moved, pytest.approx(moved / seconds))
    for kind, wanted in (("read", sizes.read), ("write", sizes.write)):
        assert got[kind] == (wanted.histogram if wanted else {})


@pytest.mark.parametrize("name", NAMES)
def test_phases_are_drawn_at_the_times_of_the_profile(name):
    profile = golden(name)
    found = drawing("phases", profile)
    got = sorted((v["from"], v["to"], v["kind"]) for v in values_of(found.spec))
    wanted = sorted((start, end, p.kind) for p in profile.phases for start, end in p.spans)
    assert len(got) == len(wanted)
    for (a, b, kind), (c, d, other) in zip(got, wanted, strict=True):
        assert (a, b) == (pytest.approx(c, rel=1e-6), pytest.approx(d, rel=1e-6))
        assert kind == other


def test_bar_of_an_app_is_as_long_as_its_run():
    profile = golden("v3-cm1like-16r")
    (app,) = profile.apps
    (phase, *_) = profile.phases
    # Stored in whole seconds, this start is after the first phase: the app runs from 8.2 s to 8.5 s.
    traces = [
        profile.traces[0].model_copy(update={"app": "first", "start_unix_s": 1000.0}),
        profile.traces[0].model_copy(update={"app": "second", "start_unix_s": 1009.0}),
    ]
    apps = [
        app.model_copy(update={"name": "first", "runtime_s": 5.0}),
        app.model_copy(update={"name": "second", "runtime_s": 0.3}),
    ]
    phases = [
        phase.model_copy(update={"app": "first", "start_s": 1.0, "end_s": 4.0}),
        phase.model_copy(update={"app": "second", "start_s": 8.2, "end_s": 8.4}),
    ]
    workflow = profile.workflow.model_copy(update={"runtime_s": 10.0, "apps": 2})
    made = profile.model_copy(update={"traces": traces, "apps": apps, "phases": phases, "workflow": workflow})
    lives = drawing("phases", made).spec["layer"][0]["data"]["values"]
    assert [(v["app"], v["from"], v["to"]) for v in lives] == [(0, 0.0, 5.0), (1, 8.2, pytest.approx(8.5))]


@pytest.mark.slow
def test_a_thousand_times_too_many_phases_are_joined_with_neighbours():
    profile = golden("v3-ckpt-then-restart-8r")
    (one, *_) = profile.phases
    many = [
        one.model_copy(
            update={
                "index": i, "start_s": i * 0.01, "end_s": i * 0.01 + 0.001, "runtime_s": 0.001, "repeats": None
            }
        )
        for i in range(20_000)
    ]
    profile = profile.model_copy(
        update={"phases": many, "workflow": profile.workflow.model_copy(update={"runtime_s": 200.0})}
    )
    found = drawing("phases", profile)
    assert len(json.dumps(found.spec)) < LARGEST
    assert "20,000 phases are drawn as" in found.caption
    values = values_of(found.spec)
    assert values[0]["from"] == 0 and values[-1]["to"] == pytest.approx(199.991)


@pytest.mark.parametrize("name", NAMES)
def test_processes_match_the_balance(name):
    profile = golden(name)
    found = draw("processes", profile)
    if isinstance(found, Missing):
        assert profile.workflow.processes == 1 or not any(a.balance for a in profile.apps)
        return
    marks = {(v["app"], v["mark"]): v["seconds"] for v in values_of(found.spec)}
    balance = profile.apps[0].balance
    assert marks[0, "slowest"] == pytest.approx(balance.slowest_io_time_s, rel=1e-6)
    assert marks[0, "mean"] == pytest.approx(balance.mean_io_time_s, rel=1e-6)
    assert f"rank {balance.slowest_rank}" in found.description


def test_worst_rank_is_named_beside_the_mean():
    profile = golden("v3-cm1like-16r")
    heat = heat_like(profile)
    busy = [1.0] * 16
    busy[11] = 9.0
    heat = heat.model_copy(
        update={
            "processes": ProcessTotals(
                bytes_read=[0] * 15 + [1600], bytes_written=[0] * 16, operations=[1] * 16, io_s=busy
            )
        }
    )
    found = drawing("processes", profile, heat)
    # The mean of 15 times 1 s and once 9 s is 1.5 s.
    assert "rank 11, 9 s, 6 times the mean" in found.description
    assert "rank 15, 1.6 kB, 16 times the mean" in found.description
    ratios = {v["process"]: v["ratio"] for v in values_of(found.spec) if v["measure"] == "I/O time"}
    assert ratios[11] == 6 and ratios[0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", NAMES)
def test_files_add_up_to_the_files_of_the_profile(name):
    profile = golden(name)
    found = drawing("files", profile)
    sums: Counter[str] = Counter()
    for value in values_of(found.spec):
        sums[value["kind"]] += value["seconds"]
    for kind in ("read", "write", "metadata"):
        assert sums[kind] == pytest.approx(sum(getattr(f.io.time_s, kind) for f in profile.files), rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_ops_and_patterns_of_the_workload_match_the_profile(name):
    profile = golden(name)
    io = profile.workflow.io
    found = drawing("ops", profile)
    amounts = {(v["row"], v["kind"]): v["amount"] for v in values_of(found.spec)}
    for kind in ("read", "write", "metadata"):
        assert amounts.get((0, kind), 0) == getattr(io.ops, kind)
        assert amounts.get((1, kind), 0) == pytest.approx(getattr(io.time_s, kind), rel=1e-6)
    pattern = drawing("access-patterns", profile)
    shares = {v["pattern"]: v["share"] for v in values_of(pattern.spec) if v["row"] == 0}
    for kind in ("consecutive", "sequential", "strided", "random"):
        assert shares.get(kind, 0.0) == pytest.approx(getattr(io.access_pattern, kind), rel=1e-6)


# --- flushing -------------------------------------------------------------------------------------------------------


def test_flushing_is_drawn_next_to_reads_writes_and_metadata():
    # A checkpoint: fsync is 11 % of its calls and 88 % of their time.
    profile = profiled("v3-ckpt-then-restart-8r")
    io = profile.workflow.io
    assert io.ops.sync == 40
    ops = drawing("ops", profile)
    amounts = {(v["row"], v["kind"]): v["amount"] for v in values_of(ops.spec)}
    assert amounts[0, "sync"] == 40
    assert amounts[1, "sync"] == pytest.approx(io.time_s.sync, rel=1e-6)
    assert ops.description.startswith("The workload's 377 file-system calls are 54 % data, 11 % flushing and 35 % metadata; ")
    assert "6.6 % data, 88 % flushing and 5.7 % metadata." in ops.description
    layers = drawing("layers", profile)
    assert {v["kind"]: v["seconds"] for v in values_of(layers.spec)}["sync"] == pytest.approx(io.time_s.sync, rel=1e-6)
    assert "sync 624 ms" in layers.description
    files = drawing("files", profile)
    drawn = sum(v["seconds"] for v in values_of(files.spec) if v["kind"] == "sync")
    assert drawn == pytest.approx(sum(f.io.time_s.sync for f in profile.files), rel=1e-6)
    for found in (ops, layers, files):
        heads = found.table[0]
        assert "sync" in heads or "sync (s)" in heads
        assert "flush" in found.description + found.caption or found is files


def test_legend_lists_occurring_kinds_in_a_fixed_order_of_colours():
    legends = [drawing(kind, profiled("v3-ckpt-then-restart-8r")).spec for kind in ("ops", "layers", "files")]
    for spec in legends:
        colour = (spec.get("encoding") or spec["layer"][0]["encoding"])["color"]
        assert colour["scale"]["domain"] == ["read", "write", "metadata", "mixed", "sync"]
        assert colour["legend"]["values"] == ["read", "write", "sync", "metadata"]  # In the order of the bars.


def test_layers_with_calls_show_flushing_of_each_library():
    profile = profiled("v3-ckpt-then-restart-8r")
    heat = heat_like(profile)
    heat = heat.model_copy(update={"layers": [LayerCost(layer="posix", read=1.0, write=0.5, metadata=0.25, sync=3.0)]})
    found = drawing("layers", profile, heat)
    got = {v["kind"]: (v["from"], v["to"], v["share"]) for v in values_of(found.spec)}
    assert got == {
        "read": (0.0, 1.0, "21 %"), "write": (1.0, 1.5, "11 %"), "sync": (1.5, 4.5, "63 %"), "metadata": (4.5, 4.75, "5.3 %"),
    }  # fmt: skip


def test_phases_give_the_same_share_of_io_as_other_texts():
    profile = profiled("v3-cm1like-16r")
    share = profile.workflow.io.busy_s.total / profile.workflow.runtime_s
    assert f", {format_share(share)} of it in I/O." in drawing("phases", profile).description


def workflow(apps: int = 5) -> Profile:
    """A workflow of apps in a row, with one dependency that skips an app and one that leads back."""
    edges = [(i, i + 1) for i in range(apps - 1)] + [(0, 2), (3, 1)]
    return chained(golden("v3-cm1like-16r"), [f"step{i}" for i in range(apps)], edges)


def chained(base: Profile, names: list[str], edges: list[tuple[int, int]]) -> Profile:
    document = base.model_dump(by_alias=True)
    (app,), (trace,) = document["apps"], document["traces"]
    document["apps"] = [{**app, "name": n} for n in names]
    document["traces"] = [{**trace, "app": n} for n in names]
    document["phases"] = [{**p, "app": n} for n in names for p in document["phases"]]
    document["workflow"] |= {
        "apps": len(names),
        "processes": 16 * len(names),
        "app_dependencies": [
            {"producer": names[a], "consumer": names[b], "files": 1, "bytes_written": 10, "bytes_read": 5 + a}
            for a, b in edges
        ],
    }
    return Profile.model_validate(document)


def test_apps_are_drawn_below_their_sources():
    found = drawing("apps", workflow())
    nodes = {n["name"]: n["y"] for n in values_of(found.spec)}
    # The edge from step3 back to step1 does not change the order.
    assert [nodes[f"step{i}"] for i in range(5)] == sorted(nodes.values())
    curves = found.spec["layer"][0]["data"]["values"]
    assert len(curves) == len(found.table[1]) == 6


def test_unseen_bytes_between_apps_are_unknown():
    profile = workflow()
    edges = [
        d.model_copy(update={"bytes_written": None, "bytes_read": None} if d.producer == "step0" else {})
        for d in profile.workflow.app_dependencies
    ]
    profile = profile.model_copy(update={"workflow": profile.workflow.model_copy(update={"app_dependencies": edges})})
    found = drawing("apps", profile)
    assert "step0 to step1 unknown bytes" in found.description
    assert {row[:2]: row[3:] for row in found.table[1]}["step0", "step1"] == (None, None)


def test_a_single_app_has_no_graph_of_apps():
    assert "one app" in draw("apps", golden("v3-cm1like-16r")).why


def test_data_flow_counts_writers_and_readers():
    profile = golden("v3-cm1like-16r")
    found = drawing("data-flow", profile, heat_like(profile))
    assert "d/out_#.h5: 1 of 16 processes writes 5 kB" in found.description
    assert "d/in.nc: 16 processes read 300 B" in found.description
    texts = {i.get("text") for i in drawn_values(found, "text")}
    assert {"7 files: 1 process writes", "16 processes read"} <= texts


HOSTILE = [
    "<script>alert(1)</script>",
    "a\nb\r\x1b[31m::error::x",
    "' + alert(1) + '",
    '"]}; datum.x // \\',
    "\u202eevil",
    "\ud800half",
    "n" * 5000,
    "{{7*7}}${7*7}",
    "",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.slow
def test_hostile_names_are_shown_on_one_short_line(text):
    names = [text, text + "2", "plain"]
    profile = chained(golden("v3-cm1like-16r"), names, [(0, 1), (1, 2)])
    files = [
        f.model_copy(update={"path": f"/d/{text}/{i}", "apps": [text]}) for i, f in enumerate(profile.files)
    ]
    profile = on_targets(profile.model_copy(update={"files": files}))
    heat = heat_like(profile)
    heat = heat.model_copy(
        update={"uses": [u.model_copy(update={"pattern": f"/d/{text}/x", "app": text}) for u in heat.uses]}
    )
    for kind in ALL:
        found = drawing(kind, profile, heat)
        content = json.dumps(found.spec, ensure_ascii=False)
        assert all(c.isprintable() for c in content)
        assert "n" * 300 not in content + found.description + found.caption
        assert "\n" not in found.description + found.caption
        # Expressions come only from Vani: a name is always just a value.
        for expression in expressions(found.spec):
            assert not text or len(text) < 3 or text[:20] not in expression
        for row in found.table[1]:
            assert all("\n" not in str(cell) and len(str(cell)) < 300 for cell in row)
        svg = IMAGE.render("svg", found)
        assert b"<script" not in svg and b"NaN" not in svg


def expressions(spec: Any) -> list[str]:
    found = []
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key in ("calculate", "filter", "labelExpr", "expr") and isinstance(value, str):
                found.append(value)
            elif key not in ("values", "value"):
                found += expressions(value)
    elif isinstance(spec, list):
        for value in spec:
            found += expressions(value)
    return found


@pytest.mark.slow
def test_a_huge_profile_gives_small_plots():
    profile = chained(
        golden("v3-cm1like-16r"),
        [f"app-{i}-{'x' * 50}" for i in range(400)],
        [(i, j) for i in range(60) for j in range(i + 1, 60)],
    )
    file = profile.files[0]
    files = [
        file.model_copy(
            update={"path": f"/scratch/{'d' * 200}/{chr(97 + i % 26)}{'abc'[i % 3]}{i // 26}/f{i}.dat"}
        )
        for i in range(20_000)
    ]
    profile = profile.model_copy(update={"files": files, "phases": profile.phases * 20})
    heat = big_heat(512, 150)
    uses = [
        FileUse(
            pattern=f"/p/{'q' * 200}{i}",
            files=i,
            app=f"app-{i}-{'x' * 50}",
            readers=i,
            writers=3,
            bytes_read=10**i % 10**15,
            bytes_written=i,
        )
        for i in range(40)
    ]
    totals = ProcessTotals(
        bytes_read=list(range(100_000)),
        bytes_written=[7] * 100_000,
        operations=[1] * 100_000,
        io_s=[i / 7 for i in range(100_000)],
    )
    heat = heat.model_copy(update={"uses": uses, "processes": totals})
    sizes = {}
    for kind in ALL:
        found = draw(kind, profile, heat=heat)
        if isinstance(found, Drawing):
            sizes[kind] = len(json.dumps(found.spec))
            assert len(found.table[1]) <= 200
            assert len(found.description) < 3000
    assert max(sizes.values()) < LARGEST
    # All of them fit, together with the libraries, into a page of 2 MB.
    assert sum(sizes.values()) < 550_000


def contrast(a: str, b: str) -> float:
    """Contrast of two colours (WCAG 2.2)."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("dark", "ground"), [(False, "#ffffff"), (True, "#15181b")])
def test_colours_stand_out_from_their_ground(dark, ground):
    config = theme(dark)
    assert all(contrast(c, ground) >= 3 for c in config["range"]["category"][: len(KINDS)])
    assert contrast(config["axis"]["labelColor"], ground) >= 7


# How a colour (linear, red to blue) looks to people without one of the three cones: Machado, Oliveira and
# Fernandes, A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009.
SIGHT = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def apart(a: str, b: str, sight: str) -> float:
    """Distance of two colours in CIE L*a*b*, as seen by such eyes; 2.3 is just distinguishable side by side."""

    def lab(colour: str) -> tuple[float, float, float]:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        r, g, b = (min(1.0, max(0.0, sum(w * p for w, p in zip(row, linear, strict=True)))) for row in SIGHT[sight])
        white = (0.95047, 1.0, 1.08883)
        xyz = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b, 0.2126729 * r + 0.7151522 * g + 0.072175 * b,
               0.0193339 * r + 0.119192 * g + 0.9503041 * b)  # fmt: skip
        x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in map(truediv, xyz, white))
        return 116 * y - 16, 500 * (x - y), 200 * (y - z)

    return math.dist(lab(a), lab(b))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("sight", SIGHT)
def test_colour_of_flushing_is_distinguishable_by_all_eyes(dark, sight):
    colours = dict(zip(KINDS, theme(dark)["range"]["category"], strict=False))
    known = {"read": "#56B4E9", "write": "#F08A3C", "metadata": "#2BC49B", "mixed": "#E09CC4"} if dark else {
        "read": "#0072B2", "write": "#D55E00", "metadata": "#007A5A", "mixed": "#9A4F7F"
    }  # fmt: skip
    assert {kind: colours[kind] for kind in known} == known
    assert min(apart(colours["sync"], other, sight) for other in known.values()) > 20


def test_column_image_has_the_font_size_of_a_paper():
    found = drawing("ops", golden("v3-cm1like-16r"))
    sizes = [
        json.loads(IMAGE.render("json", found, width_mm=width))["config"]["axis"]["labelFontSize"] for width in (85, 160)
    ]
    assert sizes == [8, 10]


@pytest.mark.parametrize("kind", [k for k in ALL if k not in ("apps", "data-flow")])
@pytest.mark.sampled(7)
def test_no_letter_leaves_an_image_as_wide_as_a_column(kind):
    profile = golden("v2-ipc-mpiio-mix-4r")
    found = draw(kind, profile, heat=heat_like(profile))
    if isinstance(found, Missing):
        pytest.skip(found.why)
    svg = IMAGE.render("svg", found, width_mm=85).decode()
    width, height = (float(re.search(rf'<svg[^>]*{side}="([0-9.]+)pt"', svg)[1]) for side in ("width", "height"))
    for x, y, text in places_of_texts(svg):
        assert 0 <= x <= width and 0 <= y <= height, text


def places_of_texts(svg: str) -> list[tuple[float, float, str]]:
    """The anchor of each text in an image, with all transforms applied."""
    found, stack = [], [(0.0, 0.0)]
    for tag in re.finditer(r"<(/?)(g|text)\b([^>]*?)(/?)>([^<]*)", svg):
        closing, name, attributes, empty, content = tag.groups()
        if closing:
            stack.pop()
            continue
        moved = re.search(r"translate\(([-0-9.e]+),\s*([-0-9.e]+)\)", attributes)
        x, y = stack[-1]
        if moved:
            x, y = x + float(moved[1]), y + float(moved[2])
        if name == "text" and content.strip():
            found.append((x, y, content))
        if not empty:
            stack.append((x, y))
    return found


def test_paper_overrides_dark():
    assert theme(True, paper=True) == theme(False, paper=True)
    assert theme(False, paper=True)["background"] == "#ffffff"


def test_an_image_is_as_wide_as_asked_for():
    found = drawing("ops", golden("v3-cm1like-16r"))
    svg = IMAGE.render("svg", found, width_mm=127).decode()
    # 127 mm are 5 inches: 360 points, and 1,500 pixels at 300 to the inch.
    assert re.match(r'<svg[^>]*width="360pt"', svg)
    png = IMAGE.render("png", found, width_mm=127, dpi=300)
    assert int.from_bytes(png[16:20], "big") == pytest.approx(1500, abs=6)


def test_json_is_a_complete_specification():
    found = drawing("ops", golden("v3-cm1like-16r"))
    spec = json.loads(IMAGE.render("json", found))
    assert spec["$schema"].endswith("vega-lite/v6.json")
    assert spec["description"] == found.description
    assert vl_convert.vegalite_to_svg(spec, vl_version="6.4").startswith("<svg")


def without_times(value: Any) -> Any:
    """A document like one of `vani profile --quick`, without anything that needs time stamps."""
    if not isinstance(value, dict):
        return [without_times(v) for v in value] if isinstance(value, list) else value
    found = {}
    for key, part in value.items():
        if key in ("time_s", "busy_s") and isinstance(part, dict):
            found[key] = dict.fromkeys(part)
        elif key in ("runtime_s", "app_dependencies", "process_dependencies", "span_s") or "io_time" in key:
            found[key] = None
        else:
            found[key] = without_times(part)
    return found


@pytest.mark.parametrize("kind", ALL)
def test_profile_without_times_shows_a_reason_or_its_counts(kind):
    document = golden("v3-ckpt-then-restart-8r").model_dump(by_alias=True)
    document = without_times({**document, "phases": []})
    profile = Profile.model_validate(document)
    found = draw(kind, profile)
    if kind in ("layers", "phases", "processes", "files"):
        assert "--quick" in found.why
    elif kind in ("ops", "transfer-sizes", "access-patterns", "file-sizes"):
        assert isinstance(found, Drawing)
        assert "None" not in found.caption + found.description
    # With the calls there are times again.
    if kind in ("layers", "processes", "bandwidth"):
        assert isinstance(draw(kind, profile, heat=heat_like(profile)), Drawing)


def test_unfollowed_patterns_are_not_called_none():
    profile = golden("v3-ckpt-then-restart-8r")

    def blind(value):
        if isinstance(value, dict):
            return {k: None if k == "access_pattern" else blind(v) for k, v in value.items()}
        return [blind(v) for v in value] if isinstance(value, list) else value

    why = "--quick counts calls and does not follow their order"
    document = blind(profile.model_dump(by_alias=True)) | {"provenance": {"io.access_pattern": why}}
    assert draw("access-patterns", Profile.model_validate(document)).why == why


def test_doubtful_rate_is_marked_in_its_plot():
    profile = golden("v3-cm1like-16r")
    doubt = "543 GB/s of each process is more than memory delivers"
    doubted = profile.model_copy(update={"provenance": {**profile.provenance, "io.bandwidth.read": doubt}})
    assert doubt in draw("transfer-sizes", doubted, heat=heat_like(doubted)).caption
    assert "plausible" not in draw("transfer-sizes", profile, heat=heat_like(profile)).caption


def test_the_page_of_plots_names_every_kind():
    page = (GOLDEN.parents[1] / "docs" / "plots.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| [^|]+ \|$", page, re.MULTILINE)
    source = {plot.kind: "both" if plot.uses else plot.needs or "profile" for plot in kinds().values()}
    assert dict(rows) == source


def test_marks_beyond_64_bits_become_floats():
    assert all(type(mark) is float for low in (1e-3, 1, 1e15) for mark in log_marks(low, 1e30))
