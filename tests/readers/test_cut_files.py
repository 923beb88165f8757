"""A trace with a truncated file that all ranks need reports it and the next step."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import pytest

import vani
from vani.errors import TraceError
from vani.readers.recorder.source import CUT_OFF, FramedTable, inflate_frame

TRACE = Path(__file__).parents[1] / "data" / "traces" / "v3-posix-mix-4r"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("recorder.mt", 0.5),
        ("recorder.mt", 0.01),
        ("recorder.cst", 0.5),
        ("recorder.cst", 0.01),
        ("ug.cfg", 0.01),
    ],
)
def test_truncated_file_gives_one_line_with_a_next_step(tmp_path, name, part):
    shutil.copytree(TRACE, tmp_path / "cut")
    file = tmp_path / "cut" / name
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(TraceError, match=f"{name}: .*copy the trace again, or run the program again"):
        vani.profile(tmp_path / "cut")


@pytest.mark.parametrize("length", [10, 20])
def test_truncated_frame_gives_a_next_step_however_it_is_read(tmp_path, length):
    file = tmp_path / "recorder.cst"
    stream = zlib.compress(b"content")
    file.write_bytes((struct.pack("<QQ", len(stream), 7) + stream)[:length])
    for read in (
        lambda: inflate_frame(file.read_bytes(), where="here"),
        lambda: FramedTable(file, 0, length, where="here"),
    ):
        with pytest.raises(TraceError) as caught:
            read()
        assert caught.value.todo == CUT_OFF
