"""Files that belong together: 10,000 files `out_00000`, `out_00001`, ... are one dataset, `out_%05d`.

Names are all that is looked at beside role and format, so a group is a guess about a program's naming, good enough for
a table: every file is in exactly one group, and nothing is computed from groups but sums.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from vani.schema.saved_profile import ListedFile

__all__ = ["FileGroup", "file_groups", "groups_kept", "pattern"]

# Two files are read faster as two rows than as one row to be opened.
NUMBERED_LEAST: Final = 3

# Names without a common pattern, such as digests, are one row only where they would fill the screen.
FOLDER_LEAST: Final = 20

_DIGITS: Final = re.compile("[0-9]+")
_SUFFIX: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9_]{0,9}$")


@dataclass(frozen=True)
class FileGroup:
    """A file, or files that one row of a table stands for; `name` is its path, or a pattern of their paths."""

    name: str
    files: tuple[ListedFile, ...]
    """Most I/O time first, or most bytes where time is not known."""

    @property
    def io_time_s(self) -> float:
        """Seconds of I/O, summed over files and processes; what is not known counts as nothing."""
        return self.weight[0]

    @property
    def weight(self) -> tuple[float, int]:
        """How much the group costs: seconds of I/O, then bytes; what is not known counts as nothing."""
        weights = [_weight(file) for file in self.files]
        return sum(seconds for seconds, _ in weights), sum(moved for _, moved in weights)


_kept: ContextVar[dict[int, tuple[Sequence[ListedFile], list[FileGroup]]] | None] = ContextVar(
    "kept", default=None
)


@contextmanager
def groups_kept() -> Iterator[None]:
    """Group each list of files only once: a report and its plots ask for the groups of the same one."""
    token = _kept.set({})
    try:
        yield
    finally:
        _kept.reset(token)


def file_groups(files: Sequence[ListedFile]) -> list[FileGroup]:
    """Group files by the numbers in their paths, then what is left by folder and suffix; most I/O time first."""
    kept = _kept.get()
    if kept is None:
        return _grouped(files)
    if id(files) not in kept:
        # With the list itself: another one could get its number.
        kept[id(files)] = files, _grouped(files)
    return list(kept[id(files)][1])


def _grouped(files: Sequence[ListedFile]) -> list[FileGroup]:
    numbered, single = _split(files, _by_numbers, NUMBERED_LEAST)
    groups = [FileGroup(pattern([file.path for file in some]), _ordered(some)) for some in numbered]
    foldered, single = _split(single, _by_folder, FOLDER_LEAST)
    groups += [FileGroup(_folder_pattern(some[0].path), _ordered(some)) for some in foldered]
    groups += [FileGroup(file.path, (file,)) for file in single]
    return sorted(groups, key=lambda group: (*(-part for part in group.weight), group.name))


def pattern(paths: Sequence[str]) -> str:
    """Paths that differ only in numbers as one: with `%05d` for numbers of five digits with zeros in front, with `%d`
    for numbers without, with `*` for those that no printf writes."""
    texts = _DIGITS.split(paths[0])
    columns = zip(*(_DIGITS.findall(path) for path in paths), strict=True)
    numbers = [_number(set(column)) for column in columns]
    return "".join(text + number for text, number in zip(texts, [*numbers, ""], strict=True))


def _number(found: set[str]) -> str:
    if len(found) == 1:
        return next(iter(found))
    if not any(number[0] == "0" for number in found if len(number) > 1):
        return "%d"
    width = min(map(len, found))
    # As printf does: a number that is longer than its width has no zeros in front.
    regular = not any(number[0] == "0" for number in found if len(number) > width)
    return f"%0{width}d" if regular and width > 1 else "*"


def _split(
    files: Iterable[ListedFile], key: Callable[[ListedFile], Hashable], least: int
) -> tuple[list[list[ListedFile]], list[ListedFile]]:
    """Files of equal keys where there are at least so many, and all others."""
    by_key: defaultdict[Hashable, list[ListedFile]] = defaultdict(list)
    for file in files:
        by_key[key(file)].append(file)
    groups = [some for some in by_key.values() if len(some) >= least]
    single = [file for some in by_key.values() if len(some) < least for file in some]
    return groups, single


def _by_numbers(file: ListedFile) -> Hashable:
    # A path without a number has no siblings: it is all of its key.
    return tuple(_DIGITS.split(file.path)), file.role, file.format


def _by_folder(file: ListedFile) -> Hashable:
    return _folder_pattern(file.path), file.role, file.format


def _folder_pattern(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    suffix = _SUFFIX.search(name)
    return f"{folder}{slash}*{suffix[0] if suffix else ''}"


def _ordered(files: Iterable[ListedFile]) -> tuple[ListedFile, ...]:
    return tuple(sorted(files, key=lambda file: (*(-part for part in _weight(file)), file.path)))


def _weight(file: ListedFile) -> tuple[float, int]:
    return file.io.time_s.total or 0.0, file.io.bytes.total or 0
