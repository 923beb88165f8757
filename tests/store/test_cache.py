"""The cache believes only what this user wrote, removes nothing that is in use, and does without where it is full."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import vani
from vani.errors import InputError, StoreError
from vani.store import cache, locks, manifest, partial_results, provide, write
from vani.store.cache import cache_directory, find_store, own_place, places_of, sweep
from vani.store.kept import Room
from vani.store.locks import Held, InUse, being_used, being_written, removable
from vani.store.provide import Stores
from vani.store.read import open_store

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "v3-noipc-rawts-ior-4r"
RECORDS = 147  # README.md beside the traces and reference.json
DAY = 24 * 3600.0


@pytest.fixture
def stores(tmp_path, monkeypatch) -> Path:
    """Where stores are put, as that of every trace for which there is no room in memory."""
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(provide, "Room", lambda: Room(0))
    return tmp_path / "cache" / "stores"


@pytest.fixture
def store(stores) -> Path:
    vani.profile(TRACE)
    (place,) = stores.iterdir()
    return place


@pytest.fixture
def decodes(monkeypatch) -> list[Path]:
    """The places to which traces were decoded."""
    places: list[Path] = []
    real = write.write_store

    def counted(reader, path, **rest):
        places.append(path)
        return real(reader, path, **rest)

    monkeypatch.setattr(write, "write_store", counted)
    return places


def edit(store: Path, **changes: object) -> None:
    file = store / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


# --- what is believed -------------------------------------------------------------------------------


def owned_by(monkeypatch, user: int) -> None:
    """Make this process one of another user than who wrote the stores; root would be asked for nothing less."""
    monkeypatch.setattr(os, "geteuid", lambda: user)


@pytest.mark.parametrize("name", ["", "manifest.json", "calls", "calls/part-00000.parquet", "_files.parquet"])
@pytest.mark.parametrize("bit", [stat.S_IWGRP, stat.S_IWOTH], ids=["group", "all"])
def test_a_store_that_others_may_write_is_not_believed_and_made_anew(store, decodes, name, bit):
    edit(store, records=1_000_000)
    place = store / name
    place.chmod(place.stat().st_mode | bit)
    with pytest.raises(StoreError, match="may be written by other users: it is not believed"):
        open_store(store)
    assert vani.profile(TRACE).traces[0].records == RECORDS
    assert decodes == [store]
    assert vani.profile(TRACE).traces[0].records == RECORDS
    assert decodes == [store]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["", "manifest.json", "calls/part-00000.parquet"])
def test_a_store_of_another_user_is_not_believed_and_left_alone(store, decodes, name):
    edit(store, records=1_000_000)
    os.chown(store / name, 12345, -1)
    with pytest.raises(StoreError, match="belongs to another user: it is not believed"):
        open_store(store)
    for _ in range(2):
        assert vani.profile(TRACE).traces[0].records == RECORDS
    assert len(decodes) == 1
    # Its place may be in a folder where only its owner can remove it.
    assert store.exists()
    assert decodes[0] == (store if name else store.with_name(f"{store.name}-0"))


def test_where_another_user_has_the_name_the_store_gets_one_of_its_own(tmp_path, monkeypatch):
    place, own = places_of(tmp_path, "T", "f" * 64)
    assert own_place(tmp_path, "T", "f" * 64) == place
    place.mkdir()
    assert own_place(tmp_path, "T", "f" * 64) == place
    owned_by(monkeypatch, os.geteuid() + 1)
    assert own_place(tmp_path, "T", "f" * 64) == places_of(tmp_path, "T", "f" * 64)[1] != own


@pytest.mark.skipif(os.geteuid() != 0, reason="the store would have to be root's")
def test_a_store_of_root_is_believed(store, monkeypatch):
    owned_by(monkeypatch, 12345)
    assert open_store(store).manifest.records == RECORDS


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_stores_are_written_so_that_they_are_believed_whatever_the_mask(stores, decodes, mask):
    before = os.umask(mask)
    try:
        for _ in range(2):
            vani.profile(TRACE)
    finally:
        os.umask(before)
    assert len(decodes) == 1
    assert all(not p.stat().st_mode & 0o022 for p in (decodes[0], *decodes[0].rglob("*")))


def test_what_is_soon_read_is_compressed_in_less_time_than_what_is_converted(store, tmp_path):
    (converted,) = vani.convert(TRACE, tmp_path / "converted")

    def packed(place):
        with pq.ParquetFile(place / "calls" / "part-00000.parquet") as file:
            return file.metadata.row_group(0).column(0).compression

    assert (packed(store), packed(converted)) == ("LZ4", "ZSTD")


@pytest.mark.parametrize(("above", "mode"), [(0o1777, 0o1777), (0o755, 0o755), (0o700, 0o755), (0o777, 0o755)])
def test_what_is_made_in_a_cache_that_users_share_is_for_all_of_them(tmp_path, monkeypatch, above, mode):
    # Was: who came first made folders in it that nobody else could write.
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VANI_PARTIAL_RESULTS", "1")
    monkeypatch.setattr(provide, "Room", lambda: Room(0))
    monkeypatch.setattr(partial_results, "FEWEST_CALLS", 0)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(above)
    before = os.umask(0o022)
    try:
        vani.profile(TRACE)
    finally:
        os.umask(before)
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache").iterdir()}
    assert made == {"stores": mode, "results": mode}


def test_where_files_have_no_modes_a_store_serves_the_run_that_made_it(stores, monkeypatch):
    chmod = Path.chmod

    def all_may(self, mode):
        chmod(self, mode | 0o022)

    monkeypatch.setattr(Path, "chmod", all_may)
    before = os.umask(0)
    try:
        assert vani.profile(TRACE).traces[0].records == RECORDS
    finally:
        os.umask(before)


def parts_of(store: Path) -> list[dict]:
    return json.loads((store / "manifest.json").read_text())["parts"]


@pytest.mark.parametrize(
    "file",
    [
        "{absolute}",
        "../{other}/calls/part-00000.parquet",
        "calls/../../x.parquet",
        "calls/link.parquet",
        "",
        7,
    ],
)
def test_a_part_outside_of_the_store_is_not_read(store, tmp_path, decodes, file):
    (part,) = parts_of(store)
    other = shutil.copytree(store, tmp_path / "other")
    shutil.copy(other / part["file"], store.parent / "x.parquet")
    (store / "calls" / "link.parquet").symlink_to(other / part["file"])
    if isinstance(file, str):
        file = file.format(absolute=other / part["file"], other=os.path.relpath(other, store.parent))
    edit(store, parts=[part | {"file": file}])
    with pytest.raises(StoreError, match="is missing or was changed"):
        open_store(store)
    assert vani.profile(TRACE).traces[0].records == RECORDS
    assert decodes == [store]


def test_a_named_store_that_is_not_believed_is_told_in_the_report(store, tmp_path):
    found = vani.profile(TRACE)
    named = shutil.copytree(store, tmp_path / "named")
    (named / "calls").chmod(0o777)
    why = vani.api.heat_map(found, store=named, decode=False)
    assert f"({named}/calls: may be written by other users: it is not believed)" in why


# --- what is removed --------------------------------------------------------------------------------


def made(folder: Path, name: str, *, used_s: float, size: int = 100) -> Path:
    """Something that looks like a store, and was last used so long ago."""
    place = folder / name
    (place / "calls").mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    (place / "calls" / "part-00000.parquet").write_bytes(bytes(size))
    os.utime(place, (time.time() - used_s,) * 2)
    return place


@pytest.fixture
def small(monkeypatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 9000)


def left(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_what_was_not_used_for_longest_goes_first(tmp_path, small):
    for name, days in (("a", 3), ("b", 9), ("c", 1)):
        made(tmp_path, name, used_s=days * DAY, size=4000)
        # Made in another order than used.
        os.utime(tmp_path / name / "manifest.json", (time.time() - 100 * DAY,) * 2)
    sweep(tmp_path)
    assert left(tmp_path) == {"a", "c"}


def test_below_the_limit_everything_stays(tmp_path):
    made(tmp_path, "a", used_s=1000 * DAY)
    sweep(tmp_path)
    sweep(tmp_path / "no such folder")
    assert left(tmp_path) == {"a"}


def test_use_renews_a_store(store):
    long_ago = time.time() - 300 * DAY
    os.utime(store, (long_ago, long_ago))
    vani.profile(TRACE)
    assert time.time() - store.stat().st_mtime < 60


def test_what_was_used_within_the_hour_stays(tmp_path, small):
    made(tmp_path, "a", used_s=600, size=20_000)
    sweep(tmp_path)
    assert left(tmp_path) == {"a"}


def test_a_store_that_a_run_reads_stays_however_old(tmp_path, small):
    place = made(tmp_path, "a", used_s=9 * DAY, size=20_000)
    with being_used(place) as there:
        assert there
        os.utime(place, (0, 0))
        sweep(tmp_path)
        assert left(tmp_path) == {"a"}
    sweep(tmp_path)
    assert left(tmp_path) == set()


def test_a_store_that_is_being_removed_is_not_begun_with(tmp_path):
    place = made(tmp_path, "a", used_s=9 * DAY)
    with removable(place, partial=False) as held, ExitStack() as until:
        assert held is Held.FREE
        assert not InUse(until).hold(place)


def test_of_very_many_stores_the_last_are_kept_by_the_time_of_use_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "MOST_HELD", 1)
    first, last = (made(tmp_path, name, used_s=9 * DAY) for name in "ab")
    with ExitStack() as until:
        in_use = InUse(until)
        assert in_use.hold(first) and in_use.hold(last)
        with removable(first, partial=False) as held:
            assert held is Held.TAKEN
        with removable(last, partial=False) as held:
            assert held is Held.FREE
    assert time.time() - last.stat().st_mtime < 60


@pytest.fixture
def lockless(monkeypatch) -> None:
    """A file system such as Lustre without `flock`."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize(("days", "stays"), [(0.5, True), (2, False)])
def test_without_locks_a_store_stays_for_a_day_after_its_use(tmp_path, small, lockless, days, stays):
    made(tmp_path, "a", used_s=days * DAY, size=20_000)
    sweep(tmp_path)
    assert left(tmp_path) == ({"a"} if stays else set())


WRITER = """
import sys, time
from pathlib import Path
from vani.store.locks import being_written
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


def test_a_store_that_a_living_run_writes_stays_and_goes_with_the_run(tmp_path):
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
def test_without_locks_a_begun_store_stays_for_a_month_after_its_last_change(tmp_path, lockless, days, stays):
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


def test_a_writer_leaves_no_lock_in_the_store(store):
    assert not [p for p in store.rglob("*") if p.name.startswith(".")]


def test_links_and_what_belongs_to_others_are_not_swept(tmp_path, small, monkeypatch):
    folder, far = tmp_path / "stores", tmp_path / "far"
    made(far, "b", used_s=9 * DAY, size=20_000)
    folder.mkdir()
    (folder / "b").symlink_to(far / "b")
    sweep(folder)
    assert (folder / "b" / "manifest.json").is_file()
    made(folder, "c", used_s=9 * DAY, size=20_000)
    owned_by(monkeypatch, os.geteuid() + 1)
    sweep(folder)
    assert left(folder) == {"b", "c"}


def test_two_that_sweep_at_a_time_do_not_trip_over_each_other(tmp_path, small, monkeypatch):
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


def test_a_lock_that_cannot_be_had_does_not_stop_the_writer(tmp_path, lockless):
    with being_written(tmp_path):
        assert (tmp_path / ".lock").is_file()
    assert left(tmp_path) == set()


# --- what vanishes, what is full --------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False], ids=["the store", "a part"])
def test_a_store_that_vanishes_after_it_was_found_is_made_again(store, decodes, monkeypatch, whole):
    plain = vani.profile(TRACE)
    real, times = cache.find_store, []

    def then_gone(path, digest):
        found = real(path, digest)
        times.append(found)
        # First the look-up on opening, then that of the run.
        if len(times) == 2:
            shutil.rmtree(path if whole else path / "calls")
        return found

    monkeypatch.setattr(cache, "find_store", then_gone)
    assert vani.profile(TRACE) == plain
    assert decodes == [store]


def test_a_heat_map_survives_it_too(store, decodes, monkeypatch):
    found = vani.profile(TRACE)
    plain = vani.api.heat_map(found)
    real, once = InUse.hold, []

    def then_gone(self, place):
        held = real(self, place)
        if not once:
            once.append(place)
            shutil.rmtree(place)
        return held

    monkeypatch.setattr(InUse, "hold", then_gone)
    assert vani.api.heat_map(found) == plain
    assert once == decodes == [store]


def test_a_store_that_vanishes_again_and_again_is_an_error(stores, decodes, monkeypatch):
    real = Stores.provide

    def then_gone(*arguments):
        found = real(*arguments)
        shutil.rmtree(found.path)
        return found

    monkeypatch.setattr(Stores, "provide", then_gone)
    with pytest.raises(StoreError, match="cannot be read"):
        vani.profile(TRACE)
    assert len(decodes) == 3


def test_the_store_of_a_run_that_was_faster_is_kept(stores, decodes, monkeypatch):
    real, inodes = write._write_table, []

    def other_run_first(table, where):
        if where.name == "_files.parquet" and not inodes:
            inodes.append(0)
            vani.profile(TRACE)
            inodes[0] = next(p for p in stores.iterdir() if not p.name.startswith(".")).stat().st_ino
        real(table, where)

    monkeypatch.setattr(write, "_write_table", other_run_first)
    assert vani.profile(TRACE).traces[0].records == RECORDS
    assert len(decodes) == 2
    assert [p.stat().st_ino for p in stores.iterdir()] == inodes


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT], ids=["full", "over quota"])
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_where_the_cache_is_full_a_temporary_folder_serves(stores, tmp_path, monkeypatch, code, scheduler):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    plain = vani.profile(TRACE, store=tmp_path / "other")
    full(monkeypatch, stores, code)
    assert vani.profile(TRACE, scheduler=scheduler) == plain
    assert left(stores) == set()
    assert left(tmp_path / "tmp") == set()


def full(monkeypatch, folder: Path, code: int) -> None:
    """Nothing more fits into the parts of a store below this folder."""
    begin, real = write._new_file, pq.ParquetWriter.write_batch
    begun: list[object] = []

    def noted(path: Path) -> object:
        made = begin(path)
        if path.is_relative_to(folder):
            begun.append(made)
        return made

    def refuse(self, batch, **rest):
        if any(self.where is one for one in begun):
            raise OSError(code, os.strerror(code))
        real(self, batch, **rest)

    monkeypatch.setattr(write, "_new_file", noted)
    monkeypatch.setattr(pq.ParquetWriter, "write_batch", refuse)


def test_where_that_is_full_as_well_it_is_one_line(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    full(monkeypatch, tmp_path, errno.ENOSPC)
    with pytest.raises(InputError, match=r"cannot write here \(No space left on device\)"):
        vani.profile(TRACE)
    assert left(stores) == left(tmp_path / "tmp") == set()


def test_a_folder_that_the_user_named_is_not_left_for_another(tmp_path, monkeypatch):
    full(monkeypatch, tmp_path, errno.ENOSPC)
    with pytest.raises(InputError, match=r"cannot write here \(No space left on device\)"):
        vani.profile(TRACE, store=tmp_path / "S")


def test_without_a_place_for_temporary_files_the_first_error_stands(stores, tmp_path, monkeypatch):
    full(monkeypatch, stores, errno.ENOSPC)

    def nowhere(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", nowhere)
    with pytest.raises(InputError, match="cannot write here"):
        vani.profile(TRACE)


# --- where it lies ----------------------------------------------------------------------------------


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("VANI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_directory() == Path("/x/vani")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert cache_directory() == Path("/h/.cache/vani")


def test_a_store_of_another_trace_is_not_found(store):
    assert find_store(store, "0" * 64) is None
    assert manifest.read_manifest(store).digest != "0" * 64


def test_tests_neither_read_nor_fill_the_users_cache():
    assert Path(os.environ["VANI_CACHE"]).parent.name.startswith("vani-tests-")
