"""Documents that plans are made from: their digests, layout files, and the age of a snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, Self, TypeVar, cast

from vani.api.arguments import PathLike
from vani.centre.plan.creations import is_layout_file
from vani.centre.plan.schema import PlanInput
from vani.errors import InputError
from vani.models.tarazu_layout import parse_buckets
from vani.schema.document import dumps, read_text
from vani.units import format_seconds

if TYPE_CHECKING:
    from pydantic import BaseModel

    from vani.centre.plan.schema.jobs import Jobs
    from vani.centre.plan.schema.snapshot import Snapshot
    from vani.models.pfl import Layout

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
    if isinstance(given, (str, Path)):
        read_text(given)  # Refuses a file that is not text with a message.
        return PlanInput(
            kind=kind, path=str(given), sha256=hashlib.sha256(Path(given).read_bytes()).hexdigest()
        )
    return PlanInput(kind=kind, path=None, sha256=hashlib.sha256(dumps(given).encode()).hexdigest())


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


def refuse_old(snapshot: Snapshot, max_age: float | None, now: datetime | None, where: str) -> None:
    """Raise InputError if a snapshot is older than `max_age` seconds at `now`, or has no time.

    With `max_age` None, any age is accepted. A time without a zone is UTC. A snapshot more than `max_age` in the
    future is refused as well, because one of the clocks must be wrong.
    """
    if max_age is None:
        return
    # Written this way round because comparisons with NaN are false.
    if not 0 <= max_age <= 1e9:
        raise InputError(f"is {max_age:g}", where="--max-age", todo="give seconds, 0 or more")
    taken = snapshot.time
    if taken is None:
        raise InputError(
            "contains no time", where=where, todo="add `time`, or leave --max-age out"
        )
    current = now or datetime.now(UTC)
    age = (_in_utc(current) - _in_utc(taken)).total_seconds()
    if abs(age) > max_age:
        when = f"{format_seconds(age)} old" if age > 0 else f"from {format_seconds(-age)} ahead of this clock"
        raise InputError(
            f"is {when}, but --max-age allows {format_seconds(max_age)}",
            where=where,
            todo="take a new one",
        )


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
