"""The libraries that made the calls, as defined by `vani.analyzers.measures.libraries`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.int_table import LAYERS, NO_VALUE, Factorized, SumsBuilder, pack
from vani.analyzers.measures.libraries import (
    ANY_LIBRARY,
    ASKED,
    ask_kind,
    under_any_library,
)
from vani.analyzers.quick.rows import Rows
from vani.analyzers.workload import Workload
from vani.calls import Flag, Kind, Layer

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class LibraryCounter:
    """Adds up library calls, and file-system calls by the layers through which they were made."""

    def __init__(self, workload: Workload, sums: SumsBuilder) -> None:
        self._sums = sums
        apps = len(workload.apps)
        self._ask_kind = ask_kind(workload.functions)
        self._app_layer = (apps, LAYERS)
        """Widths of keys, like those of the measure."""
        self.caller_unknown = np.zeros(apps, np.bool_)
        """Shape (apps,): whether only times show the library of some of its calls."""
        self._files_without_caller = np.zeros(workload.files, np.bool_)
        self.set_lengths = False
        """Whether an MPI_File_set_size may be the only record of a length."""

    @property
    def caller_unknown_files(self) -> Ints:
        """Codes of files with such calls."""
        return np.flatnonzero(self._files_without_caller)

    def add_calls(self, rows: Rows) -> None:
        """Add the calls of every layer itself."""
        self.set_lengths |= bool(((rows.layer > Layer.STDIO) & ((rows.flags & Flag.RESIZE) != 0)).any())
        at = np.flatnonzero(rows.layer != Layer.USER)
        dense = Factorized.of(pack((rows.context.app, rows.layer[at]), self._app_layer))
        data = rows.kind[at] <= Kind.WRITE
        weight = rows.weight[at]
        columns = {
            "calls": dense.sum(weight),
            "data": dense.sum(weight, data),
            "collective": dense.sum(weight, data & ((rows.flags[at] & Flag.COLLECTIVE) != 0)),
        }
        self._sums.add("calls", dense.keys, columns)
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
        self._sums.add("requests", dense.keys, dict(zip(ASKED, sums, strict=True)))

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
        outermost = pack((app, via), self._app_layer)
        self._sums.count("outer", outermost[uses], file[uses], weight[uses])
        self._sums.add("via", outermost, {"bytes": np.where(moves, size * weight, 0), "calls": weight})
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
            self._sums.add("under", np.array([key]), {n: np.array([int(c)]) for n, c in columns.items()})
            used, moved = inside[uses[inside]], inside[(moves & sized)[inside]]
            self._sums.count("files", np.full(len(used), key), file[used], weight[used])
            self._sums.count("transfers", np.full(len(moved), key), size[moved], weight[moved])
        through = np.flatnonzero(moves & sized & under_any_library(within))
        keys = np.full(len(through), int(pack((app, ANY_LIBRARY), self._app_layer)))
        self._sums.count("transfers", keys, size[through], weight[through])
