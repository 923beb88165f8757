"""The start of the tour: a program is traced, and the advice names its problem."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readers.strace_logs import strace_or_skip

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "examples" / "first-trace" / "train.py"


def vani(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vani", *words]
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "VANI_CACHE": str(folder / "cache"),
        "COLUMNS": "80",
    }
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=120
    )


@pytest.mark.slow
def test_the_advice_that_the_tour_shows_is_that_on_its_example(tmp_path):
    strace_or_skip()
    traced = vani(tmp_path, "trace", "--", sys.executable, str(PROGRAM))
    assert traced.stdout == "8,000,000 bytes read\n"
    assert "Next   vani advise train.py.trace --format text" in traced.stderr
    printed = vani(tmp_path, "advise", "train.py.trace", "--format", "text").stdout
    (shown,) = re.findall(r"```text\n(.*?)```", (ROOT / "docs" / "tour.md").read_text(), re.DOTALL)
    # Severity depends on the machine; the page has short paths, and long ones break lines within words.
    said = "".join(printed.split()).replace(f"{tmp_path}/", "")
    lines = shown.split("\n", 1)[1].replace("# in", "\0# in")
    for sentence in lines.split("\0"):
        assert "".join(sentence.split()) in said
    # A fast machine may make the run too short to judge.
    assert "straceaddssome50us" in said or "tooshorttojudge" in said
    assert "Expected" not in printed
