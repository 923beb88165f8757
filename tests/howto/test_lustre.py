"""docs/howto/lustre.md, step by step, in a folder that imitates Lustre: from the trace to the proof.

Tests have no Lustre, and not always FUSE. So strace delays each write for as long as the targets in the folder's
layout would need, and a stand-in for `lfs` sets that layout. The trace, the advice and the script are real.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.readers.strace_logs import strace_or_skip

ROOT = Path(__file__).resolve().parents[2]
RANKS, PIECES, PIECE = 4, 8, 4 << 20
RATE = 40_000_000
"""Bytes per second of a target."""
WRITER = f"""
import os, sys
rank = int(os.environ["PMI_RANK"])
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for piece in range({PIECES}):
    os.pwrite(file, b"x" * {PIECE}, (piece * {RANKS} + rank) * {PIECE})
os.fsync(file)
os.close(file)
"""
SYSTEM = """
schema: vani.system/2
name: stand-in
file_systems:
- name: scratch
  type: lustre
  mounts: [{mount}]
  targets: 4
  bandwidth_per_target: {{read: 40000000.0, write: 40000000.0}}
  stripe_count: 1
  stripe_size: 1048576
"""
LFS = """#!/bin/sh
# lfs setstripe -c COUNT -S SIZE FOLDER, as far as the page uses it.
case "$1" in
setstripe) [ "$2" = -c ] || exit 2; eval folder=\\${$#}; echo "$3" >"$folder/.layout" ;;
getstripe) exit 0 ;;
esac
"""


# Delays count as time in the call, like a file system's; a file gets the layout that its folder has when it
# is created.
STRACE = """#!/bin/sh
stripes=$(cat '{scratch}/.layout' 2>/dev/null || echo 1)
exec {strace} -e inject=pwrite64:delay_enter=$(({micros} / stripes)) "$@"
"""


class Desk:
    """A user's folder, with a file system and the programs on the page."""

    def __init__(self, folder: Path, launcher: str) -> None:
        self.folder, self.scratch, self.launcher = folder, folder / "scratch", launcher
        self.scratch.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        (programs / "lfs").write_text(LFS)
        (programs / "lfs").chmod(0o755)
        micros = 1_000_000 * PIECE * RANKS // RATE
        (programs / "strace").write_text(
            STRACE.format(scratch=self.scratch, strace=shutil.which("strace"), micros=micros)
        )
        (programs / "strace").chmod(0o755)
        (folder / "writer.py").write_text(WRITER)
        (folder / "system.yaml").write_text(SYSTEM.format(mount=self.scratch))
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "VANI_CACHE": str(folder / "cache"),
        }

    def vani(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "vani", *words],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def job(self, trace: str) -> float:
        """Run the job under `vani trace`; return its seconds."""
        (self.scratch / "out.dat").unlink(missing_ok=True)
        line = [self.launcher, "-n", str(RANKS), sys.executable, "writer.py", str(self.scratch / "out.dat")]
        begin = time.perf_counter()
        self.vani("trace", "--tracer", "strace", "-o", f"{trace}.trace", "--", *line)
        taken = time.perf_counter() - begin
        self.vani(
            "profile", f"{trace}.trace", "--job", f"{trace}.trace/job.yaml", "-o", f"{trace}.yaml", "-q"
        )
        return taken


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    launcher = shutil.which("mpirun.mpich")
    if launcher is None:
        pytest.skip("there is no MPICH")
    strace_or_skip()
    return Desk(tmp_path, launcher)


@pytest.mark.slow
def test_steps_of_the_page_make_the_run_faster(desk):
    before = desk.job("before")
    text = desk.vani(
        "advise", "before.yaml", "--system", "system.yaml", "--script", "apply.sh", "--format", "text"
    )
    assert "stripe-count (LUS002)" in text
    profile = yaml.safe_load((desk.folder / "before.yaml").read_text())
    (file,) = [one for one in profile["files"] if one["path"] == str(desk.scratch / "out.dat")]
    assert (file["processes"], file["access"]) == (RANKS, "shared")
    assert file["io"]["bytes"]["written"] == RANKS * PIECES * PIECE
    shown = subprocess.run(
        ["sh", "apply.sh"], cwd=desk.folder, env=desk.environment, capture_output=True, text=True, check=True
    )
    assert re.search(r"lfs setstripe -c [234] -S \S+ ", shown.stdout)
    subprocess.run(
        ["sh", "apply.sh", "--apply"], cwd=desk.folder, env=desk.environment, check=True, capture_output=True
    )
    after = desk.job("after")
    assert after < 0.8 * before, f"{before:.1f} s -> {after:.1f} s"
    difference = desk.vani("diff", "before.yaml", "after.yaml")
    assert "write" in difference
