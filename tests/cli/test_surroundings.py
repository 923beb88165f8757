"""A command's surroundings never cause a fault of Vani: closed and full streams, no home, odd names, signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from repository import ROOT, TRACES

TRACE = TRACES / "v3-posix-mix-4r"
PROFILE = ROOT / "tests" / "golden" / "v2-posix-mix-nonmpi.yaml"
CLOSED = "vani: standard output: cannot be written (it is closed); redirect it elsewhere"
FULL = "vani: standard output: cannot be written (No space left on device); redirect it elsewhere"
REMOVED = "vani: the working directory was removed; change to one that exists"
NO_TMP = "vani: no folder for temporary files can be written; set TMPDIR to one that can"
GONE = "mkdir gone && cd gone && rmdir ../gone && "
# A user id that no table contains, so that there is no home.
NOBODY = "cd / && env -u HOME -u VANI_CACHE setpriv --reuid 54321 --clear-groups "


def somebody_else_can_run_it() -> bool:
    """Whether root may run commands as another user who can reach this interpreter and Vani."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return False
    command = ["setpriv", "--reuid", "54321", "--clear-groups", sys.executable, "-c", "import vani.cli.main"]
    return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


needs_root = pytest.mark.skipif(
    not somebody_else_can_run_it(), reason="only root runs commands as somebody else, who must reach them"
)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full, setpriv")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line in which $V is the command, $T a trace and $P a profile, wherever they are."""
    places = {"T": str(TRACE), "P": str(PROFILE), "V": sys.executable}
    line = line.replace("$V", '"$V" -m vani').replace("$T", '"$T"').replace("$P", '"$P"')
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **places, **environment},
    )


@pytest.mark.parametrize(
    ("line", "status", "out", "err"),
    [
        # stdout
        ("$V explain LUS002 >&-", 2, "", CLOSED),
        ("$V advise $P -q >&-", 2, "", CLOSED),
        ("$V demo >&-", 2, "", CLOSED),
        ("$V advise $P -q -o a.yaml >&- && head -n 1 a.yaml", 0, "schema: vani.advice/3", ""),
        ("$V explain LUS002 >/dev/full", 2, "", FULL),
        ("$V check $P --allow-empty >/dev/full", 2, "", FULL),
        ("$V explain LUS002 | true", 0, "", ""),
        # Status 1 is the verdict of `check`, whether or not the output is read.
        ("$V check $P --policy strict.toml -q | true", 1, "", ""),
        # stderr: status 1 would mean that `check` found something.
        ("$V check nope 2>&-", 2, "", ""),
        ("$V check nope 2>/dev/full", 2, "", ""),
        ("$V check nope 2> >(true)", 2, "", ""),
        ("$V 2>/dev/full", 2, "", ""),
        ("$V advise $P -o a.yaml 2>/dev/full", 0, "", ""),
        ("$V advise $P -o a.yaml 2>&-", 0, "", ""),
        ("$V advise nope <&- >&- 2>&-", 2, "", ""),
        # folders
        (GONE + "$V profile $T -q --quick | head -n 1", 0, "schema: vani.profile/4", ""),
        (GONE + "$V advise $P -q -o a.yaml", 2, "", REMOVED),
        (GONE + "$V check $P --allow-empty", 2, "", REMOVED),
        ("TMPDIR=/nowhere VANI_CACHE=/proc/c $V profile $T -q | head -n 1", 0, "schema: vani.profile/4", ""),
        ("VANI_CACHE=/proc/c $V profile $T -q --scheduler processes", 2, "", NO_TMP),
        pytest.param(
            NOBODY + "$V profile $T -q | head -n 1", 0, "schema: vani.profile/4", "", marks=needs_root
        ),
        pytest.param(NOBODY + "$V report $P -q | head -c 15", 0, "<!doctype html>", "", marks=needs_root),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_environment_decides_nothing(desk, line, status, out, err):
    (desk / "strict.toml").write_text(
        'schema = "vani.policy/1"\n[[check.budget]]\nexpect = "workflow.processes < 1"\n'
    )
    environment = {}
    if err == NO_TMP:
        (desk / "sitecustomize.py").write_text(
            "import tempfile\ntempfile._candidate_tempdir_list = lambda: ['/proc', '/nowhere']\n"
        )
        environment["PYTHONPATH"] = os.pathsep.join([str(desk), str(ROOT)])
    done = shell(line, **environment)
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (status, out, err)


@pytest.mark.slow
def test_a_document_is_the_same_in_any_locale(desk):
    here = shell("$V profile $T -q --quick")
    for locale in (
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "", "LANG": "", "LC_CTYPE": ""},
    ):
        there = shell("$V profile $T -q --quick", **locale)
        assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, ""), locale


@pytest.mark.slow
def test_non_utf_8_names_are_accepted(desk):
    # Formerly exit status 3, for Parquet files and for JSON.
    line = (
        "n=$'tr\\xff' && cp -r $T $n && $V convert $n $'st\\xfe' && $V profile $n -q -o $'p\\xff.yaml' --store $'s\\xfd'"
        " && $V profile $n -q --store $'s\\xfd' && $V advise $'p\\xff.yaml' --format json"
    )
    done = shell(line)
    assert (done.returncode, done.stderr) == (0, "")
    advice = json.loads(done.stdout[done.stdout.index("\n{\n") :])
    assert advice["profile"]["path"] == "p\\udcff.yaml", "as in YAML"
    assert len(list((desk / os.fsdecode(b"st\xfe") / "calls").iterdir())) == 1


@pytest.mark.slow
def test_interrupt_while_loading_modules_is_reported_in_one_line(desk):
    # Formerly tracebacks during the first 90 ms. Each module that the command loads first is interrupted.
    (desk / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == os.environ['AT']: os.kill(os.getpid(), int(os.environ['SIGNAL']))\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    path = os.pathsep.join([str(desk), str(ROOT)])
    for module in ("vani.cli.main", "click", "vani.cli.profile", "pyarrow.lib", "numpy"):
        for number, said in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")):
            done = shell("$V profile $T -q", PYTHONPATH=path, AT=module, SIGNAL=str(int(number)))
            assert (done.returncode, done.stdout) == (128 + number, ""), module
            assert done.stderr.strip() == f"vani: {said}", module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scheduler"),
    [("SIGTERM", "threads"), ("SIGTERM", "processes"), ("SIGHUP", "threads"), ("SIGKILL", "processes")],
)
def test_a_signal_leaves_no_process_and_only_sigkill_leaves_files(desk, name, scheduler):
    # Formerly partial stores and temporary files remained, and workers survived a SIGKILL for ever.
    (desk / "tmp").mkdir()
    (desk / "sitecustomize.py").write_text(
        "import pathlib, time\n"
        "import vani.store.write as write\n"
        "def slow(task, reader):\n"
        "    pathlib.Path('begun').touch()\n"
        "    time.sleep(60)\n"
        "write.decode_part = slow\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(desk), str(ROOT)]),
        "TMPDIR": str(desk / "tmp"),
    }
    arguments = ["profile", TRACE, "--store", "stores", "-o", "p.yaml", "--scheduler", scheduler]
    process = subprocess.Popen(
        [sys.executable, "-m", "vani", *map(str, arguments)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 30
        while not (desk / "begun").exists():
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.02)
        process.send_signal(getattr(signal, name))
        # Workers share the same stderr, which ends with the last of them.
        _, err = process.communicate(timeout=5)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if name == "SIGKILL":
        return
    number = getattr(signal, name)
    said = {"SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}[name]
    assert (process.returncode, err) == (128 + number, f"vani: {said}\n")
    assert not (desk / "p.yaml").exists()
    assert list((desk / "stores").iterdir()) == list((desk / "tmp").iterdir()) == []
