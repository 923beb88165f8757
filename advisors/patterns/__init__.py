"""The program's behaviour as patterns from a fixed list, whether or not they cost time (`docs/rules/patterns.md`).

A pattern is true or false and has no severity. It is a class in a module of this folder, which Vani discovers like a
rule (`docs/contributing/pattern.md`). Nothing here loads pydantic or numpy, because `vani explain` imports it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from vani.advisors import access_table, data_files
from vani.advisors.movers import movers_of
from vani.advisors.rule import Documented, Target
from vani.models.io_time import calls_s

if TYPE_CHECKING:
    from vani.schema.profile import App, NamePattern, Profile


NOTABLE: Final = 0.1
"""Least notable share of all requests or bytes (Drishti's `small_requests`, `interface_stdio`)."""
REQUESTS: Final = 1000
"""Fewer requests are start-up, configuration or a log (Drishti's `small_requests_absolute`)."""
MANY: Final = 100
"""Least requests that are not just start-up if most requests of the run are like them."""
MOST: Final = 0.5


class Seen(NamedTuple):
    """A detected pattern: its costliest place, paths of values in the profile, and its share of the I/O time."""

    target: Target
    attributes: Sequence[str]
    share: float | None


class Pattern(Documented):
    """Something that a program does, with a page of documentation.

    A subclass defines `see` and sets `rules`, even if empty: a class without them is a base of several patterns. Its
    name is the name of the class, in lower case with underscores. Thresholds are numeric class attributes.

    Attributes
    ----------
    name
        Name in documents, such as `small_requests`.
    rules
        Ids of the rules that act on the pattern.
    attributes
        Paths of values in a file, or in the profile, that show the pattern.
    """

    sections: ClassVar[tuple[str, ...]] = ("Definition", "Why", "Source")
    rules: ClassVar[tuple[str, ...]]
    attributes: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Name the pattern after its class."""
        cls.name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def see(self, run: Workload) -> Seen | None:
        """The pattern in a profile; None if the profile does not show it. A pure function."""
        raise NotImplementedError


class FilePattern(Pattern):
    """A pattern of files, by default of those with a notable share of all bytes.

    Attributes
    ----------
    weight
        The number of `data_files.Item` that counts: by default, bytes.
    enough
        Least sum of it; None: a tenth of all bytes.
    """

    weight: ClassVar[str] = "moved"
    enough: ClassVar[float | None] = None

    def see(self, run: Workload) -> Seen | None:
        items = [item for item in self.among(run) if self.shows(item)]
        enough = NOTABLE * run.moved if self.enough is None else self.enough
        whole = sum(getattr(item, self.weight) for item in items)
        return run.in_files(items, *self.attributes) if whole >= enough > 0 else None

    def among(self, run: Workload) -> Sequence[data_files.Item]:
        """Files that can show the pattern."""
        return run.items

    def shows(self, item: data_files.Item) -> bool:  # noqa: ARG002 - by default, `among` decides
        """True if a file shows the pattern."""
        return True


class RequestPattern(Pattern):
    """A pattern of many requests to some files."""

    def see(self, run: Workload) -> Seen | None:
        parts = {item: part for item in run.items if (part := self.part(item, run)) is not None}
        if not parts or not run.are_many(sum(count for count, _ in parts.values()), parts):
            return None
        return run.in_files([*parts], *self.attributes, part={item: time_s for item, (_, time_s) in parts.items()})

    def part(self, item: data_files.Item, run: Workload) -> tuple[float, float | None] | None:
        """Number of requests to a file that show the pattern, and their seconds if known; None if too few do."""
        raise NotImplementedError


class AppPattern(Pattern):
    """A pattern of apps; the one with most bytes counts."""

    def see(self, run: Workload) -> Seen | None:
        apps = [row for row in enumerate(run.profile.apps) if self.shows(row[1], run.profile)]
        if not apps:
            return None
        at, app = max(apps, key=lambda row: row[1].io.bytes.total or 0)
        paths = [f"apps[{at}].{name}" for name in self.attributes]
        return Seen(Target("app", app=app.name), paths, run.share(app.io.time_s.total))

    def shows(self, app: App, profile: Profile) -> bool:
        """True if an app shows the pattern."""
        raise NotImplementedError


@dataclass(frozen=True)
class Workload:
    """A profile with figures that several patterns need. `locks`: a sentence for each lock that matters."""

    profile: Profile
    locks: Sequence[str] = ()
    shown: ClassVar[int] = 3
    """Most places whose figures become evidence."""

    @cached_property
    def items(self) -> list[data_files.Item]:
        """Listed files that are data of the program. Each represents a part of its name pattern."""
        return data_files.data_files(self.profile)

    @cached_property
    def shared(self) -> list[data_files.Item]:
        """Files that two or more processes read or write."""
        return [
            item
            for item in self.items
            if any(movers_of(item.file, self.profile, reads=reads).processes >= 2 for reads in (True, False))
        ]

    @cached_property
    def streams(self) -> set[str]:
        """Files that move through stdio alone, whose buffer joins the calls."""
        layers = access_table.layers_of(self.profile)
        return {path for path, own in layers.items() if "stdio" in own and "posix" not in own}

    @cached_property
    def moved(self) -> float:
        """Bytes read from and written to data files."""
        return sum(item.moved for item in self.items)

    @cached_property
    def names(self) -> list[tuple[int, NamePattern]]:
        """Name patterns of data files, with their indexes in the profile."""
        return [row for row in enumerate(self.profile.patterns or ()) if data_files.is_data(row[1].pattern)]

    @cached_property
    def io_s(self) -> float:
        """Seconds in file-system calls, summed over processes."""
        return calls_s(self.profile.workflow.io)

    @cached_property
    def joint(self) -> set[str]:
        """Files that several processes access through MPI-IO."""
        return access_table.joint_files(self.profile)

    def share(self, time_s: float | None) -> float | None:
        """A time as a share of the I/O time; None if times are unknown."""
        if time_s is None or not self.io_s:
            return None
        return min(1.0, time_s / self.io_s)

    def buffered(self, item: data_files.Item) -> float:
        """Number of stdio calls that read or write a file."""
        reads, writes = (
            sum(row.calls for row in access_table.Traffic.on(self.profile, [item.path], reads=reads).of("stdio"))
            for reads in (True, False)
        )
        return reads * item.part.reads + writes * item.part.writes

    def are_many(self, requests: float, items: Collection[data_files.Item]) -> bool:
        """True if this number of requests is more than start-up and notable, or most of the program's requests.

        Calls of stdio count only where some of the requests are such calls.
        """
        some_streams = any(item.path in self.streams for item in items)
        every = sum(item.requests - (0.0 if some_streams else self.buffered(item)) for item in self.items)
        return requests >= max(REQUESTS, NOTABLE * every) or requests >= max(MANY, MOST * every)

    def misses(self, kinds: frozenset[str]) -> bool:
        """True if activity of one of these kinds is not recorded."""
        return any(entry.kind in kinds for entry in self.profile.unseen or ())

    def in_files(
        self,
        items: Sequence[data_files.Item],
        *attributes: str,
        part: Mapping[data_files.Item, float | None] | None = None,
    ) -> Seen:
        """A pattern found in files; the costliest comes first. `part`: seconds of the calls that it is about."""
        groups = sorted(data_files.alike(items), key=lambda group: max(map(_cost, group)), reverse=True)
        places: dict[object, data_files.Item] = {}
        for group in groups:
            item = max(group, key=_cost)
            places.setdefault(item.where if item.part.pattern is None else item.part.pattern, item)
        first, *_ = most = [*places.values()][: self.shown]
        row = None if first.part.pattern is None else (self.profile.patterns or ())[first.part.pattern]
        target = Target("file", first.path) if row is None or row.files <= 1 else Target("dataset", row.pattern)
        times = [_time_s(item, (part or {}).get(item)) for item in items]
        return Seen(
            target,
            [f"{item.where}.{name}" for item in most for name in ("path", *attributes)],
            None if None in times else self.share(sum(time or 0.0 for time in times)),
        )

    def in_names(self, rows: Sequence[tuple[int, NamePattern]], *attributes: str) -> Seen:
        """A pattern found in the files of name patterns; the one with most files comes first."""
        ranked = sorted(rows, key=lambda row: (-(row[1].time_s or 0.0), -row[1].files))
        times = [row.time_s for _, row in rows]
        return Seen(
            Target("dataset" if ranked[0][1].files > 1 else "file", ranked[0][1].pattern),
            [f"patterns[{at}].{name}" for at, _ in ranked[: self.shown] for name in ("pattern", *attributes)],
            None if None in times else self.share(sum(time or 0.0 for time in times)),
        )

    def in_job(self, *attributes: str, time_s: float | None = None) -> Seen:
        """A pattern found in the whole run."""
        return Seen(Target("job"), attributes, self.share(time_s))


def _cost(item: data_files.Item) -> tuple[float, float, float]:
    return (item.io.time_s.total or 0.0) * item.part.time, item.moved, item.requests


def _time_s(item: data_files.Item, part_s: float | None = None) -> float | None:
    """Seconds in calls on a file and those that it represents; of a part of the calls if given."""
    time_s = item.io.time_s.total
    return None if time_s is None else item.part.time * (time_s if part_s is None else min(part_s, time_s))
