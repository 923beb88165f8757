"""Environments of jobs, made up in the form of Slurm, LSF, PBS and Flux."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.collect.scheduler import expand_hosts, read_scheduler


def test_slurm_job_gives_its_size():
    found = read_scheduler(
        {
            "SLURM_JOB_ID": "4711",
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_JOB_NODELIST": "nid[001-002,007]",
            "SLURM_NTASKS": "20",
            "SLURM_TASKS_PER_NODE": "8(x2),4",
            "SLURM_CPUS_ON_NODE": "128",
            "SLURM_GPUS_PER_NODE": "a100:4",
            "SLURM_MEM_PER_NODE": "2048",
            "SLURM_JOB_START_TIME": "1000",
            "SLURM_JOB_END_TIME": "4600",
        }
    )
    assert (found.scheduler, found.job_id, found.nodes, found.processes) == ("slurm", "4711", 3, 20)
    assert found.node_list == ["nid001", "nid002", "nid007"]
    assert found.processes_per_node == [8, 8, 4]
    assert (found.cpus_per_node, found.gpus_per_node, found.memory_per_node) == (128, 4, 2 << 30)
    assert found.time_limit_s == 3600.0
    assert found.unknown == {}


def test_facts_missing_from_slurm_remain_unknown():
    found = read_scheduler({"SLURM_JOBID": "1", "SLURM_JOB_NODELIST": "a,b", "SLURM_MEM_PER_NODE": "0"})
    assert (found.nodes, found.processes, found.memory_per_node, found.gpus_per_node) == (2, None, None, None)
    assert "Slurm before 22.05" in found.unknown["time_limit_s"]


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({"SLURM_GPUS_ON_NODE": "4"}, 4),
        ({"SLURM_GPUS_PER_NODE": "v100:2,a100:2"}, 4),
        ({"SLURM_JOB_GPUS": "0,1,2"}, 3),
        ({"SLURM_GPUS_PER_NODE": "all"}, None),
        ({}, None),
    ],
)
def test_gpus_of_a_slurm_job(variables, gpus):
    assert read_scheduler({"SLURM_JOB_ID": "1", **variables}).gpus_per_node == gpus


def test_memory_per_cpu_is_multiplied():
    found = read_scheduler({"SLURM_JOB_ID": "1", "SLURM_MEM_PER_CPU": "1024", "SLURM_CPUS_ON_NODE": "8"})
    assert found.memory_per_node == 8 << 30


def test_launch_node_of_lsf_is_not_a_compute_node():
    found = read_scheduler({"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "lassen710 1 lassen26 40 lassen27 40"})
    assert (found.scheduler, found.nodes, found.node_list) == ("lsf", 2, ["lassen26", "lassen27"])
    assert (found.cpus_per_node, found.cpus_are_cores) == (40, True)
    assert "time_limit_s" in found.unknown
    assert read_scheduler({"LSB_JOBID": "9", "LSB_HOSTS": "a a b b"}).nodes == 2
    assert read_scheduler({"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "a 1 b 1"}).nodes == 2
    assert read_scheduler({"LSB_JOBID": "9", "LSB_MCPU_HOSTS": "a"}).nodes is None


def test_pbs_names_nodes_in_a_file(tmp_path):
    (tmp_path / "nodes").write_text("n1\nn1\nn2\nn2\n")
    environment = {"PBS_JOBID": "7.server", "PBS_NODEFILE": "/nodes", "NCPUS": "32", "PBS_WALLTIME": "600"}
    found = read_scheduler(environment, tmp_path)
    assert (found.nodes, found.processes, found.processes_per_node, found.time_limit_s) == (
        2,
        4,
        [2, 2],
        600.0,
    )
    lost = read_scheduler({**environment, "PBS_NODEFILE": "/gone", "PBS_NUM_NODES": "5"}, tmp_path)
    assert lost.nodes == 5
    assert "PBS_NODEFILE" in lost.unknown["node_list"]


def test_flux_inside_slurm_is_flux():
    found = read_scheduler(
        {"SLURM_JOB_ID": "1", "FLUX_JOB_ID": "f2", "FLUX_JOB_NNODES": "4", "FLUX_JOB_SIZE": "64"}
    )
    assert (found.scheduler, found.job_id, found.nodes, found.processes) == ("flux", "f2", 4, 64)


def test_outside_of_a_job_everything_is_unknown_with_a_reason():
    found = read_scheduler({"PATH": "/bin", "SLURM_JOB_ID": ""})
    assert (found.scheduler, found.nodes) == (None, None)
    assert set(found.unknown) >= {"scheduler", "nodes", "time_limit_s"}


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10],m", ["n08", "n09", "n10", "m"]),
        ("r[1-2]c[1,3]", ["r1c1", "r1c3", "r2c1", "r2c3"]),
        ("", []),
        ("n[1-999999999]", []),
        ("n[3-1]", []),
        ("[", []),
        ("n[a-b]", []),
    ],
)
def test_lists_of_hosts_are_expanded(text, hosts):
    assert expand_hosts(text) == hosts


@given(st.text("n[]-,0129ab", max_size=30))
def test_any_list_of_hosts_is_read_or_refused(text):
    assert all(isinstance(host, str) for host in expand_hosts(text))


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "SLURM_JOB_ID",
                "SLURM_NTASKS",
                "SLURM_TASKS_PER_NODE",
                "SLURM_GPUS_ON_NODE",
                "LSB_JOBID",
                "LSB_MCPU_HOSTS",
                "PBS_JOBID",
                "PBS_WALLTIME",
                "SLURM_MEM_PER_CPU",
            ]
        ),
        st.text(max_size=8),
    )
)
def test_any_environment_is_accepted(environment):
    read_scheduler(environment)
