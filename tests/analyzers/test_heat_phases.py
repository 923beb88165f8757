"""Phases from heat maps: located to one stretch, with bounds for times; null for anything that needs calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darshan_records import calls, log, posix, profiled

import vani
from vani.analyzers.counts import profile as counted
from vani.centre.plan.job_io import io_of
from vani.centre.plan.schema.jobs import PlannedJob
from vani.centre.plan.schema.scenario import ScenarioJob
from vani.centre.plan.simulate.jobs import _of_profile
from vani.readers.darshan.records import Module
from vani.render.answers import when
from vani.schema.document import dumps, loads
from vani.schema.profile import Profile
from vani.units import MiB

LOGS = Path(__file__).parents[1] / "data" / "darshan"
STREAM = "heatmap:STDIO"



def heat(*rows: tuple[int, tuple[int, ...], tuple[int, ...]], width: float = 0.1, id: int = 2) -> dict:
    """Rank, and MiB that it wrote and read in each stretch."""
    rank, written, read = zip(*rows, strict=True)
    return {
        "id": np.full(len(rows), id, np.uint64),
        "rank": np.array(rank),
        "width": np.full(len(rows), width),
        "write": np.array(written) * MiB,
        "read": np.array(read) * MiB,
    }


def written_and_read(**changes: object) -> Profile:
    """Two ranks write for 0.2 s at 1 s, and one of them reads for 0.1 s at 8 s."""
    none = (0,) * 10
    written, read = (*none, 2, 1, *none * 7), (*none * 8, 1, 0)
    rows = [(0, written, read), (1, written, none * 8 + (0, 0))]
    moved = {"WRITES": 6, "READS": 1, "BYTES_WRITTEN": 6 * MiB, "BYTES_READ": MiB}
    return profiled(log(heat=heat(*rows), modules={"POSIX": posix(**moved)}, **changes))


def test_phases_are_located_to_one_stretch_with_both_ends():
    write, read = written_and_read().phases
    assert (write.kind, write.processes, write.io.bytes.written, write.io.bytes.read) == (
        "write",
        2,
        6 * MiB,
        0,
    )
    assert (read.kind, read.processes, read.io.bytes.read) == ("read", 1, MiB)
    assert (write.start_s, write.end_s) == pytest.approx((1.0, 1.2))
    bounds = written_and_read().bounds
    assert bounds["phases[0].start_s"] == pytest.approx((1.0, 1.1))
    assert bounds["phases[0].end_s"] == pytest.approx((1.1, 1.2))
    assert bounds["phases[0].runtime_s"] == pytest.approx((0.0, 0.2))
    assert bounds["phases[1].start_s"] == pytest.approx((8.0, 8.1))


def test_attributes_that_need_calls_are_null_with_a_reason():
    profile = written_and_read()
    phase = profile.phases[0]
    assert (phase.io.ops, phase.frequency, phase.dominant, phase.io.access_pattern) == (None,) * 4
    assert phase.io.time_s.total is None and phase.io.busy_s.write is None
    assert "to one stretch" in profile.provenance["phases"]
    assert "bytes and no calls" in profile.provenance["phases.io"]
    for attribute in ("phases.io.bytes", "phases.kind", "phases.dominant", "phases.frequency"):
        assert attribute in profile.provenance
    assert profile.apps[0].phase_gap_s is not None


def test_phases_of_calls_come_before_those_of_the_heat_map():
    kept = calls(*((0, i, 0.25 + i, 0.5 + i) for i in range(4)))
    both = profiled(log(heat=heat((0, (1, 0), (0, 0))), calls=kept))
    assert both.phases[0].io.ops is not None
    assert "DXT" in both.provenance["phases"]


def test_without_calls_and_heat_map_phases_are_null():
    profile = profiled(log())
    assert profile.phases is None
    assert profile.provenance["phases"] == (
        "counts do not record when each call took place; the log contains no heat map of all processes"
    )


def test_heat_map_of_more_than_files_gives_no_phases():
    names = ["/lustre/run/out", "heatmap:POSIX", "<STDOUT>"]
    rows = posix(BYTES_WRITTEN=0, WRITES=0)
    both = Module(
        np.array([1, 3], np.uint64),
        np.array([-1, -1]),
        {n: np.repeat(v, 2) for n, v in rows.counters.items()}
        | {"POSIX_BYTES_WRITTEN": np.array([MiB, MiB]), "POSIX_WRITES": np.array([1, 1])},
        {},
        "POSIX",
    )
    told = {"ids": np.array([1, 2, 3], np.uint64), "names": names, "modules": {"POSIX": both}}
    profile = profiled(log(heat=heat((0, (2, 0), (0, 0))), **told))
    assert profile.phases is None
    assert "does not separate files from standard streams" in profile.provenance["phases"]


@pytest.mark.parametrize("rank", [-1, 2])
def test_heat_map_without_a_rank_of_the_run_is_ignored(rank):
    assert profiled(log(heat=heat((rank, (1, 0), (0, 0))))).phases is None


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf"), 9e8])
def test_heat_map_with_impossible_stretches_is_ignored(width):
    assert profiled(log(heat=heat((0, (1, 0), (0, 0)), width=width))).phases is None


def test_interval_beyond_the_end_of_the_run_is_cut_there():
    (phase,) = profiled(log(heat=heat((0, (0, 0, 0, 4), (0,) * 4), width=3.0))).phases
    assert (phase.start_s, phase.end_s) == (9.0, 10.0)


@pytest.mark.slow
def test_profile_is_written_read_and_shown():
    profile = loads(dumps(written_and_read()), Profile)
    assert profile.phases == written_and_read().phases
    assert when(profile) == ("6.29 MB written from 1 s on, for 200 ms; 1.05 MB read from 8 s on, for 100 ms")
    page = vani.report(profile, format="txt")
    assert "phases[].io.ops, " in page or "phases[].io.ops:" in page
    assert "the heat map records bytes and no calls" in " ".join(page.split())
    for kind in ("html", "markdown"):
        assert vani.report(profile, format=kind)


@pytest.mark.parametrize("system", ["generic-lustre", "generic-gpfs", "taihulight"])
def test_every_rule_takes_phases_without_calls(system):
    assert vani.advise(written_and_read(), system=system).no_recommendation


@pytest.mark.parametrize("name", ["v3-ior-ssf-posix-8r", "v3-ior-ssf-posix-strided-4k-8r"])
def test_phases_of_calls_are_within_those_of_the_heat_map(name, monkeypatch):
    of_calls = vani.profile(LOGS / f"{name}.darshan")
    monkeypatch.setattr(counted, "phases_of_calls", lambda *_: None)
    of_heat = vani.profile(LOGS / f"{name}.darshan")
    assert len(of_heat.phases) == len(of_calls.phases) == 2
    for number, (one, other) in enumerate(zip(of_calls.phases, of_heat.phases, strict=True)):
        assert (one.kind, one.processes, one.io.bytes) == (other.kind, other.processes, other.io.bytes)
        for attribute in ("start_s", "end_s", "runtime_s"):
            low, high = of_heat.bounds[f"phases[{number}].{attribute}"]
            assert low <= getattr(one, attribute) <= high


def test_plans_use_such_phases_and_name_missing_values():
    profile, lacks = written_and_read(), []
    job = PlannedJob(name="a", nodes=1)
    # The busiest phase: 6 MiB in at most 0.2 s.
    demand = io_of(job, profile).demand
    assert (demand, io_of(job, profile).lacks) == (
        (pytest.approx(6 * MiB / 0.2), None, None),
        "no iops and no mdops: not checked against any peak",
    )
    (played,) = _of_profile(ScenarioJob(name="a", nodes=1, profile="p.yaml"), profile, lacks)
    assert [(one.operation, one.bytes, one.opens) for one in played.phases] == [
        ("write", 6 * MiB, 0),
        ("read", MiB, 0),
    ]
    assert lacks == [("a", "its profile lacks the calls of phases: its opens are not simulated")]
