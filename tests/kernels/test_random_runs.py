"""Stores and profiles have the same bytes with kernels and with numpy, for random runs and for all real ones."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from invented import NIGHTLY_SEED
from switched import needs_kernels, numpy_alone

import vani
from tests.traces.random_runs import random_run
from vani.errors import VaniError
from vani.kernels import times_used
from vani.readers.recorder import batches
from vani.store import write as cuts

sys.path.append(str(Path(__file__).resolve().parents[1] / "fuzz"))
from mutations import damaged

pytestmark = needs_kernels
SHARED = Path(__file__).resolve().parents[3] / "shared"
REAL = sorted(path for path in (SHARED / "traces").glob("*") if path.is_dir())
MANY, AT_ONCE = 1000, 50
FEW = range(MANY, MANY + 8)
DECODING = {"calls", "grammar", "rules", "rules_used", "times"}
MEASURING = {
    "activity",
    "extents",
    "intervals",
    "pattern",
    "reach",
    "signatures",
}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def made(traces: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, Any]:
    """The stores of traces, their profile, and that of the first store; or the reason why one is refused."""
    monkeypatch.setenv("VANI_CACHE", str(folder / "cache"))
    found: dict[str, Any] = {}
    for trace in traces:
        try:
            vani.convert(trace, folder / trace.name, scheduler=options["scheduler"])
            found[trace.name] = contents(folder / trace.name)
        except VaniError as error:
            found[trace.name] = str(error)
    for name, workload in (("workload", traces), ("store", [folder / traces[0].name])):
        try:
            # A store is named after its location.
            found[name] = vani.profile(*workload, **options).to_yaml().replace(str(folder), "")
        except VaniError as error:
            found[name] = str(error).replace(str(folder), "")
    return found


def assert_same(traces: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    options = {"scheduler": "synchronous", "files": None} | options
    compiled = made(traces, folder / "kernels", monkeypatch, **options)
    with numpy_alone():
        plain = made(traces, folder / "numpy", monkeypatch, **options)
    different = [name for name in compiled if compiled[name] != plain[name]]
    for name in different:
        assert compiled[name] == plain[name], (folder.name, different)


def draw_and_compare(seed: int, folder: Path) -> None:
    """A workload of one or several runs that share files, divided anywhere, valid or damaged."""
    draw = random.Random(f"workload {seed}")
    traces = [folder / f"{number}-run" for number in range(draw.choice((1, 1, 1, 2, 4)))]
    calls = 0
    for trace in traces:
        run = random_run(f"{seed} {trace.name}")
        run.write(trace)
        calls += sum(map(len, run.ranks))
        if draw.random() < 0.1:
            for name, content in damaged("recorder", contents(trace), draw).items():
                (trace / name).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        if draw.random() < 0.6:
            patch.setattr(batches, "BATCH_ROWS", 1 + calls // draw.choice((2, 5, 12)))
        if draw.random() < 0.3:
            patch.setattr(cuts, "LARGE_PART", draw.choice((10, 80)))
        assert_same(
            traces,
            folder,
            patch,
            files=draw.choice((None, None, 1)),
            phase_gap=draw.choice((None, None, 0.001)),
            scheduler=draw.choice(("synchronous", "synchronous", "threads")),
        )


def used_by(seeds: range, folder: Path) -> dict[str, int]:
    """Compare these runs; return how often each kernel worked."""
    before = times_used()
    for seed in seeds:
        (folder / f"seed {seed}").mkdir()
        draw_and_compare(seed, folder / f"seed {seed}")
    return {name: often - before.get(name, (0, 0))[0] for name, (often, _) in times_used().items()}


@pytest.mark.slow
def test_some_random_runs_give_the_same_result_without_kernels(tmp_path):
    used = used_by(FEW, tmp_path)
    assert {name for name, often in used.items() if often} >= DECODING | MEASURING


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, AT_ONCE))
def test_thousand_random_runs_give_the_same_result_without_kernels(first, tmp_path):
    first += NIGHTLY_SEED * MANY
    used = used_by(range(first, first + AT_ONCE), tmp_path)
    assert {name for name, often in used.items() if often} >= DECODING | MEASURING


@pytest.mark.slow
@pytest.mark.parametrize("trace", REAL, ids=[trace.name for trace in REAL])
def test_every_real_trace_gives_the_same_result_without_kernels(trace, tmp_path, monkeypatch):
    inside = sorted(path for path in trace.iterdir() if path.is_dir())
    assert_same(inside or [trace], tmp_path, monkeypatch)
