"""Documents that plans are made from: their digests, layout files, files to create, and the age of a snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, Self, TypeVar, cast

from vani.centre.plan.placement.layouts import Extent, Writing, extents
from vani.centre.plan.schema.plans import PlanInput
from vani.centre.plan.schema.snapshot import Snapshot
from vani.errors import InputError, one_line
from vani.models.pfl import Component, Layout, parse_buckets, parse_options
from vani.schema.document import dumps, read_text
from vani.schema.settings import PathLike
from vani.units import format_seconds

if TYPE_CHECKING:
    from pydantic import BaseModel

    from vani.centre.plan.schema.jobs import Creation, Jobs, PlannedJob

# Documents that plans are made from: their digests, layout files, and the age of a snapshot.

InputKind = Literal["jobs", "plan", "profile", "snapshot", "system", "scenario", "layout", "trace"]


class _Loads(Protocol):
    """A document model that can load itself from a file."""

    @classmethod
    def load(cls, path: str | Path) -> Self: ...


Document = TypeVar("Document", bound=_Loads)


@dataclass(frozen=True)
class LoadedInput(Generic[Document]):
    """A document that a caller passed as a path or a model."""

    document: Document
    where: str
    """Name of the document in errors: its path or its kind."""
    folder: Path
    """Folder that its relative paths start from."""
    source: PlanInput


def loaded(kind: InputKind, given: PathLike | Document, model: type[Document]) -> LoadedInput[Document]:
    """Read a document, unless it is already a model, and compute its digest.

    Raises
    ------
    InputError
        The file is missing or invalid.
    """
    if isinstance(given, (str, Path)):
        return LoadedInput(model.load(given), str(given), Path(given).parent, plan_input(kind, given))
    return LoadedInput(given, kind, Path(), plan_input(kind, cast("BaseModel", given)))


def plan_input(kind: InputKind, given: PathLike | BaseModel) -> PlanInput:
    """Identify a document by the SHA-256 of its file, or of its YAML if it is in memory.

    Raises
    ------
    InputError
        The file is missing or not text.
    """
    content, path = b"", None
    if isinstance(given, (str, Path)):
        read_text(given)  # Refuses a file that is not text with a message.
        content, path = Path(given).read_bytes(), str(given)
    else:
        content = dumps(given).encode()
    return PlanInput(kind=kind, path=path, sha256=hashlib.sha256(content).hexdigest())


def layout_files_of(jobs: Jobs, folder: Path) -> dict[str, Path]:
    """Layout files by the name that jobs use; relative paths start in the folder of the jobs."""
    names = (creation.layout for job in jobs.jobs for creation in job.creations or [])
    return {name: folder / name for name in names if isinstance(name, str) and is_layout_file(name)}


def read_layouts(files: Mapping[str, Path]) -> dict[str, Layout]:
    """Read layout files, by the name that jobs use.

    Raises
    ------
    InputError
        A file is invalid.
    """
    return {name: parse_buckets(read_text(path), str(path)) for name, path in files.items()}


def with_options(jobs: Jobs, layouts: Mapping[str, Layout]) -> Jobs:
    """The jobs with each layout file replaced by options of `lfs setstripe`."""
    if not layouts:
        return jobs
    options = {name: layout.to_options() for name, layout in layouts.items()}
    changed = []
    for job in jobs.jobs:
        creations = [
            creation.model_copy(update={"layout": options[creation.layout]})
            if creation.layout in options
            else creation
            for creation in job.creations or []
        ]
        changed.append(job.model_copy(update={"creations": creations}) if creations else job)
    return jobs.model_copy(update={"jobs": changed})


def loaded_snapshot(given: PathLike | Snapshot, max_age: float | None, now: datetime | None) -> LoadedInput[Snapshot]:
    """Read a snapshot. Raise InputError if it is older than `max_age` seconds at `now`, or has no time.

    With `max_age` None, any age is accepted. A time without a zone is UTC. A snapshot more than `max_age` in the
    future is refused as well, because one of the clocks must be wrong.
    """
    state = loaded("snapshot", given, Snapshot)
    if max_age is None:
        return state
    # Written this way round because comparisons with NaN are false.
    if not 0 <= max_age <= 1e9:
        raise InputError(f"is {max_age:g}", where="--max-age", todo="give seconds, 0 or more")
    taken, where = state.document.time, state.where
    if taken is None:
        raise InputError("contains no time", where=where, todo="add `time`, or leave --max-age out")
    current = now or datetime.now(UTC)
    age = (_in_utc(current) - _in_utc(taken)).total_seconds()
    if abs(age) > max_age:
        when = f"{format_seconds(age)} old" if age > 0 else f"from {format_seconds(-age)} ahead of this clock"
        what = f"is {when}, but --max-age allows {format_seconds(max_age)}"
        raise InputError(what, where=where, todo="take a new one")
    return state


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


# The files that jobs will create: their layouts, and the bytes of each component.

MAX_STRIPES: Final = 2_000_000
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
    jobs: Jobs, layouts: Mapping[str, Layout], targets: int, where: str, *, as_printed: bool, most: int | None = None
) -> list[FileToPlace]:
    """The files of all jobs, in document order.

    Parameters
    ----------
    layouts
        Parsed files with Tarazu's buckets, by their name in the jobs document.
    targets
        Number of OSTs that a stripe count of -1 means.
    most
        Number of OSTs in service, to which larger stripe counts are cut.
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
    creations = (
        (f"{where}: jobs[{number}].creations[{at}]", job, creation)
        for number, job in enumerate(jobs.jobs)
        for at, creation in enumerate(job.creations or [])
    )
    for place, job, creation in creations:
        _check_path(creation.path, seen, place)
        writing = writing_of(job)
        key = (creation.layout, creation.size, writing)
        if key not in known:
            layout, lack = layout_of(creation.layout, layouts, f"{place}.layout")
            if any(part.end is not None and part.end < creation.size for part in layout.components[-1:]):
                raise InputError("the layout ends before the file", where=place, todo="end it with -E -1")
            parts = tuple(extents(layout, creation.size, targets, None if as_printed else writing, most))
            known[key] = layout, parts, lack
        layout, parts, lack = known[key]
        stripes += sum(part.count for part in parts)
        if stripes > MAX_STRIPES:
            what = f"the files have more than {MAX_STRIPES:,} stripes together"
            raise InputError(what, where=where, todo="plan the files of one step, or with fewer stripes each")
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


def layout_of(given: int | str | None, layouts: Mapping[str, Layout], where: str) -> tuple[Layout, str | None]:
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
        is_composite = any(word.startswith(("-E", "--component-end")) for word in text.split())
        layout = parse_options(text if is_composite else f"-E -1 {text}")
    except InputError as error:
        raise InputError(error.what, where=where, todo=error.todo) from None
    if any(part.count is None and not part.on_mdt for part in layout.components):
        return layout, "no stripe count in its layout: one stripe is assumed"
    return layout, None
