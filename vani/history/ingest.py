"""Adding many files: found, read by several processes, written some thousand at a time.

What was written stays when the command is ended, and is passed over the next time: a file is in the store with its run,
or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from vani.database.runs import read, write
from vani.database.runs.connect import Store
from vani.database.runs.run import Run, Source
from vani.errors import InputError, StoreError
from vani.history.creations.series import hide_creations
from vani.history.discovery import Candidate, discover
from vani.history.ingest_result import IngestResult, MakeProfile, hide_profile, ingest_file, shown_path
from vani.history.measured import hidden
from vani.history.names import PlainNames
from vani.history.reading import Readers

__all__ = ["Added", "add", "add_files", "refuse_other_names"]

_AT_ONCE: Final = 1000
_FEW: Final = 50
"""The same where profiles are made, which take longer."""

Progress = Callable[[str, int, int], None]


@dataclass
class Added:
    """The result of `add`.

    Attributes
    ----------
    files
        Candidates, including those that failed.
    runs
        Added.
    copies
        Sound files whose run is already stored.
    unchanged
        Not opened, since they were examined before.
    damaged
        Files that could not be read, among them those that were noted before.
    refused
        What is wrong with files that the user named, a line each.
    sessions
        Of `vani tune`, whose measurements were added.
    totals
        Only sums were kept, no profiles.
    """

    files: int = 0
    runs: int = 0
    copies: int = 0
    unchanged: int = 0
    damaged: int = 0
    refused: list[str] = field(default_factory=list)
    sessions: int = 0
    totals: bool = False


def add(
    store: Store,
    paths: Sequence[Path],
    *,
    make: MakeProfile,
    totals: bool | None,
    workers: int | None,
    user: str | None = None,
    names: PlainNames | None = None,
    progress: Progress | None = None,
) -> Added:
    """Add all runs at and below paths.

    Parameters
    ----------
    make
        Makes a profile of a log or trace; a function of a module, since other processes call it.
    totals
        Keep sums and no profiles of logs; None: for `readers.MANY` new files and more.
    workers
        Processes that read; None: one for each core, for few files none but this one.
    names
        How users and paths are written down.

    Raises
    ------
    InputError
        There is nothing at a path, or no run at any, or the store cannot be used.
    """
    names = names or PlainNames()
    added = Added()
    with store.writing(make=True) as connection:
        refuse_other_names(read.fact(connection, "names"), names, store)
        known = read.known_files(connection)
    with closing(Readers(make, totals=totals, user=user, workers=workers)) as readers:
        new: list[Candidate] = []
        for candidate in discover(paths):
            added.files += 1
            state = (candidate.size, candidate.changed_ns)
            if not candidate.named and known.get(_place(candidate.path, names)) == state:
                added.unchanged += 1
            else:
                new.append(candidate)
                readers.look(new)
        if not added.files:
            raise InputError(
                "contains no Darshan logs, no profiles, no traces and no sessions of vani tune",
                where=", ".join(map(str, paths)),
                todo="name the folder of the logs",
            )
        del known
        added.totals = readers.totals(len(new))
        done = 0
        with closing(readers.taken(new)) as taken:
            while some := list(islice(taken, _AT_ONCE if added.totals else _FEW)):
                _keep(store, some, names, added)
                done += len(some)
                if progress is not None:
                    progress("logs", done, len(new))
    with store.reading() as connection:
        added.damaged = read.count_damaged(connection)
    return added


def add_files(
    store: Store, paths: Sequence[Path], *, make: MakeProfile, user: str | None = None
) -> list[tuple[Path, Run | str]]:
    """Add the runs of a few files, sums of logs alone; each with its run, or the reason why it has none.

    What the store knows of other files is not read, so that this takes as long in a large one.

    Raises
    ------
    InputError
        There is nothing at a path, or the store cannot be used.
    """
    results = [
        (Path(candidate.path), ingest_file(candidate, make, totals=True, user=user))
        for candidate in discover(paths)
    ]
    with store.writing(make=True) as connection:
        refuse_other_names(read.fact(connection, "names"), PlainNames(), store)
    _keep(store, [result for _, result in results], PlainNames(), Added())
    return [
        (path, result.source.reason or "it has no run" if result.run is None else result.run)
        for path, result in results
    ]


def _keep(store: Store, some: Sequence[IngestResult], names: PlainNames, added: Added) -> None:
    """Write what was taken, all of it or nothing."""
    with store.writing() as connection:
        runs = [_hidden(result.run, names) for result in some if result.run is not None]
        new = write.add_runs(connection, runs)
        if len(new) < len(runs) and names.key_id is None:
            write.settle_users(connection, _copied(runs, new))
        write.add_profiles(
            connection,
            {
                result.run.digest: hide_profile(result.profile, names)
                for result in some
                if result.run is not None and result.profile is not None
            },
        )
        write.add_creations(
            connection,
            {
                result.run.digest: (result.creations[0], hide_creations(result.creations[1], names))
                for result in some
                if result.run is not None and result.creations is not None
            },
        )
        measured = [hidden(row, names) for result in some for row in result.measured]
        sessions = write.add_measurements(connection, measured)
        write.add_sources(connection, [_source(result, names) for result in some])
    added.runs += len(new)
    added.sessions += len(sessions)
    added.copies += len(runs) - len(new) + sum(bool(result.measured) for result in some) - len(sessions)
    added.refused += [
        f"{result.source.path}: {result.source.reason}"
        for result in some
        if result.named and result.source.reason is not None
    ]


def _copied(runs: Sequence[Run], new: Collection[str]) -> list[Run]:
    """Runs that were there already, or are there several times now."""
    times = Counter(run.digest for run in runs)
    return [run for run in runs if run.digest not in new or times[run.digest] > 1]


def _hidden(run: Run, names: PlainNames) -> Run:
    """A run as it is written down."""
    if names.key_id is None:
        return run
    return replace(
        run,
        user=names.user(run.user),
        uid=None,
        application=names.text(run.application),
        mount=names.path(run.mount),
    )


def _source(taken: IngestResult, names: PlainNames) -> Source:
    source = taken.source
    reason = None if source.reason is None else names.text(source.reason)
    return replace(source, path=names.path(shown_path(source.path)), reason=reason)


def _place(path: str, names: PlainNames) -> str:
    return write.place_of(names.path(shown_path(path)))


def refuse_other_names(key_id: str | None, names: PlainNames, store: Store) -> None:
    """Names behind one key and plain names are not mixed."""
    if key_id is not None and names.key_id is None:
        raise StoreError("contains hashes, not names", where=store.name, todo="name its key (--key FILE)")
    if key_id != names.key_id:
        what = "contains names" if key_id is None else "has hashes of another key"
        todo = (
            "run `vani history anonymise` first" if key_id is None else "name the key that it was made with"
        )
        raise StoreError(what, where=store.name, todo=todo)
