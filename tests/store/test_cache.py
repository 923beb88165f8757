"""The cache trusts only what this user wrote, and works around being full or losing its stores."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import vani
from vani.errors import InputError, StoreError
from vani.readers.recorder.reader import RecorderReader
from vani.store import cache, partial_results, read, write
from vani.store.cache import InUse, cache_directory, find_store, own_place, places_of
from vani.store.read import open_store
from vani.store.stores import MemoryBudget, Stores

TRACE = Path(__file__).resolve().parents[1] / "data" / "traces" / "v3-noipc-rawts-ior-4r"
RECORDS = 147  # README.md next to the traces and reference.json
DAY = 24 * 3600.0


@pytest.fixture
def stores(tmp_path, monkeypatch) -> Path:
    """The folder of stores; no trace has room in memory, and all decode slower than they are read."""
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("vani.store.stores.MemoryBudget", lambda: MemoryBudget(0))
    monkeypatch.setattr(RecorderReader, "decodes_quickly", False)
    return tmp_path / "cache" / "stores"


@pytest.fixture
def store(stores) -> Path:
    vani.profile(TRACE)
    (place,) = stores.iterdir()
    return place


@pytest.fixture
def decodes(monkeypatch) -> list[Path]:
    """The destinations of decoded traces."""
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
    """Make this process belong to another user than the one who wrote the stores, since root passes every check."""
    monkeypatch.setattr(os, "geteuid", lambda: user)


@pytest.mark.parametrize("name", ["", "manifest.json", "calls", "calls/part-00000.parquet", "_files.parquet"])
@pytest.mark.parametrize("bit", [stat.S_IWGRP, stat.S_IWOTH], ids=["group", "all"])
@pytest.mark.sampled(3)
def test_store_writable_by_others_is_replaced(store, decodes, name, bit):
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
def test_store_of_another_user_is_neither_trusted_nor_changed(store, decodes, name):
    edit(store, records=1_000_000)
    os.chown(store / name, 12345, -1)
    with pytest.raises(StoreError, match="belongs to another user: it is not believed"):
        open_store(store)
    for _ in range(2):
        assert vani.profile(TRACE).traces[0].records == RECORDS
    assert len(decodes) == 1
    # Its folder may be one in which only the owner can remove files.
    assert store.exists()
    assert decodes[0] == (store if name else store.with_name(f"{store.name}-0"))


def test_store_avoids_another_users_name(tmp_path, monkeypatch):
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
def test_stores_are_trusted_under_any_umask(stores, decodes, mask):
    before = os.umask(mask)
    try:
        for _ in range(2):
            vani.profile(TRACE)
    finally:
        os.umask(before)
    assert len(decodes) == 1
    assert all(not p.stat().st_mode & 0o022 for p in (decodes[0], *decodes[0].rglob("*")))


def test_temporary_store_is_compressed_faster_than_a_converted_one(store, tmp_path):
    (converted,) = vani.convert(TRACE, tmp_path / "converted")

    def packed(place):
        with pq.ParquetFile(place / "calls" / "part-00000.parquet") as file:
            return file.metadata.row_group(0).column(0).compression

    assert (packed(store), packed(converted)) == ("LZ4", "ZSTD")


@pytest.mark.parametrize(
    ("mode", "place"), [(0o1777, "user-{}"), (0o777, "user-{}"), (0o775, "user-{}"), (0o755, ""), (0o700, "")]
)
def test_shared_cache_has_a_private_folder_per_user(tmp_path, monkeypatch, mode, place):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VANI_PARTIAL_RESULTS", "1")
    monkeypatch.setattr("vani.store.stores.MemoryBudget", lambda: MemoryBudget(0))
    monkeypatch.setattr(RecorderReader, "decodes_quickly", False)
    monkeypatch.setattr(partial_results, "FEWEST_CALLS", 0)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    vani.profile(TRACE)
    folder = tmp_path / "cache" / place.format(os.geteuid())
    assert {path.name for path in folder.iterdir()} == {"stores", "results"}
    if place:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list((tmp_path / "cache").iterdir()) == [folder]


def test_store_without_modes_serves_its_own_run(stores, monkeypatch):
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
@pytest.mark.sampled(3)
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


def test_untrusted_named_store_is_mentioned_in_the_report(store, tmp_path):
    found = vani.profile(TRACE)
    named = shutil.copytree(store, tmp_path / "named")
    (named / "calls").chmod(0o777)
    why = vani.heat_map(found, store=named, decode=False)
    assert f"({named}/calls: may be written by other users: it is not believed)" in why


def test_use_renews_a_store(store):
    long_ago = time.time() - 300 * DAY
    os.utime(store, (long_ago, long_ago))
    vani.profile(TRACE)
    assert time.time() - store.stat().st_mtime < 60


def test_a_writer_leaves_no_lock_in_the_store(store):
    assert not [p for p in store.rglob("*") if p.name.startswith(".")]


# --- what vanishes, what is full --------------------------------------------------------------------


def left(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


@pytest.mark.parametrize("whole", [True, False], ids=["the store", "a part"])
def test_store_that_vanishes_after_it_was_found_is_rebuilt(store, decodes, monkeypatch, whole):
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


def test_heat_map_survives_damage_too(store, decodes, monkeypatch):
    found = vani.profile(TRACE)
    plain = vani.heat_map(found)
    real, once = InUse.hold, []

    def then_gone(self, place):
        held = real(self, place)
        if not once:
            once.append(place)
            shutil.rmtree(place)
        return held

    monkeypatch.setattr(InUse, "hold", then_gone)
    assert vani.heat_map(found) == plain
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


def test_store_of_the_faster_run_is_kept(stores, decodes, monkeypatch):
    real, inodes = write._write_table, []

    def other_run_first(path, schema, rows):
        if path.name == "_files.parquet" and not inodes:
            inodes.append(0)
            vani.profile(TRACE)
            inodes[0] = next(p for p in stores.iterdir() if not p.name.startswith(".")).stat().st_ino
        real(path, schema, rows)

    monkeypatch.setattr(write, "_write_table", other_run_first)
    assert vani.profile(TRACE).traces[0].records == RECORDS
    assert len(decodes) == 2
    assert [p.stat().st_ino for p in stores.iterdir()] == inodes


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT], ids=["full", "over quota"])
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_full_cache_falls_back_to_a_temporary_folder(stores, tmp_path, monkeypatch, code, scheduler):
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


def test_full_temporary_folder_gives_one_line(stores, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    full(monkeypatch, tmp_path, errno.ENOSPC)
    with pytest.raises(InputError, match=r"cannot write here \(No space left on device\)"):
        vani.profile(TRACE)
    assert left(stores) == left(tmp_path / "tmp") == set()


def test_named_folder_is_used_or_refused(tmp_path, monkeypatch):
    full(monkeypatch, tmp_path, errno.ENOSPC)
    with pytest.raises(InputError, match=r"cannot write here \(No space left on device\)"):
        vani.profile(TRACE, store=tmp_path / "S")


def test_first_error_is_kept_without_a_temporary_folder(stores, tmp_path, monkeypatch):
    full(monkeypatch, stores, errno.ENOSPC)

    def nowhere(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", nowhere)
    with pytest.raises(InputError, match="cannot write here"):
        vani.profile(TRACE)


# --- where it lies ----------------------------------------------------------------------------------


def test_cache_folder_is_set_by_the_environment(monkeypatch, tmp_path):
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
    assert read.read_manifest(store).digest != "0" * 64


def test_tests_neither_read_nor_fill_the_users_cache():
    assert Path(os.environ["VANI_CACHE"]).parent.name.startswith("vani-tests-")
