"""Options that say where work runs: here, on an existing Dask cluster, or in jobs of a batch system."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["scheduler_files", "where_options"]

_SYSTEMS = ("slurm", "pbs", "lsf")


def where_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets what they say as `scheduler`."""

    @click.option(
        "--scheduler",
        metavar="ADDRESS|threads|processes",
        help="Where to work: here, in threads (the default) or processes, or on a Dask cluster.",
    )
    @click.option(
        "--scheduler-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Work on the Dask cluster whose scheduler wrote this file.",
    )
    @click.option(
        "--cluster",
        type=click.Choice(_SYSTEMS),
        help="Submit jobs to this batch system, and work in them.",
    )
    @click.option(
        "--workers",
        type=click.IntRange(min=1, max=1_000_000),
        metavar="N",
        help="With --cluster: so many worker processes; one job by default.",
    )
    @click.option(
        "--cluster-option",
        "cluster_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="With --cluster: queue, account, walltime, cores, memory and more of each job. May be repeated.",
    )
    @functools.wraps(command)
    def with_place(
        *args: Any,
        scheduler: str | None,
        scheduler_file: Path | None,
        cluster: str | None,
        workers: int | None,
        cluster_options: tuple[str, ...],
        **others: Any,
    ) -> Any:
        place = _place(scheduler, scheduler_file, cluster, workers, cluster_options)
        return command(*args, scheduler=place, **others)

    return with_place


def scheduler_files(scheduler: Any) -> list[Path]:
    """The file that `--scheduler-file` names, for what must not be overwritten."""
    if scheduler is None or isinstance(scheduler, str):
        return []
    from vani.engine.place import SchedulerFile  # noqa: PLC0415 - `vani --help` pays for nothing

    return [Path(scheduler.path)] if isinstance(scheduler, SchedulerFile) else []


def _place(
    scheduler: str | None,
    scheduler_file: Path | None,
    cluster: str | None,
    workers: int | None,
    cluster_options: tuple[str, ...],
) -> Any:
    given = [
        name
        for name, value in (
            ("--scheduler", scheduler),
            ("--scheduler-file", scheduler_file),
            ("--cluster", cluster),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other")
    if cluster is None:
        for lonely, is_given in (
            ("--workers", workers is not None),
            ("--cluster-option", bool(cluster_options)),
        ):
            if is_given:
                raise click.UsageError(f"{lonely} goes with --cluster")
        if scheduler_file is None:
            return scheduler
        from vani.engine.place import SchedulerFile  # noqa: PLC0415 - `vani --help` pays for nothing

        return SchedulerFile(scheduler_file)
    from vani.engine.batch import checked_options  # noqa: PLC0415
    from vani.engine.place import BatchJobs  # noqa: PLC0415

    pairs = []
    for option in cluster_options:
        name, equals, value = option.partition("=")
        if not equals:
            raise click.UsageError(f"--cluster-option {option!r} is not KEY=VALUE")
        pairs.append((name, value))
    jobs = BatchJobs(cluster, workers, tuple(pairs))
    # Before the trace is opened: a typing error should not cost minutes.
    checked_options(jobs)
    return jobs
