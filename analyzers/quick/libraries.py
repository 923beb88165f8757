"""The libraries that made the calls, as defined by `vani.analyzers.measures.libraries`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import LAYERS, NO_VALUE, Factorized, IntTable, Pairs, count_pairs, pack
from vani.analyzers.measures.libraries import (
    ANY_LIBRARY,
    ASKED,
    LibrariesResult,
    ask_kind,
    under_any_library,
)
from vani.analyzers.quick.rows import Rows
from vani.analyzers.workload.workload import Workload
from vani.calls import Flag, Kind, Layer

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class LibraryCounter:
    """Adds up library calls, and file-system calls by the layers through which they were made."""

    def __init__(self, workload: Workload) -> None:
        apps = len(workload.apps)
        self._ask_kind = ask_kind(workload.functions)
        self._app_layer = (apps, LAYERS)
        """Widths of keys, like those of the measure."""
        self._tables: dict[str, list[IntTable]] = {name: [] for name in ("under", "calls", "via", "requests")}
        self._pairs: dict[str, list[Pairs]] = {name: [] for name in ("files", "data", "outer")}
        self.caller_unknown = np.zeros(apps, np.bool_)
        """Shape (apps,): whether only times show the library of some of its calls."""
        self._files_without_caller = np.zeros(workload.files, np.bool_)
        self.set_lengths = False
        """Whether an MPI_File_set_size may be the only record of a length."""

    @property
    def caller_unknown_files(self) -> Ints:
        """Codes of files with such calls."""
        return np.flatnonzero(self._files_without_caller)

    def shrink(self) -> None:
        """Merge the collected rows if there are many."""
        for name in ("files", "outer"):
            if self._pairs[name]:
                self._pairs[name][-1] = Pairs.merged(self._pairs[name][-1:], packed=True)
        for tables in self._tables.values():
            if len(tables) > 32:
                tables[:] = [IntTable.merged(tables)]
        for pairs in self._pairs.values():
            if len(pairs) > 32:
                pairs[:] = [Pairs.merged(pairs)]

    def add_calls(self, rows: Rows) -> None:
        """Add the calls of every layer itself."""
        self.set_lengths |= bool(((rows.layer > Layer.STDIO) & ((rows.flags & Flag.RESIZE) != 0)).any())
        at = np.flatnonzero(rows.layer != Layer.USER)
        dense = Factorized.of(pack((rows.context.app, rows.layer[at]), self._app_layer))
        data = rows.kind[at] <= Kind.WRITE
        weight = rows.weight[at]
        self._tables["calls"].append(
            IntTable(
                dense.keys,
                {
                    "calls": dense.sum(weight),
                    "data": dense.sum(weight, data),
                    "collective": dense.sum(weight, data & ((rows.flags[at] & Flag.COLLECTIVE) != 0)),
                },
            )
        )

        self._add_requests(rows)

    def _add_requests(self, rows: Rows) -> None:
        """Add the bytes that libraries' data calls request."""
        later = np.append(self._ask_kind, 0)[rows.function]
        of_library = (rows.layer >= Layer.MPIIO) & (rows.layer <= Layer.NETCDF)
        at = np.flatnonzero(of_library & (rows.kind <= Kind.WRITE) & (later >= 0))
        if not len(at):
            return
        dense = Factorized.of(pack((rows.context.app, rows.layer[at]), self._app_layer))
        weight, size, read = rows.weight[at], rows.bytes[at], rows.kind[at] == Kind.READ
        sized = size != NO_VALUE
        columns = (np.where(sized, size, 0) * weight, weight * ~sized, weight * (later[at] > 0))
        sums = [dense.sum(column, side) for column in columns for side in (read, ~read)]
        self._tables["requests"].append(IntTable(dense.keys, dict(zip(ASKED, sums, strict=True))))

    def add_under(self, rows: Rows) -> None:
        """Add file-system calls by the layers through which they were made."""
        at, app = rows.included, rows.context.app
        layer, kind, file, weight = rows.layer[at], rows.kind[at], rows.file[at], rows.weight[at]
        via, within = rows.numbers("via")[at].astype(np.int64), rows.numbers("within")[at]
        sized = rows.bytes[at] != NO_VALUE
        size = np.where(sized, rows.bytes[at], 0)
        read, write = kind == Kind.READ, kind == Kind.WRITE
        moves = read | write
        uses = (moves | ((rows.flags[at] & Flag.OPEN) != 0)) & ((rows.flags[at] & Flag.DIRECTORY) == 0)
        hidden = via < 0
        if hidden.any():
            self.caller_unknown[app] = True
            self._files_without_caller[file[hidden & uses]] = True
            # Only the call's own layer is certain; entities omit the rest.
            via = np.where(hidden, layer, via)
            within = np.where(hidden, np.int16(1) << layer.astype(np.int16), within)
        tables, pairs = self._tables, self._pairs
        outermost = pack((app, via), self._app_layer)
        pairs["outer"].append(count_pairs(outermost[uses], file[uses], weight[uses]))
        dense = Factorized.of(outermost)
        tables["via"].append(
            IntTable(dense.keys, {"bytes": dense.sum(size * weight, moves), "calls": dense.sum(weight)})
        )
        for caller in range(int(np.bitwise_or.reduce(within)).bit_length()):
            inside = np.flatnonzero(within >> caller & 1)
            if not len(inside):
                continue
            key = int(pack((app, caller), self._app_layer))
            columns = {
                "reads": weight[inside][read[inside]].sum(),
                "writes": weight[inside][write[inside]].sum(),
                "bytes_read": (size * weight)[inside][read[inside]].sum(),
                "bytes_written": (size * weight)[inside][write[inside]].sum(),
                "unsized_reads": weight[inside][(read & ~sized)[inside]].sum(),
                "unsized_writes": weight[inside][(write & ~sized)[inside]].sum(),
            }
            tables["under"].append(
                IntTable(np.array([key]), {n: np.array([int(c)]) for n, c in columns.items()})
            )
            used, moved = inside[uses[inside]], inside[(moves & sized)[inside]]
            pairs["files"].append(count_pairs(np.full(len(used), key), file[used], weight[used]))
            pairs["data"].append(count_pairs(np.full(len(moved), key), size[moved], weight[moved]))
        through = np.flatnonzero(moves & sized & under_any_library(within))
        if len(through):
            keys = np.full(len(through), int(pack((app, ANY_LIBRARY), self._app_layer)))
            pairs["data"].append(count_pairs(keys, size[through], weight[through]))

    def result(self) -> LibrariesResult:
        tables, pairs = self._tables, self._pairs
        return LibrariesResult(
            under=IntTable.merged(tables["under"]),
            calls=IntTable.merged(tables["calls"]),
            files=Pairs.merged(pairs["files"], packed=True),
            data=Pairs.merged(pairs["data"]),
            outer=Pairs.merged(pairs["outer"], packed=True),
            via=IntTable.merged(tables["via"]),
            requests=IntTable.merged(tables["requests"]),
            # Only times show which call made which.
            handed_down=IntTable(),
        )
