"""Arguments that accept the path of a document, a name, or the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.job import Job
    from vani.schema.system import System

PathLike = str | Path

JUDGED_FILES = 1000
"""Number of files that `advise` judges in a longer profile: ten times as many as `profile` lists by default."""


def job_of(job: PathLike | Job | None) -> Job | None:
    if job is None or not isinstance(job, (str, Path)):
        return job
    from vani.schema.job import Job as Model  # noqa: PLC0415

    return Model.load(job)


def system_of(system: PathLike | System | None) -> System | None:
    if system is None or not isinstance(system, (str, Path)):
        return system
    from vani.systems import load_system  # noqa: PLC0415

    return load_system(system)


def app_of(trace: Path, app: str, job: Job | None) -> str:
    """Name of a trace's app: from job.yaml by the trace's folder name, or from the trace."""
    if job is not None:
        name = job.apps.get(trace.resolve().name)
        if name:
            return name
    return app
