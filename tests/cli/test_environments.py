"""Failures of the machine give one line with status 2, or only cost time; status 3 is reserved for faults of Vani."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT, TRACES

TRACE = TRACES / "v3-posix-mix-4r"
LOG = ROOT / "tests" / "data" / "darshan" / "v3-posix-mix-1r.darshan"
PROFILE = ROOT / "tests" / "golden" / "v3-cm1like-16r.yaml"

# Root may start any number of processes; the limit applies to other users.
NO_THREADS = "prlimit --nproc=1 setpriv --reuid 54321 --clear-groups"
FEW_FILES = "prlimit --nofile=12"
LITTLE_MEMORY = "prlimit --as={}000000"
FULL_SHM = "unshare -m bash -c 'mount -t tmpfs -o size=4k none /dev/shm && ! head -c 8000 /dev/zero >/dev/shm/x; exec \"$@\"' _"
READ_ONLY_SHM = "unshare -m bash -c 'mount -t tmpfs -o ro none /dev/shm; exec \"$@\"' _"
NO_HOME = "setpriv --bounding-set=-dac_override,-dac_read_search env HOME=/proc TMPDIR=/proc"
FULL_TMP = "unshare -m bash -c 'mount -t tmpfs -o size=4k none \"$TMPDIR\" && ! head -c 8000 /dev/zero >\"$TMPDIR/x\"; exec \"$@\"' _"
NO_IMAGE = "no image can be drawn: Resource temporarily unavailable"


def run(surroundings: str, arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    places = {"T": str(TRACE), "L": str(LOG), "P": str(PROFILE), "V": sys.executable, "PYTHONPATH": str(ROOT)}
    places |= {"HOME": str(folder), "TMPDIR": str(folder / "tmp"), "VANI_CACHE": str(folder / "cache")}
    return subprocess.run(
        ["/bin/bash", "-c", f'{surroundings} "$V" -m vani {arguments}'],
        cwd=folder,
        env=os.environ | places,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not one of pytest's folders, which other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="vani-tests-") as name:
        Path(name).chmod(0o777)
        for below in ("tmp", "cache"):
            Path(name, below).mkdir()
            Path(name, below).chmod(0o777)
        yield Path(name)


def can_limit() -> bool:
    if os.geteuid() != 0 or any(shutil.which(tool) is None for tool in ("prlimit", "setpriv", "unshare")):
        return False
    commands = (f"{NO_THREADS} {sys.executable} -c 'import vani.cli.main'", "unshare -m mount -t tmpfs none /mnt")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return all(
        subprocess.run(["/bin/bash", "-c", command], cwd="/", env=environment, capture_output=True, check=False).returncode == 0
        for command in commands
    )


pytestmark = pytest.mark.skipif(not can_limit(), reason="only root sets limits for others and mounts full folders")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("surroundings", "arguments", "status", "line"),
    [
        (NO_THREADS, "profile $T -q -o p.yaml", 0, ""),
        (NO_THREADS, "profile $T -q -o p.yaml --scheduler threads", 0, ""),
        (NO_THREADS, "profile $T -q -o p.yaml --scheduler processes", 2, "the system refuses another thread"),
        (NO_THREADS, "profile $L -q -o p.yaml", 0, ""),
        (NO_THREADS, "convert $T S -q", 0, ""),
        (NO_THREADS, "advise $P -q -o a.yaml", 0, ""),
        (NO_THREADS, "report $P -q -o r.html", 0, ""),
        (NO_THREADS, "plot ops $P -q -o p.svg", 2, NO_IMAGE),
        (NO_THREADS, "history top --database none.db", 2, "none.db"),
        (FEW_FILES, "profile $T -q -o p.yaml", 0, ""),
        # Too little memory to load the libraries.
        *((LITTLE_MEMORY.format(size), "profile $T -q -o p.yaml", 2, "not enough memory") for size in (130, 150)),
        (FULL_SHM, "profile $T -q -o p.yaml", 0, ""),
        (FULL_SHM, "profile $T -q -o p.yaml --scheduler processes", 0, ""),
        (FULL_TMP, "profile $T -q -o p.yaml", 0, ""),
        (READ_ONLY_SHM, "profile $T -q -o p.yaml --scheduler processes", 0, ""),
        (NO_HOME, "profile $T -q -o p.yaml --scheduler processes", 0, ""),
    ],
)  # fmt: skip
def test_refusals_of_the_machine_give_one_line_or_a_fallback(folder, surroundings, arguments, status, line):
    done = run(surroundings, arguments, folder)
    assert done.returncode == status, done.stderr
    assert line in done.stderr
    if status:
        assert "Traceback" not in done.stderr
        assert done.stderr.rstrip().splitlines()[-1].startswith("vani: ")
