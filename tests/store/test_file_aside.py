"""A file that is written aside is there when it is kept and complete, and leaves nothing otherwise."""

from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest

from vani.store import file_aside
from vani.store.file_aside import FileAside


def kept(place, pieces):
    FileAside(place, b"kind\n", pieces).keep()


def read(place):
    """What was written, if its digest is true."""
    content = place.read_bytes()
    assert content.startswith(b"kind\n")
    body = content[len(b"kind\n") + 32 :]
    assert content[len(b"kind\n") :][:32] == hashlib.sha256(body).digest()
    return body


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
def test_all_pieces_are_written_in_their_order(tmp_path, count):
    pieces = [b"%d," % number for number in range(count)]
    kept(tmp_path / "file", pieces)
    assert read(tmp_path / "file") == b"".join(pieces)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_arrays_are_written_where_they_lie_and_empty_ones_too(tmp_path):
    arrays = [np.arange(100_000, dtype=np.uint8), np.empty(0, np.uint8), np.full(3, 7, np.uint8)]
    kept(tmp_path / "file", [b"", *(array.data for array in arrays)])
    assert read(tmp_path / "file") == b"".join(array.tobytes() for array in arrays)


def test_what_is_dropped_leaves_nothing_and_what_was_there_stays(tmp_path):
    kept(tmp_path / "file", [b"old"])
    FileAside(tmp_path / "file", b"kind\n", [b"new"]).drop()
    assert read(tmp_path / "file") == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_what_is_dropped_before_it_is_begun_leaves_nothing_either(tmp_path, monkeypatch):
    real = file_aside.os.open
    monkeypatch.setattr(file_aside.os, "open", lambda *how: (time.sleep(0.1), real(*how))[1])
    FileAside(tmp_path / "file", b"kind\n", [b"new"]).drop()
    time.sleep(0.3)
    assert not list(tmp_path.iterdir())


def test_what_was_kept_is_not_dropped_any_more(tmp_path):
    file = FileAside(tmp_path / "file", b"kind\n", [b"new"])
    file.keep()
    file.drop()
    assert read(tmp_path / "file") == b"new"


def test_what_is_written_in_part_only_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(file_aside.os, "writev", lambda _descriptor, some: sum(map(len, some)) - 1)
    kept(tmp_path / "file", [b"some"])
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, monkeypatch):
    kept(tmp_path / "no folder" / "file", [b"some"])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_aside.os, "writev", full)
    kept(tmp_path / "file", [b"some"])
    assert not list(tmp_path.iterdir())


def test_a_folder_in_its_place_is_left_alone(tmp_path):
    (tmp_path / "file").mkdir()
    kept(tmp_path / "file", [b"some"])
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert not list((tmp_path / "file").iterdir())


def test_a_fault_of_the_writer_is_shown_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(file_aside.hashlib, "sha256", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kept(tmp_path / "file", [b"some"])
    assert not list(tmp_path.iterdir())
