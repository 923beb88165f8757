"""`python -m benchmarks`: every part runs on a tiny trace, and reports its results and failures."""

from __future__ import annotations

import json
import shlex
import signal
import stat
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest
from isal import isal_zlib

from benchmarks.__main__ import PARTS, main
from benchmarks.costs import inflate_rate, run_fresh
from benchmarks.peers import PEERS, as_text, peers
from benchmarks.processes import CommandError, run, succeed
from tests.traces.recorder_oracle import decode_trace
from tests.traces.trace_generator import Generated, Workload, generate_trace
from vani.kernels.build import state

ROOT = Path(__file__).resolve().parent.parent

NO_COMMAND = (sys.executable, "-I", "-S", "-c", "")
"""Replaces `vani` if many commands would take long and their output does not matter."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Generated]:
    trace = tmp_path_factory.mktemp("benchmarks") / "trace"
    return trace, generate_trace(trace, Workload(calls=2000, ranks=2, files=4))


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An interpreter's folder without any tool, and an empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    return tmp_path / "nowhere" / "python"


def program(folder: Path, name: str, script: str) -> Path:
    """A command that runs a Python script, also if the interpreter's path has a blank, unlike a `#!` line."""
    folder.mkdir(exist_ok=True)
    place, code = folder / name, folder / f"{name}.py"
    code.write_text(script)
    place.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(code))} "$@"\n')
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return place


class TestRates:
    @pytest.mark.parametrize("library", [zlib, isal_zlib])
    @pytest.mark.parametrize("layout", ["2.5g", "3.0"])
    def test_all_time_stamps_are_inflated(self, tmp_path, layout, library):
        # More than one piece of 2 MiB for a rank.
        generate_trace(tmp_path / "t", Workload(calls=600_000, ranks=2, layout=layout, zlib_level=1))
        calls, seconds = inflate_rate(tmp_path / "t", library)
        assert calls == 600_000
        assert seconds > 0

    def test_trace_without_compressed_time_stamps_is_reported(self, tmp_path):
        generate_trace(tmp_path / "raw", Workload(calls=200, layout="2.5p"))
        assert "no file of time stamps" in inflate_rate(tmp_path / "raw", zlib)
        assert "not compressed" in inflate_rate(ROOT / "tests/data/traces/v3-noipc-rawts-ior-4r", zlib)


    @pytest.mark.parametrize("name", ["convert", "profile"])
    @pytest.mark.slow
    def test_fresh_commands_leave_no_files(self, name, tiny, tmp_path):
        assert run_fresh(name, tiny[0], tmp_path).cpu_s > 0
        assert list(tmp_path.iterdir()) == []


class TestProcesses:
    def test_time_memory_and_the_last_line(self):
        done = run([sys.executable, "-c", "x = bytearray(64 << 20); print('one'); print('two\\x1b[31m')"])
        assert (done.outcome, done.last_line) == ("done", "two\\x1b[31m")
        assert done.peak_bytes > 64 << 20
        assert done.cpu_s > 0
        assert done.seconds > 0

    def test_peak_excludes_this_process(self):
        held = bytearray(200 << 20)
        assert run([sys.executable, "-I", "-S", "-c", ""]).peak_bytes < 100 << 20
        del held

    @pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
    def test_children_are_part_of_the_memory_over_time(self):
        child = "import time; x = bytearray(80 << 20); time.sleep(0.5)"
        parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
        done = run([sys.executable, "-c", parent])
        assert done.memory_bytes > 80 << 20
        assert [at for at, _ in done.samples] == sorted(at for at, _ in done.samples)

    def test_crashed_tool_is_reported_with_its_last_line(self):
        assert (
            run([sys.executable, "-c", "raise ValueError('no such\\tthing')"]).last_line
            == "ValueError: no such\\tthing"
        )
        done = run([sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})"])
        assert done.outcome == "crashed"
        assert "signal 11" in done.last_line
        missing = run(["/nowhere/at/all"])
        assert missing.outcome == "crashed"
        assert "cannot be started" in missing.last_line

    def test_command_beyond_its_time_limit_is_killed_with_its_children(self, tmp_path):
        note = tmp_path / "child"
        script = (
            "import subprocess, sys, time, pathlib\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            f"pathlib.Path({str(note)!r}).write_text(str(child.pid))\n"
            "time.sleep(60)"
        )
        done = run([sys.executable, "-c", script], limit_s=1.0)
        assert done.outcome == "timed out"
        assert done.seconds < 30
        state = Path(f"/proc/{note.read_text()}/stat")
        # A killed orphan may wait briefly for its new parent.
        assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    def test_a_command_of_vanis_must_succeed(self):
        with pytest.raises(CommandError, match="no such"):
            succeed([sys.executable, "-m", "vani", "profile", "/no such/trace"])


class TestPeers:
    def test_absent_peers_are_skipped(self, tmp_path, nothing_installed, tiny, monkeypatch):
        monkeypatch.setattr("benchmarks.peers.VANI", NO_COMMAND)
        found = peers(tmp_path, calls=0, limit_s=60, pythons=[nothing_installed], inputs=[tiny[0]])
        assert set(found["skipped"]) == {peer.name for peer in PEERS}
        assert [row["tool"] for row in found["runs"]] == [
            "vani convert", "vani profile", "vani advise", "vani report"
        ]  # fmt: skip

    @pytest.mark.slow
    def test_installed_tools_get_a_copy_of_each_input_they_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr("benchmarks.peers.VANI", NO_COMMAND)
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        programs = tmp_path / "bin"
        program(
            programs,
            "drishti",
            "import sys, pathlib\np = pathlib.Path(sys.argv[-1])\nif p.is_dir(): (p / 'x').touch()\n",
        )
        program(programs, "recorder2text", "import sys\nprint('wrong version')\nsys.exit(3)\n")
        work = tmp_path / "work"
        work.mkdir()
        log = tmp_path / "run.darshan"
        log.write_bytes(b"log")
        found = peers(work, calls=1000, limit_s=60, pythons=[programs / "python"], inputs=[log])
        rows = {(row["input"], row["tool"]): row for row in found["runs"]}
        layouts = ["recorder 2.5p", "recorder 2.5g", "recorder 3.0"]
        assert [key[0] for key in rows if key[1] == "drishti"] == [*layouts, "run.darshan"]
        assert [key[0] for key in rows if key[1] == "vani convert"] == layouts
        assert {row["outcome"] for key, row in rows.items() if key[1] != "recorder2text"} == {"done"}
        failed = rows["recorder 3.0", "recorder2text"]
        assert (failed["outcome"], failed["last_line"]) == ("crashed", "wrong version")
        assert "cpu_x" not in failed
        # Start-up is known only for generated traces.
        assert rows["recorder 3.0", "drishti"]["start_s"] > 0
        assert rows["run.darshan", "drishti"]["start_s"] is rows["run.darshan", "drishti"]["work_x"] is None
        one = rows["run.darshan", "drishti"]
        vani = [rows["run.darshan", f"vani {name}"] for name in ("profile", "advise")]
        assert one["cpu_x"] == pytest.approx(one["cpu_s"] / sum(row["cpu_s"] for row in vani))
        assert one["peak_x"] == pytest.approx(one["peak_bytes"] / max(row["peak_bytes"] for row in vani))
        assert "run.darshan, drishti: done" in as_text(found)
        # Files that a tool leaves in its input are removed with the copy.
        assert not list(work.rglob("x"))


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "layout"), [(1, "3.0"), (3, "2.5p"), (50, "2.5g")])
def test_generated_files_keep_their_names_if_numbers_get_longer(tmp_path, ranks, layout):
    """Names end in 9 and 10, ..., 9,999 and 10,000; the oracle reads the call tables, one entry after the other."""
    files = 10_050
    trace = tmp_path / "trace"
    generated = generate_trace(
        trace, Workload(calls=6 * files, ranks=ranks, files=files, pattern="consecutive", layout=layout)
    )
    decoded = decode_trace(trace)
    used = Counter((call.function, call.args[0]) for calls in decoded.calls for call in calls)
    names = {"open": 1, "write": 2, "read": 2, "close": 1}
    paths = [f"/lustre/scratch/run/{i // 1000:04d}/part-{i:07d}.dat" for i in range(files)]
    assert used == {(name, path): times for path in paths for name, times in names.items()}
    # The tables' own counts, and for one table of all ranks the rank that used an entry first.
    tables = decoded.tables if layout == "2.5p" else decoded.tables[:1]
    for table in tables:
        assert {entry.count for entry in table.values()} == {1, 2}
    owners = [rank for rank, calls in enumerate(decoded.calls) for call in calls if call.function == "open"]
    first = [e.rank for table in tables for e in table.values() if e.call.function == "open"]
    assert first == owners
    assert generated.calls == 6 * files


class TestCommand:
    @pytest.mark.slow
    def test_one_command_gives_text_and_json(self, tmp_path, monkeypatch, capsys, nothing_installed):
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        figures = tmp_path / "figures.json"
        few = ["--calls", "2000", "--rounds", "1", "--peer-calls", "0", "--peer-python", str(nothing_installed)]
        assert main([*few, "--json", str(figures)]) == 0
        shown = capsys.readouterr().out
        found = json.loads(figures.read_text())
        assert found["schema"] == "vani.benchmark/1"
        assert {"processor", "cores", "cores_usable", "memory_bytes", "system"} <= set(found["machine"])
        assert {"vani", "python", "numpy", "pyarrow", "isal"} <= set(found["versions"])
        assert found["trace"]["calls"] == found["trace"]["generated"]["calls"] == 2000
        assert [part for part in PARTS if part in found] == list(PARTS)
        (once,) = found["rates"]["rounds"]
        assert once == found["rates"]["median"]
        start = once["convert_start_s"] * once["zlib"] / 2000
        assert once["convert_work_x_zlib"] == pytest.approx(once["convert_x_zlib"] - start)
        assert found["rates"]["kernels"] == state()
        memory = found["memory"]
        assert memory["records"] == 2000
        assert memory["peak_bytes"] >= max(size for _, size in memory["samples"])
        assert memory["samples"] == sorted(memory["samples"])
        for text in ("inflate with ISA-L", "start-up", "MiB at the peak", "not installed: drishti"):
            assert text in shown
        assert str(Path.home()) not in figures.read_text()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--only", "nothing"], "--only knows"),
            (["--rounds", "0"], "at least 1"),
            (["--trace", "x", "--calls", "5"], "not both"),
        ],
    )
    def test_wrong_usage_is_reported_in_one_line(self, arguments, message, capsys):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments", [["--trace", "/no/such/trace"], ["--calls", "10", "--files", "100"]]
    )
    def test_unavailable_trace_is_reported_in_one_line(self, arguments, capsys):
        assert main([*arguments, "--only", "rates"]) == 2
        assert capsys.readouterr().err.count("\n") == 1

    def test_a_wrong_profile_has_no_speed(self, monkeypatch, capsys):
        wrong = {"records": 1, "bytes": [0, 0], "samples": []}
        monkeypatch.setattr("benchmarks.costs.memory", lambda *_, **__: wrong)
        assert main(["--calls", "2000", "--only", "memory"]) == 3
        assert "the profile has [1, 0, 0]" in capsys.readouterr().err


def test_the_page_names_every_part_and_every_peer():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for name in (*PARTS, *(peer.name for peer in PEERS)):
        assert f"`{name}`" in page
