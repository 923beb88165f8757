"""Promises about what the benchmarks divide by what: threads, sizes, and what kernels leave to numpy."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from switched import needs_kernels, numpy_alone

from benchmarks import larger, two_threads
from benchmarks.busy_machine import Others, others_meanwhile
from benchmarks.kernel_pieces import kernel_pieces
from benchmarks.peer_ratios import ratios as peer_ratios
from benchmarks.peers import peers
from benchmarks.processes import Run, run
from benchmarks.rates import run_anew
from benchmarks.tables import show
from benchmarks.two_threads import Turn, ratios
from tests.traces.trace_generator import Workload, generate_trace

NO_COMMAND = (sys.executable, "-I", "-S", "-c", "")
"""Stands for `vani` where many commands would take long; what they print is not looked at."""

needs_affinity = pytest.mark.skipif(
    not two_threads.has_two_processors(), reason="needs two processors, and commands held to one"
)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    generate_trace(tmp_path / "tiny", Workload(calls=2000, ranks=2, files=4))
    return tmp_path / "tiny"


class TestKernelPieces:
    @needs_kernels
    def test_those_that_decode_and_those_that_measure_are_counted(self, tiny, tmp_path):
        # Was: "signatures 0 of 0 pieces", since the process that counted only decoded.
        found = kernel_pieces(tiny, tmp_path)
        assert {"calls", "times", "signatures", "pattern", "extents"} <= set(found)
        assert all(used + declined > 0 for used, declined in found.values())
        assert [path.name for path in tmp_path.iterdir()] == ["tiny"]

    @needs_kernels
    def test_what_was_counted_before_is_not_counted_again(self, tiny, tmp_path):
        assert kernel_pieces(tiny, tmp_path) == kernel_pieces(tiny, tmp_path)

    def test_without_kernels_there_is_nothing_to_count(self, tiny, tmp_path):
        with numpy_alone():
            assert kernel_pieces(tiny, tmp_path) == {}

    def test_the_line_says_how_many_pieces_numpy_did(self, capsys):
        shown = shown_rates(capsys, {"calls": [5, 0], "merge": [2, 3]})
        assert "2 of them did 7 of 10 pieces of work of vani profile, numpy did merge 3 of 5" in shown
        assert "did 5 of 5 pieces of work of vani profile, numpy did none" in shown_rates(
            capsys, {"calls": [5, 0]}
        )
        assert shown_rates(capsys, {}).endswith("kernels: compiled")


def shown_rates(capsys: pytest.CaptureFixture[str], pieces: dict[str, list[int]]) -> str:
    class Nothing(dict[str, None]):
        def __missing__(self, key: str) -> None:
            return None

    machine = {"processor": "p", "cores": 2, "cores_usable": 2, "memory_bytes": None, "system": "s"}
    rates = {"rounds": [], "median": Nothing(), "best": Nothing(), "kernels": "compiled"}
    show(
        {
            "machine": {**machine, "load_1min": None},
            "versions": {},
            "trace": {"name": "t", "calls": 0},
            "rates": {**rates, "kernel_pieces": pieces},
        }
    )
    return " ".join(capsys.readouterr().out.split())


class TestTwoThreads:
    def test_bounds_need_no_clock_of_an_idle_machine(self):
        # Others halved what one thread got, and let two threads alone.
        found = ratios(Turn(8.0, 4.0, 1.0), Turn(2.5, 4.4, 0.0))
        assert found["clock"] == pytest.approx(3.2)
        assert found["at_least"] == pytest.approx(1.6)
        assert found["at_most"] == pytest.approx(2 * 4.0 / 4.4)
        assert found["processor_time"] == pytest.approx(1.1)

    @needs_affinity
    def test_one_and_two_are_run_in_each_round_and_told(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("benchmarks.rates.VANI", NO_COMMAND)
        monkeypatch.setattr(two_threads, "_PIECES", 10)
        figures = tmp_path / "figures.json"
        assert two_threads.main(["--calls", "2e4", "--rounds", "1", "--rest", "0", "--json", str(figures)]) == 0
        found = json.loads(figures.read_text())
        for name in ("inflate", "convert", "profile"):
            (once,) = found[name]
            assert {"seconds", "cpu_s", "others"} == set(once["one"]) == set(once["two"])
            both = sum(once["one"]["seconds"] / seconds for seconds in once["apart"])
            assert len(once["apart"]) == 2
            assert once["ratios"]["apart"] == pytest.approx(both)
        shown = capsys.readouterr().out
        assert "convert: two processors are" in shown
        assert "goal 1.85x" in shown
        assert "two runs at once, each on a processor" in shown
        assert "kernels: " in shown

    @pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc/stat")
    def test_work_of_others_is_that_of_all_without_the_commands_own(self):
        with others_meanwhile() as others:
            done = run([sys.executable, "-I", "-S", "-c", "sum(range(5_000_000))"])
        assert others.busy_s is not None
        assert others.processors(done) >= 0
        alone = Others(busy_s=3.0).processors(Run("done", 2.0, 2.0, 0, None, 0.0, ""))
        assert alone == pytest.approx(0.5)
        assert Others().processors(done) is None


class TestLarger:
    def test_the_cost_of_a_call_is_told_for_each_size_and_as_a_ratio(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr("benchmarks.rates.VANI", NO_COMMAND)
        figures = tmp_path / "figures.json"
        sizes = ["--calls", "2e3,6e3", "--ranks", "2", "--files", "4", "--rounds", "1"]
        assert larger.main([*sizes, "--json", str(figures)]) == 0
        found = json.loads(figures.read_text())
        assert set(found["profile"][0]) == set(found["inflate"][0]) == {"2000", "6000"}
        shown = capsys.readouterr().out
        assert "x, goal 1.1x: " in shown
        assert "ns a call of 6e+03" in shown

    @pytest.mark.parametrize("sizes", ["6e6", "few,many", "1e3,-1"])
    def test_wrong_sizes_are_one_line(self, sizes, capsys):
        with pytest.raises(SystemExit) as left:
            larger.main(["--calls", sizes])
        assert left.value.code == 2
        assert "--calls takes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["convert", "profile"])
def test_commands_that_run_anew_leave_nothing_behind(name, tiny, tmp_path):
    assert run_anew(name, tiny, tmp_path).cpu_s > 0
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def row(tool: str, cpu_s: float, start_s: float | None, outcome: str = "done") -> dict[str, object]:
    measured = {"cpu_s": cpu_s, "seconds": 2 * cpu_s, "peak_bytes": int(cpu_s * 100), "start_s": start_s}
    return {"input": "trace", "calls": 10, "tool": tool, "outcome": outcome, **measured}


class TestPeerRatios:
    def test_a_tool_is_divided_by_the_commands_that_do_together_what_it_does(self):
        runs = [row("vani profile", 2.0, 0.5), row("vani advise", 1.0, 0.9), row("drishti", 12.0, 2.0)]
        (found,) = peer_ratios(runs, {"drishti": ("vani profile", "vani advise")})
        assert (found["tool"], found["beside"]) == ("drishti", "vani profile and advise")
        assert found["cpu_x"] == found["seconds_x"] == pytest.approx(4.0)
        assert found["work_x"] == pytest.approx(10.0 / 1.6)
        # Commands run one after the other.
        assert found["peak_x"] == pytest.approx(6.0)

    def test_work_that_starting_hides_has_no_ratio(self):
        beside = {"a": ("vani convert",)}
        (found,) = peer_ratios([row("vani convert", 0.5, 0.49), row("a", 3.0, 0.1)], beside)
        assert found["work_x"] is None
        (found,) = peer_ratios([row("vani convert", 0.5, 0.1), row("a", 3.0, None)], beside)
        assert found["work_x"] is None

    def test_what_failed_has_no_ratio(self):
        beside = {"a": ("vani convert",)}
        assert peer_ratios([row("vani convert", 1.0, 0.1), row("a", 3.0, 0.1, "crashed")], beside) == []
        assert peer_ratios([row("vani convert", 1.0, 0.1, "timed out"), row("a", 3.0, 0.1)], beside) == []

    def test_a_tool_on_the_path_gets_its_ratio_with_start_up_and_without(self, tmp_path, monkeypatch):
        monkeypatch.setattr("benchmarks.peers.VANI", NO_COMMAND)
        place = tmp_path / "bin" / "recorder2parquet"
        place.parent.mkdir()
        script = "import pathlib, sys; sum(range(100 * (pathlib.Path(sys.argv[1]) / 'recorder.ts').stat().st_size))"
        place.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(script)} "$@"\n')
        place.chmod(0o755)
        monkeypatch.setenv("PATH", f"{place.parent}:/usr/bin:/bin")
        work = tmp_path / "work"
        work.mkdir()
        trace = tmp_path / "trace"
        generate_trace(trace, Workload(calls=20_000, ranks=2, files=4, layout="2.5g"))
        found = peers(work, calls=0, limit_s=60, rounds=2, pythons=[tmp_path / "python"], given=[trace])
        assert [one["name"] for one in found["found"]] == ["recorder2parquet"]
        told = {one["tool"]: one for one in found["runs"]}
        assert told["recorder2parquet"]["start_s"] < told["recorder2parquet"]["cpu_s"]
        (ratio,) = found["ratios"]
        assert (ratio["tool"], ratio["beside"], ratio["calls"]) == (
            "recorder2parquet",
            "vani convert",
            20_000,
        )
        assert ratio["cpu_x"] == pytest.approx(
            told["recorder2parquet"]["cpu_s"] / told["vani convert"]["cpu_s"]
        )
        assert list(work.iterdir()) == []
