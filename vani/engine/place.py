"""Where work runs when it does not run here: what a user names, before anything is connected or submitted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BATCH_SYSTEMS", "BatchJobs", "SchedulerFile"]

BATCH_SYSTEMS = ("slurm", "pbs", "lsf")


@dataclass(frozen=True)
class SchedulerFile:
    """A running Dask cluster, by the file that `dask scheduler --scheduler-file FILE` writes."""

    path: Path


@dataclass(frozen=True)
class BatchJobs:
    """Workers as jobs of a batch system, submitted for this run and cancelled when it ends.

    Parameters
    ----------
    system
        One of `BATCH_SYSTEMS`.
    workers
        Worker processes to ask for; None is one job.
    options
        (name, value) pairs, as `vani.engine.batch` knows them. What is absent comes from Dask's own configuration
        (`~/.config/dask/jobqueue.yaml`).
    """

    system: str
    workers: int | None = None
    options: tuple[tuple[str, str], ...] = ()
