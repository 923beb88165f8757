"""Files in a profile that are data of the program, and their share of the run.

A profile lists every path that is not a device, including configuration of the machine, Python modules and helper
files of MPI libraries, for which no setting makes sense.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from vani.advisors.alike import ALONE, Part, parts_of
from vani.advisors.metadata import share_of
from vani.advisors.rule import Target
from vani.models.run_time import Kind, cost_s, files_s, seconds_of
from vani.units import format_count

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, Profile

SHOWN = 10
"""Most files in a recommendation's evidence, for one screen. The command covers all of them."""

# Filesystem Hierarchy Standard 3.0: folders of the machine and its software, without data of programs.
_MACHINE: Final = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr")

# Folders of installed software anywhere, in Python's and Conda's layout.
_SOFTWARE: Final = frozenset({"__pycache__", "dist-packages", "site-packages", "conda-meta"})
_PYTHON: Final = re.compile(r"/lib(?:64)?/python[0-9][0-9.]*/|(?:^|/)pyvenv\.cfg$")

# Open MPI keeps the shared memory of a job in /tmp/ompi.HOST.UID. ROMIO keeps shared file
# pointers in a hidden file `.NAME.shfp.NUMBER`.
_POINTERS: Final = ".shfp."
_SESSION: Final = "/tmp/ompi."


# Most app names to list.
_NAMED: Final = 2


@dataclass(frozen=True, eq=False)
class Item:
    """A file and its index in the profile."""

    index: int
    file: FileEntity
    part: Part = ALONE
    """Part of its name pattern that the file represents, for patterns with unlisted files."""

    @property
    def where(self) -> str:
        """Path of the file's entry in the profile."""
        return f"files[{self.index}]"


def data_files(profile: Profile, keep: Callable[[FileEntity], bool] = lambda _: True) -> list[Item]:
    """The files that are data of the program and for which `keep` is true."""
    chosen = [i for i, file in enumerate(profile.files) if is_data(file.path) and keep(file)]
    if not chosen:
        return []
    parts = parts_of(profile)
    return [Item(i, profile.files[i], parts[i]) for i in chosen]


def alike(items: Iterable[Item]) -> list[list[Item]]:
    """Groups of files to judge: single files, or all files of a pattern that has unlisted files."""
    groups: defaultdict[tuple[str, int], list[Item]] = defaultdict(list)
    for item in items:
        several = item.part.files > 1 and item.part.pattern is not None
        groups[("pattern", item.part.pattern or 0) if several else ("file", item.index)].append(item)
    return list(groups.values())


def is_journal(path: str) -> bool:
    """True for a SQLite journal: each commit must be on disk (sqlite.org, "Temporary Files Used By SQLite")."""
    return path.endswith(("-journal", "-wal"))


def app_of(file: FileEntity) -> str | None:
    """The app that uses the file; None if several do, because the figures are then of all of them."""
    return file.apps[0] if len(file.apps) == 1 else None


def by_folder(
    items: Iterable[Item], profile: Profile, among: Collection[str] | None = None
) -> list[tuple[App | None, str, list[Item]]]:
    """Group files by app and folder, in profile order. One edit of the program changes a group.

    Folders whose names differ only in numbers, like those of their files, are merged into their parent folder.
    Files of several apps have the app None. With `among`, a file belongs to the first of these apps that uses it.
    """
    groups: defaultdict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in items:
        apps_of = item.file.apps
        owners = [app_of(item.file)] if among is None else [name for name in apps_of if name in among]
        groups[next(iter(owners), None) or "", item.part.folder or folder_of(item.file.path)].append(item)
    apps = {app.name: app for app in profile.apps}
    return [(apps.get(app), folder, group) for (app, folder), group in groups.items()]


def wall_s(items: Sequence[Item], app: App | None, kind: Kind) -> float:
    """Seconds of the run that calls of `kind` on the files cost; see `vani/models/run_time.py`."""
    seconds = files_s([item.file for item in items], app, kind)
    times = [(item, seconds_of(item.file.io.time_s, kind)) for item in items]
    listed_s = sum(time for _, time in times)
    if not listed_s:
        return seconds
    all_s = sum(time * (item.part.metadata_time if kind == "metadata" else item.part.time) for item, time in times)
    if all_s <= listed_s:
        return seconds
    seconds *= all_s / listed_s
    return seconds if app is None else max(0.0, min(seconds, cost_s([app.io], app.processes, app, kind)))


def data_s(reads: Sequence[Item], writes: Sequence[Item], app: App | None) -> float:
    """Seconds of the run that reading and writing the files costs, at most that of all I/O on them."""
    separate_s = wall_s(reads, app, "read") + wall_s(writes, app, "write")
    return min(separate_s, wall_s(list(dict.fromkeys([*reads, *writes])), app, "total"))


def metadata_s(items: Sequence[Item], app: App | None, kinds: Sequence[str]) -> float:
    """Seconds of the run that metadata operations of these kinds on the files cost."""
    return wall_s(items, app, "metadata") * share_of((item.file.io for item in items), kinds)


def files_of(items: Sequence[Item]) -> int:
    """Number of files, including unlisted ones with the same patterns."""
    return round(sum(item.part.files for item in items))


def target_of(folder: str, items: Sequence[Item], app: App | None) -> Target:
    """The target of a finding: the file, or the folder if there are several files."""
    name = app.name if app is not None else None
    if files_of(items) == 1:
        return Target("file", items[0].file.path, name)
    return Target("directory", folder, name)


def listed(folder: str, items: Sequence[Item], app: App | None = None) -> str:
    """The files in words, with the app if given, or with the apps that share them."""
    apps = dict.fromkeys(name for item in items for name in item.file.apps)
    of_app = f" of {app.name}" if app is not None else ""
    users = f" ({_names(list(apps))})" if app is None and len(apps) > 1 else ""
    number = files_of(items)
    where = items[0].file.path if number == 1 else f"{format_count(number)} files{of_app} in {folder}"
    return where + users


def folder_of(path: str) -> str:
    """The folder of a file; `.` for a bare name."""
    return posixpath.dirname(path) or "."


def extent(file: FileEntity) -> int | None:
    """Size of the file in bytes, or the bytes touched if the size is unknown; None if neither is known."""
    most, touched = file.size, file.io.footprint
    for size in (touched.read, touched.written):
        if size is not None and (most is None or size > most):
            most = size
    return most


def _names(apps: Sequence[str]) -> str:
    """The first few apps in words: a workflow may have hundreds."""
    shown, more = apps[:_NAMED], len(apps) - _NAMED
    return f"used by {', '.join(shown)} and {more} more" if more > 0 else f"used by {' and '.join(shown)}"


# Usual names of checkpoints; nothing else in a profile identifies them.
_CHECKPOINT: Final = re.compile(r"ckpt|chkp|(?<![a-z])chk|checkpoint|restart|(?<![a-z])rst|dmtcp", re.IGNORECASE)


def is_checkpoint(path: str) -> bool:
    """True if the path looks like that of a checkpoint, which contains a program's state."""
    return _CHECKPOINT.search(path) is not None


def is_software(path: str) -> bool:
    """True for a file of an installed Python environment in any folder; FLD002 is about these."""
    return not _SOFTWARE.isdisjoint(path.split("/")) or _PYTHON.search(path) is not None


# Cached because every rule asks about the same files.
@lru_cache(maxsize=1 << 17)
def is_data(path: str) -> bool:
    """True if a path is data of a program rather than the machine's software or a helper file of an MPI library."""
    parts = path.split("/")
    if parts[0] == "" and len(parts) > 1 and parts[1] in _MACHINE:
        # Memory that looks like a device, in which programs do keep data.

        return path.startswith("/dev/shm/")
    if path.startswith(_SESSION):
        return False
    return _POINTERS not in parts[-1] and not is_software(path)
