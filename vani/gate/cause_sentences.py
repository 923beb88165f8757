"""Sentences about a cause: how accesses to files changed, in which phase, and the remedy with its rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vani.errors import one_line
from vani.gate.entity_names import Names
from vani.gate.file_changes import FileChange
from vani.gate.matching import number
from vani.units import GiB, KiB, MiB, counted, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Phase

_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")
_BYTES: Final = {"read": "read", "write": "written"}
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
