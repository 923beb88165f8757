"""Files written for all running jobs, without a separate process."""

from __future__ import annotations

import json

import pytest

from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.pools import pool_of, pools_of
from vani.centre.plan.running_jobs import known_file, known_job, plan_running_jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.plan.text import FORMATS
from vani.centre.prolog.state import State, facts_of
from vani.errors import InputError


def env(number, nodes=4, **more):
    return {
        "SLURM_JOB_ID": str(number),
        "SLURM_JOB_NAME": "bt",
        "SLURM_JOB_NODELIST": f"n[1-{nodes}]",
        "SLURM_JOB_NUM_NODES": str(nodes),
    } | more


class Site:
    """A state, and the messages."""

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


def test_second_plan_of_the_same_jobs_writes_nothing(site, known):
    assert site.begin(1, known=known) == "gets 2 of 4 I/O nodes, 1 job running"
    before = {one.name: one.stat().st_mtime_ns for one in site.state.folder.glob("1.*")}
    assert site.plan(known=known) == "1 job running"
    assert before == {one.name: one.stat().st_mtime_ns for one in site.state.folder.glob("1.*")}
    assert site.said == []


def test_a_plan_that_another_jobs_prolog_made_has_a_line_of_its_own(site):
    site.state.register(env(1))
    assert site.begin(2) == "gets 2 of 4 I/O nodes, 2 jobs running"
    assert site.said == ["job 1: gets 2 of 4 I/O nodes"]


def test_failed_files_are_written_by_the_next_run(site, known):
    site.begin(1, known=known)
    saved = site.state.load(site.said.append)
    saved["jobs"]["1"]["published"] = False
    site.state.commit(saved)
    (site.state.folder / "1.map").unlink()
    site.plan(known=known)
    assert (site.state.folder / "1.map").read_text() == "n1 0\nn2 0\nn3 1\nn4 1\n"


def test_job_with_direct_access_gets_no_map(site, known):
    assert site.begin(1, known=known, io_nodes=0) == "direct access, 1 job running"
    assert "MAP" not in (site.state.folder / "1.env").read_text()
    assert "VANI_FORWARDING=direct" in (site.state.folder / "1.env").read_text()


def test_job_with_unreadable_hosts_gets_a_plan_and_no_map(site):
    site.state.register(env(1) | {"SLURM_JOB_NODELIST": "n[1-"})
    site.plan("1")
    assert site.of(1).map is None
    assert "no forwarding map: its list of hosts 'n[1-'" in site.of(1).no_data[1].reason
    assert "MAP" not in (site.state.folder / "1.env").read_text()


def test_nodes_are_counted_by_the_hosts_if_slurm_omits_them(site):
    site.state.register({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-3]"})
    site.plan("1")
    assert site.of(1).job.nodes == 3


def test_shortage_of_io_nodes_does_not_change_running_jobs(site):
    for number in (1, 2, 3, 4):
        site.begin(number, direct=False)
    assert site.begin(5, direct=False).startswith(
        "no I/O nodes (--io-nodes: 4 I/O nodes cannot serve 5 jobs; "
    )
    assert site.of(5).unplaced
    assert "VANI_FORWARDING=none" in (site.state.folder / "5.env").read_text()
    assert sorted(name for n in (1, 2, 3, 4) for name in site.of(n).io_nodes) == ["0", "1", "2", "3"]


def test_io_node_is_shared_if_figures_are_known(site, known):
    for number in range(1, 7):
        said = site.begin(number, known=known, direct=False)
    assert said.startswith("shares 1 of 4 I/O nodes, 6 jobs running")
    assert "VANI_FORWARDING=shared" in (site.state.folder / "6.env").read_text()


def test_unplannable_job_does_not_prevent_plans_for_others(site):
    site.state.register({"SLURM_JOB_ID": "1"})
    assert site.begin(2) == "gets 4 of 4 I/O nodes, 1 job running"
    assert site.said == ["job 1: its number of nodes and its hosts are unknown; set VANI_JOB_NODES in the prolog"]
    with pytest.raises(InputError, match="its number of nodes and its hosts"):
        site.plan("1")


def test_a_job_that_ended_meanwhile_is_not_written(site):
    site.begin(1)
    site.state.forget("1")
    assert site.plan("1") == "it ended during planning, 0 jobs running"
    assert list(site.state.folder.glob("1.*")) == []


def test_a_plan_is_shown_as_text(site, known):
    site.begin(1, known=known)
    shown = FORMATS.render("text", site.of(1))
    assert (
        shown
        == "Job 1 (bt), 4 compute nodes: 2 I/O nodes of its own: 0, 1.\nExpected 600 MB/s, with 0 other jobs running.\n"
    )
    site.begin(2)
    assert FORMATS.render("text", site.of(2)).startswith(
        "Incomplete: figures of the job missing or estimated.\n\nJob 2 (bt)"
    )


@pytest.mark.parametrize("name", ["a/b", "../bt", ".bt", "", "\0", "x" * 300])
def test_non_file_name_is_not_looked_up(known, name):
    (known / ".bt.yaml").write_text("")
    assert known_file(facts_of(env(1, SLURM_JOB_NAME=name), 0.0), known) is None


def test_too_long_document_is_reported(known):
    with (known / "bt.yaml").open("ab") as file:
        file.truncate(17 << 20)
    job = facts_of(env(1), 0.0)
    found = known_job(job, known_file(job, known))
    assert "is longer than 16 MiB" in found.lacks[0]


@pytest.mark.parametrize("text", ["", "\n\n", "a 1\na 2\n", "a'b 1\n", "a,b 1\n"])
def test_invalid_hosts_file_is_refused(tmp_path, text):
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(InputError, match="names"):
        pool_of(SharingRules(hosts_file=tmp_path / "hosts"))


def test_pool_is_at_most_as_large_as_requested(tmp_path):
    (tmp_path / "hosts").write_text("a 1\nb 2\nc 3\n")
    assert pool_of(SharingRules(hosts_file=tmp_path / "hosts", io_nodes=2)).working == ("a", "b")
    with pytest.raises(InputError, match="--io-nodes"):
        SharingRules.of(io_nodes=-1)


def sharing(site, text):
    """Write a settings document next to the state."""
    place = site.state.folder.parent / "sharing.yaml"
    place.write_text(f"schema: vani.sharing/1\n{text}")
    return place


def begin(site, number, rules, **facts):
    site.state.register(env(number) | {f"SLURM_JOB_{key.upper()}": value for key, value in facts.items()})
    return site.plan(str(number), **rules)


def test_job_with_a_heavier_quality_of_service_is_preferred(site, known):
    """Two jobs with the same curve share two I/O nodes and get one each; the first with enough weight gets both."""
    curve = [{"io_nodes": n, "bandwidth": rate} for n, rate in ((1, 4e8), (2, 6e8))]
    curve = [{"io_nodes": 0, "bandwidth": 1e8}, *curve]
    jobs = {"schema": "vani.jobs/1", "jobs": [{"name": "bt", "nodes": 4, "curve": curve}]}
    (known / "bt.yaml").write_text(json.dumps(jobs))
    rules = {"known": known, "io_nodes": 2, "settings": sharing(site, "weights: {urgent: 20}\n")}
    begin(site, 1, rules, qos="normal")
    begin(site, 2, rules, qos="normal")
    assert [len(site.of(number).io_nodes) for number in (1, 2)] == [1, 1]
    site.state.forget("2")
    site.state.forget("1")
    site.plan(**rules)
    site.state.register(env(3) | {"SLURM_JOB_QOS": "normal"})
    site.state.register(env(4) | {"SLURM_JOB_QOS": "urgent"})
    site.plan("4", **rules)
    assert (site.of(3).access, site.of(3).weight) == ("direct", 1.0)
    assert (len(site.of(4).io_nodes), site.of(4).weight) == (2, 20.0)


POOLS = """
pools:
- {name: climate, accounts: [climate], io_nodes: [b]}
- {name: gpu, partitions: [gpu], qos: [high, urgent], io_nodes: 1}
"""


@pytest.fixture
def four(tmp_path):
    (tmp_path / "hosts").write_text("a 1\nb 2\nc 3\nd 4\n")
    return tmp_path / "hosts"


def test_reserved_io_nodes_belong_to_one_account(site, four):
    rules = {"io_nodes": None, "hosts_file": four, "settings": sharing(site, POOLS), "direct": False}
    assert begin(site, 1, rules, account="climate") == "gets 1 of 1 I/O node of pool climate, 1 job running"
    assert begin(site, 2, rules, account="other", partition="gpu", qos="high").startswith("gets 1 of 1 I/O node of pool gpu")
    assert begin(site, 3, rules, account="other", partition="gpu", qos="low").startswith("gets 2 of 2 I/O nodes, ")
    assert [site.of(number).io_nodes for number in (1, 2, 3)] == [["b"], ["a"], ["c", "d"]]
    assert [site.of(number).pool for number in (1, 2, 3)] == ["climate", "gpu", None]
    assert (site.state.folder / "3.map").read_text() == "n1 2\nn2 2\nn3 3\nn4 3\n"


def test_jobs_of_a_pool_share_it_among_themselves(site, four):
    rules = {"io_nodes": None, "hosts_file": four, "settings": sharing(site, POOLS), "direct": False}
    for number in (1, 2):
        begin(site, number, rules, account="climate")
    assert site.of(2).unplaced[0].reason.startswith("--io-nodes: 1 I/O node cannot serve 2 jobs")
    assert site.of(1).io_nodes == ["b"]


def test_file_systems_have_pools_of_their_own(site, tmp_path):
    for name in ("scratch", "work"):
        nodes = [{"name": f"{name}{n}"} for n in range(2)]
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", "forwarding": nodes}))
    text = "pools:\n" + "".join(
        f"- {{name: {name}, file_system: /{name}, partitions: [{name}], snapshot: {name}.yaml}}\n"
        for name in ("scratch", "work")
    )
    rules = {"io_nodes": None, "settings": sharing(site, text), "direct": False}
    for number, name in ((1, "scratch"), (2, "work")):
        begin(site, number, rules, partition=name)
        assert site.of(number).io_nodes == [f"{name}0", f"{name}1"]
        assert [one.path for one in site.of(number).inputs] == [str(tmp_path / f"{name}.yaml")]
    assert begin(site, 3, rules, partition="debug").startswith(
        "no I/O nodes (no pool accepts a job of partition debug, account unknown, QOS unknown)"
    )


def test_members_of_a_pool_do_not_change_when_one_of_them_fails(site, tmp_path):
    nodes = [{"name": name, "state": state} for name, state in (("a", "offline"), ("b", "ok"), ("c", "ok"))]
    (tmp_path / "now.yaml").write_text(json.dumps({"schema": "vani.snapshot/1", "forwarding": nodes}))
    text = "pools:\n- {name: p, partitions: [p], io_nodes: 2}\n- {name: q, partitions: [q]}\n"
    rules = SharingRules(snapshot=tmp_path / "now.yaml", settings=sharing(site, text))
    assert [pool.working for pool in pools_of(rules)] == [("b",), ("c",), ()]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("pools:\n- {name: p, io_nodes: [x]}\n", "pool p: there is no I/O node 'x'"),
        ("pools:\n- {name: p}\n- {name: q}\n", "pool q: no I/O nodes are left for it"),
        ("pools:\n- {name: p, io_nodes: 1}\n- {name: p, io_nodes: 1}\n", "two pools are named 'p'"),
        ("pools:\n- {name: p, io_nodes: [a]}\n- {name: q, io_nodes: [a]}\n", "two pools have the I/O node 'a'"),
        ("weights: {urgent: -1}\n", "sharing.yaml:2"),
        ("weight: {urgent: 1}\n", "weight"),
    ],
)
def test_impossible_settings_are_refused(site, four, text, fault):
    with pytest.raises(InputError, match=fault):
        pools_of(SharingRules(hosts_file=four, settings=sharing(site, text)))


def test_a_pool_of_no_known_io_nodes_is_refused(site):
    with pytest.raises(InputError, match="pool p: names no snapshot and no file of hosts"):
        pools_of(SharingRules(settings=sharing(site, "pools:\n- {name: p, io_nodes: [a]}\n")))


def test_missing_folder_of_known_jobs_is_logged(site, tmp_path):
    site.begin(1, known=tmp_path / "gone")
    assert site.said == [f"--known {tmp_path}/gone: no such folder: no job is known"]


def test_missing_map_is_logged(site):
    site.state.register({"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "4"})
    site.plan("1")
    assert [line.partition("; ")[0] for line in site.said] == [
        "job 1: no forwarding map: its list of hosts '': is not a list of hosts"
    ]
