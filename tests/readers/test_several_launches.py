"""Folders of Recorder to which several programs wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

from vani.readers import open_trace

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"


def launches(folder):
    return [fact for fact in open_trace(folder).facts() if fact[0] == "several_launches"]


def test_ranks_of_other_runs_are_a_fact(tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(DATA / "v3-noipc-rawts-ior-4r", folder)
    assert launches(folder) == []
    for rank in (4, 5):
        for part in ("cfg", "cst"):
            shutil.copyfile(folder / f"3.{part}", folder / f"{rank}.{part}")
    assert launches(folder) == [("several_launches", [], 2)]


def test_rank_files_beside_a_shared_file_are_of_another_run(tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(DATA / "v3-posix-mix-4r", folder)
    assert launches(folder) == []
    shutil.copyfile(DATA / "v3-noipc-rawts-ior-4r" / "0.cst", folder / "0.cst")
    assert launches(folder) == [("several_launches", [], 1)]
