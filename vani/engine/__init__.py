"""Where work runs: threads here, processes here, or the workers of a Dask cluster.

The names below load the modules behind them when they are first used: a command line needs but the names of batch
systems.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vani.engine.batch_system import BATCH_SYSTEMS
    from vani.engine.run import Engine, Progress, workers_here
    from vani.engine.scheduler import BatchJobs, SchedulerFile

__all__ = ["BATCH_SYSTEMS", "BatchJobs", "Engine", "Progress", "SchedulerFile", "workers_here"]

_ORIGINS = {
    "BATCH_SYSTEMS": "batch_system",
    "BatchJobs": "scheduler",
    "Engine": "run",
    "Progress": "run",
    "SchedulerFile": "scheduler",
    "workers_here": "run",
}


def __getattr__(name: str) -> Any:
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"vani.engine.{_ORIGINS[name]}"), name)
    return found
