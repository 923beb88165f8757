"""The files that jobs will create: their layouts, and the bytes of each component."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.centre.plan.placement.extents import Extent, extents
from vani.centre.plan.placement.stripe_size import Writing
from vani.errors import InputError, one_line
from vani.models.pfl import Component, Layout, parse_options

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import Creation, Jobs, PlannedJob

MOST_STRIPES: Final = 2_000_000
"""Most stripes over all files. More take minutes and do not fit into a readable document."""

_ONE_STRIPE: Final = Layout((Component(None, 1),))


@dataclass(frozen=True)
class FileToPlace:
    """A file that a job will create. `lack` names what its description is missing, if anything."""

    job: str
    creation: Creation
    layout: Layout
    writing: Writing
    extents: tuple[Extent, ...]
    lack: str | None


def is_layout_file(layout: int | str | None) -> bool:
    """True if a layout is the name of a file with Tarazu's buckets, that is, neither a count nor options."""
    return isinstance(layout, str) and not layout.strip().startswith("-") and not layout.strip().isdigit()


def files_to_place(
    jobs: Jobs, layouts: Mapping[str, Layout], targets: int, where: str, *, as_printed: bool
) -> list[FileToPlace]:
    """The files of all jobs, in document order.

    Parameters
    ----------
    layouts
        Parsed files with Tarazu's buckets, by their name in the jobs document.
    targets
        Number of OSTs in service, which a stripe count of -1 means.
    where
        Name of the jobs document in errors.

    Raises
    ------
    InputError
        There are no files, a path cannot be written in a command, two files have the same path, Lustre refuses a
        layout, or there are too many stripes to plan.
    """
    files: list[FileToPlace] = []
    known: dict[tuple[object, int, Writing], tuple[Layout, tuple[Extent, ...], str | None]] = {}
    seen: set[str] = set()
    stripes = 0
    for place, job, creation in _creations(jobs, where):
        _check_path(creation.path, seen, place)
        writing = writing_of(job)
        key = (creation.layout, creation.size, writing)
        if key not in known:
            layout, lack = layout_of(creation.layout, layouts, f"{place}.layout")
            if any(part.end is not None and part.end < creation.size for part in layout.components[-1:]):
                raise InputError("the layout ends before the file", where=place, todo="end it with -E -1")
            parts = tuple(extents(layout, creation.size, targets, None if as_printed else writing))
            known[key] = layout, parts, lack
        layout, parts, lack = known[key]
        stripes += sum(part.count for part in parts)
        if stripes > MOST_STRIPES:
            raise InputError(
                f"the files have more than {MOST_STRIPES:,} stripes together",
                where=where,
                todo="plan the files of one step, or with fewer stripes each",
            )
        files.append(FileToPlace(job.name, creation, layout, writing, parts, lack))
    if not files:
        raise InputError("no job creates a file", where=where, todo="give jobs their `creations`")
    return files


def writing_of(job: PlannedJob) -> Writing:
    """How the job writes each of its files. Without a pattern, one process writes each file in order."""
    pattern = job.pattern
    if pattern is None:
        return Writing()
    shared = pattern.layout == "shared"
    return Writing((job.processes or 1) if shared else 1, pattern.request, shared and pattern.order == "strided")


def _creations(jobs: Jobs, where: str) -> Iterator[tuple[str, PlannedJob, Creation]]:
    for number, job in enumerate(jobs.jobs):
        for at, creation in enumerate(job.creations or []):
            yield f"{where}: jobs[{number}].creations[{at}]", job, creation


def _check_path(path: str, seen: set[str], where: str) -> None:
    wrong = None
    if not path.startswith("/"):
        wrong = "is not an absolute path", "start it with /"
    elif "\0" in path or any("\ud800" <= sign <= "\udfff" for sign in path):
        wrong = "contains a character that is not allowed in paths", "leave it out"
    elif path.endswith("/"):
        wrong = "is a folder", "name the file"
    elif path in seen:
        wrong = "is created twice", "leave one of them out"
    if wrong is not None:
        shown = one_line(path.encode("utf-8", "backslashreplace").decode())
        raise InputError(f"{shown[:200]} {wrong[0]}", where=where, todo=wrong[1])
    seen.add(path)


def layout_of(
    given: int | str | None, layouts: Mapping[str, Layout], where: str
) -> tuple[Layout, str | None]:
    """Parse the layout in a document. The second value names what it lacks, or is None.

    Parameters
    ----------
    given
        A number of stripes, options of `lfs setstripe`, or a key of `layouts`.

    Raises
    ------
    InputError
        Lustre refuses the layout.
    """
    try:
        if given is None:
            return _ONE_STRIPE, "no layout: one stripe is assumed, Lustre's default"
        if isinstance(given, int):
            return Layout((Component(None, given),)), None
        if is_layout_file(given):
            return layouts[given], None
        text = given.strip()
        if text.isdigit():
            return Layout((Component(None, int(text)),)), None
        layout = parse_options(text if _is_composite(text) else f"-E -1 {text}")
    except InputError as error:
        raise InputError(error.what, where=where, todo=error.todo) from None
    if any(part.count is None and not part.on_mdt for part in layout.components):
        return layout, "no stripe count in its layout: one stripe is assumed"
    return layout, None


def _is_composite(text: str) -> bool:
    return any(word.startswith(("-E", "--component-end")) for word in text.split())
