"""Folders over all files of the run, not only the listed ones: number, sizes and cost of their files.

The table in a profile has the hundred folders with most metadata time and the ten with most files. No other folder has
more files than these ten, but the total of the others is unknown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.advisors.data_files import SERVED, is_data
from vani.advisors.rule import Evidence, Target, value_at
from vani.models.io_time import calls_s
from vani.models.run_time import of_profile_s
from vani.models.staging import is_near
from vani.units import format_count, parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Folder, LookUp, Profile, SizeDistribution
    from vani.schema.system import System

_SHOWN: Final = 3

Search = Literal["library_search", "newest_file_search", "outputs_checked_again", "polling"]
LOOKS: Final = 100
"""Looks of each process at one name that make polling (our choice)."""
_LOOKS_TOGETHER: Final = 1000
"""Fewer look-ups are start-up (as Drishti's `small_requests_absolute`)."""
_COUNTS: Final = "traces.functions"
"""Key in the provenance of a source that counts calls and keeps none."""
_NAMES: Final = 10
"""Fewer names are flags, not results or checkpoints (our choice)."""
_MISSES: Final = 10
"""One in so many look-ups along a search path, or more, finds nothing (our choice)."""


def searches(profile: Profile) -> list[tuple[int, LookUp, Search]]:
    """Rows of `lookups` with many look-ups, with their indexes and the purpose of the look-ups."""
    rows = ((at, row, _search(row, profile)) for at, row in enumerate(profile.lookups or ()))
    return [(at, row, search) for at, row, search in rows if search is not None]


def _search(row: LookUp, profile: Profile) -> Search | None:
    missing = row.failed is not None and 2 * row.failed >= row.calls
    on_path = bool(row.search_path) or row.folder.endswith("/**")
    # A name that is there at each look is no flag that a process waits for.
    is_own = not on_path and is_data(f"{row.folder}/x")
    looks = row.most >= LOOKS and is_own and (missing or (row.names < _NAMES and row.failed is None))
    many = row.calls >= _LOOKS_TOGETHER or (row.calls >= LOOKS and 2 * row.calls >= profile.workflow.io.ops.all)
    if looks and (missing or many):
        return "polling"
    # Of the folders of a search path, only the last look finds a name.
    misses = not row.search_path or row.failed is None or _MISSES * row.failed >= row.calls
    if on_path and many and misses:
        # Counts have only look-ups that succeed, and these may also load what they find.
        return None if _COUNTS in profile.provenance else "library_search"
    if not (many and is_own) or row.names < _NAMES or row.calls < 2 * row.names:
        return None
    return "newest_file_search" if row.listings > 1 and not missing else "outputs_checked_again"


def polled(profile: Profile) -> frozenset[str]:
    """Folders with files that a process waits for. Their writer must make each as soon as it is ready."""
    return frozenset(row.folder for _, row, search in searches(profile) if search == "polling")


@dataclass(frozen=True)
class Folders:
    """Folders of a profile that a setting applies to, as (index in the profile, folder), the most expensive first."""

    rows: tuple[tuple[int, Folder], ...]

    def without_trifles(self) -> Folders:
        """The folders with a hundredth of the files or the time, so that a few others do not widen the target."""
        files, time = self.files / 100, self.time_s / 100
        return Folders(tuple(row for row in self.rows if row[1].files >= files or (row[1].time_s or 0.0) > time))

    def those(self, positions: Sequence[int]) -> Folders:
        """A subset, given by index in the profile."""
        return Folders(tuple(row for row in self.rows if row[0] in set(positions)))

    @property
    def files(self) -> int:
        return sum(folder.files for _, folder in self.rows)

    @property
    def written(self) -> int:
        """Number of files in the folders that the run writes to."""
        return sum(folder.files for _, folder in self.rows if is_written(folder))

    @property
    def known(self) -> int:
        """Number of files with a known size."""
        return sum(folder.sizes.known for _, folder in self.rows if folder.sizes is not None)

    @property
    def path(self) -> str:
        """The deepest folder that contains all of them."""
        paths = [folder.path for _, folder in self.rows]
        if len({path.startswith("/") for path in paths}) > 1:
            return "."
        return posixpath.commonpath(paths) or "."

    @property
    def metadata_time_s(self) -> float:
        """Metadata time, summed over processes."""
        return sum(folder.metadata_time_s or 0.0 for _, folder in self.rows)

    @property
    def time_s(self) -> float:
        """Time in all calls, summed over processes; only metadata time if a document has no more."""
        return sum(
            (folder.metadata_time_s if folder.time_s is None else folder.time_s) or 0.0
            for _, folder in self.rows
        )

    def words(self) -> str:
        """Number and location of the files, in words."""
        number = f"{format_count(len(self.rows))} folders"
        inside = self.path if len(self.rows) == 1 else f"{number} in {self.path}"
        if self.path == "/":
            # The folders are on several file systems.
            inside = f"{number}, such as {max(self.rows, key=lambda row: row[1].files)[1].path}"
        return f"{format_count(self.files)} files in {inside}"

    def target(self, profile: Profile) -> Target:
        """The common folder as the target, or the job if there is none; with the app if there is only one."""
        app = profile.apps[0].name if len(profile.apps) == 1 else None
        return Target("job", None, app) if self.path == "/" else Target("directory", self.path, app)

    def metadata_share(self, profile: Profile) -> float:
        """Share of the I/O time, 0..1, of operations on these files that metadata servers answer."""
        total = calls_s(profile.workflow.io)
        return min(1.0, self.metadata_time_s * _served(profile) / total) if total else 0.0

    def share(self, profile: Profile) -> float:
        """Share of the I/O time, 0..1, of all calls on these files that ask a server."""
        total, seeks = calls_s(profile.workflow.io), self.metadata_time_s * (1 - _served(profile))
        return min(1.0, (self.time_s - seeks) / total) if total else 0.0

    def metadata_s(self, profile: Profile) -> float:
        """Seconds of the run that operations of metadata servers on these files cost."""
        total = profile.workflow.io.time_s.metadata
        part = min(1.0, self.metadata_time_s / total) if total else 0.0
        return of_profile_s(profile, "metadata") * _served(profile) * part

    def total_s(self, profile: Profile) -> float:
        """Seconds of the run that all calls on these files cost, without the run's share of flushing."""
        time = profile.workflow.io.time_s
        if not time.total:
            return 0.0
        flushing = (time.sync or 0.0) / time.total
        return of_profile_s(profile, "total") * min(1.0, self.time_s / time.total) * (1 - min(1.0, flushing))

    def listed(self, profile: Profile) -> frozenset[str]:
        """Paths of the listed files in these folders."""
        inside = {folder.path for _, folder in self.rows}
        return frozenset(file.path for file in profile.files if (posixpath.dirname(file.path) or ".") in inside)

    def evidence(self, *attributes: str) -> list[Evidence]:
        """Attributes of the first folder as evidence."""
        return [
            Evidence(f"folders[{position}].{attribute}", value_at(folder, attribute))
            for position, folder in self.rows[:_SHOWN]
            for attribute in ("path", "files", *attributes)
        ]


def folder_table(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: the table of folders. Return why the profile lacks it, or None if it has it."""
    if profile.folders is not None:
        return None
    why = profile.provenance.get("folders", "an older Vani made the profile: make it again")
    return f"folders are not known ({why})"


def folders_of(profile: Profile, system: System) -> Folders:
    """Folders outside the node with data of the program; empty if the profile has no table of folders."""
    return Folders(
        tuple(
            (position, folder)
            for position, folder in enumerate(profile.folders or ())
            if is_data(posixpath.join(folder.path, "x")) and not is_near(f"{folder.path}/x", profile, system)
        )
    )


def beyond(profile: Profile) -> int:
    """Number of the data set's files in folders that the profile's table omits; 0 without a table."""
    seen = sum(folder.files for folder in profile.folders or ())
    return max(0, (profile.dataset.files or 0) - seen) if profile.folders is not None else 0


def at_most(sizes: SizeDistribution, limit: int) -> int:
    """Lower bound of the number of files of at most `limit` bytes, from bins and percentiles."""
    if sizes.max is not None and sizes.max <= limit:
        return sizes.known
    # A bin excludes its upper edge.
    small_files = sum(
        count for name, count in sizes.histogram.items() if (edge := _edge(name)) and edge <= limit + 1
    )
    for percent, value in ((90, sizes.p90), (50, sizes.p50)):
        if value is not None and value <= limit:
            small_files = max(small_files, -(-sizes.known * percent // 100))
    return small_files


def room_of(sizes: SizeDistribution, limit: int) -> int:
    """Upper bound of the bytes of the files if each has at most `limit`."""
    return sum(
        count * min(limit, *(size for size in (_edge(name), sizes.max) if size is not None))
        for name, count in sizes.histogram.items()
    )


def usual_bytes(folder: Folder) -> int | None:
    """The size that nine in ten files do not exceed, or the mean bytes moved per open if sizes are unknown."""
    if folder.sizes is not None and 2 * folder.sizes.known >= folder.files:
        return folder.sizes.p90
    opens = folder.opens or folder.files
    return None if folder.bytes.total is None or not opens else folder.bytes.total // opens


def is_small(folder: Folder, limit: int) -> bool:
    """True if most files of the folder have at most `limit` bytes."""
    usual = usual_bytes(folder)
    return usual is not None and usual <= limit


def is_written(folder: Folder) -> bool:
    """True if the run creates or writes most files of the folder. (Not every way to create a file is recorded.)"""
    known = folder.sizes.known if folder.sizes is not None else 0
    return 2 * (folder.creates or 0) >= folder.files or (bool(folder.bytes.written) and 2 * known >= folder.files)


def _served(profile: Profile) -> float:
    """Share of the files' metadata time in operations that servers answer, without folders and seeks."""
    kinds = profile.workflow.io.metadata_kinds
    if kinds is None:
        return 1.0
    times = {name: getattr(kinds, name).time_s or 0.0 for name in type(kinds).model_fields if name != "directory"}
    total = sum(times.values())
    return sum(time for name, time in times.items() if name in SERVED) / total if total else 1.0


def _edge(name: str) -> int | None:
    """Upper edge of a bin of sizes; None if it has none."""
    high = name.partition("-")[2]
    return parse_bytes(high) if high else None
