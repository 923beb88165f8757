"""Causes of failures in plain words: what changed, in which file and phase, and what to do about it.

A program that starts to write its records one by one fails a dozen judgements: operations of the workload, an app and
an interface, transfer sizes, times. They are one finding. A cause is a change of files (`vani.gate.file_changes`),
a different number of processes, or only times. Each failure is assigned to the first cause that explains it. Failures
without a cause are listed separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from vani.errors import one_line
from vani.gate.attribute import AttributeSyntaxError, Key, parse_attribute
from vani.gate.cause_sentences import remedy, sentence
from vani.gate.changes import cannot_judge
from vani.gate.entity_names import Names
from vani.gate.file_changes import FileChange, Kind, file_changes
from vani.gate.matching import find, number
from vani.gate.profile_tree import Figures, Tree
from vani.gate.tolerance import SEVERAL
from vani.models.verdict import verdict_of
from vani.schema.check import Cause, Judgement
from vani.units import counted, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile

FILES: Final = 100
"""Most files to compare, those with most I/O time: as many as in a baseline."""

_MOSTLY: Final = 0.5
_MOVED: Final = 0.25
_TIMES: Final = ("*time_s*", "*busy_s*", "*runtime_s", "*time_share*", "*dominant*", "*bandwidth*")
_SHAPES: Final = ("*transfer_size*", "*granularity*", "*access_pattern*", "*ops_share*", "*frequency*")
_TRAFFIC: Final = ("*bytes*", "*footprint*", "*size", "*past_end*")
_ABOUT: Final[Mapping[Kind, tuple[str, ...]]] = {
    "smaller_accesses": ("*.ops.{side}", "*calls", *_SHAPES, *_TIMES),
    "more_data": ("*.ops.{side}", "*calls", *_TRAFFIC, *_SHAPES, *_TIMES),
    "order": ("*access_pattern*", "*frequency*", *_TIMES),
    "metadata": ("*.ops.metadata", "*metadata_kinds*", "*opens", "*calls", "*ops_share*", *_TIMES),
    "flushing": ("*.ops.sync", "*calls", "*ops_share*", *_TIMES),
    "new_files": ("*files*", "*folders*", "*.ops.*", "*calls", *_TRAFFIC, *_SHAPES, *_TIMES),
}
"""Patterns of the attributes that each kind of change affects."""


@dataclass(frozen=True)
class _Known:
    """A cause, and the attributes, apps and files that it affects. None: all."""

    cause: Cause
    patterns: tuple[str, ...]
    apps: frozenset[str] | None
    paths: frozenset[str] | None

    def explains(self, judgement: Judgement) -> bool:
        if judgement.kind == "rule":
            return judgement.check.removeprefix("rules.") in self.cause.rules and judgement.target in (
                self.paths or ()
            )
        if judgement.kind not in ("budget", "change"):
            return False
        dotted = _dotted(judgement.attribute)
        if not any(fnmatchcase(dotted, pattern) for pattern in self.patterns):
            return False
        if judgement.target is None:
            return True
        known = self.paths if dotted.startswith("files.") else self.apps
        return known is None or judgement.target in known


def causes_of(
    failed: Sequence[Judgement], figures: Figures, runs: Sequence[Tree], names: Names
) -> list[Cause]:
    """The causes that explain failures, the most expensive first. Each failure has at most one."""
    if not runs or not failed:
        return []
    files = [file.model_dump(by_alias=True) for file in figures.model.files[:FILES]]
    known = [_of_files(change, figures, runs, names) for change in file_changes(files, runs, names)]
    sizes = _other_size(figures, runs)
    if sizes is not None:
        # More processes cause more of all these: only a change in the behaviour of each process is informative.
        known = [
            candidate for candidate in known if candidate.cause.kind in ("smaller_accesses", "order")
        ] + [sizes]
    known = [*_no_longer_collective(figures, runs, names), *known]
    slower = _slower(figures, runs)
    causes: list[Cause] = []
    left = list(failed)
    for candidate in [*known, *([slower] if slower is not None else [])]:
        explained = [judgement.id for judgement in left if candidate.explains(judgement)]
        if explained:
            left = [judgement for judgement in left if judgement.id not in set(explained)]
            causes.append(candidate.cause.model_copy(update={"judgements": explained}))
    return causes


def io_share(profile: Profile) -> str | None:
    """A sentence if storage takes too little of the run for a change to matter; None if it may matter."""
    verdict = verdict_of(profile)
    if verdict.matters != "no" or not verdict.share:
        return None
    return f"{verdict.sentence.removesuffix('.')}; the changes hardly matter"


def _of_files(change: FileChange, figures: Figures, runs: Sequence[Tree], names: Names) -> _Known:
    todo, rules = remedy(change, is_collective=_is_collective(change, figures))
    patterns = tuple(pattern.replace("{side}", change.side) for pattern in _ABOUT[change.kind])
    cause = Cause(
        kind=change.kind,
        message=sentence(change, figures.model.phases or (), _phases(runs), names),
        todo=todo,
        rules=list(rules),
        files=[str(file["path"]) for file in change.files],
        io_time_s=change.time_s,
        judgements=[],
    )
    # An app may have another name in the baseline and still be the same.
    return _Known(cause, patterns, change.apps, change.paths)


def _is_collective(change: FileChange, figures: Figures) -> bool:
    shares = [
        interface.collective_share
        for interface in figures.model.interfaces or ()
        if interface.app in change.apps
    ]
    return max((share for share in shares if share is not None), default=0.0) >= _MOSTLY


def _no_longer_collective(figures: Figures, runs: Sequence[Tree], names: Names) -> list[_Known]:
    causes = []
    for interface in figures.model.interfaces or ():
        trail = ("interfaces", (interface.app, interface.layer), "collective_share")
        was = [number(find(trail, run, names)[1]) for run in runs]
        known = [share for share in was if share is not None]
        before, now = median(known) if known else None, interface.collective_share
        if before is None or now is None or now > before - _MOVED:
            continue
        cause = Cause(
            kind="independent",
            message=f"{format_share(now)} of the {interface.layer} transfers of {one_line(interface.app)} are "
            f"collective, {format_share(before)} were",
            todo="collective calls, such as MPI_File_write_all",
            rules=["MIO001"],
            files=[],
            io_time_s=None if interface.time_s is None else interface.time_s,
            judgements=[],
        )
        patterns = ("*collective_share", "*.ops.read", "*.ops.write", "*calls", *_SHAPES, *_TIMES)
        causes.append(_Known(cause, patterns, frozenset({interface.app}), frozenset()))
    return causes


def _phases(runs: Sequence[Tree]) -> list[Any]:
    phases = runs[-1].get("phases")
    return phases if isinstance(phases, list) else []


def _other_size(figures: Figures, runs: Sequence[Tree]) -> _Known | None:
    now = figures.model.workflow.processes
    before = _median(runs, ("workflow", "processes"))
    if before is None or now == before:
        return None
    cause = Cause(
        kind="processes",
        message=f"this run has {counted(now, 'process')} and the baseline {before:,.0f}: "
        "figures of runs of different sizes are not comparable",
        todo="compare runs of one size: `vani check --save` a run of this one",
        rules=[],
        files=[],
        io_time_s=None,
        judgements=[],
    )
    return _Known(cause, ("*",), None, None)


def _slower(figures: Figures, runs: Sequence[Tree]) -> _Known | None:
    keys = ("workflow", "io", "time_s", "total")
    now, before = figures.model.workflow.io.time_s.total, _median(runs, keys)
    run, ran = figures.model.workflow.runtime_s, _median(runs, ("workflow", "runtime_s"))
    if now is None or not before or run is None or not ran:
        return None
    which = (
        f"I/O takes {format_seconds(now)} and took {format_seconds(before)}"
        if now > before
        else f"the run takes {format_seconds(run)} and took {format_seconds(ran)}, its I/O not longer than before"
    )
    todo = (
        "run it again before changing anything: the file system, or its other load, is slower than before"
        if now > before
        else "look at the program's computation"
    )
    if len(runs) < SEVERAL:
        todo = f"{cannot_judge(len(runs))}; {todo}"
    cause = Cause(
        kind="slower", message=f"{which}; its calls explain no more", todo=todo, rules=[], files=[],
        io_time_s=now, judgements=[],
    )  # fmt: skip
    return _Known(cause, _TIMES, None, None)


def _median(runs: Iterable[Tree], keys: Sequence[str]) -> float | None:
    known = []
    for run in runs:
        node: Any = run
        for key in keys:
            node = node.get(key) if isinstance(node, Mapping) else None
        if (value := number(node)) is not None:
            known.append(value)
    return median(known) if known else None


def _dotted(attribute: str | None) -> str:
    """Only the keys of a path: `files.io.ops.read`."""
    try:
        steps = parse_attribute(attribute or "").steps
    except AttributeSyntaxError:
        return one_line(attribute or "")
    return ".".join(step.name for step in steps if isinstance(step, Key))
