"""Where work runs: threads here, processes here, or the workers of a Dask cluster."""

from vani.engine.run import Engine, Progress, workers_here

__all__ = ["Engine", "Progress", "workers_here"]
