"""Runs as callers pass them, profiles or traces, and the resources of one call that decodes traces."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

import vani
from vani.engine.executor import Executor, Progress, Scheduler, scheduler_of
from vani.errors import InputError, UnknownFormatError, one_line
from vani.schema.settings import Option, PathLike, Settings
from vani.schema.syntax import is_document, may_be_document
from vani.site import BUDGET, setting
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System
    from vani.store.stores import Stores

JUDGED_FILES: Final = 1000
"""Number of files that `advise` judges in a longer profile: ten times as many as `profile` lists by default."""
_MAX_DIGITS: Final = 18


def _number_or_all(value: Any) -> Any:
    if value == "all":
        return None
    # No run has more files, and Python refuses to parse a number with thousands of digits.
    if isinstance(value, str) and (not value.isdecimal() or len(value) > _MAX_DIGITS):
        raise ValueError("is neither a number of files nor 'all'")
    return value


FileCount = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_number_or_all), Option(metavar="N|all")]
"""A number of files; None is all of them, which the command line calls `all`."""
JudgedFileCount = Annotated[
    Annotated[int, Field(ge=1)] | None, BeforeValidator(_number_or_all), Option(metavar="N|all")
]
"""The same, at least 1."""
OptionalFile = Annotated[Path | None, Option(metavar="FILE")]
Machine = Annotated[
    Any,
    Option(metavar="NAME|FILE", default=lambda: setting("system").value),
    Field(description="The machine: a bundled name or a system.yaml; by default from `vani config`."),
]
"""A bundled machine's name, the path of a system.yaml, or a `System`; None if unknown."""

Where = Annotated[
    Any,
    # Parsed before the trace is opened: a typing error should not cost minutes.
    AfterValidator(scheduler_of),
    Option(metavar="threads|processes|ADDRESS|FILE"),
    Field(
        description="Where to run: in threads (the default) or processes of this machine, or on the Dask cluster with "
        "this address or scheduler file."
    ),
]
"""A scheduler's name, address or file, a Dask client or cluster."""


def _size(value: Any) -> Any:
    try:
        return parse_bytes(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("is not a size; give one such as 500MB or 4GiB") from None


Memory = Annotated[
    Annotated[int, Field(ge=1)] | None,
    BeforeValidator(_size),
    Option(metavar="SIZE"),
    Field(description="Refuse input that takes more memory; by default, one line warns before half of the machine's."),
]


def half_of_memory() -> int | None:
    """Half of the memory of this machine, or of the control group if it has less; None if unknown."""
    from vani.collect.node import memory_bytes, read_limits  # noqa: PLC0415 - only large input needs it

    limits = (memory_bytes(), read_limits().memory)
    return min((limit // 2 for limit in limits if limit is not None), default=None)


class Decoding(Settings):
    """Settings of a function that may decode a trace."""

    store: Annotated[Path | None, Option(metavar="DIR")] = Field(
        default=None, description="Store decoded calls in this folder, not in the user's cache."
    )
    scheduler: Where = None
    memory: Memory = None


class ProfileSettings(Decoding):
    """Scope of a profile, and facts that the traces lack."""

    job: Annotated[Path | Any, Option(metavar="FILE")] = Field(
        default=None,
        description="job.yaml that `vani collect` wrote inside the job; by default the one in the trace's folder.",
    )
    system: Machine = None
    phase_gap: Annotated[float, Field(gt=0, lt=1e9)] | None = Field(
        default=None, description="Pause in seconds that separates I/O phases; by default determined from the data."
    )
    files: FileCount = Field(default=100, description="Number of files to list, most I/O time first.")
    quick: bool = Field(
        default=False,
        description="Count calls without reading time stamps: takes seconds for any trace; the profile has no times.",
    )
    together: bool = Field(
        default=False, description="Treat the traces as one workload even if they share no file, no job and no time."
    )


def job_of(settings: ProfileSettings, traces: Iterable[Path]) -> Job | None:
    """The job that the user names, or else the one whose job.yaml `vani trace` put into the traces' folders.

    None if these folders describe several jobs, or one has no such document. Other programs' job.yaml are ignored.

    Raises
    ------
    DocumentError
        The document is not valid.
    """
    from vani.schema.job import Job  # noqa: PLC0415 - few commands read one

    if settings.job is not None:
        return Job.of(settings.job)
    places = [trace / "job.yaml" for trace in dict.fromkeys(traces)]
    jobs = [Job.load(place) if is_document(place) else None for place in places]
    files = [file for job in jobs if job is not None for file in job.files_after]
    jobs = [None if job is None else job.model_copy(update={"files_after": files}) for job in jobs]
    return jobs[0] if jobs and all(job == jobs[0] for job in jobs) else None


def scheduler_files(scheduler: Scheduler | None) -> list[Path]:
    """The scheduler file, which must not be overwritten."""
    return [scheduler.file] if scheduler and scheduler.file else []


class Resources(ExitStack):
    """Executor and stores of one call: a context manager that connects and locks on demand, and cleans up at its end.

    Parameters
    ----------
    sources
        Inputs of the call, including traces: no store is put inside a trace.
    settings
        The user's folder of stores, and the scheduler.
    progress
        Called with (stage, done, total).
    """

    def __init__(
        self, sources: Iterable[PathLike | Profile], settings: Decoding, progress: Progress | None = None
    ) -> None:
        super().__init__()
        self._sources = [Path(source) for source in sources if isinstance(source, (str, Path))]
        self.settings = settings
        BUDGET.begin(settings.memory, half_of_memory)
        self._progress = progress

    @cached_property
    def stores(self) -> Stores:
        """The stores in use, which stay locked against removal."""
        from vani.store.stores import Stores  # noqa: PLC0415 - loads Arrow

        return Stores(self.settings.store, self, version=vani.__version__, traces=self._sources)

    @cached_property
    def executor(self) -> Executor:
        """The executor of the tasks."""
        from vani.engine.cluster import open_executor  # noqa: PLC0415 - loads the engine

        return self.enter_context(open_executor(self.settings.scheduler, progress=self._progress))


@dataclass(frozen=True)
class Subject:
    """The run that settings apply to; unknown facts are None.

    Attributes
    ----------
    machine
        Name of the machine's description; None also for a machine with typical figures.
    runtime_s
        Duration of the run in seconds.
    """

    application: str | None = None
    machine: str | None = None
    processes: int | None = None
    nodes: int | None = None
    runtime_s: float | None = None


def subject_of(profile: Profile, machine: System | None) -> Subject:
    """Describe a profile's run on a machine."""
    return Subject(
        application=one_line(profile.application)[:200] if profile.apps else None,
        machine=None if machine is None or machine.generic else machine.name,
        processes=profile.workflow.processes or None,
        nodes=profile.job.nodes or None,
        runtime_s=profile.workflow.runtime_s,
    )


def app_of(trace: Path, app: str, job: Job | None) -> str:
    """Name of a trace's app: from job.yaml by the trace's folder name, or from the trace."""
    return app if job is None else job.apps.get(trace.resolve().name) or app


def is_trace(source: PathLike) -> bool:
    """Whether a path is read as a trace: true for a folder, and for a file that a format recognises.

    A file that starts like a Vani document is a document even if a format recognises it; no reader is loaded for
    it.

    Raises
    ------
    InputError
        The file is neither a document nor a trace.
    """
    path = Path(source)
    # False, without an error, for a name that no system call accepts.
    if os.path.isdir(path):  # noqa: PTH112
        return True
    if not path.is_file() or is_document(path):
        return False
    from vani.readers.open import format_of, open_trace  # noqa: PLC0415 - loads Arrow

    if format_of(path, named=True) is not None:
        return True
    if not may_be_document(path):
        try:
            open_trace(path)
        except UnknownFormatError as error:
            raise InputError(error.what, where=path, todo=f"{error.todo}, or name a profile") from error
    return False
