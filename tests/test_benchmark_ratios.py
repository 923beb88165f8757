"""Promises about what `benchmarks.two_threads` divides by what."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import two_threads
from benchmarks.busy_machine import Others, others_meanwhile
from benchmarks.processes import Run, run
from benchmarks.two_threads import Turn, ratios

NO_COMMAND = (sys.executable, "-I", "-S", "-c", "")
"""Stands for `vani` where many commands would take long; what they print is not looked at."""

needs_affinity = pytest.mark.skipif(
    not two_threads.has_two_processors(), reason="needs two processors, and commands held to one"
)


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
