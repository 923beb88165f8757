"""`python -m benchmarks.scaling`: one and two workers measured here, a thousand computed from what stages cost.

Three things are measured: what each stage costs on one core (processor seconds, bytes on disk, bytes and combination
of partial results), what a task costs the scheduler, and how long one and two workers of a cluster on this machine
take (turn by turn; the ratio counts, and processor seconds, as machines are shared). `benchmarks/scaling_model.py`
puts the costs together. `--page docs/scaling.md` writes the tables into the page.
"""

from __future__ import annotations

import argparse
import json
import logging
import operator
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import vani
from benchmarks import scaling_model
from benchmarks.machine import machine, versions
from benchmarks.rates import inflate_rate
from benchmarks.scaling_model import CAP, FAN_IN, Machine, Measured, StageCost, predict, saturates
from tests.traces.trace_generator import Workload, generate_trace
from vani.analyzers.characterise import characterise
from vani.analyzers.facts import Facts
from vani.analyzers.measure import Measure
from vani.analyzers.measures import busy_time
from vani.analyzers.measures.footprint import Footprint
from vani.analyzers.measures.survey import Survey
from vani.analyzers.world import World
from vani.engine import Engine
from vani.engine.parcel import load, pack
from vani.readers.base import Piece
from vani.readers.open import open_trace
from vani.store.read import open_store
from vani.store.write import write_store

__all__ = ["Metered", "main", "measured_costs", "page_with"]

STAGES = ("decode", "survey", "measure", "overlap")
MIDDLE = scaling_model.Workload(calls=1e10, processes=1e4, files=1e4)
LARGE = scaling_model.Workload(calls=1e11, processes=1e5, files=1e6)
WORKERS = (1, 10, 100, 1000, 10_000)
_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass
class Metered:
    """What one stage cost, on one core."""

    items: int = 0
    seconds: float = 0.0
    partials: list[int] = field(default_factory=list)
    combined_bytes: int = 0
    combine_s: float = 0.0
    whole: int = 0
    constants: int = 0


class MeteredEngine(Engine):
    """Runs tasks one after the other as a cluster would: results are packed, and combined as a tree."""

    def __init__(self) -> None:
        super().__init__("synchronous")
        self.stages: dict[str, Metered] = {}

    def map(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        stage: str = "",
        constants: Sequence[Any] = (),
    ) -> list[Any]:
        meter = self._meter(stage, constants)
        results = [self._run(meter, function, item) for item in items]
        meter.whole += sum(map(len, results))
        return [load(r) for r in results]

    def reduce(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        combine: Callable[[list[Any]], Any],
        *,
        stage: str = "",
        constants: Sequence[Any] = (),
    ) -> Any:
        meter = self._meter(stage, constants)
        level = [self._run(meter, function, item) for item in items]
        while len(level) > 1:
            groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            began = time.process_time()
            level = [pack(combine([load(r) for r in group])) for group in groups]
            meter.combine_s += time.process_time() - began
            meter.combined_bytes += sum(len(r) for group in groups for r in group)
        meter.whole += sum(map(len, level))
        return combine([load(r) for r in level])

    def _meter(self, stage: str, constants: Sequence[Any]) -> Metered:
        meter = self.stages.setdefault(stage, Metered())
        meter.constants = max(meter.constants, len(pack(list(constants))))
        return meter

    @staticmethod
    def _run(meter: Metered, function: Callable[[Any], Any], item: Any) -> bytes:
        began = time.process_time()
        result = pack(function(item))
        meter.seconds += time.process_time() - began
        meter.items += 1
        meter.partials.append(len(result))
        return result


def metered(trace: Path, folder: Path) -> tuple[dict[str, Metered], dict[str, float]]:
    """Costs of each stage of a trace, and of what the client does alone; the store stays in `folder`."""
    engine = MeteredEngine()
    alone: dict[str, float] = {}
    began = time.process_time()
    reader = open_trace(trace)
    reader.calls_per_rank()
    alone["tables"] = time.process_time() - began
    before = time.process_time()
    write_store(
        reader,
        folder,
        version="benchmark",
        run=lambda f, t: engine.map(f, t, stage="decode", constants=[reader]),
    )
    alone["manifest"] = time.process_time() - before - engine.stages["decode"].seconds
    store = open_store(folder)
    before = time.process_time()
    with _combined(Survey) as survey, _combined(Footprint) as footprint:
        characterise([store], [reader.app], engine, version="benchmark")
    spent = sum(m.seconds + m.combine_s for n, m in engine.stages.items() if n != "decode")
    alone["profile"] = time.process_time() - before - spent
    ends = survey[0][1].ends
    alone["measure"] = len(pack(footprint[0][0].extents))
    alone["survey"] = len(pack(survey[0][0].reach))
    alone["ends"] = len(pack((ends.keys, ends.reach)))
    return engine.stages, alone


@contextmanager
def _combined(measure: type[Measure[Any, Any]]) -> Iterator[list[tuple[Any, Facts]]]:
    """What a measure combined, and the facts that it finished with."""
    seen: list[tuple[Any, Facts]] = []
    finish = measure.finish

    def kept(self: Measure[Any, Any], combined: Any, world: World, facts: Facts) -> Any:
        seen.append((combined, facts))
        return finish(self, combined, world, facts)

    with patch.object(measure, "finish", kept):
        yield seen


def decoded(trace: Path) -> tuple[float, float]:
    """Processor seconds per call of decoding without writing, and of inflating the time stamps alone."""
    reader = open_trace(trace)
    calls = int(reader.calls_per_rank().sum())
    began = time.process_time()
    for _ in reader.batches(range(reader.ranks), Piece()):
        pass
    whole = time.process_time() - began
    inflated = inflate_rate(trace, zlib)
    assert not isinstance(inflated, str), inflated
    return whole / calls, inflated[1] / inflated[0]


def measured_costs(
    folder: Path, *, calls: int, files: int, seconds_per_task: float, task_bytes: float
) -> Measured:
    """Costs from two traces: one of many calls, and one of many files, by which results grow."""
    many_calls, many_files = folder / "calls", folder / "files"
    generate_trace(many_calls, Workload(calls=calls, ranks=64, files=64, pattern="mixed", zlib_level=6))
    generate_trace(
        many_files, Workload(calls=calls // 4, ranks=64, files=files, pattern="mixed", zlib_level=6)
    )
    by_calls, alone = metered(many_calls, folder / "calls-store")
    by_files, alone_files = metered(many_files, folder / "files-store")
    trace = _size(many_calls)
    store = _size(folder / "calls-store")
    parts = by_calls["survey"].items
    stages = {}
    # Read and written: the trace and the store; the store twice for the passes, a column or two for the last one.
    traffic = {"decode": trace + store, "survey": store, "measure": store, "overlap": 1.5 * store}
    opens = {"decode": 2.0, "survey": 1.0, "measure": 1.0, "overlap": 3.0}
    for name in STAGES:
        few, many = by_calls[name], by_files[name]
        # Files with many calls each, as in large traces; more bytes than files with few.
        # What is left of busy time are intervals, whose number does not depend on files.
        per_file = few.whole / 64 if name == "survey" else 0.0
        capped = alone.get(name, 0.0) / 64
        if name == "measure":
            # A hundred files at most are listed with all that is known of them: they count as part of every result.
            others = (many.whole - alone_files[name]) - (few.whole - alone[name])
            per_file = capped + max(0.0, others / (files - 64))
        ends = [a["ends"] if name in ("measure", "overlap") else 0.0 for a in (alone, alone_files)]
        touched = 64 / parts
        stages[name] = StageCost(
            seconds_per_call=few.seconds / calls,
            bytes_per_call=traffic[name] / calls,
            opens_per_part=opens[name],
            bytes_per_partial=max(
                0.0,
                sum(few.partials) / len(few.partials) - (capped if name == "measure" else per_file) * touched,
            ),
            bytes_per_file=max(0.0, per_file - capped),
            capped_per_file=capped,
            constants_per_file=0.0
            if name == "decode"
            else max(
                (many.constants - ends[1]) / files,
                (few.constants - ends[0]) / 64 if name != "survey" else 0.0,
            ),
            capped_constants_per_file=ends[0] / 64,
            most_bytes=24.0 * busy_time.MOST if name == "overlap" else None,
            combine_s_per_byte=(few.combine_s + many.combine_s)
            / max(1, few.combined_bytes + many.combined_bytes),
        )
    seconds, seconds_files = (
        sum(a[n] for n in ("tables", "manifest", "profile")) for a in (alone, alone_files)
    )
    return Measured(
        stages=stages,
        scheduler_s_per_task=seconds_per_task,
        bytes_per_task=task_bytes,
        client_s_per_file=max(0.0, (seconds_files - seconds) / (files - 64)),
        client_s_per_part=_client_s_per_part(folder / "calls-store"),
        client_s=seconds,
    )


def _client_s_per_part(store: Path) -> float:
    """What the client does for each part: a line of the manifest, which it reads and checks."""
    began = time.process_time()
    for _ in range(20):
        parts = len(open_store(store).manifest.parts)
    return (time.process_time() - began) / 20 / parts


def _size(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


# ---------------------------------------------------------------- clusters of this machine


def _cluster(workers: int) -> Any:
    from distributed import LocalCluster  # noqa: PLC0415 - heavy

    return LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def scheduler_cost(tasks: int = 4000) -> tuple[float, float]:
    """Processor seconds and bytes of a task that does nothing, without those of the two workers."""
    with _cluster(2) as cluster:
        engine = Engine(cluster.scheduler_address)
        try:
            engine.map(abs, [1], stage="warm")
            # One item for each task: chunks would hide what is measured.
            runner = engine._cluster
            assert runner is not None
            runner._chunks = lambda items: [[i] for i in items]  # type: ignore[method-assign]
            # Scheduler and client are threads of this process; workers are others.
            began = time.process_time()
            engine.map(partial(operator.add, 1), range(tasks), stage="tasks")
            spent = time.process_time() - began
            traffic = runner.traffic["tasks"]
            return spent / tasks, (traffic.sent + traffic.received) / tasks
        finally:
            engine.close()


@dataclass(frozen=True)
class Run:
    """One profile on a cluster: wall seconds of each stage, processor seconds of all workers."""

    workers: int
    calls: int
    wall: Mapping[str, float]
    processor_s: float

    @property
    def seconds(self) -> float:
        return sum(self.wall.values())


def run_on(cluster: Any, trace: Path, calls: int, workers: int) -> Run:
    """Profile a trace from the beginning."""
    from distributed import Client  # noqa: PLC0415

    marks: dict[str, list[float]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        del done, total
        marks.setdefault(stage, []).append(time.perf_counter())

    with Client(cluster, set_as_default=False) as client, tempfile.TemporaryDirectory() as folder:
        before = sum(client.run(time.process_time).values())
        vani.profile(trace, store=folder, scheduler=client, progress=progress)
        after = sum(client.run(time.process_time).values())
    wall = {stage: marks[stage][-1] - marks[stage][0] for stage in STAGES}
    return Run(workers, calls, wall, after - before)


def one_and_two(folder: Path, calls: int, turns: int) -> list[Run]:
    """The best of some turns of one and two workers on one trace, and of two workers on twice as much."""
    single, double = folder / "single", folder / "double"
    generate_trace(single, Workload(calls=calls, ranks=64, files=64, pattern="mixed", zlib_level=6))
    generate_trace(double, Workload(calls=2 * calls, ranks=128, files=128, pattern="mixed", zlib_level=6))
    runs: dict[tuple[int, int], list[Run]] = {}
    with _cluster(1) as one, _cluster(2) as two:
        # Imports are no part of it.
        for cluster, workers in ((one, 1), (two, 2)):
            run_on(cluster, single, calls, workers)
        for _ in range(turns):
            for cluster, workers, trace, size in (
                (one, 1, single, calls),
                (two, 2, single, calls),
                (two, 2, double, 2 * calls),
            ):
                runs.setdefault((workers, size), []).append(run_on(cluster, trace, size, workers))
    return [min(found, key=lambda r: r.seconds) for found in runs.values()]


# ------------------------------------------------------------------------------ tables


def tables(document: Mapping[str, Any]) -> str:
    """The page's tables, in Markdown."""
    costs = Measured.of(document["costs"])
    where, ver = document["machine"], document["versions"]
    text = [
        f"Measured on {where['cores_usable']} cores of {where['processor'] or where['architecture']} "
        f"(load {where['load_1min']:.1f} when it began), Python {ver['python']}, Vani {ver['vani']}; "
        f"a generated trace of {document['calls']:,} calls of 64 processes on 64 files, and one of "
        f"{document['files']:,} files.",
        "",
        "### One and two workers",
        "",
        "| workers | calls | decode | survey | measure | overlap | together | processor s of all workers |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    runs = [Run(**r) for r in document["runs"]]
    text += [
        f"| {r.workers} | {r.calls:,} | "
        + " | ".join(f"{r.wall[s]:.2f} s" for s in STAGES)
        + f" | {r.seconds:.2f} s | {r.processor_s:.2f} |"
        for r in runs
    ]
    one, two, twice = runs
    text += [
        "",
        f"Strong scaling (the same trace): two workers are {one.seconds / two.seconds:.2f} times as fast as one, and "
        f"use {two.processor_s / one.processor_s:.2f} times its processor time. Weak scaling (twice the trace): two "
        f"workers take {twice.seconds / one.seconds:.2f} times as long as one on half of it, with "
        f"{twice.processor_s / one.processor_s:.2f} times its processor time.",
        "",
        "### What stages cost",
        "",
        "| stage | ns per call, one core | bytes on disk per call | partial result, bytes per part | "
        "and per file | combining, MB/s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, cost in costs.stages.items():
        rate = f"{1e-6 / cost.combine_s_per_byte:,.0f}" if cost.combine_s_per_byte else "-"
        text.append(
            f"| {name} | {cost.seconds_per_call * 1e9:,.0f} | {cost.bytes_per_call:.1f} | "
            f"{cost.bytes_per_partial:,.0f} | {cost.bytes_per_file:,.0f}"
            + (
                f" + {cost.capped_per_file:,.0f}, at most {CAP * 1e-6:.0f} MB in all"
                if cost.capped_per_file
                else ""
            )
            + f" | {rate} |"
        )
    decode, inflate = document["decode_s_per_call"], document["inflate_s_per_call"]
    write = costs.stages["decode"].seconds_per_call - decode
    text += [
        "",
        f"Of decoding, {inflate * 1e9:.0f} ns are what zlib alone takes to inflate the time stamps (Vani inflates with "
        f"ISA-L), {decode * 1e9:.0f} ns the whole of it, and {max(0.0, write) * 1e9:.0f} ns writing Parquet. "
        f"A task costs the scheduler {costs.scheduler_s_per_task * 1e6:,.0f} µs and {costs.bytes_per_task:,.0f} bytes; "
        f"what tasks share goes to each worker once: {costs.stages['survey'].constants_per_file:,.0f} bytes per file, "
        f"in the second pass {costs.stages['measure'].constants_per_file:,.0f} and for a file that is written all "
        f"through the run {costs.stages['measure'].capped_constants_per_file:,.0f} more, at most {CAP * 1e-6:.0f} MB "
        f"in all. The client alone takes {costs.client_s:.1f} s, {costs.client_s_per_file * 1e6:,.0f} µs per file and "
        f"{costs.client_s_per_part * 1e6:,.0f} µs per part.",
    ]
    for trace in (MIDDLE, LARGE):
        text += _predicted(costs, trace)
    return "\n".join(text)


def _predicted(costs: Measured, trace: scaling_model.Workload) -> list[str]:
    calls = f"{trace.calls:.0e}".replace("e+", "e")
    text = [
        "",
        f"### {calls} calls of {trace.processes:,.0f} processes on {trace.files:,.0f} files",
        "",
        "| workers | " + " | ".join((*STAGES, "client alone")) + " | together | most of it |",
        "| ---: | " + "---: | " * (len(STAGES) + 2) + "--- |",
    ]
    for workers in WORKERS:
        terms = predict(costs, trace, workers, Machine())
        total = sum(t.seconds for t in terms)
        name, share = saturates(terms)
        text.append(
            f"| {workers:,} | "
            + " | ".join(_duration(t.seconds) for t in terms)
            + f" | {_duration(total)} | {name}, {share:.0%} |"
        )
    text += ["", "On 1,000 workers, stage by stage:", ""]
    text += [
        "| stage | limit | what else would take | after it | result |",
        "| --- | --- | --- | --- | ---: |",
    ]
    for term in predict(costs, trace, 1000, Machine()):
        rest = sorted(((s, n) for n, s in term.beside.items() if n != term.limit), reverse=True)
        text.append(
            f"| {term.stage} | {term.limit}, {_duration(term.beside[term.limit])} | "
            + (", ".join(f"{n} {_duration(s)}" for s, n in rest) or "-")
            + " | "
            + (", ".join(f"{n} {_duration(s)}" for n, s in term.after.items()) or "-")
            + f" | {term.result / 1e6:,.3g} MB |"
        )
    return text


def _duration(seconds: float) -> str:
    if seconds < 0.05:
        return "0 s"
    if seconds >= 7200:
        return f"{seconds / 3600:,.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def page_with(page: str, measured: str) -> str:
    """The page with other tables between its marks.

    Raises
    ------
    ValueError
        It has no marks.
    """
    if page.count(_BEGIN) != 1 or page.count(_END) != 1:
        raise ValueError(f"the page needs one line {_BEGIN} and one line {_END}")
    return re.sub(
        f"{re.escape(_BEGIN)}.*{re.escape(_END)}",
        lambda _: f"{_BEGIN}\n{measured}\n{_END}",
        page,
        flags=re.DOTALL,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--calls", type=float, default=4e6, help="size of the generated trace")
    parser.add_argument("--files", type=int, default=20_000, help="files of the trace of many files")
    parser.add_argument("--turns", type=int, default=3, help="turns of one and two workers")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    parser.add_argument("--page", type=Path, help="write the tables into this page, between its marks")
    options = parser.parse_args(arguments)
    calls = int(options.calls)
    began = machine()
    with tempfile.TemporaryDirectory(prefix="vani-scaling-") as name:
        folder = Path(name)
        per_task, task_bytes = scheduler_cost()
        costs = measured_costs(
            folder, calls=calls, files=options.files, seconds_per_task=per_task, task_bytes=task_bytes
        )
        decode, inflate = decoded(folder / "calls")
        runs = one_and_two(folder, calls, options.turns)
    document = {
        "machine": began,
        "versions": versions(),
        "calls": calls,
        "files": options.files,
        "costs": costs.document(),
        "decode_s_per_call": decode,
        "inflate_s_per_call": inflate,
        "runs": [asdict(run) for run in runs],
    }
    text = tables(document)
    sys.stdout.write(text + "\n")
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.page:
        options.page.write_text(page_with(options.page.read_text(), text))


if __name__ == "__main__":
    main()
