"""Memory of a command: a limit that the user gives refuses input, the usual one warns, and a history skips files."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vani
from tests.traces.darshan_writer import POSIX, Log, Record, log_bytes
from vani import centre, site
from vani.errors import InputError

ROOT = Path(__file__).parents[2]
LIMIT = "ulimit -v 4194304"
"""The limit that SECURITY.md recommends for files of strangers, in KiB."""


def log(folder: Path, files: int) -> Path:
    records = [Record(POSIX, f"/s/{number}", 0, {"WRITES": 1, "BYTES_WRITTEN": 8, "OPENS": 1}) for number in range(files)]
    path = folder / f"{files}.darshan"
    path.write_bytes(log_bytes(Log("/bin/app", 4, 1_700_000_000, 50.0, records=records)))
    return path


def printed(folder: Path) -> Path:
    """Five megabytes of text in a small file."""
    head = "# darshan log version: 3.41\n# exe: /bin/app\n# start_time: 1700000000\n# nprocs: 1\n# run time: 10\n"
    path = folder / "bomb.txt.gz"
    with gzip.open(path, "wt") as file:
        file.write(head + "POSIX\t0\t17\tPOSIX_WRITES\t8\t/s/f\t/s\tlustre\n" * 120_000)
    return path


@pytest.mark.parametrize("make", [lambda folder: log(folder, 4_000), printed], ids=["binary", "printed"])
def test_input_beyond_the_given_memory_is_refused_in_one_line(tmp_path, make):
    path = make(tmp_path)
    with pytest.raises(InputError, match="takes more than 168 MB of memory; give more with --memory, or leave it out"):
        vani.profile(path, memory="160MiB")
    assert vani.profile(path, memory="2GiB").traces[0].complete is not None


def test_input_beyond_half_of_the_memory_is_read_after_one_warning(tmp_path, monkeypatch, capsys):
    budget = site.MemoryBudget()
    budget.begin(None, lambda: 4 << 30)
    for _ in range(6):
        budget.expect(1 << 30, Path("a.darshan"))
    warning = "vani: a.darshan: takes more than 4.29 GB, half of the memory (--memory SIZE refuses it)\n"
    assert capsys.readouterr().err == warning


def test_history_skips_a_file_beyond_its_share_and_notes_it(tmp_path):
    small, large = log(tmp_path, 10), log(tmp_path, 6_000)
    database = tmp_path / "history.sqlite"
    added = centre.history_add(tmp_path, db=database, workers=1, memory="180MB", judge=0).added
    assert (added.files, added.runs, added.damaged) == (2, 1, 1)
    (damaged,) = centre.history_damaged(db=database)
    assert (Path(damaged.path).name, damaged.reason) == (large.name, "takes more than 180 MB of memory")
    assert small.exists()


DATA = ROOT / "tests" / "data"
FIRST = [
    f"profile {ROOT}/vani/demo/ior-shared-file-8r -q -o p.yaml",
    "advise p.yaml -q -o a.yaml",
    "check p.yaml -q --save baseline.yaml",
    f"history add {DATA}/darshan/v3-ior-ssf-posix-8r.darshan --database h.sqlite -q",
    f"model fit {ROOT}/examples/model/oprael-writes.csv --scale bytes -o m.yaml",
]
"""Commands whose files the others read."""
COMMANDS = [
    f"profile {DATA}/darshan/v3-ior-ssf-posix-8r.darshan -q -o q.yaml",
    f"profile {DATA}/parquet/cm1-lassen -q -o q.yaml",
    f"profile {DATA}/dftracer/* -q -o q.yaml --together",
    f"profile {ROOT}/vani/demo/ior-shared-file-8r -q -o q.yaml --quick",
    f"profile {ROOT}/vani/demo/ior-shared-file-8r -q -o q.yaml --scheduler threads",
    "profile run/traces.otf2 -q -o q.yaml",
    f"convert {ROOT}/vani/demo/ior-shared-file-8r S -q",
    pytest.param("report p.yaml -q -o r.html", marks=pytest.mark.xfail(strict=False, reason="V8 ends the process")),
    pytest.param("plot ops p.yaml -q -o p.svg", marks=pytest.mark.xfail(strict=False, reason="V8 ends the process")),
    "check p.yaml --baseline baseline.yaml -q",
    "diff p.yaml p.yaml",
    "collect -o job.yaml",
    "explain LUS002",
    "systems detect -o s.yaml",
    "config",
    "trace -- true",
    "history top --database h.sqlite",
    "history show ior --database h.sqlite",
    "history list --database h.sqlite",
    "model show m.yaml",
    f"plan forward {ROOT}/examples/plan/six-jobs.yaml --io-nodes 12 --compare -o f.yaml",
    f"plan simulate {ROOT}/examples/plan/staging.yaml -o s.yaml",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("limited")
    try:
        from tests.otf2_archives import archive, opened, operation  # noqa: PLC0415 - an extra
    except pytest.skip.Exception:
        pass
    else:
        with archive(folder / "run") as a:
            location, handle = a.locations[0, 0], a.handle("/s/a")
            opened(location, 1, handle)
            operation(location, 10, 5, handle, "write", [8])
    for command in FIRST:
        assert limited(command, folder).returncode == 0, command
    return folder


def limited(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    places = {"V": sys.executable, "VANI_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["/bin/bash", "-c", f'{LIMIT}; "$V" -m vani {command}'], cwd=folder, env=os.environ | places,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="sets the limit in bash")
@pytest.mark.parametrize("command", COMMANDS)
def test_command_works_within_the_address_space_for_files_of_strangers(place, command):
    if "otf2" in command and not (place / "run").is_dir():
        pytest.skip("otf2 is not installed")
    done = limited(command, place)
    # An abort has a negative status or 128 and its signal's number.
    assert done.returncode in {0, 1}, (done.returncode, done.stderr[-500:])
    assert "Traceback" not in done.stderr
