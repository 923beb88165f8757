"""Job, middleware and storage: from job.yaml first, then from the machine's description."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from vani.schema.job import Ceph, CephLayout, FileAfter, Job, Mount
from vani.schema.system import BurstBuffer, Compute, FileSystem, System
from vani.systems import load_system

TRACE = Path(__file__).parent.parent / "data/traces/v3-haccio-ssf-8r"


@pytest.fixture(params=[False, True], ids=["full", "quick"])
def profiled(request):
    def run(job=None, system=None):
        return vani.profile(TRACE, job=job, system=system, quick=request.param)

    return run


def said(profile, name):
    return profile.provenance[f"job.{name}"]


def test_the_job_is_filled_from_the_machine(profiled):
    profile = profiled(system="lassen")
    job = profile.job
    # Vani paper, table II; section III: 256 GB.
    assert (job.cpu_cores_per_node, job.gpus_per_node, job.memory_per_node) == (40, 4, 256 << 30)
    assert (job.node_local_bb_dirs, job.pfs_dirs, job.scheduler) == (["/dev/shm"], ["/p/gpfs1"], "lsf")
    for name in ("cpu_cores_per_node", "gpus_per_node", "memory_per_node", "node_local_bb_dirs", "pfs_dirs", "scheduler"):
        assert said(profile, name) == "system: lassen"
    # Facts that only the job knows remain unknown, and so does anything missing from the description.
    assert (job.nodes, job.time_limit_s, job.shared_bb_dirs) == (None, None, None)
    assert said(profile, "nodes").startswith("not in the trace: run `vani collect`")
    assert said(profile, "nodes").endswith("--job")
    assert said(profile, "shared_bb_dirs").endswith("system: lassen does not give it")


def test_job_yaml_takes_precedence(profiled):
    job = Job(nodes=2, cpu_cores_per_node=20, gpus_per_node=0, shared_bb_dirs=[], unknown={"time_limit_s": "LSF"})
    profile = profiled(job, "lassen")
    assert (profile.job.nodes, profile.job.cpu_cores_per_node, profile.job.gpus_per_node) == (2, 20, 0)
    assert profile.job.shared_bb_dirs == []
    assert [said(profile, n) for n in ("cpu_cores_per_node", "gpus_per_node", "shared_bb_dirs")] == ["job.yaml"] * 3
    assert (profile.job.memory_per_node, said(profile, "memory_per_node")) == (256 << 30, "system: lassen")
    assert said(profile, "time_limit_s") == "job.yaml: LSF"


def test_figures_of_no_machine_in_particular_are_not_those_of_the_job(profiled):
    profile = profiled(system="generic-lustre")
    assert load_system("generic-lustre").compute.cores_per_node is not None
    assert all(value is None for value in profile.job.model_dump().values())
    assert said(profile, "cpu_cores_per_node").endswith("generic-lustre is of no machine in particular")


def test_shared_burst_buffers_and_nfs(profiled):
    machine = System(
        name="x",
        file_systems=[
            FileSystem(name="scratch", type="lustre", mounts=["/scratch", "/lustre"]),
            FileSystem(name="home", type="nfs", mounts=["/home"]),
        ],
        burst_buffers=[
            BurstBuffer(name="dw", kind="shared", type="datawarp", dir="$DW_JOB_STRIPED"),
            BurstBuffer(name="nvme", kind="node_local", type="nvme", dir="/mnt/bb/$USER"),
            BurstBuffer(name="other", kind="shared", type="rabbit"),
        ],
    )
    job = profiled(system=machine).job
    assert (job.shared_bb_dirs, job.node_local_bb_dirs) == (["$DW_JOB_STRIPED"], ["/mnt/bb/$USER"])
    assert job.pfs_dirs == ["/scratch", "/lustre"]
    assert (job.cpu_cores_per_node, job.scheduler) == (None, None)


def test_tmp_in_memory_is_not_a_disk(profiled):
    job = Job(
        node_local_bb_dirs=["/tmp"],
        memory_per_node=64 << 30,
        mounts=[Mount(dir="/", type="ext4", capacity=1 << 40), Mount(dir="/tmp", type="tmpfs", capacity=32 << 30)],
    )
    profile = profiled(job)
    near = profile.storage.node_local
    assert (near.dir, near.type, near.capacity_per_node) == ("/tmp", "tmpfs", 32 << 30)
    assert "memory of the node" in profile.provenance["storage.node_local.capacity_per_node"]
    # A job cannot use more memory than it was given, not even for files.
    profile = profiled(job.model_copy(update={"memory_per_node": 16 << 30}))
    assert profile.storage.node_local.capacity_per_node == 16 << 30
    assert "less than the file system's capacity" in profile.provenance["storage.node_local.capacity_per_node"]
    on_disk = Job(node_local_bb_dirs=["/tmp"], memory_per_node=1 << 30, mounts=job.mounts[:1])
    profile = profiled(on_disk)
    assert (profile.storage.node_local.type, profile.storage.node_local.capacity_per_node) == ("ext4", 1 << 40)
    assert "memory" not in profile.provenance["storage.node_local.capacity_per_node"]


def test_the_type_of_the_machines_storage_is_the_descriptions(profiled):
    near = [BurstBuffer(name="shm", kind="node_local", type="tmpfs", dir="/tmp", capacity_per_node=100)]
    machine = System(name="x", compute=Compute(memory_per_node=1000), burst_buffers=near)
    profile = profiled(system=machine)
    assert profile.storage.node_local.type == "tmpfs"
    assert profile.provenance["storage.node_local.type"] == "system: x"
    assert "memory of the node" in profile.provenance["storage.node_local.capacity_per_node"]
    assert profiled().storage.node_local.type is None


def test_mounts_of_the_job_with_files_of_the_data_set_are_in_the_profile():
    trace = Path(__file__).parents[1] / "data" / "traces" / "v3-posix-mix-4r"
    alone = vani.profile(trace)
    assert alone.storage.mounts is None
    assert "no mount table" in alone.provenance["storage.mounts"]
    folder = "/" + alone.files[0].path.split("/")[1]
    mounts = [{"dir": "/", "type": "ext4"}, {"dir": folder, "type": "GPFS"}, {"dir": "/elsewhere", "type": "nfs"}]
    profile = vani.profile(trace, job=Job(job_id="5", mounts=mounts), system="generic-lustre")
    assert [(mount.dir, mount.type) for mount in profile.storage.mounts] == [(folder, "gpfs")]
    assert profile.job.id == "5"
    # Figures of the machine's Lustre do not apply to that file system.
    assert profile.storage.shared.max_bandwidth is None
    assert "system: generic-lustre has lustre there" in profile.provenance["storage.shared.type"]


def test_files_on_cephfs_have_the_layout_that_vani_trace_read(profiled):
    (path,) = [file.path for file in profiled().files if file.access == "shared"]
    folder = str(Path(path).parent)
    layout = CephLayout(stripe_unit=65536, stripe_count=8, object_size=4 << 20, pool="data")
    job = Job(
        mounts=[Mount(dir=folder, type="fuse.ceph-fuse")],
        ceph=[Ceph(dir=folder, osds=12)],
        files_after=[FileAfter(path=path, size=1, allocated=1, layout=layout)],
    )
    profile = profiled(job)
    (file,) = [file for file in profile.files if file.path == path]
    assert (file.stripe_size, file.stripe_count, file.object_size) == (65536, 8, 4 << 20)
    assert [(mount.type, mount.targets) for mount in profile.storage.mounts if mount.dir == folder] == [("ceph", 12)]
    assert profile.storage.shared.type == "ceph"
