"""What is written for all jobs that run, without a process of its own."""

from __future__ import annotations

import json

import pytest

from vani.api.plan.job import SharingRules, plan_running_jobs, pool_of
from vani.api.plan.known_jobs import known_file, known_job
from vani.errors import InputError
from vani.prolog.job_facts import facts_of
from vani.prolog.state import State
from vani.render.plan import FORMATS
from vani.schema.plan import JobPlan


def env(number, nodes=4, **more):
    return {
        "SLURM_JOB_ID": str(number),
        "SLURM_JOB_NAME": "bt",
        "SLURM_JOB_NODELIST": f"n[1-{nodes}]",
        "SLURM_JOB_NUM_NODES": str(nodes),
    } | more


class Site:
    """A state, and what was said."""

    def __init__(self, folder):
        self.state, self.said = State(folder), []

    def plan(self, number=None, **rules):
        rules = SharingRules(**{"io_nodes": 4} | rules)
        return plan_running_jobs(self.state, rules, number, now_s=0.0, say=self.said.append)

    def begin(self, number, nodes=4, **rules):
        self.state.register(env(number, nodes))
        return self.plan(str(number), **rules)

    def of(self, number):
        return JobPlan.load(self.state.folder / f"{number}.yaml")


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "s")


@pytest.fixture
def known(tmp_path):
    folder = tmp_path / "known"
    folder.mkdir()
    curve = [{"io_nodes": n, "bandwidth": rate} for n, rate in ((0, 1e8), (1, 5e8), (2, 6e8))]
    (folder / "bt.yaml").write_text(
        json.dumps({"schema": "vani.jobs/1", "jobs": [{"name": "bt", "nodes": 4, "curve": curve}]})
    )
    return folder


def test_a_second_plan_of_the_same_jobs_writes_nothing(site, known):
    assert site.begin(1, known=known) == "gets 2 of 4 I/O nodes, 1 job running"
    before = {one.name: one.stat().st_mtime_ns for one in site.state.folder.glob("1.*")}
    assert site.plan(known=known) == "1 job running"
    assert before == {one.name: one.stat().st_mtime_ns for one in site.state.folder.glob("1.*")}
    assert site.said == []


def test_files_that_were_not_written_are_written_by_the_next_one(site, known):
    site.begin(1, known=known)
    saved = site.state.load(site.said.append)
    saved["jobs"]["1"]["published"] = False
    site.state.commit(saved)
    (site.state.folder / "1.map").unlink()
    site.plan(known=known)
    assert (site.state.folder / "1.map").read_text() == "n1 0\nn2 0\nn3 1\nn4 1\n"


def test_a_job_that_is_direct_is_told_no_map(site, known):
    assert site.begin(1, known=known, io_nodes=0) == "direct access, 1 job running"
    assert "MAP" not in (site.state.folder / "1.env").read_text()
    assert "VANI_FORWARDING=direct" in (site.state.folder / "1.env").read_text()


def test_a_job_whose_hosts_cannot_be_read_gets_a_plan_and_no_map(site):
    site.state.register(env(1) | {"SLURM_JOB_NODELIST": "n[1-"})
    site.plan("1")
    assert site.of(1).map is None
    assert "no forwarding map: its list of hosts 'n[1-'" in site.of(1).no_data[1].reason
    assert "MAP" not in (site.state.folder / "1.env").read_text()


def test_nodes_are_counted_by_the_hosts_where_slurm_does_not_say(site):
    site.state.register({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-3]"})
    site.plan("1")
    assert site.of(1).job.nodes == 3


def test_too_few_io_nodes_for_all_leave_those_that_run_alone(site):
    for number in (1, 2, 3, 4):
        site.begin(number, direct=False)
    assert site.begin(5, direct=False).startswith(
        "no I/O nodes (--io-nodes: 4 I/O nodes cannot serve 5 jobs; "
    )
    assert site.of(5).unplaced
    assert "VANI_FORWARDING=none" in (site.state.folder / "5.env").read_text()
    assert sorted(name for n in (1, 2, 3, 4) for name in site.of(n).io_nodes) == ["0", "1", "2", "3"]


def test_one_io_node_is_shared_where_figures_are_known(site, known):
    for number in range(1, 7):
        said = site.begin(number, known=known, direct=False)
    assert said.startswith("shares 1 of 4 I/O nodes, 6 jobs running")
    assert "VANI_FORWARDING=shared" in (site.state.folder / "6.env").read_text()


def test_a_job_that_cannot_be_planned_for_does_not_keep_others_from_it(site):
    site.state.register({"SLURM_JOB_ID": "1"})
    assert site.begin(2) == "gets 4 of 4 I/O nodes, 1 job running"
    assert site.said == ["job 1: neither SLURM_JOB_NUM_NODES nor SLURM_JOB_NODELIST is set; see the prolog"]
    with pytest.raises(InputError, match="neither SLURM_JOB_NUM_NODES"):
        site.plan("1")


def test_a_job_that_ended_meanwhile_is_not_written(site):
    site.begin(1)
    site.state.forget("1")
    assert site.plan("1") == "it ended while it was planned for, 0 jobs running"
    assert list(site.state.folder.glob("1.*")) == []


def test_a_plan_is_shown_as_text(site, known):
    site.begin(1, known=known)
    shown = FORMATS.render("text", site.of(1))
    assert (
        shown
        == "Job 1 (bt), 4 compute nodes: 2 I/O nodes of its own: 0, 1.\nExpected 600 MB/s, next to 0 other jobs.\n"
    )
    site.begin(2)
    assert FORMATS.render("text", site.of(2)).startswith(
        "Incomplete: figures of the job missing or estimated.\n\nJob 2 (bt)"
    )


def test_a_change_that_costs_more_than_it_brings_is_not_made(site, known):
    text = (known / "bt.yaml").read_text()
    (known / "bt.yaml").write_text(text.replace('"nodes": 4', '"nodes": 4, "bytes": 1e9'))
    site.begin(1, known=known, io_nodes=1)
    site.plan(known=known, io_nodes=4, change_cost_s=1e6)
    assert len(site.of(1).io_nodes) == 1
    site.plan(known=known, io_nodes=4)
    assert len(site.of(1).io_nodes) == 2


@pytest.mark.parametrize("name", ["a/b", "../bt", ".bt", "", "\0", "x" * 300])
def test_a_name_that_is_no_file_name_is_not_looked_up(known, name):
    (known / ".bt.yaml").write_text("")
    assert known_file(facts_of(env(1, SLURM_JOB_NAME=name), 0.0), known) is None


def test_a_document_that_is_too_long_is_said(known):
    with (known / "bt.yaml").open("ab") as file:
        file.truncate(17 << 20)
    job = facts_of(env(1), 0.0)
    found = known_job(job, known_file(job, known))
    assert "is longer than 16 MiB" in found.lacks[0]


@pytest.mark.parametrize("text", ["", "\n\n", "a 1\na 2\n", "a'b 1\n", "a,b 1\n"])
def test_a_file_of_hosts_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(InputError, match="names"):
        pool_of(SharingRules(hosts_file=tmp_path / "hosts"))


def test_the_pool_is_as_large_as_asked_at_most(tmp_path):
    (tmp_path / "hosts").write_text("a 1\nb 2\nc 3\n")
    assert pool_of(SharingRules(hosts_file=tmp_path / "hosts", io_nodes=2)).working == ("a", "b")
    with pytest.raises(InputError, match="--io-nodes"):
        pool_of(SharingRules(io_nodes=-1))
