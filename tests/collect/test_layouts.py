"""Layouts that a folder's file system offers, from made-up answers in the form of real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.collect.layouts import layouts_of
from vani.collect.node import NoAnswer
from vani.schema.job import CephLayout

MOUNTINFO = """\
22 1 253:1 / / rw - ext4 /dev/vda1 rw
26 22 0:40 / /lustre rw - lustre 10.0.0.1@o2ib:/scratch rw,flock
29 22 0:43 / /bee rw - beegfs beegfs_nodev rw
30 22 0:44 / /ceph rw - fuse.ceph-fuse ceph-fuse rw
"""
OSTS = "".join(f"scratch-OST{n:04x}_UUID 100 1 99 1% /lustre[OST:{n}]\n" for n in range(8))
ANSWERS = {
    "lfs df /lustre": OSTS,
    "lfs getstripe -d /lustre/me": "stripe_count: 1 stripe_size: 1048576 pattern: 0 stripe_offset: -1\n",
    "lfs getstripe -d /lustre/wide": "stripe_count: -1 stripe_size: 16777216 pattern: 0 stripe_offset: -1\n",
    "beegfs-ctl --getentryinfo /bee": "Stripe pattern details:\n+ Type: RAID0\n+ Chunksize: 512K\n"
    "+ Number of storage targets: desired: 4\n",
    "beegfs-ctl --listtargets --nodetype=storage": "TargetID     NodeID\n========     ======\n     101          1\n     102"
    "          1\n     201          2\n     202          2\n     301          3\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTINFO)
    return tmp_path


def answer(command: list[str]) -> str:
    text = ANSWERS.get(" ".join(command))
    if text is None:
        raise NoAnswer(f"{command[0]} is not installed")
    return text


@pytest.mark.parametrize(
    ("folder", "values"),
    [
        ("/lustre/me", ["-c 8", "-c 4", "-c 8 -S 16M"]),
        ("/lustre/wide", ["-c 4", "-c 1"]),
        (
            "/bee",
            [f"beegfs-ctl --setpattern --numtargets={n} --chunksize={k}k" for n, k in ((5, 512), (1, 512), (5, 16384))],
        ),
    ],
)  # fmt: skip
def test_layouts_other_than_the_present_one_are_offered(root, folder, values):
    assert layouts_of(Path(folder), programs=answer, root=root) == values


@pytest.mark.parametrize(
    ("unit", "count", "size", "sizes"),
    [(4, 1, 4, []), (1, 1, 1, [4]), (64, 1, 64, [1, 4])],
    ids=["default", "1 MiB", "one OSD"],
)
def test_layouts_on_cephfs_replace_only_a_layout_that_is_not_the_default(root, monkeypatch, unit, count, size, sizes):
    now = CephLayout(stripe_unit=unit << 20, stripe_count=count, object_size=size << 20)
    monkeypatch.setattr("vani.collect.file_systems.ceph_layout", lambda *attribute: now)
    layout = "setfattr -n ceph.dir.layout -v 'stripe_unit={0} stripe_count=1 object_size={0}'"
    assert layouts_of(Path("/ceph"), programs=answer, root=root) == [layout.format(each << 20) for each in sizes]


def test_file_system_without_layouts_or_its_program_offers_none(root):
    def nothing(command: list[str]) -> str:
        raise NoAnswer(f"{command[0]} is not installed")

    assert layouts_of(Path("/home"), programs=answer, root=root) == []
    assert layouts_of(Path("/lustre/me"), programs=nothing, root=root) == []
    assert layouts_of(Path("/bee"), programs=nothing, root=root) == []
