"""The present load of a storage server."""

import pytest

from vani.centre.plan.load.server_load import (
    BusyTime,
    busy_share,
    memory_share,
    read_busy_time,
    read_targets,
    targets_of,
)
from vani.collect.probe import NoAnswer

DUMP = """obdfilter.scratch-OST0000.kbytestotal=10485760
obdfilter.scratch-OST000a.kbytestotal=10485760
obdfilter.scratch-OST0000.kbytesavail=8388608
obdfilter.scratch-OST000a.kbytesavail=10485760
obdfilter.scratch-OST000a.degraded=1
obdfilter.scratch-OST000b.kbytestotal=7
obdfilter.scratch-OST000c.kbytesavail=7
obdfilter.scratch-OST000d.kbytestotal=0
obdfilter.scratch-OST000d.kbytesavail=0
obdfilter.scratch-OST000e.kbytestotal=-1
error: get_param: param_path 'x': No such file or directory
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "proc").mkdir()
    return tmp_path


def test_waiting_for_disks_is_not_busy_and_guests_are_counted_once(root):
    (root / "proc" / "stat").write_text("cpu  10 20 30 400 500 6 7 8 9 9\ncpu0 1 1 1 1\n")
    assert read_busy_time(root) == BusyTime(busy=10 + 20 + 30 + 6 + 7 + 8, total=981)


def test_the_share_is_of_the_time_between_two_readings():
    assert busy_share(BusyTime(100, 1000), BusyTime(150, 1100)) == 0.5
    assert busy_share(None, BusyTime(1, 1)) is None
    assert busy_share(BusyTime(100, 1000), BusyTime(100, 1000)) is None, "no time went by"
    assert busy_share(BusyTime(100, 1000), BusyTime(5, 10)) is None, "it was started anew"


def test_memory_used_by_caches_is_free(root):
    (root / "proc" / "meminfo").write_text("MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:   750 kB\n")
    assert memory_share(root) == 0.25


@pytest.mark.parametrize(
    "text", [None, "", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", "cpu x y\n", "MemTotal:  1000 kB\n"]
)
def test_figures_missing_in_proc_are_none(root, text):
    if text is not None:
        for name in ("stat", "meminfo"):
            (root / "proc" / name).write_text(text)
    assert read_busy_time(root) is None
    assert memory_share(root) is None


def test_targets_come_from_lctl_without_those_lacking_figures():
    found = targets_of(DUMP, "oss0")
    assert [(one.index, one.oss, one.size, one.used, one.state) for one in found] == [
        (0, "oss0", 10 << 30, 2 << 30, "ok"),
        (10, "oss0", 10 << 30, 0, "degraded"),
    ]


def test_targets_printed_by_a_failing_lctl_are_used():
    def fails(command):
        raise NoAnswer("lctl failed: 1 parameter is missing", DUMP)

    def silent(command):
        raise NoAnswer("lctl is not installed")

    assert len(read_targets("oss0", fails, None)[0]) == 2
    assert read_targets("oss0", silent, None) == ([], "lctl is not installed")


def test_a_dump_is_read_instead_of_asking(tmp_path):
    (tmp_path / "dump").write_text(DUMP)
    assert len(read_targets("oss0", None, tmp_path / "dump")[0]) == 2
    assert (
        read_targets("oss0", None, tmp_path / "none")[1]
        == f"{tmp_path}/none: cannot be read (No such file or directory)"
    )
    (tmp_path / "dump").write_bytes(b"\xff\0nothing")
    assert "shows no target" in (read_targets("oss0", None, tmp_path / "dump")[1] or "")


def test_figures_of_more_digits_than_targets_have_are_left_out():
    text = DUMP.replace("OST000a.kbytestotal=10485760", f"OST000a.kbytestotal={'9' * 5000}")
    assert [one.index for one in targets_of(text, "oss0")] == [0]
