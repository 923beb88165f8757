"""What the hook would have done with past jobs."""

from __future__ import annotations

import csv
import io

import pytest
from click.testing import CliRunner

from tests.database.test_run_tables import a_run
from tests.plan.month_of_jobs import CURVES, write_month
from vani.centre.history.accounting import SacctJob, read_sacct
from vani.centre.history.rows import AccountedJob
from vani.centre.history.runs import write
from vani.centre.history.runs.store import Store
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.rehearse import _by_stripes, rehearse
from vani.centre.plan.schema.jobs import Demand
from vani.centre.plan.schema.plans import ExpectedIo, JobLayout, JobPlan
from vani.centre.plan.schema.snapshot import Snapshot, Target
from vani.cli.main import commands
from vani.errors import InputError

RULES = {"io_nodes": 16, "nodes_per_io_node": 16.0}


def a_job(number, name="ceiling", nodes=16, started=0.0, elapsed=100.0):
    return SacctJob(AccountedJob(str(number), "ada", None, None, None, nodes, "COMPLETED", started, elapsed), name, None)


@pytest.fixture
def month(tmp_path):
    return write_month(tmp_path, 40)


def rehearsed(month, *jobs, io_s=100.0, **more):
    rules = SharingRules(**RULES | {"known": month[1]} | more)
    return {row.job: row for row in rehearse(jobs, rules, io_seconds=lambda _: io_s).jobs}


def test_single_job_saves_what_its_curve_predicts(month):
    """16 nodes get 1 I/O node by the static rule (500 MB/s), and 8 by the plan (4 GB/s): 100 s become 12.5 s."""
    row = rehearsed(month, a_job(1))["1"]
    assert (row.usual_io_nodes, row.io_nodes, row.access) == (1, 8, "own")
    assert (row.usual_bandwidth, row.bandwidth) == (5e8, 4e9)
    assert row.saved_s == pytest.approx(87.5)
    assert row.low_s < row.saved_s < row.high_s < 100


def test_concurrent_jobs_share_the_pool_and_later_ones_do_not(month):
    both = rehearsed(month, a_job(1), a_job(2), a_job(3, started=100.0), io_nodes=8)
    assert both["2"].io_nodes < 8
    assert both["3"].io_nodes == 8


def test_job_gets_direct_access_if_that_is_best(month):
    row = rehearsed(month, a_job(1, "direct"))["1"]
    assert (row.access, row.io_nodes, row.usual_io_nodes) == ("direct", 0, 1)
    assert row.saved_s == pytest.approx(80.0)


def test_job_with_its_usual_io_nodes_saves_nothing(month):
    row = rehearsed(month, a_job(1), io_nodes=1)["1"]
    assert (row.io_nodes, row.saved_s, row.low_s, row.high_s) == (1, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("job", "io_s", "reason"),
    [
        (a_job(1, "unknown"), 1.0, "jobs of this name are not known"),
        (a_job(1), None, "its I/O time is not known"),
        (a_job(1, nodes=None), 1.0, "does not give its number of nodes"),
        (a_job(1, started=None), 1.0, "it never started"),
        (a_job(1, elapsed=None), 1.0, "does not give its run time"),
    ],
)
def test_job_without_an_expected_time_has_a_reason(month, job, io_s, reason):
    row = rehearsed(month, job, io_s=io_s)["1"]
    assert reason in row.reason
    assert row.saved_s is None


@pytest.mark.parametrize(("source", "factors"), [("measured", (0.6, 0.5, 0.4)), ("unchanged", None)])
def test_stripes_that_a_plan_changes_change_the_time(source, factors):
    expected = ExpectedIo(seconds=50, low=40, high=60, before=100, method="runs")
    layout = JobLayout.model_construct(source=source)
    assert _by_stripes(JobPlan.model_construct(io_s=expected, layout=layout)) == factors


def test_without_io_nodes_the_reason_is_about_stripes(month, tmp_path):
    targets = [Target(index=index, size=1 << 40, used=0, load=0.0, peak=Demand(iobw=1e9)) for index in range(4)]
    Snapshot(ost=targets).save(tmp_path / "now.yaml")
    row = rehearsed(month, a_job(1, "unknown"), io_nodes=0, snapshot=tmp_path / "now.yaml")["1"]
    assert (row.saved_s, row.usual_io_nodes) == (None, 0)
    assert row.reason.startswith("its stripes stay as they are: ")
    with pytest.raises(InputError, match="neither I/O nodes nor OSTs"):
        rehearsed(month, a_job(1), io_nodes=0)


def test_rehearsal_without_jobs_is_refused(month):
    with pytest.raises(InputError, match="has 0 jobs"):
        rehearse([], SharingRules(**RULES))


def test_fault_of_the_options_is_reported_once_instead_of_per_job(month):
    for wrong in ({"known": month[0].parent / "gone"}, {"settings": month[0]}):
        with pytest.raises(InputError):
            rehearsed(month, a_job(1), **wrong)


def test_sums_by_name_match_the_jobs(month):
    sacct, known, io_s = month
    done = rehearse(read_sacct(sacct), SharingRules(**RULES, known=known), io_seconds=io_s.get)
    assert sum(entry.jobs for entry in done.applications) == len(done.jobs) == 40
    assert sum(entry.known for entry in done.applications) + sum(done.reasons.values()) == 40
    for entry in done.applications:
        own = [row for row in done.jobs if row.name == entry.name and row.saved_s is not None]
        assert entry.saved_s == pytest.approx(sum(row.saved_s for row in own))
        assert entry.low_s <= entry.saved_s <= entry.high_s
    for row in done.jobs:
        curve = CURVES[row.name]
        if curve is None:
            assert row.reason.endswith("not known")
        else:
            assert row.bandwidth == curve[row.io_nodes]


def test_command_prints_the_report_on_one_page(month, tmp_path):
    sacct, known, io_s = month
    with Store(tmp_path / "h.sqlite").writing(make=True) as connection:
        runs = [a_run(n, job=job, slowest_s=seconds) for n, (job, seconds) in enumerate(io_s.items(), start=1)]
        write.add_runs(connection, runs[:-5])
    with sacct.open("a") as file:
        file.write("x||||||||||\n")
    done = CliRunner().invoke(
        commands,
        ["plan", "rehearse", str(sacct), "--history", str(tmp_path / "h.sqlite"), "--known", str(known),
         "--io-nodes", "16", "--nodes-per-io-node", "16", "-o", str(tmp_path / "jobs.csv")],
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert f"vani: {sacct}:42: 'x' is not a job number" in done.stderr
    assert done.stdout.startswith("40 jobs ran; the possible saving is known for ")
    assert "Not counted:" in done.stdout
    rows = list(csv.DictReader(io.StringIO((tmp_path / "jobs.csv").read_text())))
    assert len(rows) == 40
    assert all(float(row["started"]).is_integer() and "e" not in row["started"] for row in rows)
    assert {row["job"] for row in rows} == set(io_s)
