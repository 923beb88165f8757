"""Places where work runs: this process, processes of this machine, or the workers of a Dask cluster."""

from vani.engine.scheduler import BatchJobs, SchedulerFile

__all__ = ["BatchJobs", "SchedulerFile"]
