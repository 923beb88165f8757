"""Limits and hardware of a node, from trees of files like those of real kernels."""

from __future__ import annotations

import pytest

from vani.collect.node import (
    allowed_cpus,
    count_cores,
    count_gpus,
    memory_bytes,
    memory_used,
    parse_cpu_list,
    read_limits,
    visible_gpus,
)


@pytest.fixture
def tree(tmp_path):
    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return tmp_path

    return write


def test_tightest_limit_of_version_2_applies(tree):
    root = tree(
        {
            "proc/self/cgroup": "0::/slurm/job_1/step_0\n",
            "sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
            "sys/fs/cgroup/slurm/job_1/memory.max": "8589934592\n",
            "sys/fs/cgroup/slurm/memory.max": "17179869184\n",
            "sys/fs/cgroup/slurm/job_1/step_0/cpu.max": "max 100000\n",
            "sys/fs/cgroup/slurm/cpu.max": "250000 100000\n",
            "proc/self/status": "Name:\tx\nCpus_allowed_list:\t0-3,8\n",
        }
    )
    limits = read_limits(root)
    assert (limits.memory, limits.cpus, limits.cgroup, limits.affinity_cpus) == (8 << 30, 2.5, 2, 5)
    assert allowed_cpus(root) == {0, 1, 2, 3, 8}


def test_version_1_writes_a_huge_number_for_no_limit(tree):
    root = tree(
        {
            "proc/self/cgroup": "5:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
        }
    )
    limits = read_limits(root)
    assert (limits.memory, limits.cpus, limits.cgroup) == (None, None, 1)
    tree(
        {
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4096\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "150000\n",
        }
    )
    assert (read_limits(root).memory, read_limits(root).cpus) == (4096, 1.5)


def test_container_sees_only_the_root_of_the_groups(tree):
    root = tree({"proc/self/cgroup": "0::/../../outside\n", "sys/fs/cgroup/memory.max": "1000\n"})
    assert read_limits(root).memory == 1000


def test_nothing_is_limited_without_files(tmp_path):
    limits = read_limits(tmp_path)
    assert (limits.memory, limits.cpus, limits.cgroup, limits.affinity_cpus) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-2,5", {0, 1, 2, 5}), ("", set()), ("x", set()), ("0-99999999999", set()), ("7", {7})],
)
def test_lists_of_cpus(text, cpus):
    assert parse_cpu_list(text) == cpus


CPUINFO = "".join(
    f"processor\t: {cpu}\nphysical id\t: {cpu % 2}\nsiblings\t: 4\ncore id\t\t: {cpu // 2 % 2}\n\n"
    for cpu in range(8)
)


def test_hardware_threads_of_a_core_count_once(tree):
    # 2 sockets of 2 cores of 2 threads
    root = tree({"proc/cpuinfo": CPUINFO})
    assert count_cores(root) == 4
    assert count_cores(root, {0, 4}) == 1
    assert count_cores(root, {0, 1}) == 2


def test_power_has_its_cores_in_sysfs(tree):
    # POWER9: four threads per core, and a cpuinfo without core ids
    root = tree(
        {"proc/cpuinfo": "processor\t: 0\ncpu\t\t: POWER9\n\n"}
        | {
            f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu & ~3}-{cpu | 3}\n"
            for cpu in range(8)
        }
    )
    assert count_cores(root) == 2


def test_memory_is_read_in_kib(tree, tmp_path):
    assert memory_bytes(tmp_path) is None
    assert (
        memory_bytes(tree({"proc/meminfo": "MemTotal:       263842156 kB\nMemFree: 1 kB\n"}))
        == 263842156 * 1024
    )


@pytest.mark.parametrize(
    ("variables", "gpus"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2"}, 3),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "0,-1,1"}, 1),
        ({"ROCR_VISIBLE_DEVICES": "0,1"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "GPU-5ebe9f43-ac33420d4628,MIG-GPU-1/2/3"}, 2),
        ({"ZE_AFFINITY_MASK": "0.0,0.1"}, 2),
    ],
)
def test_visible_devices(variables, gpus):
    assert visible_gpus(variables) == gpus


def test_gpus_are_those_that_drivers_show(tree, tmp_path):
    assert count_gpus(tmp_path) is None
    root = tree({"sys/class/net/lo/mtu": "1", "sys/class/drm/card0/device/vendor": "0x1a03\n"})
    assert count_gpus(root) == 0
    tree({"sys/class/drm/card1/device/vendor": "0x10de\n", "sys/class/drm/card1-DP-1/status": "x"})
    assert count_gpus(root) == 1
    tree(
        {
            "sys/class/kfd/kfd/topology/nodes/0/gpu_id": "0\n",
            "sys/class/kfd/kfd/topology/nodes/1/gpu_id": "5123\n",
        }
    )
    assert count_gpus(root) == 1
    tree(
        {
            "proc/driver/nvidia/gpus/0000:04:00.0/information": "",
            "proc/driver/nvidia/gpus/0000:05:00.0/information": "",
        }
    )
    assert count_gpus(root) == 3


def test_memory_in_use_is_what_is_neither_free_nor_a_cache_that_can_be_dropped(tree):
    meminfo = "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n"
    assert memory_used(tree({"proc/meminfo": meminfo})) == 600 * 1024
    assert memory_used(tree({"proc/meminfo": "MemTotal: 1000 kB\n"})) is None
