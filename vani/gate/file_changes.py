"""Changes of files since a baseline: smaller accesses, more bytes, a different order, more calls.

For a file in both, the first of these that applies, for reading and for writing:

- smaller accesses: more operations, with a mean size that is a fraction of the earlier one;
- more data: more bytes;
- different order: the share of strided or random accesses rose by a quarter or more.

A new file replaces a missing one if each is the only one, or the only one with its role and access.

Further changes are more metadata operations, more flushing, and files that the baseline does not have. Files whose
names differ only in numbers and that changed in the same way are one change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from statistics import median
from typing import Any, Final, Literal

from vani.gate.entity_names import Identity, Names
from vani.gate.matching import number
from vani.gate.profile_tree import Tree

Kind = Literal["smaller_accesses", "more_data", "order", "metadata", "flushing", "new_files"]
Side = Literal["read", "write", "metadata", "sync"]

_SMALLER: Final = 1.5
"""Least factor by which accesses must shrink: one more short record at the end of a file is not a change of size."""
_MORE: Final = 1.05
_MORE_CALLS: Final = 1.5
_MOVED: Final = 0.25
_DIGITS: Final = re.compile(r"\d+")
_MOVING: Final[tuple[Side, ...]] = ("read", "write")
_CALLS: Final[tuple[tuple[Kind, Side], ...]] = (("metadata", "metadata"), ("flushing", "sync"))
_BYTES: Final[Mapping[Side, str]] = {"read": "read", "write": "written"}


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
    lists_all = all(_lists_all(run) for run in runs)
    identities = names.identities("files", list(files))
    renamed = _renamed(dict(zip(identities, files, strict=True)), earlier, names)
    alike: dict[tuple[Kind, Side, str], list[tuple[Mapping[str, Any], float, float]]] = {}
    for identity, file in zip(identities, files, strict=True):
        for kind, side, before, after in _of_file(
            file, renamed.get(identity, identity), earlier, names, lists_all=lists_all
        ):
            alike.setdefault((kind, side, _DIGITS.sub("*", str(identity[0]))), []).append(
                (file, before, after)
            )
    changes = [_joined(kind, side, rows) for (kind, side, _), rows in alike.items()]
    return sorted(
        changes, key=lambda change: (-(change.time_s or 0.0), -len(change.files), min(change.paths))
    )


def _lists_all(run: Tree) -> bool:
    total, files = _at(run, ("dataset", "files")), run.get("files")
    return isinstance(files, list) and total is not None and len(files) >= total


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
    for kind, side in _CALLS:
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
        if before is not None and after is not None and after > before + _MOVED:
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
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return number(node)
