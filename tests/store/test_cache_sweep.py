"""Removal from the cache: the least recently used entries and leftovers of killed runs, but nothing in use."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from vani.store import cache
from vani.store.cache import InUse, LockState, being_used, being_written, removable, sweep

DAY = 24 * 3600.0


def made(folder: Path, name: str, *, used_s: float, size: int = 100) -> Path:
    """Something that looks like a store, last used this long ago."""
    place = folder / name
    (place / "calls").mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    (place / "calls" / "part-00000.parquet").write_bytes(bytes(size))
    os.utime(place, (time.time() - used_s,) * 2)
    return place


@pytest.fixture
def small(monkeypatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 9000)


def left(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_least_recently_used_entry_is_removed_first(tmp_path, small):
    for name, days in (("a", 3), ("b", 9), ("c", 1)):
        made(tmp_path, name, used_s=days * DAY, size=4000)
        # Created in another order than used.
        os.utime(tmp_path / name / "manifest.json", (time.time() - 100 * DAY,) * 2)
    sweep(tmp_path)
    assert left(tmp_path) == {"a", "c"}


def test_everything_is_kept_below_the_limit(tmp_path):
    made(tmp_path, "a", used_s=1000 * DAY)
    sweep(tmp_path)
    sweep(tmp_path / "no such folder")
    assert left(tmp_path) == {"a"}


def test_recently_used_store_is_kept(tmp_path, small):
    made(tmp_path, "a", used_s=600, size=20_000)
    sweep(tmp_path)
    assert left(tmp_path) == {"a"}


def test_store_being_read_is_kept_at_any_age(tmp_path, small):
    place = made(tmp_path, "a", used_s=9 * DAY, size=20_000)
    with being_used(place) as there:
        assert there
        os.utime(place, (0, 0))
        sweep(tmp_path)
        assert left(tmp_path) == {"a"}
    sweep(tmp_path)
    assert left(tmp_path) == set()


def test_store_being_removed_is_not_used(tmp_path):
    place = made(tmp_path, "a", used_s=9 * DAY)
    with removable(place, partial=False) as held, ExitStack() as until:
        assert held is LockState.FREE
        assert not InUse(until).hold(place)


def test_very_many_stores_are_kept_only_by_time_of_use(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_HELD", 1)
    first, last = (made(tmp_path, name, used_s=9 * DAY) for name in "ab")
    with ExitStack() as until:
        in_use = InUse(until)
        assert in_use.hold(first) and in_use.hold(last)
        with removable(first, partial=False) as held:
            assert held is LockState.TAKEN
        with removable(last, partial=False) as held:
            assert held is LockState.FREE
    assert time.time() - last.stat().st_mtime < 60


@pytest.fixture
def lockless(monkeypatch) -> None:
    """A file system such as Lustre without `flock`."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize(("days", "stays"), [(0.5, True), (2, False)])
def test_store_is_kept_for_a_day_after_use_without_locks(tmp_path, small, lockless, days, stays):
    made(tmp_path, "a", used_s=days * DAY, size=20_000)
    sweep(tmp_path)
    assert left(tmp_path) == ({"a"} if stays else set())


WRITER = """
import sys, time
from pathlib import Path
from vani.store.cache import being_written
with being_written(Path(sys.argv[1])):
    print("writing", flush=True)
    time.sleep(600)
"""


def begun(folder: Path, name: str = ".a.1.partial") -> Path:
    place = folder / name
    (place / "calls").mkdir(parents=True)
    return place


def age(place: Path, days: float) -> None:
    for path in (*place.rglob("*"), place):
        os.utime(path, (time.time() - days * DAY,) * 2)


def test_store_being_written_is_kept_until_its_run_ends(tmp_path):
    place = begun(tmp_path)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"writing\n"
        age(place, 400)
        sweep(tmp_path)
        assert left(tmp_path) == {place.name}
        writer.kill()
        writer.wait()
    sweep(tmp_path)
    assert left(tmp_path) == set()


@pytest.mark.parametrize(("days", "stays"), [(2, True), (40, False)])
def test_unfinished_store_without_locks_is_kept_for_a_month(tmp_path, lockless, days, stays):
    place = begun(tmp_path)
    (place / ".lock").write_text("elsewhere 1")
    age(place, days)
    sweep(tmp_path)
    assert (left(tmp_path) == {place.name}) == stays


def test_a_part_that_grows_is_a_sign_of_life(tmp_path):
    place = begun(tmp_path)
    age(place, 5)
    part = place / "calls" / ".part-00000.parquet.1.partial"
    part.write_bytes(b"x")
    os.utime(place / "calls", (0, 0))
    os.utime(place, (0, 0))
    sweep(tmp_path)
    assert part.exists()
    age(place, 5)
    sweep(tmp_path)
    assert not place.exists()


def test_sweep_spares_links_and_files_of_others(tmp_path, small, monkeypatch):
    folder, far = tmp_path / "stores", tmp_path / "far"
    made(far, "b", used_s=9 * DAY, size=20_000)
    folder.mkdir()
    (folder / "b").symlink_to(far / "b")
    sweep(folder)
    assert (folder / "b" / "manifest.json").is_file()
    made(folder, "c", used_s=9 * DAY, size=20_000)
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    sweep(folder)
    assert left(folder) == {"b", "c"}


def test_two_sweeps_run_at_once(tmp_path, small, monkeypatch):
    for name in "abc":
        made(tmp_path, name, used_s=9 * DAY, size=20_000)
    age(begun(tmp_path), 9)
    rename, lstat = Path.rename, Path.lstat

    def gone_already(self, target):
        if self.name == "b":
            shutil.rmtree(self)
        return rename(self, target)

    def vanishing(self):
        if self.name == "c":
            shutil.rmtree(self, ignore_errors=True)
        return lstat(self)

    monkeypatch.setattr(Path, "rename", gone_already)
    monkeypatch.setattr(Path, "lstat", vanishing)
    sweep(tmp_path)
    assert left(tmp_path) == set()


def test_unavailable_lock_does_not_stop_the_writer(tmp_path, lockless):
    with being_written(tmp_path):
        assert (tmp_path / ".lock").is_file()
    assert left(tmp_path) == set()
