"""Listed files that belong together by name, role and format: each group is a row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from vani.columns import texts
from vani.name_patterns import NamePatterns
from vani.schema.saved_profile import ListedFile


@dataclass(frozen=True)
class FileGroup:
    """A file, or a group of files in one table row; `name` is its path, or the pattern of their paths."""

    name: str
    files: tuple[ListedFile, ...]
    """Longest I/O time first, or most bytes if times are unknown."""

    @property
    def io_time_s(self) -> float:
        """Seconds of I/O, summed over files and processes; unknown values count as 0."""
        return self.weight[0]

    @property
    def weight(self) -> tuple[float, int]:
        """The cost of the group: seconds of I/O, then bytes; unknown values count as 0."""
        weights = [_weight(file) for file in self.files]
        return sum(seconds for seconds, _ in weights), sum(moved for _, moved in weights)


_cache: ContextVar[dict[int, tuple[Sequence[ListedFile], list[FileGroup]]] | None] = ContextVar(
    "groups", default=None
)


@contextmanager
def groups_kept() -> Iterator[None]:
    """Within this context, group each list of files only once: a report and its plots need the same groups."""
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


def file_groups(files: Sequence[ListedFile]) -> list[FileGroup]:
    """Group files by the patterns of their paths (`vani.name_patterns`); longest I/O time first."""
    cache = _cache.get()
    if cache is None:
        return _grouped(files)
    if id(files) not in cache:
        # Keep the list itself: otherwise another list could get its id.
        cache[id(files)] = files, _grouped(files)
    return list(cache[id(files)][1])


def _grouped(files: Sequence[ListedFile]) -> list[FileGroup]:
    kinds: dict[tuple[str | None, str | None], int] = {}
    apart = np.array([kinds.setdefault((file.role, file.format), len(kinds)) for file in files], np.int64)
    patterns = NamePatterns(texts([_encodable(file.path) for file in files]), apart)
    groups = [
        FileGroup(patterns.name(code), _ordered(files[place] for place in patterns.members(code).tolist()))
        for code in range(patterns.count)
    ]
    return sorted(groups, key=lambda group: (*(-part for part in group.weight), group.name))


def _encodable(path: str) -> str:
    """A path without lone surrogates, which a JSON document can contain but Arrow text cannot."""
    return path if path.isascii() else path.encode(errors="replace").decode()


def _ordered(files: Iterable[ListedFile]) -> tuple[ListedFile, ...]:
    return tuple(sorted(files, key=lambda file: (*(-part for part in _weight(file)), file.path)))


def _weight(file: ListedFile) -> tuple[float, int]:
    return file.io.time_s.total or 0.0, file.io.bytes.total or 0
