"""Profiles of invented workloads against an oracle in plain Python (oracle.py)."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from call_tables import MILLISECOND, InventedTrace, create, invented_traces, profile_of, read, write
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from invented import examples
from oracle import expected

from vani.schema.profile import IOStats

GAP_S = 0.02
FLOATS = ("time_s", "busy_s", "ops_share", "time_share", "bandwidth", "access_pattern")

checked = settings(
    max_examples=examples(70),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def equal(found: IOStats, wanted: dict[str, Any], where: str) -> None:
    got = found.model_dump()
    for side in ("read", "write"):
        for block in (got, wanted):
            sizes = block["transfer_size"][side]
            if sizes:
                sizes["common"] = [tuple(s) for s in sizes["common"]]
    for key, block in wanted.items():
        if key == "calls":
            assert [(r["name"], r["count"], r["bytes"]) for r in got[key]] == [
                (r["name"], r["count"], r["bytes"]) for r in block
            ], f"{where}.{key}"
            assert [r["time_s"] for r in got[key]] == pytest.approx([r["time_s"] for r in block])
        elif key == "metadata_kinds" and block:
            for name, one in block.items():
                assert got[key][name]["count"] == one["count"], f"{where}.{key}.{name}"
                assert got[key][name]["time_s"] == pytest.approx(one["time_s"], abs=1e-12), (
                    f"{where}.{key}.{name}"
                )
        elif key in FLOATS and block:
            for name, value in block.items():
                assert got[key][name] == (value and pytest.approx(value, rel=1e-9, abs=1e-12)), (
                    f"{where}.{key}.{name}"
                )
        else:
            assert got[key] == block, f"{where}.{key}"


def agree(traces: list[InventedTrace]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        profile = profile_of(traces, Path(folder), gap_s=GAP_S)
    wanted = expected(traces, round(GAP_S * 1e9))
    equal(profile.workflow.io, wanted["workflow"], "workflow.io")
    assert {a.name for a in profile.apps} == set(wanted["apps"])
    for app in profile.apps:
        equal(app.io, wanted["apps"][app.name], f"apps[{app.name}].io")
    assert {(p.app, p.index) for p in profile.phases} == set(wanted["phases"])
    for phase in profile.phases:
        count, io = wanted["phases"][phase.app, phase.index]
        assert phase.count == count
        equal(phase.io, io, f"phases[{phase.app}, {phase.index}].io")
    assert {f.path for f in profile.files} == set(wanted["files"])
    for file in profile.files:
        equal(file.io, wanted["files"][file.path], f"files[{file.path}].io")
        assert file.processes == wanted["processes_of_file"][file.path]
    equal(profile.excluded.io, wanted["excluded"], "excluded.io")
    found = {(r.file, r.direction, r.layer): r for r in profile.accesses if r.layer in ("posix", "stdio")}
    assert found.keys() == wanted["accesses"].keys()
    for key, row in wanted["accesses"].items():
        for column, value in row.items():
            assert getattr(found[key], column) == (value and pytest.approx(value, rel=1e-9)), (key, column)


@given(traces=invented_traces(most=1))
@checked
def test_iostats_of_one_trace_equal_those_counted_call_by_call(traces):
    agree(traces)


@given(traces=invented_traces(most=3))
@settings(checked, max_examples=examples(40))
@pytest.mark.slow
def test_iostats_of_a_workflow_of_traces_equal_those_counted_call_by_call(traces):
    agree(traces)


@given(traces=invented_traces(most=1, unit=MILLISECOND // 500_000))
@settings(checked, max_examples=examples(40))
@pytest.mark.slow
def test_iostats_of_a_run_of_some_hundred_nanoseconds_equal_those_counted_call_by_call(traces):
    agree(traces)


SCHEDULERS = ["synchronous", "threads"]


@pytest.mark.slow
def test_concurrent_processes_make_the_same_profile(tmp_path):
    rows = [
        row
        for rank in range(4)
        for row in (
            create(rank=rank),
            write(rank=rank, at=50),
            read(rank=rank, offset=50, at=99 * MILLISECOND),
        )
    ]
    plain = profile_of([InventedTrace(rows)], tmp_path / "a")
    assert profile_of([InventedTrace(rows)], tmp_path / "b", cuts=[1, 2, 3], scheduler="processes") == plain


@given(
    traces=invented_traces(most=2),
    cuts=st.lists(st.integers(1, 3), max_size=3),
    rows=st.sampled_from([1, 2, 5, 1000]),
    scheduler=st.sampled_from(SCHEDULERS),
)
@settings(checked, max_examples=examples(30))
@pytest.mark.slow
def test_a_profile_does_not_depend_on_partitions_row_groups_or_scheduler(traces, cuts, rows, scheduler):
    with tempfile.TemporaryDirectory() as folder:
        plain = profile_of(traces, Path(folder) / "a")
        for trace in traces:
            trace.rows_per_batch = rows
        assert profile_of(traces, Path(folder) / "b", cuts=cuts, scheduler=scheduler) == plain


def without_numbers_of_ranks(profile) -> dict[str, Any]:
    found = profile.model_dump()
    found.pop("traces")
    found["verdict"]["sentence"] = re.sub(r"rank \d+", "rank", found["verdict"]["sentence"])
    for pattern in found["patterns"] or ():
        # Only the first and the last rank of each file are counted.
        for name in ("processes", "writers", "writer"):
            pattern.pop(name)
    for app in found["apps"]:
        app["balance"] = {k: v for k, v in app["balance"].items() if not k.endswith("_rank")}
        app["process_dependencies"].pop("pattern")
        app["process_dependencies"]["file_level"].pop("pattern")
    return found


@pytest.mark.slow
@given(traces=invented_traces(most=3), data=st.data())
@settings(checked, max_examples=examples(40))
def test_a_profile_does_not_depend_on_the_order_of_traces_and_ranks(traces, data):
    with tempfile.TemporaryDirectory() as folder:
        plain = profile_of(traces, Path(folder) / "a")
        shuffled = []
        for trace in data.draw(st.permutations(traces)):
            number = data.draw(st.permutations(range(trace.ranks)))
            rows = [{**row, "rank": number[row["rank"]]} for row in trace.rows]
            shuffled.append(
                InventedTrace(
                    rows,
                    trace.classes,
                    app=trace.app,
                    ranks=trace.ranks,
                    start_unix_s=trace.start_unix_s,
                    path=trace.path,
                )
            )
        again = profile_of(shuffled, Path(folder) / "b")
    assert without_numbers_of_ranks(again) == without_numbers_of_ranks(plain)
