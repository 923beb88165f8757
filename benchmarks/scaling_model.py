"""What a cluster of many workers would do: stage costs that were measured on one core, put together.

Of each stage, the slowest of these decides; they go on at the same time:

    compute     calls * seconds per call / workers
    scheduler   tasks * seconds per task, in one process whatever the number of workers
    files       bytes read and written / bandwidth of the shared file system
    opens       files opened / opens per second of its metadata servers
    network     partial results and shared constants / bandwidth of a node's link

Then what no worker can help with: the last combinations of the tree, each of which waits for the one below, the result
that arrives at the client, and what the client does alone (tables of the trace, manifest, entities of the profile).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

__all__ = ["Machine", "Measured", "StageCost", "Term", "Workload", "predict", "saturates"]

FAN_IN = 8
TASKS_PER_THREAD = 16
CALLS_PER_PART = 1 << 20
CAP = 16 * 2.0**21
"""Bytes of what is bounded: two million moments of files (`analyzers/measures/survey.py`), a million extents."""


@dataclass(frozen=True)
class StageCost:
    """One stage on one core; bytes on disk are those of the shared file system."""

    seconds_per_call: float
    bytes_per_call: float
    """Read and written."""
    opens_per_part: float
    bytes_per_partial: float
    """A part's result, without what grows with the files that it touches."""
    bytes_per_file: float
    """Of a result, for each file that its calls touch."""
    capped_per_file: float
    """The same, of what is bounded by `CAP`: the extents that were touched, moments of files."""
    constants_per_file: float
    """What tasks share."""
    capped_constants_per_file: float
    """The same, of what is bounded by `CAP`."""
    combine_s_per_byte: float
    """Unpack, combine and pack again, by bytes that go in."""
    most_bytes: float | None = None
    """No result is larger."""


@dataclass(frozen=True)
class Measured:
    """All that the model takes from measurements."""

    stages: Mapping[str, StageCost]
    scheduler_s_per_task: float
    bytes_per_task: float
    client_s_per_file: float
    client_s_per_part: float
    client_s: float

    @classmethod
    def of(cls, document: Mapping[str, object]) -> Measured:
        """Out of the JSON that `benchmarks.scaling` writes."""
        stages: Mapping[str, Mapping[str, float]] = document["stages"]  # type: ignore[assignment]
        rest = {k: v for k, v in document.items() if k != "stages"}
        return cls(stages={n: StageCost(**s) for n, s in stages.items()}, **rest)  # type: ignore[arg-type]

    def document(self) -> dict[str, object]:
        """The same as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Machine:
    """What is assumed of a cluster; not measured here."""

    file_bandwidth: float = 100e9
    """Bytes per second of the shared file system, all nodes together."""
    opens_per_s: float = 20e3
    link: float = 1e9
    """Bytes per second of a worker's share of its node's network."""


@dataclass(frozen=True)
class Workload:
    """A trace."""

    calls: float
    processes: float
    files: float

    @property
    def parts(self) -> float:
        """A part holds whole processes, about a million calls."""
        return max(1.0, min(self.processes, self.calls / CALLS_PER_PART))


@dataclass(frozen=True)
class Term:
    """One stage: seconds of what goes on at the same time, and of what comes after."""

    stage: str
    beside: Mapping[str, float]
    after: Mapping[str, float] = field(default_factory=dict)
    result: float = 0.0
    """Bytes that arrive at the client, which must fit its memory, and the workers' that combine last."""

    @property
    def limit(self) -> str:
        return max(self.beside, key=lambda name: self.beside[name])

    @property
    def seconds(self) -> float:
        return max(self.beside.values()) + sum(self.after.values())


def predict(measured: Measured, trace: Workload, workers: float, machine: Machine) -> list[Term]:
    """Seconds of each stage on so many workers of one thread."""
    chunks = min(trace.parts, workers * TASKS_PER_THREAD)
    terms = []
    for name, cost in measured.stages.items():
        nodes, level = 0.0, chunks
        depth = 0
        folds = name != "decode"
        while folds and level > 1:
            level = math.ceil(level / FAN_IN)
            nodes += level
            depth += 1
        tasks = chunks + nodes
        files_per_task = trace.files / chunks
        fixed = cost.bytes_per_partial * trace.parts / chunks
        partial = (
            fixed + cost.bytes_per_file * files_per_task + min(CAP, cost.capped_per_file * files_per_task)
        )
        whole = 0.0
        if folds:
            whole = cost.bytes_per_partial + cost.bytes_per_file * trace.files
            whole += min(CAP, cost.capped_per_file * trace.files)
        if cost.most_bytes is not None:
            partial, whole = min(partial, cost.most_bytes), cost.most_bytes
        constants = cost.constants_per_file * trace.files
        constants += min(CAP, cost.capped_constants_per_file * trace.files)
        beside = {
            "compute": trace.calls * cost.seconds_per_call / workers,
            "scheduler": tasks * measured.scheduler_s_per_task,
            "files": trace.calls * cost.bytes_per_call / machine.file_bandwidth,
            "opens": trace.parts * cost.opens_per_part / machine.opens_per_s,
            # Constants spread from worker to worker; results travel once per level of the tree.
            "network": constants * math.log2(workers + 1) / machine.link
            + partial * chunks * max(1, depth) / workers / machine.link,
        }
        after = {}
        if folds:
            # The sizes of the tree's last nodes: what comes in at each level is at most the whole result.
            sizes = [min(whole, partial * FAN_IN ** (level + 1)) for level in range(depth)]
            after["combine"] = (
                sum(FAN_IN * min(whole, size / FAN_IN) for size in sizes) * cost.combine_s_per_byte
            )
            after["to the client"] = whole / machine.link
        else:
            whole = cost.bytes_per_partial * trace.parts
            after["to the client"] = whole / machine.link
        terms.append(Term(name, beside, after, whole))
    alone = (
        measured.client_s
        + measured.client_s_per_file * trace.files
        + measured.client_s_per_part * trace.parts
    )
    terms.append(Term("client alone", {"client": alone}))
    return terms


def saturates(terms: Sequence[Term]) -> tuple[str, float]:
    """What takes most of the time, over all stages, and its share."""
    total = sum(term.seconds for term in terms)
    spent: dict[str, float] = {}
    for term in terms:
        spent[term.limit] = spent.get(term.limit, 0.0) + max(term.beside.values())
        for name, seconds in term.after.items():
            spent[name] = spent.get(name, 0.0) + seconds
    worst = max(spent, key=lambda name: spent[name])
    return worst, spent[worst] / total
