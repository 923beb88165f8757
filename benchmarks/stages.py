"""What each stage of `vani profile` costs on one core: the whole of it, run in this process with a stopwatch.

The stages, in their order:

    tables       call table and grammars are inflated, decoded and checked
    inflate      time stamps are read and inflated
    expand       the grammar becomes one signature per call
    times        time stamps become nanoseconds
    positions    reads, writes and seeks become offsets
    callers      which library call a call was made in
    columns      the other columns are looked up, and batches built; for Parquet traces, all of decoding
    tell         calls are counted, where they have no room in memory and are decoded anew for each pass
    write        batches become Parquet, where they have no room and decoding takes longer than reading
    read         Parquet becomes batches again, for all passes
    notes        when each call took place is packed, and unpacked again
    shared       columns and groups of a batch that several analyzers use
    (analyzers)  one line for each, those of plug-ins, too
    overlap      when any process was busy, over all processes
    between      what one pass tells the next (phases, ends of files), and the overhead of the tasks
    entities     attributes of the profile are computed, and checked against each other
    yaml         the profile is validated and written as text
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.stopwatch import Stopwatch
from tests.traces.trace_generator import Workload, generate_trace
from vani.analyzers import characterise
from vani.analyzers.calls.batch import Batch
from vani.analyzers.calls.recorded_calls import RecordedCalls
from vani.analyzers.passes import measure_workload
from vani.engine.run import Engine
from vani.readers.open import open_trace
from vani.schema.document import dumps
from vani.store.provide import Stores

__all__ = ["stages"]

_ANALYZER = "analyzer "
# Stage, module, class (or none), name, and what it is.
_HOOKS = (
    ("inflate", "vani.readers.recorder.frames", "Inflater", "read", "function"),
    ("inflate", "vani.readers.recorder.time_files", "RawTimes", "read", "function"),
    ("expand", "vani.readers.recorder.grammar", "Grammar", "expand", "generator"),
    ("expand", "vani.readers.recorder.grammar", "Grammar", "whole", "property"),
    ("times", "vani.readers.recorder.timestamps", "Clock", "times", "function"),
    ("positions", "vani.readers.positions", "Positions", "resolve", "function"),
    ("callers", "vani.readers.nesting", "Nesting", "resolve", "function"),
    ("tell", "vani.readers.recorder.reader", "RecorderReader", "tell", "function"),
    ("write", "vani.store.write", "", "write_store", "function"),
    ("read", "vani.store.read", "Store", "batches", "generator"),
    ("read", "pyarrow.parquet", "ParquetFile", "read_row_groups", "function"),
    ("read", "pyarrow.parquet", "ParquetFile", "read_row_group", "function"),
    ("notes", "vani.analyzers.passes.timed_groups", "_Noting", "add", "function"),
    ("notes", "vani.analyzers.passes.timed_groups", "NotedGroup", "calls", "function"),
    ("shared", "vani.analyzers.calls.recorded_calls", "RecordedCalls", "__init__", "function"),
    ("overlap", "vani.analyzers.measures.busy_time", "", "busy", "function"),
    ("between", "vani.analyzers.characterise", "", "measure", "function"),
)
_GROUPS = {
    "tables": "decode",
    "inflate": "decode",
    "expand": "decode",
    "times": "decode",
    "positions": "decode",
    "callers": "decode",
    "columns": "decode",
    "tell": "decode",
    "write": "write",
    "read": "analyze",
    "notes": "analyze",
    "shared": "analyze",
    "overlap": "analyze",
    "between": "analyze",
    "entities": "finish",
    "yaml": "finish",
}


def stages(trace: Path, folder: Path, *, rounds: int = 1) -> dict[str, Any]:
    """Profile a trace on one core, as the command does, with files below `folder`, and tell where the time went.

    Parameters
    ----------
    rounds
        Of so many runs, that with the least processor time is told.

    Returns
    -------
    dict
        `calls`; `cpu_s` and `seconds` of the whole; `stages`, one dict each: stage, group, seconds, cpu_s, times
        (how often it was entered), calls_per_s and share (both of processor time).
    """
    # Modules that are imported on first use are no stage of a trace.
    warm = folder / "stages-warm"
    generate_trace(warm, Workload(calls=1000, ranks=2, files=2))
    _once(warm, folder)
    shutil.rmtree(warm)
    return min((_once(trace, folder) for _ in range(rounds)), key=lambda found: float(found["cpu_s"]))


def _once(trace: Path, folder: Path) -> dict[str, Any]:
    watch = Stopwatch()
    place = folder / "stages-cache"
    with (
        patch.dict(os.environ, VANI_CACHE=str(place)),
        ExitStack() as until,
        _wrapped(watch),
        watch.stage("between"),
    ):
        engine = _Engine(watch)
        with watch.stage("tables"):
            reader = open_trace(trace)
            calls = int(reader.calls_per_rank().sum())
        batches = watch.timed_generator("columns", reader.batches)
        with patch.object(reader, "batches", batches):
            store = Stores(None, until, version="benchmark", traces=[trace]).provide(reader, engine)
            with watch.stage("entities"):
                profile, _ = characterise.characterise([store], [reader.app], engine, version="benchmark")
        with watch.stage("yaml"):
            text = dumps(profile)
    shutil.rmtree(place, ignore_errors=True)
    whole_cpu = sum(s.cpu_s for s in watch.spent.values())
    rows = []
    for name in _in_order(watch.spent):
        spent = watch.spent[name]
        rows.append(
            {
                "stage": name.removeprefix(_ANALYZER),
                "group": "analyze" if name.startswith(_ANALYZER) else _GROUPS[name],
                **asdict(spent),
                "calls_per_s": calls / spent.cpu_s if spent.cpu_s > 0 else None,
                "share": spent.cpu_s / whole_cpu if whole_cpu else None,
            }
        )
    return {
        "calls": calls,
        "seconds": sum(s.seconds for s in watch.spent.values()),
        "cpu_s": whole_cpu,
        "profile_bytes": len(text.encode()),
        "stages": rows,
    }


def _in_order(names: Sequence[str] | dict[str, Any]) -> list[str]:
    """Stages as the module lists them, the analyzers by name."""
    fixed = list(_GROUPS)
    behind = fixed.index("shared") + 0.5
    return sorted(names, key=lambda n: (behind if n.startswith(_ANALYZER) else fixed.index(n), n))


class _Engine(Engine):
    """Runs tasks one after the other, and charges what no other stage takes to the engine's stage."""

    def __init__(self, watch: Stopwatch) -> None:
        super().__init__("synchronous")
        self._watch = watch

    def map(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        stage: str = "",
        constants: Sequence[Any] = (),
        calls: int = 0,
    ) -> list[Any]:
        del constants, calls
        with self._watch.stage(stage if stage == "overlap" else "between"):
            return [function(item) for item in items]


class _Collector:
    def __init__(self, collector: Any, watch: Stopwatch, stage: str) -> None:
        self.add = watch.timed(stage, collector.add)
        self.result = watch.timed(stage, collector.result)


class _Analyzer:
    """A measure whose time is charged to it."""

    def __init__(self, measure: Any, watch: Stopwatch) -> None:
        self._measure, self._watch = measure, watch
        self.name, self.columns = measure.name, measure.columns
        self.result = getattr(measure, "result", None)
        self._stage = f"{_ANALYZER}{measure.name}"
        self.combine = watch.timed(self._stage, measure.combine)
        self.finish = watch.timed(self._stage, measure.finish)

    def begin(self, context: Any, findings: Any) -> _Collector:
        with self._watch.stage(self._stage):
            return _Collector(self._measure.begin(context, findings), self._watch, self._stage)


@contextmanager
def _wrapped(watch: Stopwatch) -> Iterator[None]:
    """Wrap what belongs to a stage, as long as the block runs."""
    with ExitStack() as stack:

        def replace(owner: Any, name: str, new: Any) -> None:
            stack.enter_context(patch.object(owner, name, new))

        for stage, module, owner_name, name, kind in _HOOKS:
            owner = getattr(import_module(module), owner_name) if owner_name else import_module(module)
            if kind == "property":
                replace(owner, name, _timed_property(watch, stage, owner, name))
                continue
            timed = watch.timed_generator if kind == "generator" else watch.timed
            replace(owner, name, timed(stage, getattr(owner, name)))
        for owner in (Batch, RecordedCalls):
            for name, member in vars(owner).copy().items():
                if isinstance(member, cached_property):
                    replace(owner, name, _timed_property(watch, "shared", owner, name))
        found = [_Analyzer(measure, watch) for measure in measure_workload.measures()]
        replace(measure_workload, "measures", lambda: found)
        survey = measure_workload.Survey
        replace(measure_workload, "Survey", lambda: _Analyzer(survey(), watch))
        yield


def _timed_property(watch: Stopwatch, stage: str, owner: Any, name: str) -> cached_property[Any]:
    made = cached_property(watch.timed(stage, vars(owner)[name].func))
    made.__set_name__(owner, name)
    return made
