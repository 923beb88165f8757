"""Options that decide where work runs: here, on an existing Dask cluster, or in batch jobs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from vani.cli.options import FILE
from vani.engine.batch_system import BATCH_SYSTEMS
from vani.engine.scheduler import BatchJobs, Scheduler, SchedulerFile, scheduler_of
from vani.schema.settings import Settings


def scheduler_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the scheduler options to a command, which receives them in its settings."""

    @click.option(
        "--scheduler",
        metavar="ADDRESS|threads|processes",
        help="Where to run: here (the default), in threads or processes, or on a Dask cluster.",
    )
    @click.option(
        "--scheduler-file",
        type=FILE,
        metavar="FILE",
        help="Run on the Dask cluster whose scheduler wrote this file.",
    )
    @click.option(
        "--cluster",
        type=click.Choice(list(BATCH_SYSTEMS)),
        help="Submit jobs to this batch system, and run in them.",
    )
    @click.option(
        "--workers",
        type=click.IntRange(min=1, max=1_000_000),
        metavar="N",
        help="With --cluster: number of worker processes; one job by default.",
    )
    @click.option(
        "--cluster-option",
        "cluster_options",
        multiple=True,
        metavar="KEY=VALUE",
        help="With --cluster: queue, account, walltime, cores, memory etc. of each job. May be repeated.",
    )
    @functools.wraps(command)
    def with_scheduler(
        *args: object,
        scheduler: str | None,
        scheduler_file: Path | None,
        cluster: str | None,
        workers: int | None,
        cluster_options: tuple[str, ...],
        **others: object,
    ) -> None:
        named = _scheduler(scheduler, scheduler_file, cluster, workers, cluster_options)
        settings = others.pop("settings", None)
        if not isinstance(settings, Settings):
            raise TypeError("a command with a scheduler has settings")
        command(*args, settings=settings.of(settings, scheduler=named), **others)

    return with_scheduler


def scheduler_files(scheduler: Scheduler) -> list[Path]:
    """The file that `--scheduler-file` names, which must not be overwritten."""
    return [scheduler.path] if isinstance(scheduler, SchedulerFile) else []


def _scheduler(
    scheduler: str | None,
    scheduler_file: Path | None,
    cluster: str | None,
    workers: int | None,
    cluster_options: tuple[str, ...],
) -> Scheduler:
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
    if cluster is not None:
        # Checked before the trace is opened: a typing error should not cost minutes.
        return BatchJobs(cluster, workers, tuple(_pair(option) for option in cluster_options))
    for lonely, is_given in (("--workers", workers is not None), ("--cluster-option", bool(cluster_options))):
        if is_given:
            raise click.UsageError(f"{lonely} goes with --cluster")
    if scheduler_file is not None:
        return SchedulerFile(scheduler_file)
    return scheduler_of(scheduler)


def _pair(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals:
        raise click.UsageError(f"--cluster-option {option!r} is not KEY=VALUE")
    return name, value
