"""Promises about `python -m benchmarks`: every part runs on a tiny trace, and says what it found and what it could not."""

from __future__ import annotations

import csv
import json
import math
import shlex
import signal
import stat
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest
from isal import isal_zlib
from switched import numpy_alone

import vani
from benchmarks.__main__ import PARTS, main
from benchmarks.commands import commands
from benchmarks.growth import growth
from benchmarks.memory import as_vega_lite
from benchmarks.parquet_twin import write_twin
from benchmarks.peer_tools import PEERS
from benchmarks.peers import peers
from benchmarks.processes import CommandError, run, succeed
from benchmarks.rates import inflate_rate
from benchmarks.stages import stages
from benchmarks.stopwatch import Stopwatch
from tests.traces.recorder_oracle import decode_trace
from tests.traces.trace_generator import Generated, Workload, generate_trace
from vani.analyzers.passes.measure_workload import measures
from vani.kernels.loader import state
from vani.store.kept import Room
from vani.store.read import open_store

ROOT = Path(__file__).resolve().parent.parent

NO_COMMAND = (sys.executable, "-I", "-S", "-c", "")
"""Stands for `vani` where many commands would take long; what they print is not looked at."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Generated]:
    trace = tmp_path_factory.mktemp("benchmarks") / "trace"
    return trace, generate_trace(trace, Workload(calls=2000, ranks=2, files=4))


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An interpreter's folder without any tool, and a PATH that leads nowhere."""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    return tmp_path / "nowhere" / "python"


def program(folder: Path, name: str, script: str) -> Path:
    """A command that runs a script of Python, whose own path may have a blank, which no `#!` line can hold."""
    folder.mkdir(exist_ok=True)
    place, code = folder / name, folder / f"{name}.py"
    code.write_text(script)
    place.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(code))} "$@"\n')
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return place


class TestStages:
    def test_every_stage_and_every_analyzer_has_its_row(self, tiny, tmp_path, monkeypatch):
        monkeypatch.setattr("vani.store.provide.Room", lambda: Room(0))
        # One kernel finds what numpy does in several stages.
        with numpy_alone():
            found = stages(tiny[0], tmp_path)
        names = [row["stage"] for row in found["stages"]]
        assert len(names) == len(set(names))
        decode = ["tables", "inflate", "expand", "times", "positions", "callers", "columns"]
        assert names[: len(decode) + 3] == [*decode, "write", "read", "shared"]
        assert names[-4:] == ["overlap", "between", "entities", "yaml"]
        assert set(names) >= {"survey", *(measure.name for measure in measures())}

    def test_nothing_is_written_where_calls_have_room(self, tiny, tmp_path):
        assert "write" not in [row["stage"] for row in stages(tiny[0], tmp_path)["stages"]]

    def test_the_times_add_up_and_the_calls_are_those_of_the_trace(self, tiny, tmp_path):
        found = stages(tiny[0], tmp_path)
        assert found["calls"] == 2000
        assert math.isclose(sum(row["cpu_s"] for row in found["stages"]), found["cpu_s"])
        assert math.isclose(sum(row["share"] for row in found["stages"]), 1.0)
        assert all(row["times"] > 0 for row in found["stages"])

    def test_nothing_stays_wrapped_and_no_store_is_left(self, tiny, tmp_path):
        before = vani.profile(tiny[0], store=tmp_path / "store").to_yaml()
        stages(tiny[0], tmp_path)
        assert vani.profile(tiny[0], store=tmp_path / "store").to_yaml() == before
        assert [path.name for path in tmp_path.iterdir()] == ["store"]

    def test_parquet_is_decoded_in_one_stage(self, tmp_path):
        found = stages(ROOT / "tests" / "data" / "parquet" / "cm1-lassen", tmp_path)
        names = [row["stage"] for row in found["stages"]]
        assert "columns" in names
        assert "inflate" not in names

    def test_a_stage_inside_another_is_not_counted_twice(self):
        watch = Stopwatch()
        inner = watch.timed("inner", lambda: sum(range(200_000)))
        with watch.stage("outer"):
            list(watch.timed_generator("steps", lambda: (inner() for _ in range(3)))())
        assert {name: spent.times for name, spent in watch.spent.items()} == {
            "outer": 1,
            "steps": 5,
            "inner": 3,
        }
        assert watch.spent["inner"].cpu_s > watch.spent["steps"].cpu_s


class TestRates:
    @pytest.mark.parametrize("library", [zlib, isal_zlib])
    @pytest.mark.parametrize("layout", ["2.5g", "3.0"])
    def test_all_time_stamps_are_inflated(self, tmp_path, layout, library):
        # More than one piece of 2 MiB for a rank, and one rank.
        generate_trace(tmp_path / "t", Workload(calls=600_000, ranks=2, layout=layout, zlib_level=1))
        calls, seconds = inflate_rate(tmp_path / "t", library)
        assert calls == 600_000
        assert seconds > 0

    def test_a_trace_without_compressed_time_stamps_says_so(self, tmp_path):
        generate_trace(tmp_path / "raw", Workload(calls=200, layout="2.5p"))
        assert "no file of time stamps" in inflate_rate(tmp_path / "raw", zlib)
        assert "not compressed" in inflate_rate(ROOT / "tests/data/traces/v3-noipc-rawts-ior-4r", zlib)


class TestProcesses:
    def test_time_memory_and_the_last_line(self):
        done = run([sys.executable, "-c", "x = bytearray(64 << 20); print('one'); print('two\\x1b[31m')"])
        assert (done.outcome, done.last_line) == ("done", "two\\x1b[31m")
        assert done.peak_bytes > 64 << 20
        assert done.cpu_s > 0
        assert done.seconds > 0

    def test_the_peak_is_not_that_of_this_process(self):
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

    def test_what_crashes_is_told_with_its_last_line(self):
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

    def test_what_does_not_end_is_ended_with_all_its_children(self, tmp_path):
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
        # A killed orphan may wait for its new parent a moment.
        assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    def test_a_command_of_vanis_must_succeed(self):
        with pytest.raises(CommandError, match="no such"):
            succeed([sys.executable, "-m", "vani", "profile", "/no such/trace"])


class TestPeers:
    def test_absent_ones_are_skipped_with_a_note(self, tmp_path, nothing_installed):
        found = peers(tmp_path, calls=2000, limit_s=60, pythons=[nothing_installed])
        assert found["runs"] == found["found"] == []
        notes = {one["name"]: one["note"] for one in found["skipped"]}
        assert set(notes) == {peer.name for peer in PEERS}
        assert "drishti-io is not installed" in notes["drishti"]
        assert "--peer-python" in notes["dfanalyzer"]
        assert "PATH" in notes["recorder2text"]

    def test_those_that_are_there_get_a_copy_of_each_input_they_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr("benchmarks.peers.VANI", NO_COMMAND)
        bin_ = tmp_path / "bin"
        program(
            bin_,
            "drishti",
            "import sys, pathlib\np = pathlib.Path(sys.argv[-1])\nif p.is_dir(): (p / 'x').touch()\n",
        )
        program(bin_, "recorder2text", "import sys\nprint('wrong version')\nsys.exit(3)\n")
        program(
            bin_,
            "dfanalyzer",
            "import sys\nprint(sys.argv)\nassert any('global.json' in __import__('os').listdir(a.split('=')[1][1:-1]) for a in sys.argv if a.startswith('trace_path'))\n",
        )
        work = tmp_path / "work"
        work.mkdir()
        log = tmp_path / "run.darshan"
        log.write_bytes(b"log")
        found = peers(work, calls=1000, limit_s=60, pythons=[bin_ / "python"], given=[log])
        rows = {(row["input"], row["tool"]): row for row in found["runs"]}
        layouts = ["recorder 2.5p", "recorder 2.5g", "recorder 3.0"]
        assert [key[0] for key in rows if key[1] == "drishti"] == [*layouts, "run.darshan"]
        assert [key[0] for key in rows if key[1] == "dfanalyzer"] == ["parquet"]
        assert [key[0] for key in rows if key[1] == "vani convert"] == [*layouts, "parquet"]
        # Was: logs of Darshan, which Vani did not read, had no row of its commands.
        assert [key[0] for key in rows if key[1] == "vani report"] == ["run.darshan"]
        assert {row["outcome"] for key, row in rows.items() if key[1] != "recorder2text"} == {"done"}
        failed = rows["recorder 3.0", "recorder2text"]
        assert (failed["outcome"], failed["said"], failed["calls_per_s"]) == (
            "crashed",
            "wrong version",
            None,
        )
        assert rows["run.darshan", "drishti"]["calls"] is None
        assert all(row["peak_bytes"] > 0 and row["seconds"] > 0 for row in found["runs"])
        # What a tool leaves in its input is gone with the copy.
        assert not list(work.rglob("x"))
        there = {"drishti", "recorder2text", "dfanalyzer"}
        assert {one["name"] for one in found["skipped"]} == {peer.name for peer in PEERS} - there
        assert sorted(path.name for path in work.iterdir()) == ["large"]

    def test_the_twin_in_parquet_tells_what_the_trace_tells(self, tiny, tmp_path):
        vani.convert(tiny[0], tmp_path / "store")
        assert write_twin(open_store(tmp_path / "store"), tmp_path / "twin") == 2000
        a = vani.profile(tiny[0], store=tmp_path / "a")
        b = vani.profile(tmp_path / "twin", store=tmp_path / "b")
        assert (b.workflow.io.bytes, b.workflow.io.ops) == (a.workflow.io.bytes, a.workflow.io.ops)
        assert b.workflow.files == a.workflow.files
        assert sorted(f.path for f in b.files) == sorted(f.path for f in a.files)
        assert b.workflow.runtime_s == pytest.approx(a.workflow.runtime_s, abs=1e-6)
        extents = json.loads((tmp_path / "twin" / "global.json").read_text())
        assert set(extents) == {"file_id", "proc_id", "tmid"}


@pytest.mark.parametrize(("ranks", "layout"), [(1, "3.0"), (3, "2.5p"), (50, "2.5g")])
def test_generated_files_keep_their_names_where_numbers_get_longer(tmp_path, ranks, layout):
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


@pytest.mark.parametrize("is_real", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_whole_commands_are_measured_against_their_goals(tiny, tmp_path, monkeypatch, is_real):
    if not is_real:
        monkeypatch.setattr("benchmarks.commands.VANI", NO_COMMAND)
    rows = commands(tiny[0], tmp_path, rounds=1, quick_calls=100_000)
    named = {row["command"]: row for row in rows}
    assert {"profile", "profile, another machine", "profile --quick", "advise", "explain", "--help"} < set(named)
    assert named["--help"]["goal_s"] == 0.2
    assert named["quick, 1e+05 calls"]["calls"] == 100_000
    assert named["profile"]["calls_per_s"] == pytest.approx(2000 / named["profile"]["seconds"])
    assert all(row["peak_bytes"] > 1 << 20 for row in rows)
    assert not list(tmp_path.glob("commands-[sc]*"))


@pytest.mark.slow
def test_growth_changes_one_number_at_a_time(tmp_path):
    rows = growth(tmp_path, calls=20_000)
    assert {row["axis"] for row in rows} == {"calls", "ranks", "files", "processes"}
    # A hundredth and a tenth of the base are too few calls for 32 files.
    assert [row["calls"] for row in rows if row["axis"] == "calls"] == [20_000, 200_000]
    assert {row["scheduler"] for row in rows if row["axis"] == "processes"} == {"threads", "processes"}
    assert {"seconds", "cpu_s", "peak_bytes", "calls_per_s"} <= set(rows[0])
    assert list(tmp_path.iterdir()) == [tmp_path / "growth.yaml"]


class TestCommand:
    def test_one_command_gives_tables_and_json(self, tmp_path, monkeypatch, capsys, nothing_installed):
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        figures, over_time, plot = (
            tmp_path / name for name in ("figures.json", "memory.csv", "memory.vl.json")
        )
        outputs = ["--json", str(figures), "--memory-csv", str(over_time), "--memory-plot", str(plot)]
        wanted = ["--only", "stages,rates,memory,peers", "--peer-python", str(nothing_installed)]
        status = main(["--calls", "2000", "--rounds", "1", *wanted, *outputs])
        shown = capsys.readouterr().out
        assert status == 0
        found = json.loads(figures.read_text())
        assert found["schema"] == "vani.benchmark/1"
        assert {"processor", "cores", "cores_usable", "memory_bytes", "system"} <= set(found["machine"])
        assert {"vani", "python", "numpy", "pyarrow", "isal"} <= set(found["versions"])
        assert found["trace"]["calls"] == found["trace"]["generated"]["calls"] == 2000
        assert [part for part in PARTS if part in found] == ["stages", "rates", "memory", "peers"]
        assert {"zlib", "isal", "convert", "profile", "convert_x_isal", "convert_work_x_isal"} <= set(
            found["rates"]["median"]
        )
        once = found["rates"]["rounds"][0]
        assert once["convert_x_zlib"] == pytest.approx(once["zlib"] / once["convert_cpu"])
        start = once["convert_start_s"] * once["zlib"] / 2000
        assert once["convert_work_x_zlib"] == pytest.approx(once["convert_x_zlib"] - start)
        assert found["rates"]["kernels"] == state()
        memory = found["memory"]
        assert memory["records"] == 2000
        assert {"start and tables", "decode", "survey", "measure", "finish"} <= {
            s["stage"] for s in memory["stages"]
        }
        assert memory["peak_bytes"] >= max(held for _, held, _ in memory["samples"])
        assert sum(s["seconds"] for s in memory["stages"]) == pytest.approx(memory["seconds"], rel=0.01)
        rows = list(csv.DictReader(over_time.read_text().splitlines()))
        assert list(rows[0]) == ["seconds", "bytes", "stage"]
        assert len(rows) == len(memory["samples"]) == len(json.loads(plot.read_text())["data"]["values"])
        for word in (
            "inflate",
            "access_pattern",
            "peak MiB",
            "convert, processor time / inflate with ISA-L",
            "drishti: skipped",
        ):
            assert word in shown
        assert str(Path.home()) not in figures.read_text()

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--only", "nothing"], "--only knows"),
            (["--rounds", "0"], "at least 1"),
            (["--peer-rounds", "0"], "at least 1"),
            (["--trace", "x", "--calls", "5"], "not both"),
            (["--only", "stages", "--memory-csv", "x"], "need the part memory"),
        ],
    )
    def test_wrong_usage_is_one_line(self, arguments, said, capsys):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments", [["--trace", "/no/such/trace"], ["--calls", "10", "--files", "100"]]
    )
    def test_a_trace_that_cannot_be_had_is_one_line(self, arguments, capsys):
        assert main([*arguments, "--only", "stages"]) == 2
        assert capsys.readouterr().err.count("\n") == 1

    def test_a_wrong_profile_has_no_speed(self, monkeypatch, capsys):
        wrong = {"records": 1, "bytes": [0, 0], "stages": [], "samples": []}
        monkeypatch.setattr("benchmarks.__main__.memory", lambda *_, **__: wrong)
        assert main(["--calls", "2000", "--only", "memory"]) == 3
        assert "are in the trace" in capsys.readouterr().err


def test_the_plot_of_memory_is_one_that_vega_lite_draws():
    converter = pytest.importorskip("vl_convert")
    plot = as_vega_lite({"samples": [[0.0, 1 << 20, "decode"], [0.1, 2 << 20, "finish"]]}, "memory")
    assert "resident memory" in converter.vegalite_to_svg(json.dumps(plot))


def test_the_page_names_every_part_and_every_peer():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for name in (*PARTS, *(peer.name for peer in PEERS)):
        assert f"| `{name}` |" in page
