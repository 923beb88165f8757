"""The files with the longest I/O time, in one line: a path, a folder, or a common name pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.models.costliest import costliest
from vani.schema.profile import NamePattern
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.models.costliest import Costliest
    from vani.schema.profile import Profile

_NEARLY_ALL = 0.99


def files_line(profile: Profile, room: int) -> str:
    """The files with the longest I/O time (most bytes if times are unknown), counted over all files of the run.

    Parameters
    ----------
    room
        Maximum length of the line; in a longer one, the path is shortened in the middle.
    """
    files = costliest(profile)
    if files is None:
        return ""
    head = f"{_how_many(profile, files)}: "
    name = one_line(files.name)
    if len(head) + len(name) <= room:
        return head + name
    # The path gets a line of its own rather than being shortened.
    return f"{head.rstrip()}\n{shortened(name, room)}"


def _how_many(profile: Profile, files: Costliest) -> str:
    total = profile.workflow.files.total
    used = _used(profile, files.group) if isinstance(files.group, NamePattern) else ""
    others = total != files.files
    number = format_count(files.files)
    if total is not None and total > files.files:
        number += f" of {format_count(total)}"
    elif not others and files.files > 1 and not used.startswith(", all "):
        number = f"all {number}"
    part = ""
    if others and files.share:
        share = "nearly all" if files.share >= _NEARLY_ALL else format_share(files.share)
        part = f", {share} of the I/O time"
    return f"{number} {'file' if number == '1' else 'files'}{used}{part}"


def _used(profile: Profile, pattern: NamePattern) -> str:
    """The processes that use the files; empty for a program with a single process, or if unknown."""
    several = pattern.files > 1
    processes = profile.workflow.processes
    if processes == 1:
        return ""
    # If all processes open a file and one writes it, that one may be an aggregator of collective calls.
    collective = any(row.layer == "mpiio" and row.collective_share for row in profile.interfaces or ())
    wrote_more = (pattern.bytes.written or 0) > (pattern.bytes.read or 0)
    if pattern.writer is not None and not collective and (not pattern.shared or wrote_more):
        who = f"rank {pattern.writer}" if len(profile.traces) == 1 else "one process"
        return f", {'all ' if several else ''}written by {who}"
    if pattern.processes == 1:
        return f", {'all ' if several else ''}of one process"
    if not pattern.shared:
        return ", each of one process" if several else ", of one process"
    if pattern.shared < pattern.files:
        return ", some shared"
    if pattern.processes is None:
        return ", all shared" if several else ", shared"
    if not several:
        return f", shared by {format_count(pattern.processes)} processes"
    return ", each shared by several processes"


def shortened(path: str, width: int) -> str:
    """Shorten a path in the middle, whole folders first, to at most `width` characters."""
    path = one_line(path)
    if len(path) <= width:
        return path
    parts = path.split("/")
    # The root of an absolute path is the empty first part.
    head, tail = ([parts[0] + "/" + parts[1]], parts[2:]) if path.startswith("/") else ([parts[0]], parts[1:])
    for first in range(1, len(tail)):
        short = "/".join([*head, "…", *tail[first:]])
        if len(short) <= width:
            return short
    name = "…/" + parts[-1] if len(parts) > 1 else path
    if len(name) <= width:
        return name
    # The end of a name, with numbers and suffixes, distinguishes files more often than its beginning.
    front = max(0, (width - 1) // 3)
    return name[:front] + "…" + name[len(name) - (width - 1 - front) :] if width > 1 else "…"
