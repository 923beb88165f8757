"""The stores of one run: found in their folders or decoded again, in memory or into a folder, until the run ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vani.calls import CALLS
from vani.engine.executor import Executor
from vani.errors import InputError, NoRoomError, StoreError, TraceError, os_errors_as
from vani.readers.open import by_app, open_trace, traces_at
from vani.readers.trace_reader import DecodesAgain, KeepsCounts, KeepsTables, TraceReader
from vani.store import cache, write
from vani.store.cache import InUse, store_of, stores_in
from vani.store.read import Store, open_store
from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.profile import Profile, TraceEntity

Result = TypeVar("Result")

_TRIES = 3
_CALL_BYTES = sum(int(field.type.bit_width) for field in CALLS) // 8
_FILE_BYTES = 512
"""Memory that measures need per file, which counts towards the budget."""


@dataclass
class MemoryBudget:
    """Bytes that all calls of a workload's traces may take together: 6 million calls, fewer with many files."""

    left: int = 320 << 20

    def take(self, calls: int, files: int) -> bool:
        """Whether a trace's calls may stay in memory; its files take room in any case."""
        self.left -= files * _FILE_BYTES
        fits = calls * _CALL_BYTES <= self.left
        if fits:
            self.left -= calls * _CALL_BYTES
        return fits


class Stores:
    """The stores that a run finds or creates.

    Parameters
    ----------
    named
        The folder that the user named, which gets a store of each trace. With None, calls that fit in memory stay only
        there. Others are decoded in each pass if that is faster than reading; the rest goes into the cache, or into
        a temporary folder if the cache cannot be written.
    until
        Ends with the run: until then, stores in use are not removed, and temporary ones exist.
    version
        Vani's version.
    traces
        Traces of the run, or folders with them. No store is put inside a trace, including traces that `of_profile`
        decodes.
    """

    def __init__(self, named: str | Path | None, until: ExitStack, *, version: str, traces: Iterable[Path]) -> None:
        self._named = None if named is None else Path(named)
        self._until = until
        self._version = version
        self._traces = list(traces)
        self._in_use = InUse(until)
        self._may_move = False
        """Stores may be elsewhere if there is no room."""
        self._used: dict[Path, bool] = {}
        """Stores that this run found (False) or created (True)."""
        self._without_files: list[Store] = []
        self._room = MemoryBudget()

    @cached_property
    def folder(self) -> Path:
        """The folder for new stores, which is created if it does not exist.

        Raises
        ------
        InputError
            The folder that the user named is inside a trace, or cannot be created.
        """
        if self._named is not None:
            self._refuse_inside_trace(self._named)
            with os_errors_as(
                InputError, "cannot be made", where=self._named, todo="name a folder that can be written"
            ):
                self._named.mkdir(parents=True, exist_ok=True)
            return self._named.absolute()
        folder = cache.stores_folder()
        with suppress(OSError):
            if folder is not None and not self._is_inside_trace(folder):
                cache.make_folder(folder)
                with tempfile.TemporaryFile(dir=folder):
                    pass
                cache.sweep(folder)
                self._may_move = True
                return folder
        return self._temporary()

    @property
    def are_named(self) -> bool:
        """Whether the user named a folder for them."""
        return self._named is not None

    @property
    def _searched(self) -> Path | None:
        """The folder to search for stores; the cache's is not created for this."""
        if self._named is not None:
            return self.folder
        folder = cache.stores_folder()
        return folder if folder and folder.is_dir() and not self._is_inside_trace(folder) else None

    def find(self, reader: TraceReader, *, hold: bool = True) -> Store | None:
        """A trace's store, if it is complete and current; with `hold`, it is not removed until the run ends."""
        digest = reader.digest()
        for store in self._without_files:
            if store.manifest.digest == digest:
                return store
        if (folder := self._searched) is None:
            return None
        for path in cache.places_of(folder, reader.path.resolve().name, digest):
            if not path.is_dir() or (hold and not self._in_use.hold(path)):
                continue
            whole = cache.find_store(path, digest)
            if whole is not None:
                if hold:
                    self._used.setdefault(path, False)
                return whole
        return None

    def provide(self, reader: TraceReader, executor: Executor) -> Store:
        """A trace's store: the existing one if it is complete and current, otherwise a new one.

        Raises
        ------
        TraceError
            Nothing of the trace can be decoded.
        InputError
            Stores cannot be written.
        """
        store = self.find(reader)
        if store is not None:
            return store
        keep = executor.shares_memory and self._room.take(int(reader.calls_per_rank().sum()), len(reader.files()))
        if keep and self._named is None:
            store = write.decode_into_memory(reader, version=self._version, executor=executor)
            self._without_files.append(store)
        elif (
            self._named is None
            and executor.shares_memory
            and isinstance(reader, DecodesAgain)
            and reader.decodes_quickly
        ):
            store = write.decode_on_demand(reader, version=self._version, executor=executor, scratch=self.folder)
            self._without_files.append(store)
            return store
        else:
            try:
                store = self._written(reader, self.folder, executor, keep=keep)
            except NoRoomError as error:
                if not self._may_move:
                    raise
                store = self._written(reader, self._elsewhere(reader, executor, error), executor, keep=keep)
        if isinstance(reader, KeepsTables):
            reader.release()
        return store

    def _written(self, reader: TraceReader, folder: Path, executor: Executor, *, keep: bool) -> Store:
        """A new store in a folder, unless another run of this version created it meanwhile."""
        digest = reader.digest()
        path = cache.own_place(folder, reader.path.resolve().name, digest)

        def is_there() -> bool:
            other = cache.find_store(path, digest)
            return other is not None and other.manifest.vani == self._version

        in_memory = write.write_store(
            reader,
            path,
            version=self._version,
            executor=executor,
            keep=keep,
            is_short_lived=not self.are_named,
            unless=is_there,
        )
        self._in_use.hold(path)
        self._used[path] = True
        return open_store(path, in_memory, made_here=True)

    def of_profile(
        self, profile: Profile, executor: Executor, stores: list[Store], *, decode: bool, is_quick: bool
    ) -> str | None:
        """Add the store of each of a profile's traces to a list; returns the reason if one is not available.

        Parameters
        ----------
        decode
            Decode a trace that has no store but still exists at the profile's path.
        is_quick
            The profile was made without decoding.
        """
        if not profile.traces:
            return "the profile names no trace"
        named = self._named
        is_store = named is not None and (named / "manifest.json").is_file()
        cached = Stores(None, self._until, version=self._version, traces=self._traces) if is_store else self
        pool = [*self._still_there(), *self._in_folder(profile.traces)]
        sources: list[Store | TraceReader] = []
        for trace in profile.traces:
            store = store_of(trace, pool)
            if store is not None and (not store.has_files or self._in_use.hold(store.path)):
                pool = [other for other in pool if other.path != store.path]
                sources.append(store)
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
            # If all stores exist already, their folder may belong to another user.
            needs_room = not all(isinstance(source, Store) for source in sources)
            is_own = named is None or needs_room or os.access(named, os.W_OK)
            place = cached if is_own else Stores(None, self._until, version=self._version, traces=())
            executor.check_workers(
                version=self._version, reads=[source.path for source in sources], writes=place.folder
            )
        for source in sources:
            try:
                stores.append(source if isinstance(source, Store) else cached.provide(source, executor))
            except TraceError as error:
                return f"the trace cannot be decoded: {error}"
        return None

    def _still_there(self) -> Iterator[Store]:
        """Stores that this run found or created before, and that still exist."""
        yield from self._without_files
        for path, made_here in self._used.items():
            with suppress(StoreError):
                yield open_store(path, made_here=made_here)

    def _in_folder(self, traces: Sequence[TraceEntity]) -> list[Store]:
        if self._named is not None:
            return stores_in(self._named)
        folder = cache.stores_folder()
        return [] if folder is None else stores_in(folder, traces)

    def _elsewhere(self, reader: TraceReader, executor: Executor, error: NoRoomError) -> Path:
        """A temporary folder instead of a full cache, if workers can see it."""
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
            raise InputError("is inside the trace", where=folder, todo="name a folder next to it")

    def _is_inside_trace(self, folder: Path) -> bool:
        place = _real(folder)
        # A store below a folder of traces may still be next to them.
        return any(
            place.is_relative_to(_real(trace))
            for given in self._traces
            if place.is_relative_to(_real(given))
            for trace in traces_at(given)
        )


def while_stores_vanish(work: Callable[[list[Store]], Result]) -> Result:
    """Call `work`, which adds the stores that it reads to its list; call it again if one of them vanished meanwhile."""
    for _ in range(_TRIES - 1):
        stores: list[Store] = []
        try:
            return work(stores)
        except StoreError:
            if stores and all(
                not store.has_files or cache.find_store(store.path, store.manifest.digest) is not None
                for store in stores
            ):
                raise
    return work([])


def _real(path: Path) -> Path:
    """The place with links resolved; a link loop is not an error here."""
    return Path(os.path.realpath(path))


def _why_not(store: Path) -> str:
    """Reason why a store that the user named is not used."""
    try:
        open_store(store)
    except StoreError as error:
        return f"{error.where}: {error.what}"
    return f"{store} contains other calls"


def _reader_of(trace: TraceEntity) -> TraceReader | str:
    """The reader of a profile's trace if it still exists unchanged, of the calls that it has; otherwise the fault."""
    path = Path(trace.path)
    try:
        reader = open_trace(path)
        reader = next((part for part in by_app(reader) if part.app == trace.app), reader)
        log = reader if isinstance(reader, KeepsCounts) else None
        records = int(reader.calls_per_rank().sum()) if log is None else sum(log.counts().functions.values())
    except InputError:
        return (
            f"it needs the decoded calls, but the trace {trace.path} no longer exists and no store of it "
            "is known: name the store's folder with --store, or profile the trace again"
        )
    if (reader.ranks, records) != (trace.ranks, trace.records) and trace.complete:
        return (
            f"the trace at {path} contains {counted(records, 'call')} of {counted(reader.ranks, 'process')}, the "
            f"profile {trace.records:,} of {trace.ranks}: profile it again"
        )
    if log is None:
        return reader
    from vani.readers.kept_calls import kept_calls  # noqa: PLC0415 - only for logs of counts
    from vani.schema.timeline import NONE_KEPT  # noqa: PLC0415

    return kept_calls(reader) or NONE_KEPT
