"""`vani history add`: adds the runs of logs, profiles and traces, and judges the costliest."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from pydantic import Field

from vani.advisors.catalogue import rule_findings
from vani.centre.history.ingest import Added, add
from vani.centre.history.maintenance import names_of
from vani.centre.history.ranking import pairs_that_matter, shares, verdict_from
from vani.centre.history.reading import pack_profile, unpack_profile
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.centre.history.settings import HistorySettings
from vani.cli.advise import advise
from vani.cli.options import FILE, quiet_option, settings_options, system_option
from vani.cli.output import progress_bar, shows_progress
from vani.cli.profile import profile
from vani.cli.sources import Memory, half_of_memory
from vani.errors import InputError, VaniError, one_line
from vani.schema.settings import Option, PathLike
from vani.systems import system_of
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.history.rows import StoredRun, Verdict
    from vani.schema.profile import Profile
    from vani.schema.system import System

JUDGED_PAIRS = 20
"""Number of application and user pairs whose runs are judged, the costliest first."""

_MACHINES = {"lustre": "generic-lustre", "gpfs": "generic-gpfs", "nfs": "generic-nfs", "nfs4": "generic-nfs"}
"""The machine to assume if none is named, by the type of the run's file system."""


@dataclass(frozen=True)
class AddedAndJudged:
    """The outcome: runs added, the number judged, and why others could not be judged."""

    added: Added
    judged: int
    unjudged: list[str]


class AddSettings(HistorySettings):
    """How to add runs."""

    totals: Annotated[bool | None, Option(("--totals/--profiles",))] = Field(
        None,
        description="Store sums of counters or complete profiles; by default sums for 1,000 or more new logs.",
    )
    workers: int | None = Field(
        None, ge=1, le=1024, description="Number of reading processes; by default one per core."
    )
    judge: int = Field(
        JUDGED_PAIRS, ge=0, description="Profile and judge the N costliest pairs of application and user."
    )
    user: Annotated[str | None, Option(metavar="NAME")] = Field(
        None, description="User who ran the jobs; by default from the logs."
    )
    key: Annotated[Path | None, Option(metavar="FILE")] = Field(None, description="Key of an anonymised history.")
    memory: Memory = Field(
        None, description="Memory of all reading processes, by default half of the machine's; larger files are skipped."
    )


def history_add(
    *paths: PathLike, settings: AddSettings | None = None, system: PathLike | System | None = None,
    progress: Callable[[str, int, int], None] | None = None, **fields: Any,
) -> AddedAndJudged:
    """Add runs to a history: Darshan logs, profiles and traces, and folders of them.

    Then profile and judge the costliest runs that have not been judged yet.

    Parameters
    ----------
    system
        The machine; None assumes a mid-sized one with the file system type of the run.

    Raises
    ------
    InputError
        A path contains no run, or the history cannot be used.
    """
    settings = AddSettings.of(settings, **fields)
    machine = system_of(system)
    store = Store(settings.db)
    names = names_of(settings.key)
    memory = settings.memory or half_of_memory()
    share = None if memory is None else memory // (settings.workers or len(os.sched_getaffinity(0)))
    added = add(
        store, [Path(path) for path in paths], make=partial(_profile_of, share), totals=settings.totals,
        workers=settings.workers, share=share, user=settings.user, names=names, progress=progress,
    )  # fmt: skip
    if not settings.judge or names.key_id is not None:
        return AddedAndJudged(added, 0, [])
    return AddedAndJudged(added, *_judge(store, settings.judge, machine))


def _profile_of(memory: int | None, path: Path) -> Profile:
    return profile(path, memory=memory)


def _judge(store: Store, pairs: int, system: System | None) -> tuple[int, list[str]]:
    """Judge the costliest runs; return how many were judged, and why others were not.

    The costliest user of each application comes first, because it may prove healthy.
    """
    count, why = 0, dict[str, None]()
    for first in (True, False):
        with store.reading() as connection:
            groups = read.groups(connection, "pair", read.ALWAYS)
            most = min(pairs, len({group.pair[0] for group in groups})) if first else pairs
            matter = pairs_that_matter(groups, most, shares(read.verdicts(connection)))
        more, failed = _judge_some(store, matter, system)
        count, why = count + more, why | dict.fromkeys(failed)
    return count, list(why)


def _judge_some(store: Store, matter: Sequence[tuple[str, str]], system: System | None) -> tuple[int, list[str]]:
    with store.reading() as connection:
        runs = read.telling_runs(connection, matter)
        known = read.verdicts_of(connection, [run.digest for run in runs])
        todo = [run for run in runs if not _is_judged(known.get(run.digest), system)]
        paths = read.paths_of(connection, [run.digest for run in todo])
        contents = {run.digest: read.profile_content(connection, run.digest) for run in todo}
    findings = rule_findings() if todo else {}
    judged, profiles, why = [], {}, []
    for run in todo:
        try:
            machine = system or machine_like(run.file_system)
            run_profile, verdict = _verdict(run, contents[run.digest], paths[run.digest], machine, findings)
        except VaniError as error:
            why.append(str(error))
            continue
        judged.append(verdict)
        profiles[run.digest] = pack_profile(run_profile)
    if judged:
        with store.writing() as connection:
            write.put_profiles(connection, profiles)
            write.put(connection, judged)
    return len(judged), why


@cache
def machine_like(file_system: str) -> System | None:
    """A mid-sized machine with such a file system; None if the type is unknown."""
    return system_of(_MACHINES.get(file_system))


def _verdict(
    run: StoredRun, content: bytes | None, paths: list[str], system: System | None, findings: dict[str, str]
) -> tuple[Profile, Verdict]:
    if content is not None:
        run_profile = unpack_profile(content)
    else:
        path = next((Path(path) for path in paths if Path(path).exists()), None)
        if path is None:
            raise InputError("no longer exists: its run is not judged", where=paths[0] if paths else run.digest)
        run_profile = profile(path)
    typical = system is not None and system.generic
    return run_profile, verdict_from(advise(run_profile, system=system), run, findings, typical=typical)


def _is_judged(known: Verdict | None, system: System | None) -> bool:
    """Whether a verdict for the named machine exists."""
    return known is not None and (system is None or known.system == (system.name or ""))


_SHOWN = 20


@click.command("add")
@click.argument("paths", type=FILE, nargs=-1, required=True, metavar="PATH ...")
@settings_options(AddSettings)
@system_option()
@quiet_option
def command(paths: tuple[Path, ...], settings: AddSettings, system: str | None, quiet: bool) -> None:
    """Add the runs at PATHs: Darshan logs, profiles, traces, and folders of them, recursively.

    Measurements of `vani tune` are added from its tuned.yaml.

    A copy of a log counts once, unchanged files are not read again, and damaged files are
    listed (`vani history damaged`). The same command continues an interrupted `add`.
    """
    with progress_bar(show=shows_progress(quiet=quiet)) as progress:
        done = history_add(*paths, settings=settings, system=system, progress=progress)
    _say(done, quiet=quiet)


def _summary(done: AddedAndJudged) -> str:
    added = done.added
    parts = [
        counted(added.runs, "run") + " added" + (" (totals)" if added.totals and added.runs else "")
        if added.runs or not added.sessions else "",
        counted(added.sessions, "session") + " of vani tune added" if added.sessions else "",
        counted(added.copies, "copy", "was", "were") + " already stored" if added.copies else "",
        counted(added.unchanged, "file") + " unchanged" if added.unchanged else "",
        counted(done.judged, "run") + " judged" if done.judged else "",
        counted(added.damaged, "file") + " damaged (vani history damaged)" if added.damaged else "",
        counted(len(done.unjudged), "run") + f" not judged ({one_line(done.unjudged[0])})" if done.unjudged else "",
    ]
    return "; ".join(part for part in parts if part)


def _say(done: AddedAndJudged, *, quiet: bool) -> None:
    """Print the result, then a line for each named file with a problem, and end with status 2 if there is one."""
    if not quiet and len(done.added.refused) < done.added.files:
        click.echo(_summary(done), err=True)
    for line in done.added.refused[:_SHOWN]:
        click.echo(f"vani: {one_line(line)}", err=True)
    if len(done.added.refused) > _SHOWN:
        click.echo(f"vani: and {len(done.added.refused) - _SHOWN:,} more (vani history damaged)", err=True)
    if done.added.refused:
        click.get_current_context().exit(2)
