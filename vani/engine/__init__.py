"""Where work runs: threads here, processes here, or the workers of a Dask cluster."""

from vani.engine.place import BATCH_SYSTEMS, BatchJobs, SchedulerFile
from vani.engine.run import Engine, Progress, workers_here

__all__ = ["BATCH_SYSTEMS", "BatchJobs", "Engine", "Progress", "SchedulerFile", "workers_here"]
