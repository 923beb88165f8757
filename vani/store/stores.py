"""The stores of one run: found where they lie or decoded anew, in memory or into a folder, and kept until it ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vani.engine.executor import Executor
from vani.errors import InputError, NoRoomError, StoreError, TraceError
from vani.readers.open import open_trace, traces_at
from vani.readers.trace_reader import DecodesAgain, KeepsTables, TraceReader
from vani.store import cache, write
from vani.store.in_memory_parts import InMemoryParts, MemoryBudget
from vani.store.locks import InUse
from vani.store.lookup import store_of, stores_in
from vani.store.read import Store, open_store
from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.profile import Profile, TraceEntity

__all__ = ["Stores", "while_stores_vanish"]

Result = TypeVar("Result")

_TRIES = 3


class Stores:
    """The stores that a run finds or makes.

    Parameters
    ----------
    named
        The folder that the user named, which gets a store of each trace. With None, calls that have room in memory stay
        there alone. Of others, those that are decoded more quickly than read are decoded each time; the rest goes into
        the cache, or into a temporary folder if that cannot be written.
    until
        Ends with the run: until then nobody removes a store that it uses, and temporary ones are there.
    version
        Vani's.
    traces
        What the run reads: traces, or folders of them. No store is put inside a trace, nor inside one that
        `of_profile` decodes.
    """

    def __init__(
        self, named: str | Path | None, until: ExitStack, *, version: str, traces: Iterable[Path]
    ) -> None:
        self._named = None if named is None else Path(named)
        self._until = until
        self._version = version
        self._traces = list(traces)
        self._in_use = InUse(until)
        self._may_move = False
        """Stores may lie elsewhere if there is no room."""
        self._used: dict[Path, bool] = {}
        """Stores that this run found (False) or made (True)."""
        self._without_files: list[Store] = []
        self._room = MemoryBudget()

    @cached_property
    def folder(self) -> Path:
        """Where stores are put; it is made if it is not there.

        Raises
        ------
        InputError
            The folder that the user named lies inside a trace, or cannot be made.
        """
        if self._named is not None:
            self._refuse_inside_trace(self._named)
            try:
                self._named.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(
                    f"cannot be made ({error.strerror})",
                    where=self._named,
                    todo="name a folder that can be written",
                ) from error
            return self._named.absolute()
        if (found := cache.cache_directory()) is not None:
            with suppress(OSError):
                folder = (found / "stores").absolute()
                if not self._is_inside_trace(folder):
                    cache.make_folder(folder)
                    with tempfile.TemporaryFile(dir=folder):
                        pass
                    cache.sweep(folder)
                    self._may_move = True
                    return folder
        return self._temporary()

    @property
    def are_named(self) -> bool:
        """The user named a folder for them."""
        return self._named is not None

    @property
    def _searched(self) -> Path | None:
        """Where stores are looked for; none is made there for it."""
        if self._named is not None:
            return self.folder
        found = cache.cache_directory()
        if found is None:
            return None
        folder = (found / "stores").absolute()
        return folder if folder.is_dir() and not self._is_inside_trace(folder) else None

    def find(self, reader: TraceReader, *, hold: bool = True) -> Store | None:
        """The store of a trace, if it is whole and current; with `hold` it stays until the run ends."""
        digest = reader.digest()
        for one in self._without_files:
            if one.manifest.digest == digest:
                return one
        if (folder := self._searched) is None:
            return None
        for path in cache.places_of(folder, reader.path.resolve().name, digest):
            if not path.is_dir() or (hold and not self._in_use.hold(path)):
                continue
            found = cache.find_store(path, digest)
            if found is not None:
                if hold:
                    self._used.setdefault(path, False)
                return found
        return None

    def provide(self, reader: TraceReader, executor: Executor) -> Store:
        """The store of a trace: the one there is if it is whole and current, else a new one.

        Raises
        ------
        TraceError
            Nothing of the trace can be decoded.
        InputError
            Stores cannot be written.
        """
        found = self.find(reader)
        if found is not None:
            return found
        keep = executor.shares_memory and self._room.take(
            int(reader.calls_per_rank().sum()), len(reader.files())
        )
        if keep and self._named is None:
            made = write.decode_into_memory(reader, version=self._version, executor=executor)
            self._without_files.append(made)
        elif self._named is None and executor.shares_memory and _decodes_quickly(reader):
            made = write.decode_on_demand(reader, version=self._version, executor=executor, scratch=self.folder)
            self._without_files.append(made)
            return made
        else:
            made = self._made(reader, executor, keep=keep)
        if isinstance(reader, KeepsTables):
            reader.release()
        return made

    def _made(self, reader: TraceReader, executor: Executor, *, keep: bool) -> Store:
        """A new store in a folder."""
        name, digest = reader.path.resolve().name, reader.digest()
        path = cache.own_place(self.folder, name, digest)
        try:
            kept = self._decode(reader, path, executor, keep=keep)
        except NoRoomError as error:
            if not self._may_move:
                raise
            path = cache.own_place(self._elsewhere(reader, executor, error), name, digest)
            kept = self._decode(reader, path, executor, keep=keep)
        self._in_use.hold(path)
        self._used[path] = True
        return open_store(path, kept, made_here=True)

    def of_profile(
        self, profile: Profile, executor: Executor, stores: list[Store], *, decode: bool, is_quick: bool
    ) -> str | None:
        """Put the store of each trace of a profile into a list; returns why one is not to be had.

        Parameters
        ----------
        decode
            Decode a trace that has no store but still lies where the profile says.
        is_quick
            The profile was made without decoding.
        """
        if not profile.traces:
            return "the profile names no trace"
        named = self._named
        is_store = named is not None and (named / "manifest.json").is_file()
        cached = Stores(None, self._until, version=self._version, traces=self._traces) if is_store else self
        pool = [*self._still_there(), *self._lying_around(profile.traces)]
        sources: list[Store | TraceReader] = []
        for trace in profile.traces:
            found = store_of(trace, pool)
            if found is not None and (not found.has_files or self._in_use.hold(found.path)):
                pool = [s for s in pool if s.path != found.path]
                sources.append(found)
                continue
            if decode:
                reader = _reader_of(trace)
                if isinstance(reader, str):
                    return reader
                cached._traces.append(reader.path)
                sources.append(reader)
                continue
            what = f"it needs the decoded calls, and no store of {Path(trace.path).name} is at hand"
            if named is not None and is_store and not pool:
                what += f" ({_why_not(named)})"
            todo = "name its folder with --store"
            return f"{what}: {'profile the trace without --quick, or ' if is_quick else ''}{todo}"
        if executor.is_remote and any(source.path not in self._used for source in sources):
            # Where all is there already, the folder of the stores may be another user's.
            needs_room = not all(isinstance(source, Store) for source in sources)
            is_own = named is None or needs_room or os.access(named, os.W_OK)
            place = cached if is_own else Stores(None, self._until, version=self._version, traces=())
            executor.check_workers(version=self._version, reads=[s.path for s in sources], writes=place.folder)
        for source in sources:
            try:
                stores.append(source if isinstance(source, Store) else cached.provide(source, executor))
            except TraceError as error:
                return f"the trace cannot be decoded: {error}"
        return None

    def _still_there(self) -> Iterator[Store]:
        """What this run found or made before, wherever that lies."""
        yield from self._without_files
        for path, made_here in self._used.items():
            with suppress(StoreError):
                yield open_store(path, made_here=made_here)

    def _lying_around(self, traces: Sequence[TraceEntity]) -> list[Store]:
        if self._named is not None:
            return stores_in(self._named)
        found = cache.cache_directory()
        return [] if found is None else stores_in(found / "stores", traces)

    def _decode(self, reader: TraceReader, path: Path, executor: Executor, *, keep: bool) -> InMemoryParts:
        """Decode a trace into a store; one that another run of this version made meanwhile stays."""

        def is_there() -> bool:
            found = cache.find_store(path, reader.digest())
            return found is not None and found.manifest.vani == self._version

        return write.write_store(
            reader,
            path,
            version=self._version,
            executor=executor,
            keep=keep,
            is_short_lived=not self.are_named,
            unless=is_there,
        )

    def _elsewhere(self, reader: TraceReader, executor: Executor, error: NoRoomError) -> Path:
        """A temporary folder in place of a cache that takes nothing more, if workers see it."""
        try:
            folder = self._temporary()
            executor.check_workers(version=self._version, reads=[reader.path], writes=folder)
        except (OSError, InputError):
            raise error from None
        return folder

    def _temporary(self) -> Path:
        self._refuse_inside_trace(Path(tempfile.gettempdir()))
        return Path(self._until.enter_context(tempfile.TemporaryDirectory(prefix="vani-")))

    def _refuse_inside_trace(self, folder: Path) -> None:
        if self._is_inside_trace(folder):
            raise InputError("lies inside the trace", where=folder, todo="name a folder beside it")

    def _is_inside_trace(self, folder: Path) -> bool:
        place = _real(folder)
        # Below a folder of traces it may also lie beside them.
        return any(
            place.is_relative_to(_real(trace))
            for given in self._traces
            if place.is_relative_to(_real(given))
            for trace in traces_at(given)
        )


def while_stores_vanish(work: Callable[[list[Store]], Result]) -> Result:
    """Do what reads stores, which it puts into the list that it gets; again where one vanished on the way."""
    for _ in range(_TRIES - 1):
        stores: list[Store] = []
        try:
            return work(stores)
        except StoreError:
            if stores and _all_there(stores):
                raise
    return work([])


def _decodes_quickly(reader: TraceReader) -> bool:
    return isinstance(reader, DecodesAgain) and reader.decodes_quickly


def _real(path: Path) -> Path:
    """The place behind links; a loop of them is no error here."""
    return Path(os.path.realpath(path))


def _all_there(stores: Sequence[Store]) -> bool:
    """Whether what cannot be read is at least still in its place."""
    return all(
        not one.has_files or cache.find_store(one.path, one.manifest.digest) is not None for one in stores
    )


def _why_not(store: Path) -> str:
    """Why a store that was named is not used."""
    try:
        open_store(store)
    except StoreError as error:
        return f"{error.where}: {error.what}"
    return f"{store} holds other calls"


def _reader_of(trace: TraceEntity) -> TraceReader | str:
    """The reader of a profile's trace where it still lies in its place and is the same, else what is wrong."""
    path = Path(trace.path)
    try:
        reader = open_trace(path)
        records = int(reader.calls_per_rank().sum())
    except InputError:
        return (
            f"it needs the decoded calls, but the trace {trace.path} is not there any more and no store of it "
            "is known: name the store's folder with --store, or profile the trace again"
        )
    if (reader.ranks, records) != (trace.ranks, trace.records) and trace.complete:
        return (
            f"the trace at {path} holds {counted(records, 'call')} of {counted(reader.ranks, 'process')}, the profile "
            f"{trace.records:,} of {trace.ranks}: profile it again"
        )
    return reader
