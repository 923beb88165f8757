"""Mounts, burst buffers and the output of `lfs` and `mmlsfs`, made up in the form of real ones."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from vani.collect.file_systems import parse_df, parse_layout, parse_mmlsfs, read_ceph, read_gpfs, read_lustre
from vani.collect.mounts import (
    burst_buffer_dirs,
    in_memory,
    parallel_dirs,
    places_of_data,
    read_mounts,
    space_of,
)
from vani.collect.node import NoAnswer, ask
from vani.schema.job import Mount

MOUNTINFO = r"""
22 1 253:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
23 22 0:4 / /proc rw - proc proc rw
24 22 0:22 / /dev/shm rw,nosuid - tmpfs tmpfs rw
25 22 0:23 / /run rw - tmpfs tmpfs rw
26 22 0:40 / /lustre/with\040blank rw - lustre 10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch rw,flock
27 22 0:41 / /p/gpfs1 rw master:3 propagate_from:2 - gpfs gpfs1 rw
28 22 0:42 / /home rw - nfs4 server:/home rw
29 22 0:43 / /mnt/beeond rw - beegfs beeond_nodev rw
32 22 0:46 / /ceph rw - fuse.ceph-fuse ceph-fuse rw
33 22 0:47 / /kernel/ceph rw - ceph user@fsid.vani=/ rw
30 22 0:44 / /odd\134name rw - xfs /dev/nvme0n1 rw
31 22 0:45 / /home rw - nfs4 other:/home rw
broken line
"""


@pytest.fixture
def mounts(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTINFO)
    return read_mounts(tmp_path)


def test_mounts_with_data_are_listed(mounts):
    assert {mount.dir: mount.type for mount in mounts} == {
        "/": "ext4",
        "/dev/shm": "tmpfs",
        "/lustre/with blank": "lustre",
        "/p/gpfs1": "gpfs",
        "/home": "nfs4",
        "/mnt/beeond": "beegfs",
        "/ceph": "fuse.ceph-fuse",
        "/kernel/ceph": "ceph",
        "/odd\\name": "xfs",
    }
    devices = {mount.dir: mount.device for mount in mounts}
    assert devices["/home"] == "other:/home"
    assert devices["/lustre/with blank"] == "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch"


def test_mounts_need_the_kernels_list(tmp_path):
    assert read_mounts(tmp_path) is None


def test_capacity_is_asked_for_each_mount(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(
        "1 0 0:1 / /p rw - lustre x rw\n2 1 0:2 / /q rw - nfs y rw\n"
    )
    found = read_mounts(tmp_path, lambda folder: (100, 40) if folder == "/p" else None)
    assert [(mount.capacity, mount.free) for mount in found] == [(100, 40), (None, None)]
    capacity, free = space_of(str(tmp_path))
    assert capacity >= free > 0
    assert space_of(str(tmp_path / "gone")) is None


def test_burst_buffer_is_not_a_parallel_file_system(mounts):
    local, shared = burst_buffer_dirs({}, mounts, lambda folder: folder in ("/dev/shm", "/tmp"))
    assert (local, shared) == (["/dev/shm", "/tmp"], ["/mnt/beeond"])
    assert parallel_dirs(mounts, shared) == ["/ceph", "/kernel/ceph", "/lustre/with blank", "/p/gpfs1"]


def test_temporary_folders_on_the_network_are_not_near(mounts):
    environment = {
        "TMPDIR": "/p/gpfs1/tmp",
        "USER": "me",
        "SLURM_TMPDIR": "/local/tmp/",
        "BBPATH": "relative",
    }
    local, _ = burst_buffer_dirs(environment, mounts, lambda _: True)
    assert local == ["/dev/shm", "/local/tmp", "/mnt/bb/me", "/l/ssd", "/local/scratch", "/tmp"]


def test_folders_in_memory_are_distinguished_from_those_on_disk(mounts):
    local = ["/dev/shm", "/tmp", "/odd\\name/x"]
    assert in_memory(local, mounts) == ["/dev/shm"]
    assert in_memory(local, [*mounts, Mount(dir="/tmp", type="tmpfs")]) == ["/dev/shm", "/tmp"]
    # A node without disks: its root is in memory, and so is /tmp.
    assert in_memory(local, [Mount(dir="/", type="rootfs"), Mount(dir="/odd\\name", type="xfs")]) == local[:2]


def test_datawarp_and_rabbit_name_their_folders_in_variables(mounts):
    environment = {
        "DW_JOB_STRIPED": "/var/opt/cray/dws/1/ss",
        "DW_JOB_PRIVATE": "/var/opt/cray/dws/1/sp",
        "DW_PERSISTENT_STRIPED_alpha": "/dw/alpha",
        "DW_JOB_scratch": "/mnt/nnf/1",
        "DW_JOB_wide": "/mnt/nnf/2",
        "DW_JOB_NAME": "no folder",
    }
    rabbit = Mount(dir="/mnt/nnf/2", type="lustre")
    local, shared = burst_buffer_dirs(environment, [*mounts, rabbit], lambda _: False)
    assert local == ["/var/opt/cray/dws/1/sp", "/mnt/nnf/1"]
    assert shared == ["/var/opt/cray/dws/1/ss", "/mnt/nnf/2", "/dw/alpha", "/mnt/beeond"]
    assert "/mnt/nnf/2" not in parallel_dirs([*mounts, rabbit], shared)


DF = """\
UUID                   1K-blocks        Used   Available Use% Mounted on
scratch-MDT0000_UUID   1000000   1000   999000   1% /scratch[MDT:0]
scratch-OST0000_UUID   5000000   2000000   3000000  40% /scratch[OST:0]
scratch-OST000a_UUID   5000000   1000000   4000000  20% /scratch[OST:10]
OST0002             : inactive device

filesystem_summary:    10000000   3000000   7000000  30% /scratch

"""
PLAIN = "/scratch\nstripe_count:  -1 stripe_size:   4194304 pattern:       raid0 stripe_offset: -1\n"
COMPOSITE = """\
/scratch
  lcm_layout_gen:    0
  lcm_mirror_count:  1
  lcm_entry_count:   3
    lcme_id:             N/A
    lcme_mirror_id:      N/A
    lcme_flags:          0
    lcme_extent.e_start: 0
    lcme_extent.e_end:   65536
      stripe_count:  0       stripe_size:   65536       pattern:       mdt       stripe_offset: -1

    lcme_id:             N/A
    lcme_extent.e_start: 65536
    lcme_extent.e_end:   1073741824
      stripe_count:  1       stripe_size:   1048576 pattern:       raid0 stripe_offset: -1 pool: flash

    lcme_id:             N/A
    lcme_extent.e_start: 1073741824
    lcme_extent.e_end:   EOF
      stripe_count:  8       stripe_size:   4194304       pattern:       raid0       stripe_offset: -1
"""


def test_lfs_df_counts_targets():
    assert parse_df(DF) == {
        "osts": 2,
        "mdts": 1,
        "capacity": 10000000 * 1024,
        "free": 7000000 * 1024,
        "mdt_capacity": 1000000 * 1024,
        "mdt_free": 999000 * 1024,
    }
    assert parse_df("") == {}
    assert parse_df(f"filesystem_summary: {'9' * 5000} 1 8 1% /fs\n") == {}


def test_default_layouts_are_read():
    assert parse_layout(PLAIN) == {"stripe_count": -1, "stripe_size": 4194304}
    assert parse_layout("stripe_count: 0 stripe_size: 0") == {}
    damaged = "lcme_id: 1 lcme_extent.e_end: 8 lcme_id: 2 lcme_extent.e_end: \\e extension_size: 64".replace(" lcme_id", "\nlcme_id")
    assert parse_layout(damaged) == {"layout": "-E \\e -z 64"}
    assert parse_layout(COMPOSITE) == {
        "layout": "-E 65536 -L mdt -E 1073741824 -c 1 -S 1048576 -p flash -E -1 -c 8 -S 4194304"
    }


def test_one_question_without_an_answer_does_not_hide_the_other():
    def programs(command):
        if command[1] == "df":
            raise NoAnswer("lfs did not answer within 10 s")
        assert command == ["lfs", "getstripe", "-d", "/scratch"]
        return PLAIN

    found, problems = read_lustre("/scratch", programs)
    assert (found.stripe_count, found.osts) == (-1, None)
    assert problems == ["lfs did not answer within 10 s"]


# `lfs df` with one target down reports it, prints the others, and ends with status 1.
DF_WITH_ONE_DOWN = """\
UUID                   1K-blocks        Used   Available Use% Mounted on
scratch-MDT0000_UUID    15614028       81752    14144520   1% /scratch[MDT:0]
scratch-OST0000_UUID  3866384504     8921092  3662401564   1% /scratch[OST:0]
OST0001             : inactive device
scratch-OST0002_UUID  3866384504     8921092  3662401564   1% /scratch[OST:2]

filesystem_summary:   7732769008    17842184  7324803128   1% /scratch

"""


def test_output_of_a_failed_program_is_kept():
    with pytest.raises(NoAnswer, match="sh failed: lfs: 1 target is down") as failed:
        ask(["sh", "-c", "echo kept; echo lfs: 1 target is down >&2; exit 1"])
    assert failed.value.printed == "kept\n"

    def programs(command):
        if command[1] == "df":
            raise NoAnswer("lfs failed: error: df: /scratch: Resource temporarily unavailable", DF_WITH_ONE_DOWN)
        return PLAIN

    found, problems = read_lustre("/scratch", programs)
    assert (found.osts, found.mdts, found.capacity) == (2, 1, 7732769008 * 1024)
    assert found.stripe_count == -1
    assert problems == [
        "lfs failed: error: df: /scratch: Resource temporarily unavailable; its output is stored"
    ]


def test_default_layout_comes_from_the_data_folder():
    answers = {"/scratch": PLAIN, "/scratch/proj": COMPOSITE, "/scratch/bare": "stripe_count:  0 stripe_size:   0\n"}
    asked = []

    def programs(command):
        if command[1] == "df":
            return DF
        asked.append(command[3])
        if command[3] not in answers:
            raise NoAnswer(f"lfs failed: error: getstripe: {command[3]}: No such file or directory")
        return answers[command[3]]

    own, _ = read_lustre("/scratch", programs, "/scratch/proj")
    assert (own.layout_dir, own.stripe_count) == ("/scratch/proj", None)
    assert own.layout.startswith("-E 65536 -L mdt")
    assert asked == ["/scratch/proj"]
    for folder in ("/scratch/bare", "/scratch/gone", None):
        found, problems = read_lustre("/scratch", programs, folder)
        assert (found.layout_dir, found.stripe_count, found.layout) == ("/scratch", -1, None)
        assert [folder] == ["/scratch/gone"] if problems else True


def test_data_folder_is_the_users_or_the_working_folder(mounts):
    def places(dataset, **environment):
        return places_of_data(dataset, environment, mounts, here=False)

    job = {"SLURM_SUBMIT_DIR": "/p/gpfs1/me", "PBS_O_WORKDIR": "/home/me"}
    assert places(None) == {}
    assert places(None, **job) == {"/p/gpfs1": "/p/gpfs1/me", "/home": "/home/me"}
    assert places(Path("/p/gpfs1/in"), **job)["/p/gpfs1"] == "/p/gpfs1/in"
    assert places(Path("relative")) == {}


def test_current_folder_stands_for_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x.bin").touch()
    (tmp_path / "link").symlink_to("data")
    root = [Mount(dir="/", type="lustre")]
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert places_of_data(None, {}, root, here=True) == {}
    monkeypatch.chdir(tmp_path)
    assert places_of_data(None, {}, root, here=True) == {"/": str(tmp_path)}
    # Links are followed: `lfs` gets the folder itself or, for a file, its folder.
    assert places_of_data(Path("link"), {}, root, here=True) == {"/": str(tmp_path / "data")}
    assert places_of_data(Path("data/x.bin"), {}, root, here=True) == {"/": str(tmp_path / "data")}


# For a file system created with `mmcrfs -B 8M --metadata-block-size 256K`.
MMLSFS = """\
mmlsfs::HEADER:version:reserved:reserved:deviceName:fieldName:data:remarks:
mmlsfs::0:1:::gpfs1:minFragmentSize:8192:system pool:
mmlsfs::0:1:::gpfs1:minFragmentSize:16384:other pools:
mmlsfs::0:1:::gpfs1:inodeSize:4096::
mmlsfs::0:1:::gpfs1:indirectBlockSize:32768::
mmlsfs::0:1:::gpfs1:blockSize:262144:system pool:
mmlsfs::0:1:::gpfs1:blockSize:8388608:other pools:
mmlsfs::0:1:::gpfs1:filesystemVersion:22.00 (5.0.4.0):Current:
mmlsfs::0:1:::gpfs1:defaultMountPoint:%2Fp%2Fgpfs1::
mmlsfs::0:1:::gpfs1:automaticMountOption:yes::
mmlsfs::short
"""


def test_mmlsfs_gives_the_block_sizes_of_data_pools():
    found = {"subblock_size": 16384, "block_size": 8388608, "version": "22.00"}
    assert parse_mmlsfs(MMLSFS) == found
    head, *lines = MMLSFS.splitlines()
    assert parse_mmlsfs("\n".join([head, *reversed(lines)])) == found
    assert parse_mmlsfs("no such thing") == {}
    assert "block_size" not in parse_mmlsfs(re.sub(r"blockSize:\d+", "blockSize:" + "4" * 5000, MMLSFS))


def test_single_block_size_is_stated_once():
    text = "\n".join(line for line in MMLSFS.splitlines() if "other pools" not in line)
    for remark in ("system pool", ""):
        found = parse_mmlsfs(text.replace("system pool", remark))
        assert (found["block_size"], found["subblock_size"]) == (262144, 8192)


def test_mmlsfs_is_found_in_its_installation_folder():
    def programs(command):
        if command[0] == "mmlsfs":
            raise NoAnswer("mmlsfs is not installed")
        assert command == ["/usr/lpp/mmfs/bin/mmlsfs", "gpfs1", "-Y"]
        return MMLSFS

    found, problems = read_gpfs("/p/gpfs1", "/dev/gpfs1", programs)
    assert (found.device, found.block_size, problems) == ("gpfs1", 8388608, [])

    def half(command):
        raise NoAnswer("mmlsfs failed: mmlsfs: Command failed", MMLSFS)

    found, problems = read_gpfs("/p/gpfs1", "gpfs1", half)
    assert found.block_size == 8388608
    assert problems == ["mmlsfs failed: mmlsfs: Command failed; its output is stored"]

    def nothing(command):
        raise NoAnswer(f"{command[0]} is not installed")

    found, problems = read_gpfs("/p/gpfs1", "gpfs1", nothing)
    assert (found.block_size, problems) == (None, ["mmlsfs is not installed"])


def test_programs_are_not_waited_for():
    assert ask(["echo", "a; b", "$HOME"]) == "a; b $HOME\n"
    begin = time.monotonic()
    with pytest.raises(NoAnswer, match=r"sleep did not answer within 0\.2 s"):
        ask(["sleep", "30"], timeout_s=0.2)
    assert time.monotonic() - begin < 5
    with pytest.raises(NoAnswer, match="is not installed"):
        ask(["no-such-program-of-vani"])
    with pytest.raises(NoAnswer, match="ls failed: ls: "):
        ask(["ls", "/no/such/folder"])


# As ceph-fuse 16.2 answers: a folder without a layout of its own has no attribute.
CEPH = {
    ("/ceph", "ceph.dir.layout"): "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=data",
    ("/ceph/one", "ceph.dir.layout"): "stripe_unit=1048576 stripe_count=8 object_size=67108864 pool=fast-1.b",
    ("/volume/me", "ceph.dir.layout.json"): '{"stripe_unit": 65536, "stripe_count": 1, "object_size": 4194304, '
    '"pool_name": "data", "pool_id": 2, "pool_namespace": "", "inheritance": "@default"}',
}
OSDS = '{"epoch":39,"num_osds":8,"num_up_osds":8,"osd_up_since":1,"num_in_osds":7,"osd_in_since":1,"num_remapped_pgs":0}'
POOLS = '[{"name":"vani","metadata_pool":"meta","metadata_pool_id":1,"data_pool_ids":[2],"data_pools":["data","fast"]}]'


@pytest.fixture
def ceph(monkeypatch):
    def attribute(path, name):
        if (path, name) not in CEPH:
            raise OSError(61, "No data available")
        return CEPH[path, name].encode()

    monkeypatch.setattr("os.getxattr", attribute)


@pytest.mark.parametrize(
    ("mount", "data", "layout"),
    [
        ("/ceph", None, (4194304, 1, 4194304, "data")),
        ("/ceph", "/ceph/one/below", (1048576, 8, 67108864, "fast-1.b")),
        ("/ceph", "/ceph/other", (4194304, 1, 4194304, "data")),
        # A mounted subvolume: the folders above it are not visible.
        ("/volume", "/volume/me", (65536, 1, 4194304, "data")),
    ],
)
def test_folder_of_cephfs_has_the_layout_of_the_nearest_folder_above(ceph, mount, data, layout):
    def programs(command):
        return OSDS if command[-2:] == ["osd", "stat"] else POOLS

    fact, problems = read_ceph(mount, programs, data)
    assert tuple(fact.layout.model_dump().values()) == layout
    assert (fact.layout_dir, fact.osds, fact.pools, problems) == (data or mount, 7, ["data", "fast"], [])


def test_unknown_facts_of_cephfs_have_reasons(ceph):
    def programs(command):
        raise NoAnswer("ceph is not installed")

    fact, problems = read_ceph("/volume", programs)
    assert (fact.layout, fact.layout_dir, fact.osds, fact.pools) == (None, None, None, None)
    assert problems == ["/volume has no ceph.dir.layout that can be read", "ceph is not installed"]
