"""Implements `vani profile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.api.arguments import PathLike, job_of, system_of
from vani.api.characterise import characterise
from vani.api.quick import quick_profile
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.job import Job
    from vani.schema.profile import Profile
    from vani.schema.system import System

def profile(
    *traces: PathLike,
    job: PathLike | Job | None = None,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    phase_gap: float | None = None,
    files: int | None = 100,
    quick: bool = False,
    together: bool = False,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Profile:
    """Characterise a workload: one trace directory, several, or a directory of traces.

    Parameters
    ----------
    traces
        Directories that a tracer wrote, or Parquet stores made from them.
    job, system
        Paths of a job.yaml and a system.yaml, the name of a bundled machine, or the models themselves.
    store
        Folder for the decoded calls; the user's cache directory by default.
    phase_gap
        Seconds without I/O that separate phases; derived from the data by default.
    files
        Number of files to list, longest I/O time first; None lists all.
    quick
        Count calls on the grammars alone, without reading time stamps or decoding calls. Attributes that depend on
        times or on the order of calls are null. For Recorder traces only; `store`, `scheduler` and `progress` are
        ignored.
    together
        Treat the traces as one workload even if they share no file, no job and no time.
    scheduler
        `threads`, `processes`, `synchronous`, the address of a Dask scheduler, or anything else that
        `vani.engine.scheduler.scheduler_of` accepts.
    progress
        Called with (stage, done, total).

    Raises
    ------
    InputError
        A trace or document cannot be read, or the traces are unrelated.
    VaniError
        Vani itself is at fault, for example after a failed self-check.
    """
    if quick:
        if phase_gap is not None:
            raise InputError("quick profiles have no phases", todo="leave the phase gap or --quick out")
        return quick_profile(traces, job_of(job), system_of(system), files, together=together)
    return characterise(
        *traces,
        job=job,
        system=system,
        store=store,
        phase_gap=phase_gap,
        files=files,
        together=together,
        scheduler=scheduler,
        progress=progress,
    ).profile
