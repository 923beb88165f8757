"""Places where tasks run: this process, processes on this machine, or the workers of a Dask cluster."""

from vani.engine.scheduler import BatchJobs, SchedulerFile

__all__ = ["BatchJobs", "SchedulerFile"]
