"""Adds many files to a history: discovers them, reads them in several processes, and writes thousands at a time.

Written runs remain if the command is interrupted, and are skipped the next time: the store has either a file with
its run, or neither.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from vani.centre.history.discovery import Candidate, discover
from vani.centre.history.names import PlainNames
from vani.centre.history.reading import MANY, IngestResult, MakeProfile, results_of, shown_path
from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.centre.prediction.creations.series import hide_creations
from vani.errors import InputError, StoreError

_AT_ONCE: Final = 1000
_FEW: Final = 50
"""The same if profiles are made, which take longer."""

Progress = Callable[[str, int, int], None]


@dataclass
class Added:
    """The result of `add`.

    Attributes
    ----------
    files
        Number of candidates, including those that failed.
    runs
        Number of runs added.
    copies
        Number of valid files whose run is already stored.
    unchanged
        Number of files that were not opened, since they were examined before.
    damaged
        Number of files that could not be read, including those recorded earlier.
    refused
        What is wrong with each unusable file that the user named, one line each.
    sessions
        Number of `vani tune` sessions whose measurements were added.
    totals
        Whether only sums were stored, without profiles.
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
    store: Store, paths: Sequence[Path], *, make: MakeProfile, totals: bool | None, workers: int | None,
    user: str | None = None, share: int | None = None, names: PlainNames | None = None,
    progress: Progress | None = None,
) -> Added:
    """Add all runs at and below paths.

    Parameters
    ----------
    make
        Makes a profile of a log or trace; a module-level function, since other processes call it.
    totals
        Store only sums of logs, without profiles; None does so for `reading.MANY` new files or more.
    workers
        Number of reading processes; None uses one per core, or only this process for few files.
    share
        Bytes of memory that one file may take; larger ones are skipped, and count as damaged.
    names
        How users and paths are written.

    Raises
    ------
    InputError
        A path does not exist, no path contains a run, or the store cannot be used.
    """
    names = names or PlainNames()
    added = Added()
    with store.writing(make=True) as connection:
        refuse_other_names(read.fact(connection, "names"), names, store)
        known = read.known_files(connection)
    new: list[Candidate] = []
    for candidate in discover(paths):
        added.files += 1
        state = (candidate.size, candidate.changed_ns)
        if not candidate.named and known.get(_place(candidate.path, names)) == state:
            added.unchanged += 1
        else:
            new.append(candidate)
    if not added.files:
        what = "contains no Darshan logs, no profiles, no traces and no sessions of vani tune"
        raise InputError(what, where=", ".join(map(str, paths)), todo="name the folder of the logs")
    del known
    added.totals = len(new) >= MANY if totals is None else totals
    done = 0
    how = {"make": make, "user": user, "share": share}
    with closing(results_of(new, workers, totals=added.totals, **how)) as taken:
        for some in read.pieces(taken, _AT_ONCE if added.totals else _FEW):
            _keep(store, some, names, added)
            done += len(some)
            if progress is not None:
                progress("logs", done, len(new))
    with store.reading() as connection:
        added.damaged = read.count_damaged(connection)
    return added


def _keep(store: Store, some: Sequence[IngestResult], names: PlainNames, added: Added) -> None:
    """Write a set of results, all or none."""
    known = [(result, result.run.digest) for result in some if result.run is not None]
    with store.writing() as connection:
        runs = [names.row(result.run) for result in some if result.run is not None]
        new = write.add_runs(connection, runs)
        if len(new) < len(runs) and names.key_id is None:
            write.settle_users(connection, _copied(runs, new))
        profiles = {run: names.packed_profile(result.profile) for result, run in known if result.profile is not None}
        write.put_profiles(connection, profiles)
        creations = {run: result.creations for result, run in known if result.creations is not None}
        hidden = {run: (files, hide_creations(content, names)) for run, (files, content) in creations.items()}
        write.put_creations(connection, hidden)
        sessions = write.add_measurements(connection, [names.row(row) for result in some for row in result.measured])
        sources = (replace(result.source, path=shown_path(result.source.path)) for result in some)
        write.put(connection, map(names.row, sources))
    added.runs += len(new)
    added.sessions += len(sessions)
    added.copies += len(runs) - len(new) + sum(bool(result.measured) for result in some) - len(sessions)
    added.refused += [
        f"{result.source.path}: {result.source.reason}" for result in some
        if result.named and result.source.reason is not None
    ]


def _copied(runs: Sequence[StoredRun], new: Collection[str]) -> list[StoredRun]:
    """Runs that are stored already, or occur several times in this set."""
    times = Counter(run.digest for run in runs)
    return [run for run in runs if run.digest not in new or times[run.digest] > 1]


def _place(path: str, names: PlainNames) -> str:
    return write.place_of(names.path(shown_path(path)))


def refuse_other_names(key_id: str | None, names: PlainNames, store: Store) -> None:
    """Raise an error rather than mix plain names with hashes, or hashes with different keys."""
    if key_id is not None and names.key_id is None:
        raise StoreError("contains hashes, not names", where=store.name, todo="name its key (--key FILE)")
    if key_id != names.key_id:
        what = "contains names" if key_id is None else "has hashes of another key"
        todo = ("run `vani history anonymise` first" if key_id is None else "name the key that it was made with")
        raise StoreError(what, where=store.name, todo=todo)
