"""A profile as the diagnosis needs it: data files with weights, totals, and the construction of observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vani.advisors.data_files import Item, alike, data_files, extent, is_data
from vani.advisors.movers import movers_of
from vani.advisors.small_requests import SMALL, sizes_of, small_at_least, small_share
from vani.models.costliest import calls_s
from vani.schema.advice import Target

if TYPE_CHECKING:
    from vani.schema.profile import NamePattern, Profile

NOTABLE: Final = 0.1
"""Least notable share of all requests or bytes (Drishti's `small_requests`, `interface_stdio`)."""
REQUESTS: Final = 1000
"""Fewer requests are start-up, configuration or a log (Drishti's `small_requests_absolute`)."""
MANY: Final = 100
"""Least requests that are not just start-up if most requests of the run are like them."""
MOST: Final = 0.5

_SHOWN: Final = 3
"""Most places whose figures become evidence."""


class Seen(NamedTuple):
    """A detected pattern: its costliest place, paths of values in the profile, and its share of the I/O time."""

    target: Target
    attributes: Sequence[str]
    share: float | None


@dataclass(frozen=True)
class Run:
    """A profile with figures that several patterns need."""

    profile: Profile

    @cached_property
    def items(self) -> list[Item]:
        """Listed files that are data of the program. Each represents a part of its name pattern."""
        return data_files(self.profile)

    @cached_property
    def shared(self) -> list[Item]:
        """Files that two or more processes read or write."""
        return [
            item
            for item in self.items
            if any(movers_of(item.file, self.profile, reads=reads).processes >= 2 for reads in (True, False))
        ]

    @cached_property
    def requests(self) -> float:
        """Number of reads and writes of data files."""
        return sum(map(requests_of, self.items))

    @cached_property
    def moved(self) -> float:
        """Bytes read from and written to data files."""
        return sum(map(moved_in, self.items))

    @cached_property
    def names(self) -> list[tuple[int, NamePattern]]:
        """Name patterns of data files, with their indexes in the profile."""
        return [row for row in enumerate(self.profile.patterns or ()) if is_data(row[1].pattern)]

    @cached_property
    def io_s(self) -> float:
        """Seconds in file-system calls, summed over processes."""
        return calls_s(self.profile.workflow.io)

    def share(self, time_s: float | None) -> float | None:
        """A time as a share of the I/O time; None if times are unknown."""
        if time_s is None or not self.io_s:
            return None
        return min(1.0, time_s / self.io_s)

    def moves_much(self, items: Sequence[Item]) -> bool:
        """True if these files have a notable share of all bytes."""
        return bool(items) and self.moved > 0 and sum(map(moved_in, items)) >= NOTABLE * self.moved

    def are_many(self, requests: float) -> bool:
        """True if this number of requests is more than start-up and notable, or most of the program's requests."""
        return requests >= max(REQUESTS, NOTABLE * self.requests) or requests >= max(MANY, MOST * self.requests)

    def misses(self, kinds: frozenset[str]) -> bool:
        """True if activity of one of these kinds is not recorded."""
        return any(entry.kind in kinds for entry in self.profile.unseen or ())

    def in_files(self, items: Sequence[Item], *attributes: str) -> Seen:
        """A pattern found in files; the costliest comes first."""
        groups = sorted(alike(items), key=lambda group: max(map(_cost, group)), reverse=True)
        first = groups[0][0]
        row = None if first.part.pattern is None else (self.profile.patterns or ())[first.part.pattern]
        several = row is not None and row.files > 1
        times = [None if (time := item.file.io.time_s.total) is None else time * item.part.time for item in items]
        return Seen(
            Target(
                kind="dataset" if several else "file",
                path=row.pattern if row is not None and several else first.file.path,
            ),
            [f"{group[0].where}.{name}" for group in groups[:_SHOWN] for name in ("path", *attributes)],
            None if None in times else self.share(sum(time or 0.0 for time in times)),
        )

    def in_names(self, rows: Sequence[tuple[int, NamePattern]], *attributes: str) -> Seen:
        """A pattern found in the files of name patterns; the one with most files comes first."""
        ranked = sorted(rows, key=lambda row: (-(row[1].time_s or 0.0), -row[1].files))
        times = [row.time_s for _, row in rows]
        return Seen(
            Target(kind="dataset" if ranked[0][1].files > 1 else "file", path=ranked[0][1].pattern),
            [f"patterns[{at}].{name}" for at, _ in ranked[:_SHOWN] for name in ("pattern", *attributes)],
            None if None in times else self.share(sum(time or 0.0 for time in times)),
        )

    def in_apps(self, apps: Sequence[int], *attributes: str) -> Seen | None:
        """A pattern found in apps; the one with most bytes counts."""
        if not apps:
            return None
        at = max(apps, key=lambda position: self.profile.apps[position].io.bytes.total or 0)
        app = self.profile.apps[at]
        return Seen(
            Target(kind="app", app=app.name),
            [f"apps[{at}].{name}" for name in attributes],
            self.share(app.io.time_s.total),
        )

    def in_job(self, *attributes: str, time_s: float | None = None) -> Seen:
        """A pattern found in the whole run."""
        return Seen(Target(kind="job"), attributes, self.share(time_s))


def one_way(item: Item, *, reads: bool) -> float:
    """Number of reads, or of writes."""
    return item.file.io.ops.read * item.part.reads if reads else writes_of(item)


def writes_of(item: Item) -> float:
    return item.file.io.ops.write * item.part.writes


def requests_of(item: Item) -> float:
    return one_way(item, reads=True) + writes_of(item)


def flushes_of(item: Item) -> float:
    return (item.file.io.ops.sync or 0) * item.part.flushes


def moved_in(item: Item) -> float:
    moved = item.file.io.bytes
    return (moved.read or 0) * item.part.read + (moved.written or 0) * item.part.written


def bytes_of(row: NamePattern) -> int:
    return (row.bytes.read or 0) + (row.bytes.written or 0)


def _cost(item: Item) -> tuple[float, float, float]:
    return (item.file.io.time_s.total or 0.0) * item.part.time, moved_in(item), requests_of(item)


def is_tiny(item: Item) -> bool:
    """True if the file is smaller than a large request, so that no request in it can be large or far from the last."""
    size = extent(item.file)
    return size is not None and size < SMALL


def small_share_of(item: Item, *, reads: bool, limit: int = SMALL) -> float:
    """Lower bound of the share of reads, or of writes, below `limit` bytes."""
    io = item.file.io
    return max(small_share(sizes_of(io, reads=reads), limit) or 0.0, small_at_least(io, limit, reads=reads))


def value_at(profile: Profile, path: str) -> Any:
    """The value at a path such as `files[0].io.ops.read`; None if there is none."""
    value: Any = profile
    for name in path.replace("[", ".").replace("]", "").split("."):
        if value is None:
            return None
        if isinstance(value, list):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, dict) else getattr(value, name)
    return value


Pattern = tuple[Callable[[Run], Seen | None], tuple[str, ...]]
"""A function that detects a pattern, and the rules that act on it."""
