"""A store whose bytes changed without its manifest is refused in one line; its calls are never misread."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from vani.calls import CALLS
from vani.cli.main import main
from vani.engine.cluster import open_executor
from vani.errors import StoreError
from vani.readers.open import open_trace
from vani.store.read import calls_of, open_store
from vani.store.write import write_store

TRACE = Path(__file__).parents[1] / "data" / "traces" / "v3-posix-mix-4r"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    place = tmp_path_factory.mktemp("stores") / "s"
    write_store(open_trace(TRACE), place, version="0", executor=open_executor("synchronous"))
    return place


def flipped(store, tmp_path, name, at):
    """A copy of the store with one byte of a file changed."""
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store, copy)
    content = bytearray((copy / name).read_bytes())
    content[at] ^= 0x41
    (copy / name).write_bytes(content)
    return copy


def calls(place):
    found = open_store(place)
    parts = found.manifest.parts
    batches = [b for part in parts for b in found.batches(part, CALLS.names)]
    again = [b for part in parts for b in calls_of(found.row_groups(part), CALLS.names)]
    assert pa.Table.from_batches(batches) == pa.Table.from_batches(again)
    return pa.Table.from_batches(batches), found.files, found.renames


@pytest.mark.parametrize("name", ["calls/part-00000.parquet", "_files.parquet", "_renames.parquet"])
@pytest.mark.slow
def test_a_flipped_byte_is_found_or_changes_nothing(store, tmp_path, name):
    whole = calls(store)
    content = (store / name).read_bytes()
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    positions = range(4, len(content) - footer, max(1, (len(content) - footer) // 60))
    found = 0
    for at in positions:
        place = flipped(store, tmp_path, name, at)
        try:
            assert all(a == b for a, b in zip(calls(place), whole, strict=True)), f"byte {at} went unnoticed"
        except StoreError as error:
            assert name.rpartition("/")[2] in str(error)
            assert error.todo == "remove this store, and it is made again"
            found += 1
    assert found > len(positions) // 2


def test_damaged_store_ends_in_one_line_and_status_2(tmp_path, capsys):
    cache = tmp_path / "cache"
    arguments = ["profile", str(TRACE), "-q", "--store", str(cache), "-o", str(tmp_path / "p.yaml")]
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 0
    (tmp_path / "p.yaml").unlink()
    (part,) = cache.glob("*/calls/part-00000.parquet")
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 0xFF
    part.write_bytes(content)
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "part-00000.parquet: cannot be read" in told
    assert not (tmp_path / "p.yaml").exists()
