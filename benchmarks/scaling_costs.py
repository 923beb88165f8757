"""What each stage costs on one core: processor seconds, bytes on disk, bytes and combination of partial results."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.rates import inflate_rate
from benchmarks.scaling_model import FAN_IN, Measured, StageCost
from tests.traces.trace_generator import Workload, generate_trace
from vani.analyzers.characterise import characterise
from vani.analyzers.measures import busy_time
from vani.analyzers.measures.footprint import Footprint
from vani.analyzers.measures.survey import Survey
from vani.analyzers.passes.measure import Measure
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Workload as AnalyzedWorkload
from vani.engine import Engine
from vani.engine.parcel import load, pack
from vani.readers.open import open_trace
from vani.readers.trace_reader import Piece
from vani.store.read import open_store
from vani.store.write import write_store

__all__ = ["STAGES", "Metered", "decoded", "measured_costs"]

STAGES = ("decode", "survey", "measure", "overlap")


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
        calls: int = 0,
    ) -> list[Any]:
        del calls
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
        calls: int = 0,
    ) -> Any:
        del calls
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
def _combined(measure: type[Measure[Any, Any]]) -> Iterator[list[tuple[Any, SurveyFindings]]]:
    """What a measure combined, and the findings that it finished with."""
    seen: list[tuple[Any, SurveyFindings]] = []
    finish = measure.finish

    def kept(self: Measure[Any, Any], combined: Any, workload: AnalyzedWorkload, findings: SurveyFindings) -> Any:
        seen.append((combined, findings))
        return finish(self, combined, workload, findings)

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
