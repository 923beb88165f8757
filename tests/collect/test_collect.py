"""A complete node, imitated by files."""

from __future__ import annotations

import pytest

from vani.collect import collect
from vani.collect.node import NoAnswer
from vani.schema.document import dumps, loads
from vani.schema.job import Job

CPUINFO = "".join(f"processor\t: {cpu}\nphysical id\t: 0\ncore id\t\t: {cpu}\n\n" for cpu in range(40))


@pytest.fixture
def node(tmp_path):
    files = {
        "proc/self/mountinfo": "1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /dev/shm rw - tmpfs tmpfs rw\n"
        "3 1 0:3 / /scratch rw - lustre mgs:/scratch rw\n4 1 0:4 / /p/gpfs1 rw - gpfs gpfs1 rw\n",
        "proc/self/cgroup": "0::/\n",
        "proc/self/status": "Cpus_allowed_list:\t0-39\n",
        "proc/meminfo": "MemTotal:       268435456 kB\n",
        "proc/cpuinfo": CPUINFO,
        "sys/fs/cgroup/memory.max": "137438953472\n",
        "proc/driver/nvidia/gpus/1/information": "",
        "dev/shm/x": "",
    }
    for name, content in files.items():
        path = tmp_path / "node" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "node"


def programs(command):
    if command[0] == "lfs" and command[1] == "getstripe":
        return "stripe_count:  4 stripe_size:   1048576\n"
    raise NoAnswer(f"{command[0]} is not installed")


def test_a_job_on_a_node_is_described(node, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("1,2\n")
    environment = {"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_NTASKS": "80", "SLURM_CPUS_ON_NODE": "80"}
    job = collect(environment, node, tmp_path / "in", programs=programs)
    assert (job.scheduler, job.nodes, job.processes) == ("slurm", 2, 80)
    assert (job.cpu_cores_per_node, job.gpus_per_node, job.memory_per_node) == (40, 1, 128 << 30)
    assert (job.node_local_bb_dirs, job.shared_bb_dirs, job.pfs_dirs) == (
        ["/dev/shm"],
        [],
        ["/p/gpfs1", "/scratch"],
    )
    assert job.node_local_memory_dirs == ["/dev/shm"]
    assert (job.lustre[0].stripe_count, job.lustre[0].osts) == (4, None)
    assert (job.gpfs[0].device, job.gpfs[0].block_size) == ("gpfs1", None)
    assert job.size_of("a.csv") == 4
    assert job.unknown["lustre[0]"] == "lfs is not installed"
    assert job.unknown["gpfs[0]"] == "mmlsfs is not installed"
    assert loads(dumps(job), Job) == job


def test_every_null_has_its_reason(node, tmp_path):
    for job in (collect({}, node), collect({}, tmp_path / "empty"), collect({"LSB_JOBID": "1"}, node)):
        missing = {name for name, value in job.model_dump().items() if value is None}
        assert missing == {name for name in job.unknown if "[" not in name}
        assert all(job.unknown.values())


def test_a_quota_of_cpu_time_bounds_the_cores(node):
    (node / "sys/fs/cgroup/cpu.max").write_text("450000 100000\n")
    assert collect({}, node).cpu_cores_per_node == 4
    (node / "proc/self/status").write_text("Cpus_allowed_list:\t0-1\n")
    assert collect({}, node).cpu_cores_per_node == 2


def test_visible_devices_bound_the_gpus(node):
    assert collect({"CUDA_VISIBLE_DEVICES": ""}, node).gpus_per_node == 0
    assert (
        collect(
            {"SLURM_JOB_ID": "1", "SLURM_GPUS_ON_NODE": "4", "CUDA_VISIBLE_DEVICES": "0"}, node
        ).gpus_per_node
        == 4
    )


def test_this_machine_can_be_described():
    job = collect({})
    assert job.memory_per_node > 0
    assert job.cpu_cores_per_node >= 1
    assert loads(dumps(job), Job) == job
