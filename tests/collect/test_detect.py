"""A machine that describes itself, imitated by files and by programs that answer like the real ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from vani.collect.file_systems import parse_version
from vani.collect.node import NoAnswer, ask
from vani.collect.system import detect, parse_burst_buffers
from vani.models.pfl import parse_options
from vani.schema.document import dumps, loads
from vani.schema.system import System
from vani.systems import load_system

MOUNTS = """1 0 0:1 / / rw - ext4 /dev/sda rw
2 1 0:2 / /dev/shm rw - tmpfs tmpfs rw
3 1 0:3 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
4 1 0:3 / /lustre/scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
5 1 0:4 / /p/gpfs1 rw - gpfs gpfs1 rw
6 1 0:5 / /home rw - nfs4 server:/export/home rw
7 1 0:6 / /mnt/nvme rw - xfs /dev/nvme0n1 rw
"""
DF = """UUID                   1K-blocks        Used   Available Use% Mounted on
scratch-MDT0000_UUID   1000000   1000   999000   1% /scratch[MDT:0]
scratch-OST0000_UUID   5000000   2000000   3000000  40% /scratch[OST:0]
scratch-OST0001_UUID   5000000   2000000   3000000  40% /scratch[OST:1]

filesystem_summary:   10000000   4000000   6000000  40% /scratch
"""
MMLSFS = (
    "mmlsfs::HEADER:version:reserved:reserved:deviceName:fieldName:data:remarks:\n"
    "mmlsfs::0:1:::gpfs1:minFragmentSize:8192::\nmmlsfs::0:1:::gpfs1:blockSize:16777216::\n"
)
# The form of slurm's burst buffer report (scontrol(1), burst_buffer plugin documentation).
BURST = """Name=datawarp DefaultPool=wlm_pool Granularity=200GiB TotalSpace=5.5T FreeSpace=5T UsedSpace=0
  Flags=EnablePersistent
  AltPoolName[0]=x Granularity=1G TotalSpace=1T
"""
ANSWERS = {
    ("lfs", "df"): DF,
    ("lfs", "getstripe"): "stripe_count:  4 stripe_size:   1048576 pattern: 0 stripe_offset: -1\n",
    ("lfs", "--version"): "lfs 2.12.9\n",
    ("mmlsfs", "gpfs1"): MMLSFS,
    ("scontrol", "show"): BURST,
}


@pytest.fixture
def node(tmp_path):
    files = {
        "proc/self/mountinfo": MOUNTS,
        "proc/self/status": "Cpus_allowed_list:\t0-1\n",
        "proc/sys/kernel/hostname": "login1\n",
        "proc/meminfo": "MemTotal:       268435456 kB\n",
        "proc/cpuinfo": "".join(f"processor\t: {i}\nphysical id\t: 0\ncore id\t\t: {i}\n\n" for i in range(40)),
        "sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X EDR)\n",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
        "sys/class/infiniband/mlx5_1/ports/1/rate": "100 Gb/sec (4X EDR)\n",
        "sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN\n",
        "dev/shm/x": "",
        "mnt/nvme/x": "",
    }
    for name, content in files.items():
        path = tmp_path / "node" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "node"


def programs(command):
    answer = ANSWERS.get((command[0], command[1]))
    if answer is None:
        raise NoAnswer(f"{command[0]} is not installed")
    return answer


def none(command):
    raise NoAnswer(f"{command[0]} is not installed")


def test_a_machine_describes_itself(node):
    environment = {"SLURM_CLUSTER_NAME": "big", "SLURM_JOB_ID": "1", "SLURM_TMPDIR": "/mnt/nvme"}
    system, missing = detect(environment, node, programs=programs)
    assert system.name == "big"
    assert (system.compute.cores_per_node, system.compute.memory_per_node) == (40, 256 << 30)
    lustre, gpfs, nfs = (next(one for one in system.file_systems if one.type == t) for t in ("lustre", "gpfs", "nfs"))
    assert lustre.mounts == ["/lustre/scratch", "/scratch"]
    assert (lustre.name, lustre.targets, lustre.metadata_targets, lustre.capacity) == ("scratch", 2, 1, 10240000000)
    assert (lustre.stripe_count, lustre.stripe_size, lustre.site_pfl, lustre.overstriping) == (4, 1 << 20, None, False)
    assert (lustre.metadata_capacity, lustre.metadata_free) == (1024000000, 1022976000)
    assert (gpfs.block_size, gpfs.subblock_size) == (16 << 20, 8192)
    assert nfs.mounts == ["/home"]
    assert [fs.type for fs in system.file_systems][-1] == "nfs"
    assert (system.network.type, system.network.bandwidth_per_node) == ("4X EDR", 12.5e9)
    near = {one.dir: one for one in system.burst_buffers}
    assert near["/dev/shm"].uses_memory
    assert not near["/mnt/nvme"].uses_memory
    datawarp = next(one for one in system.burst_buffers if one.type == "datawarp")
    assert datawarp.capacity == round(5.5 * (1 << 40))
    assert datawarp.request[0].startswith("#DW jobdw ")
    assert missing == []
    assert loads(dumps(system), System) == system


def test_each_missing_program_is_named(node):
    system, missing = detect({}, node, programs=none)
    lustre = next(one for one in system.file_systems if one.type == "lustre")
    assert (lustre.targets, lustre.stripe_count, lustre.metadata_targets) == (None, None, None)
    at = system.file_systems.index(lustre)
    assert system.sources[f"file_systems[{at}].targets"] == "not known: lfs is not installed"
    text = "\n".join(missing)
    assert "lfs is not installed" in text
    assert "mmlsfs is not installed" in text
    assert "scontrol is not installed" in text
    assert "not inside a job" in text
    assert system.name == "login1"


def test_every_known_file_system_has_a_source(node):
    system, _ = detect({}, node, programs=programs)
    for index, one in enumerate(system.file_systems):
        for key, value in one.model_dump().items():
            if value and key not in ("name", "type", "mounts") and not isinstance(value, (dict, list)):
                assert system.source_of(f"file_systems[{index}].{key}"), key


def test_machine_without_any_figures_is_still_described(tmp_path):
    system, missing = detect({}, tmp_path, programs=none)
    assert (system.file_systems, system.burst_buffers, system.compute.cores_per_node) == ([], [], None)
    assert "/proc/self/mountinfo cannot be read" in missing[0]
    assert loads(dumps(system), System) == system


def test_a_composite_default_is_the_layout_of_the_folder(node):
    layout = "lcm_layout_gen: 0\n  lcme_id: 1\n lcme_extent.e_end: 4194304\n stripe_count: 1\n lcme_id: 2\n lcme_extent.e_end: EOF\n stripe_count: -1\n"
    system, _ = detect({}, node, programs=lambda command: layout if "getstripe" in command else programs(command))
    lustre = next(one for one in system.file_systems if one.type == "lustre")
    assert lustre.site_pfl == "-E 4194304 -c 1 -E -1 -c -1"


def test_datawarp_and_rabbit_are_seen_inside_a_job(node):
    environment = {"DW_JOB_STRIPED": "/var/opt/cray/dws/mounts/1", "DW_JOB_x": "/mnt/nvme"}
    system, _ = detect(environment, node, programs=none)
    kinds = {one.dir: (one.kind, one.type) for one in system.burst_buffers}
    assert kinds["/var/opt/cray/dws/mounts/1"] == ("shared", "datawarp")
    assert kinds["/mnt/nvme"] == ("node_local", "rabbit")


def test_versions_and_pools_are_read():
    assert parse_version("lfs 2.15.3_ddn1\n") == (2, 15, 3)
    assert parse_version("nothing") is None
    assert parse_burst_buffers("") == []
    assert parse_burst_buffers(f"Name=lua TotalSpace={'9' * 400}\n") == [("lua", None)]
    assert parse_burst_buffers("Name=lua TotalSpace=0\n") == [("lua", 0)]


def test_this_machine_is_described_and_the_file_can_be_used(tmp_path):
    path = tmp_path / "system.yaml"
    done = subprocess.run(
        [sys.executable, "-m", "vani", "systems", "detect", "-o", str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert load_system(path).compute.memory_per_node > 0
    assert all(line.startswith("vani: ") for line in done.stderr.splitlines())


def test_bundled_machine_is_shown_completely():
    command = [sys.executable, "-m", "vani", "systems", "show", "lassen"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert loads(text, System) == load_system("lassen")
    assert "null" not in text


def test_the_list_names_each_machine():
    command = [sys.executable, "-m", "vani", "systems"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert subprocess.run([*command, "list"], capture_output=True, text=True, check=True).stdout == text
    names = {path.stem for path in Path("vani/systems").glob("*.yaml")} or {"lassen"}
    assert names <= {line.split()[0] for line in text.splitlines()}


def test_default_layout_comes_from_the_data_folder(node):
    asked = []

    def lfs(command):
        if command[:2] == ["lfs", "getstripe"]:
            asked.append(command[3])
        return programs(command)

    # The file system has two mount points; the data is below the one that is not named first.
    system, _ = detect({"PBS_O_WORKDIR": "/p/gpfs1/x"}, node, Path("/scratch/proj/in"), programs=lfs)
    at, lustre = next((i, one) for i, one in enumerate(system.file_systems) if one.type == "lustre")
    assert lustre.mounts == ["/lustre/scratch", "/scratch"]
    assert asked == ["/scratch/proj/in"]
    assert system.sources[f"file_systems[{at}].stripe_count"] == "lfs getstripe -d /scratch/proj/in"
    detect({"SLURM_SUBMIT_DIR": "/lustre/scratch/me"}, node, programs=lfs)
    assert asked[1:] == ["/lustre/scratch/me"]
    detect({}, node, programs=lfs)
    assert asked[2:] == ["/lustre/scratch"]


@pytest.mark.parametrize("memory", ["tmpfs", "ramfs", "rootfs"])
def test_tmp_in_memory_is_not_a_disk(node, memory):
    mounts = node / "proc/self/mountinfo"
    (node / "tmp").mkdir()
    mounts.write_text(MOUNTS.replace("/ / rw - ext4 /dev/sda", f"/ / rw - {memory} {memory}"))
    system, _ = detect({}, node, programs=none)
    tmp = next(one for one in system.burst_buffers if one.dir == "/tmp")
    assert (tmp.type, tmp.uses_memory) == (memory, True)
    assert "files in the node's memory" in system.sources[f"burst_buffers[{system.burst_buffers.index(tmp)}]"]
    mounts.write_text(MOUNTS)
    system, _ = detect({}, node, programs=none)
    tmp = next(one for one in system.burst_buffers if one.dir == "/tmp")
    assert (tmp.type, tmp.uses_memory) == ("ext4", False)


def test_missing_data_folder_is_wrong_usage(tmp_path):
    command = [sys.executable, "-m", "vani", "systems", "detect", "--data", str(tmp_path / "gone")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "no such folder" in found.stderr
    assert found.stdout == ""


# In the form of the Lustre manual's example of `lfs getstripe` on a folder with a self-extending layout, for Orion's
# default layout as its site states it.
SELF_EXTENDING = """/scratch
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   6
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   262144
      stripe_count:  0       stripe_size:   262144       pattern:       mdt       stripe_offset: -1

    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 262144
    lcme_extent.e_end:   8388608
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1 pool: performance

    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 8388608
    lcme_extent.e_end:   8388608
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1 pool: capacity

    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          extension
    lcme_extent.e_start: 8388608
    lcme_extent.e_end:   137438953472
      stripe_count:  0       extension_size: 17179869184       pattern:       raid0       stripe_offset: -1 pool: capacity

    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 137438953472
    lcme_extent.e_end:   137438953472
      stripe_count:  8       stripe_size:   1048576       pattern:       raid0       stripe_offset: -1 pool: capacity

    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          extension
    lcme_extent.e_start: 137438953472
    lcme_extent.e_end:   EOF
      stripe_count:  0       extension_size: 274877906944       pattern:       raid0       stripe_offset: -1 pool: capacity
"""
IMPORT = """mdc.scratch-MDT0000-mdc-ffff8b1e4a5c3000.import=
import:
    name: scratch-MDT0000-mdc-ffff8b1e4a5c3000
    target: scratch-MDT0000_UUID
    state: FULL
    connect_flags: [ write_grant, server_lock, version, acl, xattr, dir_migrate, FLAGS flr ]
    connect_data:
       flags: 0xa0425af2e3440078
       instance: 12
       target_version: VERSION
    import_flags: [ replayable, pingable, connect_tried ]
"""


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Programs that print the given output; the machine has no others."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def install(name, cases):
        lines = [f"{pattern}) cat <<'END'\n{text}END\n;;" for pattern, text in cases.items()]
        script = folder / name
        script.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\ncase \"$*\" in\n" + "\n".join(lines) + "\nesac\n")
        script.chmod(0o755)

    monkeypatch.setenv("PATH", str(folder))
    return install


def lustre_of(node, **more):
    system, missing = detect({}, node, programs=ask, **more)
    at = next(i for i, one in enumerate(system.file_systems) if one.type == "lustre")
    return system.file_systems[at], system.sources, f"file_systems[{at}]", missing


def test_composite_default_is_no_request_of_the_site(node, stand_ins):
    stand_ins("lfs", {"df*": DF, "getstripe*": SELF_EXTENDING, "--version": "lfs 2.15.3\n"})
    lustre, sources, place, _ = lustre_of(node)
    assert lustre.site_pfl == (
        "-E 262144 -L mdt -E 8388608 -c 1 -S 1048576 -p performance "
        "-E 137438953472 -z 17179869184 -c 1 -S 1048576 -p capacity -E -1 -z 274877906944 -c 8 -S 1048576 -p capacity"
    )
    assert len(parse_options(lustre.site_pfl).components) == 4
    assert lustre.layout_policy is None
    assert lustre.striping_rules == []
    # The first component's size is possible; a client cannot read the limit itself.
    assert lustre.dom_size == 262144
    assert "may be larger" in sources[f"{place}.dom_size"]


@pytest.mark.parametrize(
    ("client", "server", "flags", "works", "version", "why"),
    [
        ("2.15.3", "2.15.4.1", "overstriping,", True, "2.15.4", "lctl get_param mdc.scratch-*.import"),
        # Both are new enough but have not agreed: the server has it disabled.
        ("2.15.3", "2.15.4.1", "", False, "2.15.4", "lctl get_param mdc.scratch-*.import"),
        ("2.15.3", "2.12.9.0", None, False, "2.12.9", "2.15.3; lctl get_param mdc.scratch-*.import: 2.12.9"),
        ("2.15.3", "2.14.0.0", None, True, "2.14.0", "2.15.3; lctl get_param mdc.scratch-*.import: 2.14.0"),
        ("2.12.9", None, None, False, None, "lfs --version: 2.12.9, from 2.13 on"),
        ("2.15.3", None, None, None, None, "not known: the client is 2.15.3, and the servers' version is not known"),
    ],
)
def test_overstriping_support_follows_from_client_and_servers(
    node, stand_ins, client, server, flags, works, version, why
):
    stand_ins("lfs", {"df*": DF, "getstripe*": "stripe_count: 1 stripe_size: 1048576\n", "--version": f"lfs {client}\n"})
    if server is not None:
        text = IMPORT.replace("VERSION", server)
        text = text.replace("FLAGS", flags) if flags is not None else re.sub(r"(?m)^ *connect_flags.*\n", "", text)
        stand_ins("lctl", {"get_param*mdc.scratch-*.import": text})
    lustre, sources, place, missing = lustre_of(node)
    assert (lustre.overstriping, lustre.version) == (works, version)
    assert why in sources[f"{place}.overstriping"]
    assert any("overstriping" in line for line in missing) == (works is None)


def test_cephfs_has_its_layout_and_the_osds_in_use(node, monkeypatch):
    (node / "proc/self/mountinfo").write_text("1 0 0:1 / /ceph rw - fuse.ceph-fuse ceph-fuse rw\n")
    text = b"stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data"
    monkeypatch.setattr("os.getxattr", lambda *_: text)
    answers = {"stat": '{"num_osds":8,"num_in_osds":7}', "ls": '[{"data_pools":["data"]}]'}
    system, _ = detect({}, node, programs=lambda command: answers.get(command[-1]) or none(command))
    (disk,) = system.file_systems
    assert (disk.type, disk.targets) == ("ceph", 7)
    assert (disk.stripe_size, disk.stripe_count, disk.object_size) == (4 << 20, 1, 4 << 20)
    assert system.sources["file_systems[0].targets"] == "ceph osd stat: OSDs in use"
