"""Advice on labelled traces and its accuracy: precision and recall by rule, by family and by kind of pathology.

A *finding* is a rule that recommends something for a trace on a machine, however many recommendations it makes.

    precision = right findings / (right findings + wrong findings)
    recall    = pathologies that a finding of one of their rules names / pathologies

Findings that are neither right nor wrong are counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.catalogue.labels import Case, Labels, Worth
from vani.cli.advise import advise
from vani.cli.profile import profile
from vani.errors import InputError
from vani.schema.advice import Advice
from vani.schema.system import System

__all__ = [
    "Finding",
    "Judged",
    "Pathology",
    "Tally",
    "each_program_once",
    "find_traces",
    "judge_advice",
    "judge_traces",
    "tally",
]


@dataclass(frozen=True)
class Finding:
    """The recommendations of one rule for one trace on one machine."""

    rule: str
    trace: str
    machine: str
    worth: Worth
    severity: str
    """The severity of its first recommendation, which is the most severe."""
    recommendations: int
    first: bool
    """Whether only verdicts come before it."""


@dataclass(frozen=True)
class Pathology:
    """A pathology of a trace, and the rules that found it."""

    kind: str
    trace: str
    machine: str
    rules: tuple[str, ...]
    found_by: tuple[str, ...]
    named_by: tuple[str, ...] = ()
    """Diagnosed patterns that one of its rules acts on."""


@dataclass
class Judged:
    """Everything found, in the order of traces."""

    findings: list[Finding] = field(default_factory=list)
    pathologies: list[Pathology] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    """Names of the judged traces."""
    refused: list[str] = field(default_factory=list)
    """Traces that could not be read, as labelled."""
    unlabelled: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    """Sentences about traces that were readable or unreadable contrary to their label."""

    def add(self, other: Judged) -> None:
        self.findings += other.findings
        self.pathologies += other.pathologies


@dataclass(frozen=True)
class Tally:
    """Counts of findings by worth, and of pathologies; shares are None if there is nothing to divide by."""

    right: int
    wrong: int
    neither: int
    found: int
    pathologies: int

    @property
    def precision(self) -> float | None:
        return _share(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        return _share(self.found, self.pathologies)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def tally(findings: Iterable[Finding], pathologies: Iterable[Pathology]) -> Tally:
    """Count findings and pathologies."""
    worth = Counter(one.worth for one in findings)
    found = Counter(bool(one.found_by) for one in pathologies)
    return Tally(worth["right"], worth["wrong"], worth["neither"], found[True], found.total())


def each_program_once(labels: Labels, judged: Judged) -> tuple[float | None, float | None]:
    """Precision and recall with the traces of one program counted as one, so that many traces give no advantage."""
    traces = Counter(id(labels.by_trace[trace]) for trace in judged.traces)

    def weight(of: Iterable[Finding | Pathology]) -> float:
        return sum(1 / traces[id(labels.by_trace[one.trace])] for one in of)

    right = weight(one for one in judged.findings if one.worth == "right")
    wrong = weight(one for one in judged.findings if one.worth == "wrong")
    found = weight(one for one in judged.pathologies if one.found_by)
    pathologies = weight(judged.pathologies)
    return _share(right, right + wrong), _share(found, pathologies)


def judge_advice(labels: Labels, case: Case, trace: str, machine: str, advice: Advice) -> Judged:
    """Compare one advice with the labels of its trace."""
    kept = [one for one in advice.recommendations if one.rule not in labels.verdicts]
    count = Counter(one.rule for one in kept)
    severity: dict[str, str] = {}
    for one in kept:
        severity.setdefault(one.rule, one.severity)
    findings = [
        Finding(rule, trace, machine, labels.worth(case, rule), severity[rule], number, position == 0)
        for position, (rule, number) in enumerate(count.items())
    ]
    pathologies = [
        Pathology(
            name,
            trace,
            machine,
            finders,
            tuple(rule for rule in finders if rule in count),
            tuple(seen.pattern for seen in advice.diagnosis or () if not set(finders).isdisjoint(seen.rules)),
        )
        for name in case.pathologies
        for finders in [labels.finders(case, name)]
    ]
    return Judged(findings, pathologies)


def judge_traces(
    labels: Labels,
    traces: Sequence[Path],
    machines: Sequence[tuple[str, System]],
    store: Path,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> Judged:
    """Profile each labelled trace once, and judge the default advice on it for each machine."""
    judged = Judged(machines=[name for name, _ in machines])
    for place in traces:
        case = labels.by_trace.get(place.name)
        if case is None:
            judged.unlabelled.append(place.name)
            continue
        progress(place.name)
        try:
            found = profile(place, store=store)
        except InputError as error:
            if case.unreadable is None:
                judged.unexpected.append(f"{place.name} cannot be read: {error}")
            else:
                judged.refused.append(place.name)
            continue
        if case.unreadable is not None:
            judged.unexpected.append(f"{place.name} was read, but should not be: {case.unreadable}")
            continue
        judged.traces.append(place.name)
        for name, system in machines:
            judged.add(judge_advice(labels, case, place.name, name, advise(found, system=system)))
    return judged


def find_traces(folders: Iterable[Path]) -> Iterator[Path]:
    """Folders in these folders that are a trace, or contain those of one workflow."""
    for folder in folders:
        yield from sorted(place for place in folder.iterdir() if place.is_dir())
