"""Implements `vani history add`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vani.advisors.catalogue import rule_findings
from vani.centre.history.anonymise import names_of
from vani.centre.history.ingest import add
from vani.centre.history.ingest_result import pack_profile, unpack_profile
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.centre.history.saved import pairs_that_matter, verdict_from
from vani.cli.advise import advise
from vani.cli.profile import profile
from vani.errors import InputError, VaniError
from vani.schema.settings import PathLike
from vani.systems import system_of

if TYPE_CHECKING:
    from vani.centre.history.ingest import Added
    from vani.centre.history.rows import StoredRun, Verdict
    from vani.centre.history.runs.store import Store
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


def history_add(
    *paths: PathLike,
    db: PathLike | None = None,
    totals: bool | None = None,
    workers: int | None = None,
    judge: int = JUDGED_PAIRS,
    user: str | None = None,
    key: PathLike | None = None,
    system: PathLike | System | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> AddedAndJudged:
    """Add runs to a history: Darshan logs, profiles and traces, and folders of them.

    Then profile and judge the costliest runs that have not been judged yet.

    Parameters
    ----------
    db
        A SQLite file or a PostgreSQL URL; None: see `vani.centre.history.contents`.
    totals
        Store sums of counters without profiles; None does so for 1,000 new logs or more.
    workers
        Number of reading processes; None uses one per core if there are many logs.
    judge
        Number of application and user pairs to judge.
    system
        The machine; None assumes a mid-sized one with the file system type of the run.
    user
        User who ran the jobs; None takes the one in the log or profile, or the file's owner.
    key
        Key file of an anonymised history.

    Raises
    ------
    InputError
        A path contains no run, or the history cannot be used.
    """
    if workers is not None and not 1 <= workers <= 1024:
        raise InputError(f"is {workers:,}", where="--workers", todo="give 1 to 1,024")
    machine = system_of(system)
    store = Store(db)
    names = names_of(None if key is None else Path(key))
    added = add(
        store,
        [Path(path) for path in paths],
        make=_profile_of,
        totals=totals,
        workers=workers,
        user=user,
        names=names,
        progress=progress,
    )
    if judge <= 0 or names.key_id is not None:
        return AddedAndJudged(added, 0, [])
    return AddedAndJudged(added, *_judge(store, judge, machine))


def _profile_of(path: Path) -> Profile:
    return profile(path)


def _judge(store: Store, pairs: int, system: System | None) -> tuple[int, list[str]]:
    """Judge the costliest runs; return how many were judged, and why others were not."""
    with store.reading() as connection:
        matter = pairs_that_matter(read.groups(connection, "pair", read.Period()), pairs)
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
            raise InputError(
                "no longer exists: its run is not judged", where=paths[0] if paths else run.digest
            )
        run_profile = _profile_of(path)
    typical = system is not None and system.generic
    return run_profile, verdict_from(advise(run_profile, system=system), run, findings, typical=typical)


def _is_judged(known: Verdict | None, system: System | None) -> bool:
    """Whether a verdict for the named machine exists."""
    return known is not None and (system is None or known.system == (system.name or ""))
