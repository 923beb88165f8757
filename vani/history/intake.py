"""Adding many files: found, read by several processes, written some thousand at a time.

What was written stays when the command is ended, and is passed over the next time: a file is in the store with its run,
or not at all.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from vani.database.runs import read, write
from vani.database.runs.connect import Store
from vani.database.runs.run import Run, Source
from vani.errors import InputError, StoreError
from vani.history.creations.packed import hidden as hidden_creations
from vani.history.found import Found, find
from vani.history.names import PlainNames
from vani.history.reading import Reading, end_with_parent
from vani.history.taken import MakeProfile, Taken, hidden, shown_path

__all__ = ["MANY", "Added", "add"]

MANY: Final = 1000
"""From so many new logs on, only totals are kept."""

_AT_ONCE: Final = 1000
_FEW: Final = 50
"""The same where profiles are made, which take longer."""
_CHUNK: Final = 50
_AHEAD: Final = 2 * _AT_ONCE // _CHUNK
"""Pieces that are read while others are written: with fewer, the processes would wait for the database."""

Progress = Callable[[str, int, int], None]


@dataclass
class Added:
    """What `add` did.

    Attributes
    ----------
    files
        Found, whatever became of them.
    runs
        Added.
    copies
        Sound files whose run was there already.
    unchanged
        Not opened, since they were looked at before.
    damaged
        Files that could not be read, among them those that were noted before.
    refused
        What is wrong with files that the user named, a line each.
    totals
        Only sums were kept, no profiles.
    """

    files: int = 0
    runs: int = 0
    copies: int = 0
    unchanged: int = 0
    damaged: int = 0
    refused: list[str] = field(default_factory=list)
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
        Keep sums and no profiles of logs; None: for `MANY` new files and more.
    workers
        Processes that read; None: one for each core, for few files none beside this one.
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
        _refuse_other_names(read.fact(connection, "names"), names, store)
        known = read.known_files(connection)
    new: list[Found] = []
    for found in find(paths):
        added.files += 1
        if not found.named and known.get(_place(found.path, names)) == (found.size, found.changed_ns):
            added.unchanged += 1
        else:
            new.append(found)
    if not added.files:
        raise InputError(
            "holds no Darshan logs, no profiles and no traces",
            where=", ".join(map(str, paths)),
            todo="name the folder of the logs",
        )
    del known
    added.totals = len(new) >= MANY if totals is None else totals
    cores = len(os.sched_getaffinity(0))
    processes = workers if workers is not None else cores if len(new) >= MANY else 1
    done = 0
    reading = Reading(make, added.totals, user)
    with closing(_taken(new, reading, processes)) as taken:
        while some := list(islice(taken, _AT_ONCE if added.totals else _FEW)):
            _keep(store, some, names, added)
            done += len(some)
            if progress is not None:
                progress("logs", done, len(new))
    with store.reading() as connection:
        added.damaged = read.count_damaged(connection)
    return added


def _taken(new: Sequence[Found], reading: Reading, processes: int) -> Generator[Taken]:
    """What was made of each file, in their order; no more is read ahead than the processes need."""
    chunk, ahead = (_CHUNK, _AHEAD) if reading.totals else (4, 4 * processes)
    pieces = (new[start : start + chunk] for start in range(0, len(new), chunk))
    if processes <= 1:
        for piece in pieces:
            yield from reading(piece)
        return
    pool = ProcessPoolExecutor(
        processes, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent
    )
    try:
        waiting: deque[Future[list[Taken]]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(reading, piece))
            if len(waiting) > max(ahead, 4 * processes):
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise InputError(
            "a process that reads logs was killed",
            todo="run this again: what was read is kept; with --workers 1 if memory is short",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _keep(store: Store, some: Sequence[Taken], names: PlainNames, added: Added) -> None:
    """Write what was taken, all of it or nothing."""
    with store.writing() as connection:
        runs = [_hidden(one.run, names) for one in some if one.run is not None]
        new = write.add_runs(connection, runs)
        if new < len(runs) and names.key_id is None:
            write.settle_users(connection, runs)
        write.add_profiles(
            connection,
            {
                one.run.digest: hidden(one.profile, names)
                for one in some
                if one.run is not None and one.profile is not None
            },
        )
        write.add_creations(
            connection,
            {
                one.run.digest: (one.creations[0], hidden_creations(one.creations[1], names))
                for one in some
                if one.run is not None and one.creations is not None
            },
        )
        write.add_sources(connection, [_source(one, names) for one in some])
    added.runs += new
    added.copies += len(runs) - new
    added.refused += [
        f"{one.source.path}: {one.source.reason}"
        for one in some
        if one.named and one.source.reason is not None
    ]


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


def _source(taken: Taken, names: PlainNames) -> Source:
    source = taken.source
    reason = None if source.reason is None else names.text(source.reason)
    return replace(source, path=names.path(shown_path(source.path)), reason=reason)


def _place(path: str, names: PlainNames) -> str:
    return write.place_of(names.path(shown_path(path)))


def _refuse_other_names(key_id: str | None, names: PlainNames, store: Store) -> None:
    """Names behind one key and plain names are not mixed."""
    if key_id is not None and names.key_id is None:
        raise StoreError("holds hashes, not names", where=store.name, todo="name its key (--key FILE)")
    if key_id != names.key_id:
        what = "holds names" if key_id is None else "has hashes of another key"
        todo = (
            "run `vani history anonymise` first" if key_id is None else "name the key that it was made with"
        )
        raise StoreError(what, where=store.name, todo=todo)
