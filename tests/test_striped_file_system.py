"""The stand-in for a striped file system, mounted: layouts, delays, and `vani tune` with each of its programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from vani.schema.tuned import Tuned

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "closed-loop"))

import stand_in
from mounting import impossible, mounted

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(impossible()), reason=f"no stand-in here: {impossible()}"),
]
MiB = 1 << 20


def lfs(*words: object) -> subprocess.CompletedProcess[str]:
    command = ["lfs", *map(str, words)]
    return subprocess.run(command, env=stand_in.environment(), capture_output=True, text=True, check=False)


@pytest.fixture
def mount():
    with mounted("few fast targets") as place:
        yield place


def written_s(path: Path, node: int = 0) -> float:
    """Seconds of a process on its own node that writes 32 MiB and closes the file."""
    code = f"import sys; file = open(sys.argv[1], 'wb', buffering=0)\nfor _ in range(32): file.write(bytes({MiB}))\nfile.close()"
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, str(path)], env=os.environ | {"PMI_RANK": str(node)}, check=True
    )
    return time.perf_counter() - begin


def test_layouts_are_set_inherited_refused_and_undone(mount):
    folder = mount / "out put"
    folder.mkdir()
    assert "stripe_count: 0\n" in lfs("getstripe", "-d", "--raw", folder).stdout
    assert lfs("setstripe", "-c", 4, "-S", "4M", folder).returncode == 0
    (folder / "below").mkdir()
    for path in (folder / "new", folder / "below" / "new"):
        path.write_bytes(b"data")
        assert "stripe_count: 4\nstripe_size: 4194304\n" in lfs("getstripe", path).stdout
    refused = lfs("setstripe", "-c", 5, folder)
    assert refused.returncode != 0
    assert "out of range" in refused.stderr
    assert "stripe_count: 4\n" in lfs("getstripe", "-d", folder).stdout
    lfs("setstripe", "-d", folder)
    (folder / "plain").write_bytes(b"data")
    assert "stripe_count: 1\n" in lfs("getstripe", folder / "plain").stdout
    assert "stripe_count: 4\n" in lfs("getstripe", folder / "new").stdout


def test_data_is_read_back_and_more_targets_are_faster(mount):
    plain, wide = mount / "plain", mount / "wide"
    for folder in (plain, wide):
        folder.mkdir()
    lfs("setstripe", "-c", 4, wide)
    seconds = {folder: written_s(folder / "file") for folder in (plain, wide)}
    # 32 MiB at 60 MB/s, including noise.
    assert seconds[plain] > 0.5
    assert seconds[wide] < seconds[plain]
    text = os.urandom(3 * MiB + 17)
    (wide / "text").write_bytes(text)
    assert (wide / "text").read_bytes() == text
    os.truncate(wide / "text", 5)
    assert (wide / "text").read_bytes() == text[:5]
    (wide / "text").rename(wide / "renamed")
    assert sorted(path.name for path in wide.iterdir()) == ["file", "renamed"]


def test_processes_on_different_targets_wait_concurrently(mount):
    folder = mount / "run"
    folder.mkdir()
    alone = written_s(folder / "first")
    threads = [threading.Thread(target=written_s, args=(folder / f"file{node}", node)) for node in range(4)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One after the other they would take four times as long.
    assert time.perf_counter() - begin < 3 * alone


@pytest.mark.parametrize("kind", stand_in.KINDS)
def test_tuning_a_program_ends_with_helpful_settings_and_no_leftovers(kind, tmp_path):
    if reason := stand_in.without_mpi():
        pytest.skip(reason)
    stand_in.compiled(tmp_path)
    with mounted("many slow targets") as mount:
        done = stand_in.tune("many slow targets", kind, mount, tmp_path)
        assert done.returncode == 0, done.stderr
        assert list((mount / "run").iterdir()) == []
        assert "stripe_count: 0\n" in lfs("getstripe", "-d", "--raw", mount / "run").stdout
    tuned = Tuned.load(tmp_path / "vani-tune-state" / "tuned.yaml")
    assert len(tuned.runs) <= 5
    assert all(run.outcome == "ended" for run in tuned.runs)
    verdict = tuned.result.verdict
    if kind in ("small-requests", "large-requests", "strided-collective"):
        # One of 16 targets receives 64 MiB: 4.2 s at 16 MB/s.
        assert verdict == "proven", done.stdout
        assert tuned.result.speedup > 1.5
        assert "lfs setstripe" in (tmp_path / "tuned.sh").read_text()
        if kind == "large-requests":
            text = (ROOT / "examples" / "closed-loop" / "README.md").read_text(encoding="utf-8").replace("\n", " ")
            figures = re.search(
                r"took ([0-9.]+) s as they were, and ([0-9.]+) s after `lfs setstripe ([^`]+)`", text
            )
            before, after = (
                [run.seconds for run in tuned.runs if run.candidates == item]
                for item in ([], tuned.result.candidates)
            )
            # 8 targets are as fast within the noise of a busy machine.
            assert re.match(r"lfs setstripe -c (8|16) -S 4M ", tuned.settings[-1].apply[0])
            assert figures[3] == "-c 16 -S 4M"
            assert min(before) == pytest.approx(float(figures[1]), rel=0.25)
            assert min(after) == pytest.approx(float(figures[2]), rel=0.5)
    elif kind in ("flush-bound", "compute"):
        assert verdict in ("nothing_helps", "nothing_to_gain"), done.stdout
        ends = ("No setting was tried: ", "Nothing to tune: ", " tried, none at least 2 % faster than without settings")
        assert any(words in done.stdout for words in ends), done.stdout
        assert not (tmp_path / "tuned.sh").exists()
