"""A later run never reuses a store that was interrupted, edited or made from another trace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Queue, get_context
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import vani
from vani.atomic import new_directory
from vani.errors import InputError, StoreError
from vani.store import write
from vani.store.cache import find_store, store_path, sweep
from vani.store.read import Store, open_store

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
SMALL = TRACES / "v3-noipc-rawts-ior-4r"
RECORDS = 147  # README.md next to the traces and reference.json
SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces"

SLOWLY = """
import sys, time
import vani, vani.store.write as write
from vani.readers.recorder.reader import RecorderReader

decode = RecorderReader.batches
def slow(self, ranks, piece):
    print("decoding", flush=True)
    for batch in decode(self, ranks, piece):
        time.sleep({seconds})
        yield batch
        time.sleep({seconds})
RecorderReader.batches = slow
vani.profile(sys.argv[1], store=sys.argv[2], scheduler="synchronous")
"""


@pytest.fixture
def store(tmp_path) -> Path:
    vani.profile(SMALL, store=tmp_path / "stores")
    (place,) = (tmp_path / "stores").iterdir()
    return place


@pytest.fixture
def decodes(monkeypatch) -> list[Path]:
    """The destinations of decoded traces."""
    places: list[Path] = []
    real = write.write_store

    def counted(reader, path, **rest):
        places.append(path)
        real(reader, path, **rest)

    monkeypatch.setattr(write, "write_store", counted)
    return places


def again(store: Path) -> vani.Profile:
    return vani.profile(SMALL, store=store.parent)


def test_complete_store_is_read_and_not_written_again(store, decodes):
    written = (store / "manifest.json").stat().st_mtime_ns
    profile = again(store)
    assert profile.traces[0].records == RECORDS
    assert (store / "manifest.json").stat().st_mtime_ns == written
    assert decodes == []


def edit(change: Callable[[dict], object]) -> Callable[[Path], None]:
    def apply(store: Path) -> None:
        document = json.loads((store / "manifest.json").read_text())
        change(document)
        (store / "manifest.json").write_text(json.dumps(document))

    return apply


def part_of(store: Path) -> Path:
    return next(store.glob("calls/*.parquet"))


def cut(path: Path, to: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:to])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "no manifest": lambda s: (s / "manifest.json").unlink(),
    "half a manifest": lambda s: cut(s / "manifest.json", 200),
    "an empty manifest": lambda s: cut(s / "manifest.json", 0),
    "a manifest of another kind": lambda s: (s / "manifest.json").write_text("[1, 2]"),
    "a manifest of another version": edit(lambda d: d.update(schema="vani.store/0")),
    "a manifest without its parts": edit(lambda d: d.pop("parts")),
    "a manifest with a key too many": edit(lambda d: d.update(more=1)),
    "a manifest of another trace": edit(lambda d: d.update(digest="0" * 64)),
    "columns of another version": edit(lambda d: d["columns"].pop()),
    "no columns": edit(lambda d: d.pop("columns")),
    "a part too few": lambda s: part_of(s).unlink(),
    "half a part": lambda s: cut(part_of(s), 100),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.sampled(4)
def test_incomplete_store_is_made_again(store, decodes, damage):
    plain = again(store)
    DAMAGE[damage](store)
    assert again(store) == plain
    assert decodes == [store]
    assert again(store) == plain
    assert decodes == [store]


def test_a_trace_that_changed_has_a_store_of_its_own(tmp_path, decodes):
    trace = shutil.copytree(SMALL, tmp_path / "trace")
    vani.profile(trace, store=tmp_path / "stores")
    changed = trace / "recorder.mt"
    os.utime(changed, ns=(changed.stat().st_atime_ns, changed.stat().st_mtime_ns + 1_000_000_000))
    vani.profile(trace, store=tmp_path / "stores")
    assert len(set(decodes)) == 2


def test_opening_an_invalid_store_explains_the_remedy(tmp_path):
    with pytest.raises(StoreError, match="vani convert"):
        open_store(tmp_path)
    assert find_store(tmp_path, "0" * 64) is None


def kill_while_decoding(trace: Path, stores: Path, *, after_s: float, slowness_s: float) -> None:
    script = SLOWLY.format(seconds=slowness_s)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(trace), str(stores)], stdout=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"decoding\n"
        time.sleep(after_s)
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert run.returncode == -signal.SIGKILL


@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.1])
def test_run_killed_while_decoding_leaves_no_store_that_looks_complete(
    tmp_path, after_s, decodes
):
    stores = tmp_path / "stores"
    kill_while_decoding(SMALL, stores, after_s=after_s, slowness_s=5.0)
    left = list(stores.iterdir())
    assert left, "something was begun"
    assert all(p.name.startswith(".") and p.name.endswith(".partial") for p in left)
    killed = vani.profile(SMALL, store=stores)
    assert len(decodes) == 1
    assert killed == vani.profile(SMALL, store=tmp_path / "others")
    (whole,) = (p for p in stores.iterdir() if not p.name.startswith("."))
    assert ds.dataset(whole / "calls", format="parquet").count_rows() == RECORDS


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7])
def test_long_run_survives_a_kill_at_any_moment(tmp_path, after_s):
    trace, stores = SHARED / "v3-medium-smallio-8r", tmp_path / "stores"
    try:
        kill_while_decoding(trace, stores, after_s=after_s, slowness_s=0.0)
    except AssertionError:
        pytest.skip("was done before it was killed")
    for place in stores.iterdir():
        if not place.name.startswith("."):
            assert isinstance(open_store(place), Store), "the name appears only when all is written"
    assert vani.profile(trace, store=stores).traces[0].records == 527_120  # MANIFEST.yaml


def test_leftovers_of_killed_runs_are_removed_after_a_day(tmp_path):
    young, old, store = tmp_path / ".a.1.partial", tmp_path / ".b.1.partial", tmp_path / "c"
    for folder in (young, old, store):
        folder.mkdir()
    yesterday = time.time() - 25 * 3600
    os.utime(old, (yesterday, yesterday))
    os.utime(store, (yesterday, yesterday))
    sweep(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {young.name, store.name}


@pytest.mark.slow
def test_concurrent_runs_make_one_complete_store(tmp_path):
    script = SLOWLY.format(seconds=0.2)
    command = [sys.executable, "-c", script, str(SMALL), str(tmp_path / "stores")]
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)]
    errors = [run.communicate(timeout=60)[1].decode() for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], errors
    (whole,) = (tmp_path / "stores").iterdir()
    assert open_store(whole).manifest.records == RECORDS
    assert ds.dataset(whole / "calls", format="parquet").count_rows() == RECORDS


def write_over_and_over(place: Path, writer: int, errors: Queue) -> None:
    for turn in range(100):
        try:
            with new_directory(place) as folder:
                (folder / "who").write_text(f"{writer} {turn}")
        except Exception as error:
            errors.put(repr(error))


@pytest.mark.slow
def test_folders_renamed_to_one_name_concurrently_replace_each_other(tmp_path):
    # Formerly "cannot write here (Directory not empty)" if two finished at the same moment.
    context = get_context("spawn")
    errors = context.Queue()
    writers = [
        context.Process(target=write_over_and_over, args=(tmp_path / "s", w, errors)) for w in range(3)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors.empty(), errors.get()
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert (tmp_path / "s" / "who").read_text().endswith(" 99")


def test_convert_refuses_an_unrelated_path(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="not a store"):
        vani.convert(SMALL, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"


def test_converting_twice_leaves_the_newer_store_whole(tmp_path):
    for _ in range(2):
        (place,) = vani.convert(SMALL, tmp_path / "out")
    assert open_store(place).manifest.records == RECORDS
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["run", "a b/c:d", ".hidden.", "x" * 300, "日本"])
def test_a_store_has_a_name_that_every_file_system_takes(tmp_path, name):
    place = store_path(tmp_path, name, "f" * 64)
    place.mkdir()
    assert place.parent == tmp_path
    assert not place.name.startswith(".")
