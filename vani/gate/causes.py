"""Causes of failures in plain words: what changed, in which file and phase, and what to do about it.

A program that starts to write its records one by one fails a dozen judgements: operations of the workload, an app and
an interface, transfer sizes, times. They are one finding. A cause is a change of files,
a different number of processes, or only times. Each failure is assigned to the first cause that explains it. Failures
without a cause are listed separately.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import basename
from statistics import median
from typing import Any, Final, Literal

from vani.errors import one_line
from vani.gate.attribute import AttributeSyntaxError, Key, parse_attribute
from vani.gate.baselines import FILES
from vani.gate.changes import CANNOT_JUDGE
from vani.gate.difference import value_at
from vani.gate.matching import Figures, Identity, Names, Tree, find, lists_all_files, number
from vani.models.verdict import verdict_of
from vani.schema.check import Cause, Judgement
from vani.schema.profile import Phase, Profile
from vani.units import GiB, KiB, MiB, counted, format_bytes, format_count, format_seconds, format_share

Kind = Literal["smaller_accesses", "more_data", "order", "metadata", "flushing", "new_files"]
Side = Literal["read", "write", "metadata", "sync"]

_SMALLER: Final = 1.5
"""Least factor by which accesses must shrink: one more short record at the end of a file is not a change of size."""
_MORE: Final = 1.05
_MORE_CALLS: Final = 1.5
_MOVED_SHARE: Final = 0.25
_DIGITS: Final = re.compile(r"\d+")
_MOVING: Final[tuple[Side, ...]] = ("read", "write")
_CALL_KINDS: Final[tuple[tuple[Kind, Side], ...]] = (("metadata", "metadata"), ("flushing", "sync"))
_BYTES: Final[Mapping[str, str]] = {"read": "read", "write": "written"}


@dataclass(frozen=True)
class FileChange:
    """A change of one or more files.

    Parameters
    ----------
    before, after
        Mean bytes per access (smaller_accesses), bytes (more_data), share of accesses (order), operations (metadata,
        flushing), or files (new_files). Means are averaged over the files, other figures summed.
    time_s
        I/O time that this run spends in the changed accesses; None if times are unknown.
    files
        The files in this run, the one with most I/O time first.
    """

    kind: Kind
    side: Side
    before: float
    after: float
    time_s: float | None
    files: tuple[Mapping[str, Any], ...]

    @property
    def paths(self) -> frozenset[str]:
        """Paths of the files."""
        return frozenset(str(file["path"]) for file in self.files)

    @property
    def apps(self) -> frozenset[str]:
        """Names of the apps that use the files."""
        return frozenset(str(app) for file in self.files for app in file.get("apps") or ())

    @property
    def name(self) -> str:
        """A short name for people: `out.h5`, `out_*.dat`."""
        names = [basename(str(file["path"])) or str(file["path"]) for file in self.files]
        return names[0] if len(set(names)) == 1 else _DIGITS.sub("*", names[0])


def file_changes(files: Sequence[Mapping[str, Any]], runs: Sequence[Tree], names: Names) -> list[FileChange]:
    """All changes of files since the runs of a baseline, the most expensive first.

    Parameters
    ----------
    files
        The important files of this run, as in a profile. A file that the baseline does not list is new only if the
        baseline lists all files.
    """
    earlier = [run["files"] for run in runs if isinstance(run.get("files"), list)]
    lists_all = all(map(lists_all_files, runs))
    identities = names.identities("files", list(files))
    renamed = _renamed(dict(zip(identities, files, strict=True)), earlier, names)
    alike: dict[tuple[Kind, Side, str], list[tuple[Mapping[str, Any], float, float]]] = {}
    for identity, file in zip(identities, files, strict=True):
        for kind, side, before, after in _of_file(
            file, renamed.get(identity, identity), earlier, names, lists_all=lists_all
        ):
            alike.setdefault((kind, side, _DIGITS.sub("*", str(identity[0]))), []).append((file, before, after))
    changes = [_joined(kind, side, rows) for (kind, side, _), rows in alike.items()]
    return sorted(changes, key=lambda change: (-(change.time_s or 0.0), -len(change.files), min(change.paths)))


def _renamed(
    files: Mapping[Identity, Mapping[str, Any]], earlier: Sequence[list[Any]], names: Names
) -> dict[Identity, Identity]:
    """The missing file of the baseline that each new file replaces."""
    if not earlier:
        return {}
    before = dict(zip(names.identities("files", earlier[-1]), earlier[-1], strict=True))
    added = {name: file for name, file in files.items() if name not in before}
    lost = {name: file for name, file in before.items() if name not in files}
    if len(added) == 1 and len(lost) == 1:
        return {next(iter(added)): next(iter(lost))}
    new, gone = _by_use(added), _by_use(lost)
    return {
        identities[0]: gone[use][0]
        for use, identities in new.items()
        if len(identities) == 1 and len(gone.get(use, ())) == 1 and use[0] is not None
    }


def _by_use(files: Mapping[Identity, Mapping[str, Any]]) -> dict[tuple[Any, ...], list[Identity]]:
    identities_by_use: dict[tuple[Any, ...], list[Identity]] = {}
    for name, file in files.items():
        identities_by_use.setdefault((file.get("role"), file.get("access")), []).append(name)
    return identities_by_use


def _of_file(
    file: Mapping[str, Any],
    identity: Identity,
    earlier: Sequence[list[Any]],
    names: Names,
    *,
    lists_all: bool,
) -> Iterator[tuple[Kind, Side, float, float]]:
    known = [names.find("files", files, identity) for files in earlier]
    old = [entry for entry in known if isinstance(entry, Mapping)]
    if not old:
        if earlier and lists_all:
            yield "new_files", "metadata", 0.0, 1.0
        return
    for side in _MOVING:
        yield from _of_side(file, old, side)
    for kind, side in _CALL_KINDS:
        before, after = _was(old, ("io", "ops", side)), _at(file, ("io", "ops", side))
        if before is not None and after is not None and after > before * _MORE_CALLS and after > before + 1:
            yield kind, side, before, after


def _of_side(
    file: Mapping[str, Any], old: Sequence[Mapping[str, Any]], side: Side
) -> Iterator[tuple[Kind, Side, float, float]]:
    ops, were = _at(file, ("io", "ops", side)), _was(old, ("io", "ops", side))
    size, was = _at(file, ("io", "bytes", _BYTES[side])), _was(old, ("io", "bytes", _BYTES[side]))
    if not ops or size is None or were is None or was is None:
        return
    if were and was and size and ops > were and (was / were) >= _SMALLER * (size / ops):
        yield "smaller_accesses", side, was / were, size / ops
    elif size > was * _MORE:
        yield "more_data", side, was, size
    else:
        before, after = _scattered(old), _scattered([file])
        if before is not None and after is not None and after > before + _MOVED_SHARE:
            yield "order", side, before, after


def _scattered(files: Sequence[Mapping[str, Any]]) -> float | None:
    shares = [_was(files, ("io", "access_pattern", name)) for name in ("strided", "random")]
    return None if None in shares else sum(share or 0.0 for share in shares)


def _joined(kind: Kind, side: Side, rows: list[tuple[Mapping[str, Any], float, float]]) -> FileChange:
    rows.sort(key=lambda row: (-(_at(row[0], ("io", "time_s", "total")) or 0.0), str(row[0]["path"])))
    files = tuple(row[0] for row in rows)
    scale = len(rows) if kind in ("smaller_accesses", "order") else 1
    part = "total" if kind == "new_files" else side
    times = [_at(file, ("io", "time_s", part)) for file in files]
    return FileChange(
        kind=kind,
        side=side,
        before=sum(row[1] for row in rows) / scale,
        after=sum(row[2] for row in rows) / scale,
        time_s=None if None in times else sum(time or 0.0 for time in times),
        files=files,
    )


def _was(entities: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> float | None:
    known = [value for value in (_at(entity, keys) for entity in entities) if value is not None]
    return median(known) if known else None


def _at(node: Any, keys: Sequence[str]) -> float | None:
    return number(value_at(node, keys))


_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")
_DOING: Final = {"read": "reads of", "write": "writes to"}
_ACCEPT: Final = "if intended: vani check PROFILE --update-baseline"
_LARGELY: Final = 0.5
_CALLS: Final = {
    "open": "open", "close": "close", "stat": "stat", "seek": "lseek", "directory": "calls on folders",
    "remove": "unlink and rename", "other": "calls such as truncate, fcntl and dup",
}  # fmt: skip
_OPEN_ONCE: Final = ("open once and keep it open", ("POS003",))
_OF_METADATA: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "open": _OPEN_ONCE,
    "close": _OPEN_ONCE,
    "stat": ("read its attributes once", ("POS003",)),
    "seek": ("pread and pwrite, which take the offset themselves, instead of lseek", ()),
    "directory": ("list and create folders once, in one process", ()),
    "remove": ("fewer files, or remove them once at the end", ()),
    "other": ("check the calls of this file in the profile, `files[].io.calls`", ()),
}
"""Remedy and rules for each kind of metadata operation."""


def sentence(change: FileChange, phases: Sequence[Phase], earlier: Sequence[Any], names: Names) -> str:
    """The change in one line.

    Parameters
    ----------
    phases
        Phases of this run.
    earlier
        Phases of a run of the baseline, as trees.
    """
    name = one_line(change.name)
    files = name if len(change.files) == 1 else f"{counted(len(change.files), 'file')} {name}"
    where = _phase(change, phases, earlier, names)
    if change.kind == "smaller_accesses":
        sizes = f"from {_size(change.before)} to {_size(change.after)}"
        return f"{_DOING[change.side]} {files} shrank {sizes}{_order(change)}{where}"
    if change.kind == "more_data":
        done = f"{_BYTES[change.side]} {'to' if change.side == 'write' else 'from'} {files}"
        was = f"and {format_bytes(change.before)} before" if change.before else "and nothing before"
        return f"{format_bytes(change.after)} are {done}, {was}{where}"
    if change.kind == "order":
        return (
            f"{_DOING[change.side]} {files} are out of order: {format_share(change.after)} are strided or random, "
            f"{format_share(change.before)} were{where}"
        )
    if change.kind == "new_files":
        return f"{files} {'is' if len(change.files) == 1 else 'are'} new"
    operations = "metadata operations on" if change.kind == "metadata" else "flushes of"
    kind = _most_often(change) if change.kind == "metadata" else None
    mostly = f", mostly {_CALLS[kind]}" if kind is not None else ""
    was = f"{format_count(int(change.before))} before"
    return f"{format_count(int(change.after))} {operations} {files}{mostly}, {was}{where}"


def remedy(change: FileChange, *, is_collective: bool) -> tuple[str, tuple[str, ...]]:
    """A remedy and the rules that explain it. `is_collective`: most MPI-IO is already collective."""
    file = change.files[0]
    layer, is_shared = file.get("interface"), file.get("access") == "shared"
    if change.kind == "smaller_accesses":
        if layer in ("hdf5", "netcdf"):
            return "larger selections, or a collective transfer", ("HD5006", "POS002")
        if is_collective:
            return "larger collective buffers", ("MIO001", "MIO002")
        if layer in ("mpiio", "pnetcdf") or is_shared:
            return "collective I/O or a larger buffer", ("MIO001", "POS002")
        return "a larger buffer, or one call for many records", ("POS002",)
    if change.kind == "order":
        if is_shared and not is_collective:
            return "collective I/O, or accesses in the order of the file", ("MIO001", "POS005")
        return "accesses in the order of the file", ("POS005",)
    if change.kind == "metadata":
        return _OF_METADATA[_most_often(change) or "open"]
    if change.kind == "flushing":
        return "flush only where the data must be safe, not after each write", ("POS010",)
    return _ACCEPT, ()


def _most_often(change: FileChange) -> str | None:
    """The most frequent kind of metadata operation on the files; None if unknown."""
    counts: dict[str, float] = {}
    for file in change.files:
        for kind, cost in (file.get("io", {}).get("metadata_kinds") or {}).items():
            counts[kind] = counts.get(kind, 0.0) + (number(cost.get("count")) or 0.0)
    return max(counts, key=lambda kind: counts[kind]) if any(counts.values()) else None


def _order(change: FileChange) -> str:
    pattern = change.files[0].get("io", {}).get("access_pattern") or {}
    for name in ("random", "strided"):
        if (number(pattern.get(name)) or 0.0) >= _LARGELY:
            return f", {name}"
    return ""


def _phase(change: FileChange, phases: Sequence[Phase], earlier: Sequence[Any], names: Names) -> str:
    """`, in the second write phase`, if the change is in a single one of an app's phases; otherwise empty."""
    if len(change.apps) != 1:
        return ""
    (app,) = change.apps
    own = [phase for phase in phases if phase.app == app and _operations(phase, change)]
    used = [phase for phase in own if _overlaps(phase, change)]
    if change.kind == "smaller_accesses":
        used = [phase for phase in used if _shrank(phase, change, earlier, names)] or used
    if len(used) != 1:
        return ""
    phase = used[0]
    alike = [other for other in phases if other.app == app and other.kind == phase.kind]
    if phase.count > 1:
        return f", in {'each of ' if len(alike) == 1 else ''}{counted(phase.count, f'{phase.kind} phase')}"
    if len(alike) == 1:
        return f", in the {phase.kind} phase"
    place = alike.index(phase)
    number_of = _ORDINALS[place] if place < len(_ORDINALS) else f"{place + 1}th"
    return f", in the {number_of} {phase.kind} phase"


def _operations(phase: Phase, change: FileChange) -> int | None:
    return getattr(phase.io.ops, change.side) if phase.io.ops is not None else None


def _overlaps(phase: Phase, change: FileChange) -> bool:
    return any(
        (number(file.get("first_s")) or 0.0) <= phase.end_s
        and (number(file.get("last_s")) or float("inf")) >= phase.start_s
        for file in change.files
    )


def _shrank(phase: Phase, change: FileChange, earlier: Sequence[Any], names: Names) -> bool:
    aliased = names.aliases
    for earlier_phase in earlier:
        if not isinstance(earlier_phase, Mapping) or earlier_phase.get("index") != phase.index:
            continue
        if aliased.get(str(earlier_phase.get("app")), earlier_phase.get("app")) != phase.app:
            continue
        io = earlier_phase.get("io") or {}
        ops = number((io.get("ops") or {}).get(change.side))
        size = number((io.get("bytes") or {}).get(_BYTES.get(change.side, "")))
        count = _operations(phase, change)
        now = getattr(phase.io.bytes, _BYTES.get(change.side, ""), None)
        return bool(ops and size and count and now is not None and now / count < size / ops)
    return False


def _size(size: float) -> str:
    """An access size. Multiples of 1024^n are shown in binary units, in which programs choose them."""
    for unit, name in ((GiB, "GiB"), (MiB, "MiB"), (KiB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:,.0f} {name}"
    return format_bytes(size)


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


def causes_of(failed: Sequence[Judgement], figures: Figures, runs: Sequence[Tree], names: Names) -> list[Cause]:
    """The causes that explain failures, the most expensive first. Each failure has at most one."""
    if not runs or not failed:
        return []
    files = [file.model_dump(by_alias=True) for file in figures.model.files[:FILES]]
    known = [_of_files(change, figures, runs, names) for change in file_changes(files, runs, names)]
    sizes = _other_size(figures, runs)
    if sizes is not None:
        # More processes cause more of all these: only a change in the behaviour of each process is informative.
        known = [each for each in known if each.cause.kind in ("smaller_accesses", "order")] + [sizes]
    known = [*_no_longer_collective(figures, runs, names), *known]
    slower = _slower(figures, runs, is_tested=any(judgement.effect is not None for judgement in failed))
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
        message=sentence(change, figures.model.phases or (), runs[-1].get("phases") or (), names),
        todo=todo,
        rules=list(rules),
        files=[str(file["path"]) for file in change.files],
        io_time_s=change.time_s,
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
            io_time_s=interface.time_s,
        )
        patterns = ("*collective_share", "*.ops.read", "*.ops.write", "*calls", *_SHAPES, *_TIMES)
        causes.append(_Known(cause, patterns, frozenset({interface.app}), frozenset()))
    return causes


def _other_size(figures: Figures, runs: Sequence[Tree]) -> _Known | None:
    now = figures.model.workflow.processes
    before = _was(runs, ("workflow", "processes"))
    if before is None or now == before:
        return None
    cause = Cause(
        kind="processes",
        message=f"this run has {counted(now, 'process')} and the baseline {before:,.0f}: "
        "figures of runs of different sizes are not comparable",
        todo="compare runs of one size: `vani check --save` a run of this one",
    )
    return _Known(cause, ("*",), None, None)


def _slower(figures: Figures, runs: Sequence[Tree], *, is_tested: bool) -> _Known | None:
    keys = ("workflow", "io", "time_s", "total")
    now, before = figures.model.workflow.io.time_s.total, _was(runs, keys)
    run, ran = figures.model.workflow.runtime_s, _was(runs, ("workflow", "runtime_s"))
    if now is None or not before or run is None or not ran:
        return None
    which = f"the run takes {format_seconds(run)} and took {format_seconds(ran)}, its I/O not longer than before"
    todo = "look at the program's computation"
    if now > before:
        which = f"I/O takes {format_seconds(now)} and took {format_seconds(before)}"
        todo = "run it again before changing anything: the file system, or its other load, is slower than before"
    if not is_tested:
        todo = f"{CANNOT_JUDGE}; {todo}"
    cause = Cause(kind="slower", message=f"{which}; its calls explain no more", todo=todo, io_time_s=now)
    return _Known(cause, _TIMES, None, None)


def _dotted(attribute: str | None) -> str:
    """Only the keys of a path: `files.io.ops.read`."""
    try:
        steps = parse_attribute(attribute or "").steps
    except AttributeSyntaxError:
        return one_line(attribute or "")
    return ".".join(step.name for step in steps if isinstance(step, Key))
