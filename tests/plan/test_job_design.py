"""Stripes, OSTs and paths of starting jobs, as their tasks get them."""

from __future__ import annotations

import json

import pytest

from vani.centre.placement_library.database import read
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.prolog.state import State

MIB = 1 << 20
LIBRARY = "/opt/vani/libvani_place.so"


def known_job(**changes):
    return {
        "name": "4 nodes", "nodes": 4, "processes": 4, "bytes": 160 * MIB, "runs": 8, "usual_stripes": 1,
        "pattern": {"layout": "shared", "request": MIB}, "io_s": {"low": 9, "median": 10, "high": 12, "runs": 8},
        "by_stripes": [{"stripe_count": 1, "bandwidth": 16e6, "runs": 8}],
        "demand": {"iobw": 16e6, "iops": 16, "mdops": 1},
        "creations": [{"path": f"/scratch/out.{n}", "size": 80 * MIB} for n in range(2)],
    } | changes  # fmt: skip


class Site:
    """A state, a snapshot with sixteen OSTs, and the knowledge about jobs named bt."""

    def __init__(self, folder):
        self.folder, self.state, self.said = folder, State(folder / "state"), []
        (folder / "known").mkdir()
        self.knows()
        peak = {"iobw": 16e6}
        self.now(ost=[{"index": n, "size": 1 << 36, "used": 0, "peak": peak, "load": 0.0} for n in range(16)])

    def knows(self, **changes):
        document = {"schema": "vani.jobs/1", "jobs": [known_job(**changes)]}
        (self.folder / "known" / "bt.yaml").write_text(json.dumps(document))

    def now(self, **parts):
        (self.folder / "now.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", **parts}))

    def begin(self, number, nodes=4, library=LIBRARY, **rules):
        self.state.register(
            {
                "SLURM_JOB_ID": str(number),
                "SLURM_JOB_NAME": "bt",
                "SLURM_JOB_NODELIST": f"n[1-{nodes}]",
                "SLURM_JOB_NUM_NODES": str(nodes),
            }
        )
        rules = SharingRules(
            **{"io_nodes": 0, "snapshot": self.folder / "now.yaml", "known": self.folder / "known"} | rules,
            place_library=library,
        )
        text = plan_running_jobs(self.state, rules, str(number), now_s=0.0, say=self.said.append)
        return text, JobPlan.load(self.state.file_of(str(number), "yaml"))

    def exported(self, number):
        lines = self.state.file_of(str(number), "env").read_text().splitlines()
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_files_to_come_get_stripes_and_osts_by_the_placement_library(site):
    text, plan = site.begin(7)
    assert "8 stripes" in text
    assert (plan.layout.stripe_count, plan.layout.before, plan.layout.source) == (8, 1, "estimated")
    exported = site.exported(7)
    assert (exported["LD_PRELOAD"], exported["VANI_PLACE_DB"]) == (LIBRARY, plan.layout.database)
    assert "ROMIO_HINTS" not in exported
    rows = read(plan.layout.database)
    assert [(row.file, row.stripe_count) for row in rows] == [("/scratch/out.0", 8), ("/scratch/out.1", 8)]
    assert plan.io_s.low < plan.io_s.seconds < plan.io_s.before == 10.0


def test_second_job_avoids_the_targets_of_the_first(site):
    _, first = site.begin(1)
    _, second = site.begin(2)
    assert (first.layout.stripe_count, second.layout.stripe_count) == (8, 4)
    assert not set(first.layout.osts) & set(second.layout.osts)
    saved = site.state.load(site.said.append)["jobs"]
    assert sum(saved["1"]["design"]["reserved"].values()) in {0, 160 * MIB}


def test_targets_read_by_a_running_job_get_no_files(site):
    reads = {"layout": "file_per_process", "operation": "read", "request": MIB}
    site.knows(pattern=reads, reads_from=[0, 1, 2], creations=None)
    site.begin(1)
    site.knows()
    _, plan = site.begin(2)
    assert len(plan.layout.osts) >= 8
    assert not {0, 1, 2} & set(plan.layout.osts)


def test_files_created_together_are_on_different_osts(site):
    own = {"layout": "file_per_process", "request": 65536}
    files = [{"path": f"/scratch/{rank}.{n}", "size": 65536, "rank": rank} for rank in range(2) for n in range(24)]
    site.knows(processes=2, pattern=own, creations=files, bytes=48 * 65536, io_s={"low": 0.1, "median": 0.2, "high": 1, "runs": 8})
    _, plan = site.begin(1)
    osts = {row.file: row.osts for row in read(plan.layout.database)}
    assert all(osts[f"/scratch/0.{n}"] != osts[f"/scratch/1.{n}"] for n in range(24))


def test_files_of_one_turn_do_not_share_the_emptiest_osts(site):
    own = {"layout": "file_per_process", "request": MIB}
    files = [{"path": f"/scratch/{n}/{rank}", "size": 16 * MIB, "rank": rank} for n in range(2) for rank in range(4)]
    site.knows(pattern=own, creations=files, bytes=128 * MIB, io_s={"low": 2.0, "median": 2.1, "high": 2.2, "runs": 8})
    free = [{"index": n, "size": 1 << 30, "used": 240 * MIB if n < 4 else 0, "peak": {"iobw": 16e6}, "load": 0.0} for n in range(6)]
    site.now(ost=free)
    _, plan = site.begin(1)
    osts = {row.file: row.osts for row in read(plan.layout.database)}
    assert plan.layout.stripe_count == 1
    for n in range(2):
        assert len({osts[f"/scratch/{n}/{rank}"] for rank in range(4)}) == 4, osts


def test_jobs_that_use_mpi_io_get_hints(site):
    site.knows(mpi_io=True, creations=None)
    _, plan = site.begin(7, library=None)
    assert site.exported(7)["ROMIO_HINTS"] == plan.layout.hints
    assert (site.state.folder / "7.hints").read_text() == "striping_factor 8\n"
    assert plan.layout.database is None


def test_inapplicable_settings_are_neither_planned_nor_expected(site):
    _, plan = site.begin(7, library=None)
    assert plan.layout is None
    assert plan.io_s.seconds == plan.io_s.before == 10.0
    assert any("--place-library is not given" in left.reason for left in plan.unchanged)


def test_a_count_that_made_runs_slower_is_not_repeated(site):
    site.knows(avoid=[{"stripe_count": 8, "slower": 1.8, "runs": 2}])
    _, plan = site.begin(7)
    assert plan.layout is None or plan.layout.stripe_count == 1
    assert "8 stripes made 2 runs 1.80 times as slow" in [left.reason for left in plan.unchanged]


def test_unknown_job_keeps_its_settings_and_has_no_expected_time(site):
    (site.folder / "known" / "bt.yaml").unlink()
    _, plan = site.begin(7)
    assert (plan.layout, plan.io_s) == (None, None)
    assert "the I/O time of earlier runs is not known" in [left.reason for left in plan.unchanged]


def test_figures_of_another_scale_do_not_decide_how_files_are_laid_out(site):
    _, plan = site.begin(7, nodes=2)
    assert (plan.layout, plan.io_s) == (None, None)


def test_behind_io_nodes_the_path_chooses_among_the_osts_that_these_reach(site):
    peak = {"iobw": 64e6, "iops": 1e5, "mdops": 1e4}
    ost = [
        {"index": n, "oss": f"s{n // 4}", "size": 1 << 36, "used": 0, "peak": {"iobw": 16e6, "iops": 1e4}, "load": 0.0}
        for n in range(16)
    ]
    site.now(
        ost=ost, oss=[{"name": f"s{n}"} for n in range(4)],
        forwarding=[{"name": f"f{n}", "peak": peak, "load": 0.0} for n in range(2)],
        storage=[
            {"name": f"s{n}", "peak": peak, "load": 0.0, "ost": list(range(4 * n, 4 * n + 4))} for n in range(4)
        ],
        reach={"f0": ["s0", "s1"], "f1": ["s2", "s3"]},
    )  # fmt: skip
    _, plan = site.begin(7, io_nodes=1, direct=False)
    assert plan.io_nodes == ["f0"]
    assert plan.path.met == pytest.approx(1.0)
    assert {flow.storage for flow in plan.path.flows} <= {"s0", "s1"}
    assert plan.layout.stripe_count == plan.path.stripe_count == 8
    assert set(plan.layout.osts) <= set(range(8))


def test_layouts_are_kept_when_other_jobs_begin_and_end(site):
    _, before = site.begin(1)
    site.begin(2)
    site.state.forget("2")
    after = JobPlan.load(site.state.file_of("1", "yaml"))
    assert after.layout == before.layout


@pytest.mark.parametrize("path", ["lib.so", "/a b.so", "/a:b.so", "/a$b.so"])
def test_a_library_that_ld_preload_cannot_name_is_refused(site, path):
    with pytest.raises(Exception, match="--place-library"):
        site.begin(7, library=path)
