"""Mounts, burst buffers and what `lfs` and `mmlsfs` print; the outputs are made up in the form of real ones."""

from __future__ import annotations

import time

import pytest

from vani.collect.command import NoAnswer, ask
from vani.collect.gpfs import parse_mmlsfs, read_gpfs
from vani.collect.lustre import parse_df, parse_layout, read_lustre
from vani.collect.mounts import burst_buffer_dirs, parallel_dirs, read_mounts, space_of
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
30 22 0:44 / /odd\134name rw - xfs /dev/nvme0n1 rw
31 22 0:45 / /home rw - nfs4 other:/home rw
broken line
"""


@pytest.fixture
def mounts(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTINFO)
    return read_mounts(tmp_path)


def test_mounts_that_hold_data_are_listed(mounts):
    assert {mount.dir: mount.type for mount in mounts} == {
        "/": "ext4",
        "/dev/shm": "tmpfs",
        "/lustre/with blank": "lustre",
        "/p/gpfs1": "gpfs",
        "/home": "nfs4",
        "/mnt/beeond": "beegfs",
        "/odd\\name": "xfs",
    }
    devices = {mount.dir: mount.device for mount in mounts}
    assert devices["/home"] == "other:/home"
    assert devices["/lustre/with blank"] == "10.0.0.1@o2ib:10.0.0.2@o2ib:/scratch"


def test_without_the_kernels_list_there_are_no_mounts(tmp_path):
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


def test_a_burst_buffer_is_no_parallel_file_system(mounts):
    local, shared = burst_buffer_dirs({}, mounts, lambda folder: folder in ("/dev/shm", "/tmp"))
    assert (local, shared) == (["/dev/shm", "/tmp"], ["/mnt/beeond"])
    assert parallel_dirs(mounts, shared) == ["/lustre/with blank", "/p/gpfs1"]


def test_temporary_folders_on_the_network_are_not_near(mounts):
    environment = {
        "TMPDIR": "/p/gpfs1/tmp",
        "USER": "me",
        "SLURM_TMPDIR": "/local/tmp/",
        "BBPATH": "relative",
    }
    local, _ = burst_buffer_dirs(environment, mounts, lambda _: True)
    assert local == ["/dev/shm", "/local/tmp", "/mnt/bb/me", "/l/ssd", "/local/scratch", "/tmp"]


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
    assert parse_df(DF) == {"osts": 2, "mdts": 1, "capacity": 10000000 * 1024, "free": 7000000 * 1024}
    assert parse_df("") == {}


def test_default_layouts_are_read():
    assert parse_layout(PLAIN) == {"stripe_count": -1, "stripe_size": 4194304}
    assert parse_layout("stripe_count: 0 stripe_size: 0") == {}
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


MMLSFS = """\
mmlsfs::HEADER:version:reserved:reserved:deviceName:fieldName:data:remarks:
mmlsfs::0:1:::gpfs1:minFragmentSize:8192:system pool:
mmlsfs::0:1:::gpfs1:minFragmentSize:131072:data pool:
mmlsfs::0:1:::gpfs1:blockSize:4194304:system pool:
mmlsfs::0:1:::gpfs1:filesystemVersion:22.00 (5.0.4.0):Current:
mmlsfs::0:1:::gpfs1:automaticMountOption:yes::
mmlsfs::short
"""


def test_mmlsfs_tells_block_sizes():
    assert parse_mmlsfs(MMLSFS) == {"subblock_size": 8192, "block_size": 4194304, "version": "22.00"}
    assert parse_mmlsfs("no such thing") == {}


def test_mmlsfs_is_looked_for_where_it_is_installed():
    def programs(command):
        if command[0] == "mmlsfs":
            raise NoAnswer("mmlsfs is not installed")
        assert command == ["/usr/lpp/mmfs/bin/mmlsfs", "gpfs1", "-Y"]
        return MMLSFS

    found, problems = read_gpfs("/p/gpfs1", "/dev/gpfs1", programs)
    assert (found.device, found.block_size, problems) == ("gpfs1", 4194304, [])

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
