"""The preloaded timer: which time of a run it counts, and what happens where it cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from compiled_timer import compile_once

from vani.cli.tune_trials import TimedRuns
from vani.schema.tuned import RunIO

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in ("DARSHAN_LOGPATH", "DARSHAN_LOG_DIR_PATH", "DARSHAN_LOGFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("vani.cli.tune_trials.compile_units", compile_once)
    monkeypatch.chdir(tmp_path)
    return dict(os.environ)


def timed(environment: dict[str, str], *command: str) -> tuple[float, RunIO] | str:
    runs = TimedRuns(Path.cwd())
    words, variables = runs.line(1, command, environment)
    subprocess.run(words, env=variables, check=False, stdout=subprocess.DEVNULL)
    return runs.measured(1)


def python(environment: dict[str, str], text: str) -> tuple[float, RunIO]:
    found = timed(environment, sys.executable, "-c", text)
    assert not isinstance(found, str), found
    return found


SLOW = "import os, time; file = os.open('x', os.O_RDWR | os.O_CREAT); "


def test_waiting_outside_calls_and_for_pipes_does_not_count(environment):
    seconds, io = python(environment, f"{SLOW}time.sleep(0.5); a, b = os.pipe(); os.fork() or (time.sleep(0.5), os._exit(os.write(b, b'x') - 1)); os.read(a, 1)")
    assert 0 < seconds < 0.4
    assert io.source == "timer"


def test_writes_and_their_flushes_are_the_larger_part(environment):
    seconds, io = python(environment, f"{SLOW}[os.write(file, bytes(1 << 20)) for _ in range(64)]; os.fsync(file)")
    assert io.write_s > 0.5 * seconds
    assert io.read_s < io.write_s
    assert io.most_s == pytest.approx(seconds, abs=1e-6)


def test_processes_at_the_same_time_count_once(environment):
    lines = "; ".join(["dd if=/dev/zero of=x$i bs=1M count=32 conv=fsync 2>/dev/null & i=2"] * 2)
    (Path.cwd() / "two.sh").write_text(f"i=1\n{lines.replace('; ', chr(10))}\nwait\n")
    begin = time.monotonic()
    found = timed(environment, "sh", "two.sh")
    assert not isinstance(found, str)
    assert 0 < found[0] < time.monotonic() - begin


def test_process_that_a_signal_kills_is_measured(environment):
    seconds, _ = python(environment, f"{SLOW}os.write(file, bytes(1 << 24)); os.kill(os.getpid(), 9)")
    assert seconds > 0


def test_mapped_file_leaves_the_most_time_unknown(environment):
    _, io = python(environment, f"{SLOW}import mmap; os.ftruncate(file, 4096); mmap.mmap(file, 4096)[0] = 1")
    assert io.most_s is None


def test_stdio_counts(environment):
    source = '#include <stdio.h>\nint main(void) { FILE *f = fopen("y", "w"); for (int i = 0; i < 1000000; i++)\n'
    source += 'fprintf(f, "%d\\n", i); return fclose(f); }\n'
    Path("print.c").write_text(source)
    subprocess.run(["cc", "-O2", "print.c", "-o", "print"], check=True)
    found = timed(environment, "./print")
    assert not isinstance(found, str)
    assert 0 < found[1].write_s <= found[0]
    assert len(Path("y").read_text().split()) == 1_000_000


def test_static_program_is_not_timed(environment):
    Path("still.c").write_text("int main(void) { return 0; }\n")
    if subprocess.run(["cc", "-static", "still.c", "-o", "still"], check=False, capture_output=True).returncode:
        pytest.skip("no static C library is here")
    assert "./still is linked statically: no timer can be preloaded" in timed(environment, "./still")


def test_without_a_compiler_the_reason_is_stated(environment, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "the timer cannot be used: no C compiler (cc) is installed" in timed(environment, "true")
