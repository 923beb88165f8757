"""Where work runs: in this process, in processes of this machine, or on the workers of a Dask cluster."""

from vani.engine.scheduler import BatchJobs, SchedulerFile

__all__ = ["BatchJobs", "SchedulerFile"]
