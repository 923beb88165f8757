"""From occurrences of calls to what the measures would have found, as far as neither order nor time matters.

The results have the form of the measures' (`vani.analyzers.measures`), with one phase per app, so that entities are
made of them by the same code. Work is done per distinct call of each group of ranks; ranks of a group only multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.base import LAYERS, NO_VALUE, Context, Pairs, World, count_pairs
from vani.analyzers.keyed import Dense, Keyed, group
from vani.analyzers.keys import pack, unpack
from vani.analyzers.measurements import TraceFacts
from vani.analyzers.measures.libraries import ANY_LIBRARY, LibrariesResult, under_any_library
from vani.analyzers.measures.processes import ProcessesResult
from vani.analyzers.names import groups_of_names, renames_of
from vani.analyzers.passes import exchanged
from vani.calls import MOST_SUM, RENAMES, FileClass, Flag, Kind, Layer, Occurrences
from vani.columns import Texts, small_table, texts, to_arrow, to_numpy
from vani.errors import TraceError

__all__ = ["Counts", "Trace", "count"]

_MOST_HANDS = 1 << 25
"""Pairs of ranks' groups and files that are kept to look for exchanges (9 bytes each)."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass
class Trace:
    """One trace as its tables tell it."""

    facts: TraceFacts
    """Without records and functions: they are counted here."""
    files: pa.Table
    function_names: dict[int, str]
    occurrences: Occurrences
    renames: pa.Table = field(default_factory=lambda: small_table([()] * 4, RENAMES))


@dataclass
class Counts:
    """What was counted in a workload."""

    results: dict[str, Any]
    """By name of the measure, as its `combine` gives it: `operations`, `call_costs`, `transfer_size`, `processes`,
    `libraries`. Their columns of times are 0: who reads them leaves them out."""
    files: Keyed
    """By file code, included calls: reads, writes, metadata, syncs, opens, makes, empties, looks, removes, bytes_read,
    bytes_written."""
    users: Keyed | None
    """By app and file + 1 as one key, files that are written and read, under their last name: processes that are
    readers, writers, and both. None: too many to keep."""
    functions: list[dict[str, int]]
    """Calls by function, of each trace."""
    process_bytes: Ints
    """Shape (processes,): bytes moved on files of the data set."""
    process_reads: Ints
    process_writes: Ints
    untold_apps: Bools
    """Shape (apps,): for some of its calls only times tell who called them."""
    untold_files: Ints
    """Codes of files with such calls."""
    libraries_set_lengths: bool = False
    """Some MPI_File_set_size may be the only record of a length."""

    def records(self, trace: int) -> int:
        """Number of calls of a trace."""
        return sum(self.functions[trace].values())


class _Rows:
    """A batch of occurrences with file codes of the workload and weights over all ranks."""

    def __init__(self, context: Context, batch: pa.RecordBatch, ranks_of_group: Ints) -> None:
        self.context = context
        self._batch = batch
        self.group = self.numbers("group").astype(np.int64)
        self.once = self.numbers("count")
        self.ranks = ranks_of_group[self.group]
        self.weight = self.once * self.ranks

    def numbers(self, name: str) -> NDArray[Any]:
        """A column as numpy array; null is `NO_VALUE` in 64 bits, else -1."""
        column = self._batch.column(name)
        return to_numpy(column, NO_VALUE if column.type == pa.int64() else -1)

    @cached_property
    def function(self) -> NDArray[np.int32]:
        """Code of the function in `World.functions`."""
        codes = self.context.function_codes
        found: NDArray[np.int32] = codes[np.minimum(self.numbers("func"), len(codes) - 1)]
        return found

    @cached_property
    def layer(self) -> NDArray[np.int8]:
        return self.numbers("layer")

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        return self.numbers("kind")

    @cached_property
    def flags(self) -> NDArray[np.int16]:
        return self.numbers("flags")

    @cached_property
    def bytes(self) -> Ints:
        return self.numbers("bytes")

    @cached_property
    def file(self) -> Ints:
        local = self.numbers("file")
        codes = self.context.file_codes
        if not len(codes):
            return np.full(len(local), -1)
        found: Ints = np.where(local < 0, -1, codes[np.maximum(local, 0)])
        return found

    @cached_property
    def counted(self) -> Ints:
        """Rows of the file-system calls that count: those made inside another one are left out."""
        return np.flatnonzero((self.layer <= Layer.STDIO) & ((self.flags & Flag.NESTED) == 0))

    @cached_property
    def included(self) -> Ints:
        """Of these, the calls on files of the data set."""
        classes = self.context.world.file_class
        file = self.file[self.counted]
        if not len(classes):
            return self.counted[:0]
        found: Ints = self.counted[(file >= 0) & (classes[np.maximum(file, 0)] == FileClass.DATASET)]
        return found


def count(world: World, contexts: Sequence[Context], traces: Sequence[Trace]) -> tuple[World, Counts]:
    """Count the calls of a workload.

    Returns
    -------
    world, counts
        The workload, which knows by now what its files were renamed to.
    """
    counter = _Counter(world)
    for context, trace in zip(contexts, traces, strict=True):
        of_rank = trace.occurrences.group_of_rank
        ranks_of_group = np.bincount(of_rank[of_rank >= 0], minlength=1)
        counter.begin(trace, ranks_of_group)
        for batch in trace.occurrences.batches():
            counter.add(_Rows(context, batch, ranks_of_group))
        counter.end(trace, world.process_base[context.trace])
    codes = [c.file_codes for c in contexts]
    paths = world.paths if isinstance(world.paths, Texts) else Texts(texts(world.paths))
    renames = renames_of([t.renames for t in traces], codes, world.shift_ns, paths, world.file_class)
    if len(renames):
        world = replace(world, renames=renames, final_name=groups_of_names(renames, world.files))
    return world, counter.result(world)


class _Counter:
    def __init__(self, world: World) -> None:
        self._world = world
        self._apps = len(world.apps)
        self._cell = (self._apps + 1, world.files + 1)
        """Widths of keys: of phase and file, of app and file, of app and layer, as those of the measures."""
        self._app_file = (self._apps, world.files + 1)
        self._app_layer = (self._apps, LAYERS)
        self._operations: list[Keyed] = []
        self._costs: list[Keyed] = []
        self._sizes: list[Pairs] = []
        self._uses: dict[str, list[Keyed]] = {"files": [], "apps": []}
        self._survey: list[Keyed] = []
        self._hands: list[list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int8]]]] = []
        self._hands_held = 0
        self._ranks: list[Ints] = []
        self._libraries: dict[str, list[Any]] = {n: [] for n in LibrariesResult.__dataclass_fields__}
        self._functions: list[dict[str, int]] = []
        self._trace: Trace
        self._claimed = 0.0
        self._renames: list[Ints] = []
        self._of_group = np.zeros((3, 0), np.int64)
        self._of_process = np.zeros((3, world.processes), np.int64)
        self._untold_apps = np.zeros(self._apps, np.bool_)
        self._untold_files = np.zeros(world.files, np.bool_)
        self._sets_lengths = False

    def begin(self, trace: Trace, ranks_of_group: Ints) -> None:
        self._trace = trace
        self._functions.append({})
        self._renames = []
        self._of_group = np.zeros((3, len(ranks_of_group)), np.int64)
        self._hands.append([])
        self._ranks.append(ranks_of_group)

    def end(self, trace: Trace, base: int) -> None:
        of_rank = trace.occurrences.group_of_rank
        ranks = np.flatnonzero(of_rank >= 0)
        self._of_process[:, base + ranks] = self._of_group[:, of_rank[ranks]]
        pairs = np.concatenate([np.zeros((2, 0), np.int64), *self._renames], axis=1).astype(np.int32)
        rank, start = np.full(pairs.shape[1], -1, np.int32), np.zeros(pairs.shape[1], np.int64)
        columns = [to_arrow(c) for c in (rank, start, pairs[0], pairs[1])]
        trace.renames = pa.Table.from_arrays(columns, schema=RENAMES)

    def add(self, rows: _Rows) -> None:
        self._refuse_absurd(rows)
        self._add_functions(rows)
        self._add_library_calls(rows)
        if len(rows.counted):
            self._add_operations(rows)
            self._add_uses(rows)
        if len(rows.included):
            self._add_survey(rows)
            self._add_processes(rows)
            self._add_libraries(rows)
        for lists in (self._operations, self._costs, self._survey, *self._uses.values()):
            if lists:
                lists[-1] = lists[-1].packed()
            if len(lists) > 32:
                lists[:] = [Keyed.merged(lists)]
        for name in ("files", "outer"):
            if self._libraries[name]:
                self._libraries[name][-1] = Pairs.merged(self._libraries[name][-1:], packed=True)
        for store in [self._sizes, *self._libraries.values()]:
            if len(store) > 32:
                store[:] = [type(store[0]).merged(store)]

    def _refuse_absurd(self, rows: _Rows) -> None:
        """A few bytes of grammar can stand for any number of calls; sums of floats tell what integers would hide."""
        size = np.where(rows.bytes > 0, rows.bytes, 0).astype(np.float64)
        self._claimed += float((size * rows.weight).sum())
        if self._claimed >= MOST_SUM:
            raise TraceError(
                f"its calls move {self._claimed:.3g} bytes together, more than can be counted",
                where=self._trace.facts.source,
                todo="the trace is damaged, trace the run again",
            )

    def _add_functions(self, rows: _Rows) -> None:
        dense = Dense.of(rows.numbers("func").astype(np.int64))
        found = self._functions[-1]
        for func, n in zip(dense.keys.tolist(), dense.sum(rows.weight).tolist(), strict=True):
            name = self._trace.function_names.get(func, "(unknown)")
            found[name] = found.get(name, 0) + n
        target = rows.numbers("rename_to")
        renames = np.flatnonzero(target >= 0)
        if len(renames):
            pairs = np.stack([rows.numbers("file")[renames], target[renames]]).astype(np.int64)
            self._renames.append(np.unique(pairs, axis=1))

    def _add_operations(self, rows: _Rows) -> None:
        at, app = rows.counted, rows.context.app
        included = np.zeros(len(rows.kind), np.bool_)
        included[rows.included] = True
        phase = np.where(included[at], app, self._apps)
        cell = Dense.of(pack((phase, rows.file[at] + 1), self._cell))
        kind, size, flags = rows.kind[at], rows.bytes[at], rows.flags[at]
        weight = rows.weight[at]
        read, write = kind == Kind.READ, kind == Kind.WRITE
        sized = size != NO_VALUE
        moved = np.where(sized, size, 0) * weight
        self._operations.append(
            Keyed(
                cell.keys,
                {
                    "reads": cell.sum(weight, read),
                    "writes": cell.sum(weight, write),
                    "metadata": cell.sum(weight, kind == Kind.METADATA),
                    "syncs": cell.sum(weight, kind == Kind.SYNC),
                    "bytes_read": cell.sum(moved, read),
                    "bytes_written": cell.sum(moved, write),
                    "unsized": cell.sum(weight, (read | write) & ~sized),
                    "opens": cell.sum(weight, (flags & Flag.OPEN) != 0),
                    **{n: np.zeros(len(cell.keys), np.int64) for n in ("first", "last")},
                },
            )
        )
        columns = (cell.keys[cell.codes], rows.function[at])
        function = Dense.of(pack(columns, (prod(self._cell), len(self._world.functions))))
        self._costs.append(
            Keyed(
                function.keys,
                {
                    "count": function.sum(weight),
                    "time": np.zeros(len(function.keys), np.int64),
                    "bytes": function.sum(np.where(read | write, moved, 0)),
                    "data": function.sum(weight, read | write),
                    "metadata": function.sum(weight, kind == Kind.METADATA),
                    "unsized": function.sum(weight, (read | write) & ~sized),
                },
            )
        )
        data = np.flatnonzero((read | write) & sized)
        if len(data):
            side = pack((cell.keys[cell.codes[data]], kind[data]), (prod(self._cell), 2))
            self._sizes.append(count_pairs(side, size[data], weight[data]))

    def _add_uses(self, rows: _Rows) -> None:
        """Processes that use each file: ranks of the groups that do."""
        kind, flags, file = rows.kind, rows.flags, rows.file
        data = kind <= Kind.WRITE
        uses = (file >= 0) & (data | ((flags & Flag.OPEN) != 0)) & ((flags & Flag.DIRECTORY) == 0)
        at = rows.counted[uses[rows.counted]]
        if not len(at):
            return
        groups = len(self._ranks[-1])
        dense = Dense.of(pack((rows.group[at], file[at]), (groups, self._world.files)))
        ranks = np.zeros(len(dense.keys), np.int64)
        ranks[dense.codes] = rows.ranks[at]
        columns = {
            "processes": ranks,
            "readers": np.where(dense.count(kind[at] == Kind.READ) > 0, ranks, 0),
            "writers": np.where(dense.count(kind[at] == Kind.WRITE) > 0, ranks, 0),
        }
        _, code = unpack(dense.keys, (groups, self._world.files))
        self._uses["files"].append(group(code, columns))
        self._uses["apps"].append(group(pack((rows.context.app, code + 1), self._app_file), columns))

    def _add_survey(self, rows: _Rows) -> None:
        at = rows.included
        kind, flags, weight = rows.kind[at], rows.flags[at], rows.weight[at]
        dense = Dense.of(rows.file[at])

        def having(flag: Flag) -> Bools:
            found: Bools = (flags & flag) != 0
            return found

        made, anew = having(Flag.CREATE | Flag.TRUNCATE), having(Flag.TRUNCATE)
        looks = (flags & (Flag.OPEN | Flag.WRITABLE | Flag.DIRECTORY)) == Flag.OPEN
        chosen = {
            "reads": kind == Kind.READ,
            "writes": kind == Kind.WRITE,
            "metadata": kind == Kind.METADATA,
            "syncs": kind == Kind.SYNC,
            "opens": having(Flag.OPEN),
            "makes": made,
            "empties": anew,
            "looks": looks,
            "removes": having(Flag.REMOVE),
            "resizes": having(Flag.RESIZE),
            "streams": made & (rows.layer[at] == Layer.STDIO),
            "unfollowed": (flags & (Flag.OPEN | Flag.WRITABLE)) == Flag.WRITABLE,
        }
        unsized = rows.bytes[at] == NO_VALUE
        chosen |= {
            "unsized_reads": chosen["reads"] & unsized,
            "unsized_writes": chosen["writes"] & unsized,
        }
        moved = np.where(unsized, 0, rows.bytes[at]) * weight
        columns = {n: dense.sum(weight, mask) for n, mask in chosen.items()} | {
            "bytes_read": dense.sum(moved, kind == Kind.READ),
            "bytes_written": dense.sum(moved, kind == Kind.WRITE),
            "metadata_time": np.zeros(len(dense.keys), np.int64),
        }
        self._survey.append(Keyed(dense.keys, columns))
        self._add_hands(rows, kind, anew, looks & ~anew)

    def _add_hands(self, rows: _Rows, kind: NDArray[np.int8], anew: Bools, looks: Bools) -> None:
        """What each group does to each file, for exchanges: which files matter is known at the end only."""
        at = rows.included
        widths = (len(self._ranks[-1]), self._world.files)
        dense = Dense.of(pack((rows.group[at], rows.file[at]), widths))
        if self._hands_held > _MOST_HANDS:
            return
        did = np.zeros(len(dense.keys), np.int8)
        for bit, mask in enumerate((kind == Kind.READ, kind == Kind.WRITE, looks, anew)):
            did |= ((dense.count(mask) > 0) << bit).astype(np.int8)
        group_, file = unpack(dense.keys, widths)
        self._hands[-1].append((group_.astype(np.int32), file.astype(np.int32), did))
        self._hands_held += len(did)

    def _add_processes(self, rows: _Rows) -> None:
        at = rows.included
        kind, once, group_ = rows.kind[at], rows.once[at], rows.group[at]
        data = kind <= Kind.WRITE
        size = np.where((rows.bytes[at] == NO_VALUE) | ~data, 0, rows.bytes[at])
        for row, values in enumerate(
            (size * once, np.where(kind == Kind.READ, once, 0), np.where(kind == Kind.WRITE, once, 0))
        ):
            np.add.at(self._of_group[row], group_, values)

    def _add_library_calls(self, rows: _Rows) -> None:
        """Calls of every layer themselves."""
        self._sets_lengths |= bool(((rows.layer > Layer.STDIO) & ((rows.flags & Flag.RESIZE) != 0)).any())
        at = np.flatnonzero(rows.layer != Layer.USER)
        dense = Dense.of(pack((rows.context.app, rows.layer[at]), self._app_layer))
        data = rows.kind[at] <= Kind.WRITE
        weight = rows.weight[at]
        self._libraries["calls"].append(
            Keyed(
                dense.keys,
                {
                    "calls": dense.sum(weight),
                    "data": dense.sum(weight, data),
                    "collective": dense.sum(weight, data & ((rows.flags[at] & Flag.COLLECTIVE) != 0)),
                },
            )
        )

    def _add_libraries(self, rows: _Rows) -> None:
        """File-system calls by the layers that they were made through."""
        at, app = rows.included, rows.context.app
        layer, kind, file, weight = rows.layer[at], rows.kind[at], rows.file[at], rows.weight[at]
        via, within = rows.numbers("via")[at].astype(np.int64), rows.numbers("within")[at]
        sized = rows.bytes[at] != NO_VALUE
        size = np.where(sized, rows.bytes[at], 0)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        moves = read | write
        uses = (moves | ((rows.flags[at] & Flag.OPEN) != 0)) & ((rows.flags[at] & Flag.DIRECTORY) == 0)
        untold = via < 0
        if untold.any():
            self._untold_apps[rows.context.app] = True
            self._untold_files[file[untold & uses]] = True
            # What is certain is the call's own layer; entities leave out what is not.
            via = np.where(untold, layer, via)
            within = np.where(untold, np.int16(1) << layer.astype(np.int16), within)
        found = self._libraries
        outermost = pack((app, via), self._app_layer)
        found["outer"].append(count_pairs(outermost[uses], file[uses], weight[uses]))
        dense = Dense.of(outermost)
        found["via"].append(
            Keyed(dense.keys, {"bytes": dense.sum(size * weight, moves), "calls": dense.sum(weight)})
        )
        for one in range(int(np.bitwise_or.reduce(within)).bit_length()):
            mine = np.flatnonzero(within >> one & 1)
            if not len(mine):
                continue
            key = int(pack((app, one), self._app_layer))
            columns = {
                "reads": weight[mine][read[mine]].sum(),
                "writes": weight[mine][write[mine]].sum(),
                "bytes_read": (size * weight)[mine][read[mine]].sum(),
                "bytes_written": (size * weight)[mine][write[mine]].sum(),
                "unsized_reads": weight[mine][(read & ~sized)[mine]].sum(),
                "unsized_writes": weight[mine][(write & ~sized)[mine]].sum(),
            }
            found["under"].append(Keyed(np.array([key]), {n: np.array([int(c)]) for n, c in columns.items()}))
            used, moved = mine[uses[mine]], mine[(moves & sized)[mine]]
            found["files"].append(count_pairs(np.full(len(used), key), file[used], weight[used]))
            found["data"].append(count_pairs(np.full(len(moved), key), size[moved], weight[moved]))
        through = np.flatnonzero(moves & sized & under_any_library(within))
        if len(through):
            keys = np.full(len(through), int(pack((app, ANY_LIBRARY), self._app_layer)))
            found["data"].append(count_pairs(keys, size[through], weight[through]))

    def result(self, world: World) -> Counts:
        """Everything, put together; `world` knows by now what files were renamed to."""
        found = self._libraries
        libraries = LibrariesResult(
            under=Keyed.merged(found["under"]),
            calls=Keyed.merged(found["calls"]),
            files=Pairs.merged(found["files"], packed=True),
            data=Pairs.merged(found["data"]),
            outer=Pairs.merged(found["outer"], packed=True),
            via=Keyed.merged(found["via"]),
        )
        survey = Keyed.merged(self._survey)
        return Counts(
            results={
                "operations": Keyed.merged(self._operations),
                "call_costs": Keyed.merged(self._costs),
                "transfer_size": Pairs.merged(self._sizes),
                "processes": ProcessesResult(
                    Keyed.merged(self._uses["files"]), Keyed.merged(self._uses["apps"]), Keyed(), Keyed()
                ),
                "libraries": libraries,
            },
            files=survey,
            users=self._users(world, survey),
            functions=self._functions,
            process_bytes=self._of_process[0],
            process_reads=self._of_process[1],
            process_writes=self._of_process[2],
            untold_apps=self._untold_apps,
            untold_files=np.flatnonzero(self._untold_files),
            libraries_set_lengths=self._sets_lengths,
        )

    def _users(self, world: World, survey: Keyed) -> Keyed | None:
        """See `Counts.users`."""
        if self._hands_held > _MOST_HANDS:
            return None
        if not len(survey):
            return Keyed()
        written, read, opened_new, opened_read = exchanged(world, survey)
        linked = ((written | opened_new) & (read | opened_read))[world.final_name]
        by_open = (opened_new | opened_read)[world.final_name]
        found = []
        for trace, parts in enumerate(self._hands):
            for group_, file, did in parts:
                mine = np.flatnonzero(linked[file])
                if not len(mine):
                    continue
                hands = np.where(by_open[file[mine]], did[mine] | did[mine] >> 2, did[mine])
                # A process may know a file by several names; all its calls are in one batch.
                widths = (len(self._ranks[trace]), world.files)
                dense = Dense.of(pack((group_[mine], world.final_name[file[mine]]), widths))
                reads, writes = (dense.count((hands >> bit & 1) != 0) > 0 for bit in (0, 1))
                owner, named = unpack(dense.keys, widths)
                ranks = self._ranks[trace][owner]
                key = pack((world.app_of_trace[trace], named + 1), self._app_file)
                masks = {"readers": reads, "writers": writes, "both": reads & writes}
                found.append(group(key, {n: np.where(m, ranks, 0) for n, m in masks.items()}))
        return Keyed.merged(found)
