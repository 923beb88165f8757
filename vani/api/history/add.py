"""`vani history add` for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vani.api.advise import advise
from vani.api.arguments import PathLike, system_of
from vani.api.profile import profile
from vani.api.report_inputs import rule_findings
from vani.database.runs import read, write
from vani.database.runs.connect import Store
from vani.errors import InputError, VaniError
from vani.history.anonymise import names_of
from vani.history.contents import default_place
from vani.history.ingest import add
from vani.history.ingest_result import pack_profile, unpack_profile
from vani.history.saved import pairs_that_matter, verdict_from

if TYPE_CHECKING:
    from vani.database.runs.connect import Store
    from vani.database.runs.run import Run, Verdict
    from vani.history.ingest import Added
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = ["JUDGED_PAIRS", "AddedAndJudged", "history_add", "machine_like"]

JUDGED_PAIRS = 20
"""Pairs of application and user whose runs are judged: the costliest ones."""

_MACHINES = {"lustre": "generic-lustre", "gpfs": "generic-gpfs", "nfs": "generic-nfs", "nfs4": "generic-nfs"}
"""The machine to assume where none is named, by the type of the file system that a run used."""


@dataclass(frozen=True)
class AddedAndJudged:
    """Runs that were added, the number judged again, and why others could not be judged."""

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

    Then profiles of the runs that cost most are made and judged, unless they were before.

    Parameters
    ----------
    db
        A file of SQLite or a URL of PostgreSQL; None: see `vani.history.contents`.
    totals
        Keep sums of counters and no profiles; None: for 1,000 new logs and more.
    workers
        Processes that read; None: one for each core where there are many logs.
    judge
        How many pairs of application and user are judged.
    system
        The machine; None: one of middling size with the type of file system that a run used.
    user
        User who ran the jobs; None: as in logs and profiles, else the owner of the file.
    key
        File of the key of an anonymised history.

    Raises
    ------
    InputError
        There is no run at a path, or the history cannot be used.
    """
    if workers is not None and not 1 <= workers <= 1024:
        raise InputError(f"is {workers:,}", where="--workers", todo="give 1 to 1,024")
    machine = system_of(system)
    store = Store(db if db is not None else default_place())
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
    """Judge runs of the pairs that cost most; returns how many, and why others were not."""
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
            write.add_profiles(connection, profiles)
            write.add_verdicts(connection, judged)
    return len(judged), why


@cache
def machine_like(file_system: str) -> System | None:
    """A machine of middling size with such a file system; None where the type is unknown."""
    return system_of(_MACHINES.get(file_system))


def _verdict(
    run: Run, content: bytes | None, paths: list[str], system: System | None, findings: dict[str, str]
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
    """Whether there is a verdict for the machine that was named."""
    return known is not None and (system is None or known.system == (system.name or ""))
