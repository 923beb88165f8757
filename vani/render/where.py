"""Which files the I/O time goes to, in one line: a path, or a pattern that files have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.report.datasets import file_groups
from vani.units import format_count, format_share

if TYPE_CHECKING:
    from vani.render.report.datasets import FileGroup
    from vani.schema.profile import Profile

__all__ = ["files_line", "shortened"]


def files_line(profile: Profile, room: int) -> str:
    """The file, or the files of one naming pattern, with most I/O time (most bytes, where no time is known).

    Parameters
    ----------
    room
        Letters that the line may have; of a longer one the path loses its middle.
    """
    if not profile.files:
        return ""
    group = file_groups(profile.files)[0]
    head = f"{_how_many(profile, group)}: "
    name = one_line(group.name)
    if len(head) + len(name) <= room:
        return head + name
    # The path has a line of its own rather than lose its middle.
    return f"{head.rstrip()}\n{shortened(name, room)}"


def _how_many(profile: Profile, group: FileGroup) -> str:
    count, total = len(group.files), profile.workflow.files.total
    shares = {file.access for file in group.files}
    users = {file.processes for file in group.files}
    if profile.workflow.processes == 1:
        used = ""
    elif shares == {"file_per_process"}:
        used = ", one per process each" if count > 1 else ", of one process"
    elif shares == {"shared"} and len(users) == 1:
        used = f", shared by {format_count(users.pop())} processes"
    else:
        used = ", some shared" if len(shares) > 1 else ", shared"
    timed = profile.workflow.io.time_s.total
    part = ""
    others = total is not None and total > count
    if timed and others and group.io_time_s:
        part = f", {format_share(min(1.0, group.io_time_s / timed))} of the I/O time"
    of = f" of {format_count(total)}" if others else ""
    files = "1 file" if count == 1 and not of else f"{format_count(count)}{of} files"
    return f"{files}{used}{part}"


def shortened(path: str, width: int) -> str:
    """Cut the middle out of a path, whole folders first, so that it has at most `width` letters."""
    path = one_line(path)
    if len(path) <= width:
        return path
    parts = path.split("/")
    # The root of an absolute path is the empty part in front.
    head, tail = ([parts[0] + "/" + parts[1]], parts[2:]) if path.startswith("/") else ([parts[0]], parts[1:])
    for kept in range(1, len(tail)):
        short = "/".join([*head, "…", *tail[kept:]])
        if len(short) <= width:
            return short
    name = "…/" + parts[-1] if len(parts) > 1 else path
    if len(name) <= width:
        return name
    # The end of a name tells files apart more often than its beginning: numbers and suffixes are there.
    front = max(0, (width - 1) // 3)
    return name[:front] + "…" + name[len(name) - (width - 1 - front) :] if width > 1 else "…"
