"""A trace whose metadata was cut off says so, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import vani
from vani.errors import TraceError

TRACE = Path(__file__).parents[1] / "data" / "traces" / "v3-posix-mix-4r"


@pytest.mark.parametrize("part", [0.5, 0.01])
def test_metadata_that_was_cut_off_is_one_line_that_says_what_to_do(tmp_path, part):
    shutil.copytree(TRACE, tmp_path / "cut")
    metadata = tmp_path / "cut" / "recorder.mt"
    content = metadata.read_bytes()
    metadata.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(TraceError, match="copy the trace once more, or run the program again"):
        vani.profile(tmp_path / "cut")
