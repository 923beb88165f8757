"""Folders over all files of the run, not only the listed ones: number, sizes and cost of their files.

The table of a profile has the hundred folders with most metadata time and the ten with most files: that none of the
others has more files than these is sure, what all of them have together is not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import is_data
from vani.advisors.metadata import SERVED
from vani.advisors.rule import Evidence, Target
from vani.models.costliest import calls_s
from vani.models.run_time import of_profile_s
from vani.models.staging import is_near
from vani.units import format_count, parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Folder, Profile, SizeDistribution
    from vani.schema.system import System

__all__ = ["Folders", "at_most", "beyond", "folders_of", "is_small", "is_written", "room_of", "usual_bytes"]

_SHOWN: Final = 3


@dataclass(frozen=True)
class Folders:
    """Some folders of a profile that one setting is for: (position in the profile, folder), most costly first."""

    rows: tuple[tuple[int, Folder], ...]

    def without_trifles(self) -> Folders:
        """Those that have a hundredth of the files, or of the time: a few others are no reason to name their parent."""
        files, time = self.files / 100, self.time_s / 100
        return Folders(tuple(row for row in self.rows if row[1].files >= files or (row[1].time_s or 0.0) > time))

    def those(self, positions: Sequence[int]) -> Folders:
        """Some of them, by position in the profile."""
        return Folders(tuple(row for row in self.rows if row[0] in set(positions)))

    @property
    def files(self) -> int:
        return sum(folder.files for _, folder in self.rows)

    @property
    def written(self) -> int:
        """Files of the folders whose files the run writes."""
        return sum(folder.files for _, folder in self.rows if is_written(folder))

    @property
    def removes(self) -> int:
        return sum(folder.removes or 0 for _, folder in self.rows)

    @property
    def removal_known(self) -> bool:
        """True if the profile knows for each folder how many files the run removed."""
        return all(folder.removes is not None for _, folder in self.rows)

    @property
    def known(self) -> int:
        """Files of known size."""
        return sum(folder.sizes.known for _, folder in self.rows if folder.sizes is not None)

    @property
    def path(self) -> str:
        """The deepest folder that contains them all."""
        paths = [folder.path for _, folder in self.rows]
        if len({path.startswith("/") for path in paths}) > 1:
            return "."
        return posixpath.commonpath(paths) or "."

    @property
    def metadata_time_s(self) -> float:
        """Summed over processes."""
        return sum(folder.metadata_time_s or 0.0 for _, folder in self.rows)

    @property
    def time_s(self) -> float:
        """In all calls, summed over processes; that of metadata only where a document has no more."""
        return sum(
            (folder.metadata_time_s if folder.time_s is None else folder.time_s) or 0.0
            for _, folder in self.rows
        )

    def words(self) -> str:
        """Number and place of the files, in words."""
        number = f"{format_count(len(self.rows))} folders"
        inside = self.path if len(self.rows) == 1 else f"{number} in {self.path}"
        if self.path == "/":
            # They are in several file systems.
            inside = f"{number}, such as {max(self.rows, key=lambda row: row[1].files)[1].path}"
        return f"{format_count(self.files)} files in {inside}"

    def target(self, profile: Profile) -> Target:
        """The folder, or the job where there is none above all; with the app where there is one."""
        app = profile.apps[0].name if len(profile.apps) == 1 else None
        return Target("job", None, app) if self.path == "/" else Target("directory", self.path, app)

    def metadata_share(self, profile: Profile) -> float:
        """Time of operations on these files that metadata servers answer, as a share of all I/O time, 0..1."""
        total = calls_s(profile.workflow.io)
        return min(1.0, self.metadata_time_s * _served(profile) / total) if total else 0.0

    def metadata_s(self, profile: Profile) -> float:
        """Seconds of the run that what metadata servers answer for these files costs."""
        total = profile.workflow.io.time_s.metadata
        part = min(1.0, self.metadata_time_s / total) if total else 0.0
        return of_profile_s(profile, "metadata") * _served(profile) * part

    def total_s(self, profile: Profile) -> float:
        """Seconds of the run that all calls on these files cost, but for the share of the run that flushing is."""
        time = profile.workflow.io.time_s
        if not time.total:
            return 0.0
        flushing = (time.sync or 0.0) / time.total
        return of_profile_s(profile, "total") * min(1.0, self.time_s / time.total) * (1 - min(1.0, flushing))

    def listed(self, profile: Profile) -> frozenset[str]:
        """Paths of the listed files in them."""
        inside = {folder.path for _, folder in self.rows}
        return frozenset(
            file.path for file in profile.files if (posixpath.dirname(file.path) or ".") in inside
        )

    def evidence(self, *attributes: str) -> list[Evidence]:
        """Attributes of the first of them."""
        return [
            Evidence(f"folders[{position}].{attribute}", _value(folder, attribute))
            for position, folder in self.rows[:_SHOWN]
            for attribute in ("path", "files", *attributes)
        ]


def folder_table(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Need of a rule: the table of folders. The reason why a profile lacks it, None if it is there."""
    if profile.folders is not None:
        return None
    why = profile.provenance.get("folders", "an older Vani made the profile: make it again")
    return f"folders are not known ({why})"


def folders_of(profile: Profile, system: System) -> Folders:
    """Folders with data of the program that are not on the node; empty if the profile has no table of folders."""
    return Folders(
        tuple(
            (position, folder)
            for position, folder in enumerate(profile.folders or ())
            if is_data(posixpath.join(folder.path, "x")) and not is_near(f"{folder.path}/x", profile, system)
        )
    )


def beyond(profile: Profile) -> int:
    """Files of the data set in folders that the profile's table leaves out; 0 where there is no table."""
    seen = sum(folder.files for folder in profile.folders or ())
    return max(0, (profile.dataset.files or 0) - seen) if profile.folders is not None else 0


def at_most(sizes: SizeDistribution, limit: int) -> int:
    """Number of files of at most `limit` bytes, as far as bins and percentiles show; a lower bound."""
    if sizes.max is not None and sizes.max <= limit:
        return sizes.known
    # The high edge of a bin is not in it.
    small_files = sum(
        count for name, count in sizes.histogram.items() if (edge := _edge(name)) and edge <= limit + 1
    )
    for percent, value in ((90, sizes.p90), (50, sizes.p50)):
        if value is not None and value <= limit:
            small_files = max(small_files, -(-sizes.known * percent // 100))
    return small_files


def room_of(sizes: SizeDistribution, limit: int) -> int:
    """Bytes that the files take where none takes more than `limit`: no more than that."""
    return sum(
        count * min(limit, *(size for size in (_edge(name), sizes.max) if size is not None))
        for name, count in sizes.histogram.items()
    )


def usual_bytes(folder: Folder) -> int | None:
    """The size that nine in ten files do not exceed; if sizes are not known, mean bytes moved per open."""
    if folder.sizes is not None and 2 * folder.sizes.known >= folder.files:
        return folder.sizes.p90
    opens = folder.opens or folder.files
    return None if folder.bytes.total is None or not opens else folder.bytes.total // opens


def is_small(folder: Folder, limit: int) -> bool:
    """Most files of the folder have at most so many bytes."""
    usual = usual_bytes(folder)
    return usual is not None and usual <= limit


def is_written(folder: Folder) -> bool:
    """The run makes or writes most files of the folder; not every way to make a file is recorded."""
    known = folder.sizes.known if folder.sizes is not None else 0
    return 2 * (folder.creates or 0) >= folder.files or (bool(folder.bytes.written) and 2 * known >= folder.files)


def _served(profile: Profile) -> float:
    """The part of files' metadata time that servers answer: without folders and seeks."""
    kinds = profile.workflow.io.metadata_kinds
    if kinds is None:
        return 1.0
    times = {
        name: getattr(kinds, name).time_s or 0.0 for name in type(kinds).model_fields if name != "directory"
    }
    total = sum(times.values())
    return sum(time for name, time in times.items() if name in SERVED) / total if total else 1.0


def _edge(name: str) -> int | None:
    """High edge of a bin of sizes; None where it has none."""
    high = name.partition("-")[2]
    return parse_bytes(high) if high else None


def _value(folder: Folder, attribute: str) -> str | int | float | None:
    value: object = folder
    for name in attribute.split("."):
        value = getattr(value, name, None)
    return value if isinstance(value, str | int | float) else None
