"""Call table files: opened, read in parts if they are large, and interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.columns import to_arrow
from vani.readers.functions import FACTS
from vani.readers.handles import Handles, HandleTable
from vani.readers.interpret import interpret
from vani.readers.paths import Paths, PathTable
from vani.readers.recorder.call_table import PART_BYTES, Buffer, Part, TableBytes, call_table_parts
from vani.readers.recorder.frames import FramedTable, inflate_frame
from vani.readers.recorder.interned import InternedHandles, InternedPaths
from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.packed import SignaturePacker
from vani.readers.recorder.source import Source
from vani.readers.signatures import CallTable, Signatures

_USER_FUNCTION_ID = 255
_SMALL_TABLE = 1 << 16
"""Largest file, in bytes, whose table is inflated at once."""
_MOST_FACTS = 10_000

Ints = NDArray[np.int64]


class CallTableFiles:
    """Reads the call tables of one trace."""

    def __init__(self, source: Source, meta: Metadata) -> None:
        self._source, self._meta = source, meta

    def open(self, name: str) -> TableBytes:
        """Open a call table; a large one is inflated while it is read."""
        extent = self._source.extent(name)
        where = self._source.where(name)
        if not self._meta.layout.framed or extent is None or extent.length <= _SMALL_TABLE:
            return Buffer(self.content(name))
        table = FramedTable(extent.path, extent.offset, extent.length, where=where)
        if table.size > PART_BYTES:
            return table
        table.close()
        return Buffer(self.content(name))

    def content(self, name: str) -> bytes:
        """A part of the trace, inflated if it is a frame."""
        content = self._source.read(name)
        if not self._meta.layout.framed:
            return content
        return inflate_frame(content, where=self._source.where(name))

    def _interpret(
        self, table: CallTable, paths: Paths, handles: Handles, ids: Ints | None = None
    ) -> Signatures:
        return interpret(
            table,
            self._meta.functions,
            paths,
            handles,
            interprocess_patterns=self._meta.interprocess_patterns,
            intraprocess_patterns=self._meta.intraprocess_patterns,
            user_function_id=_USER_FUNCTION_ID if self._meta.layout.function_bytes == 4 else None,
            ids=ids,
            ranks=self._meta.ranks,
        )

    def read(
        self, name: str, source: TableBytes, paths: Paths, handles: Handles
    ) -> tuple[Signatures | SignaturePacker, TableCounts]:
        """Read and interpret a call table, in parts if it is large, and keep the counts and texts needed later."""
        layout = self._meta.layout
        counts, packer = TableCounts(self._meta.functions), None
        for part in call_table_parts(
            source,
            function_bytes=layout.function_bytes,
            counted=layout.counted,
            where=self._source.where(name),
            site_bytes=layout.site_bytes,
            part_bytes=PART_BYTES,
        ):
            counts.add(part)
            if source.size <= PART_BYTES:
                return self._interpret(part.table, paths, handles), counts
            if packer is None:
                packer = SignaturePacker(part.entries)
            packer.add(part.ids, self._interpret(part.table, paths, handles, part.ids))
        assert packer is not None
        return packer, counts

    def read_shared(self) -> tuple[Signatures, TableCounts, Sequence[str], int]:
        """Signatures, counts and texts, all paths, and the number of handles."""
        name = "recorder.cst" if self._meta.layout.framed else "0.cst"
        with closing(self.open(name)) as source:
            if source.size <= PART_BYTES:
                paths, handles = PathTable(), HandleTable()
                signatures, counts = self.read(name, source, paths, handles)
                assert isinstance(signatures, Signatures)
                return signatures, counts, paths.paths, len(handles)
            some_paths, some_handles = InternedPaths(), InternedHandles()
            packer, counts = self.read(name, source, some_paths, some_handles)
        assert isinstance(packer, SignaturePacker)
        path_codes, texts = some_paths.finish()
        handle_codes, count = some_handles.finish()
        signatures = packer.packed(texts, path_codes=path_codes, handle_codes=handle_codes)
        return signatures, counts, texts, count


class TableCounts:
    """A call table's counts and some functions' texts: all that is kept in addition to its signatures."""

    def __init__(self, functions: tuple[str, ...]) -> None:
        self._functions = functions
        self._wanted = [i for i, n in enumerate(functions) if n in FACTS]
        self.counts: NDArray[np.uint32] | None = None
        """Calls of each signature; None if the table has no counts."""
        self._facts: list[tuple[Ints, Ints, pa.ListArray]] = []
        self._rows_collected = 0

    def add(self, part: Part) -> None:
        """Add a part of the table."""
        table = part.table
        if table.count is not None:
            if self.counts is None:
                self.counts = np.zeros(part.entries, np.uint32)
            self.counts[part.ids] = table.count
        rows = np.flatnonzero(np.isin(table.func, self._wanted))
        if len(rows) and self._rows_collected < 8 * _MOST_FACTS:
            self._facts.append((part.ids[rows], table.func[rows], pc.take(table.args, to_arrow(rows))))
            self._rows_collected += len(rows)

    def facts(self, counts: Ints) -> list[tuple[str, list[str], int]]:
        """(function, arguments, number of calls) of signatures that were called according to `counts`, by id."""
        if not self._facts:
            return []
        ids, func = (np.concatenate([f[i] for f in self._facts]) for i in range(2))
        args = pa.concat_arrays([f[2] for f in self._facts])
        rows = np.flatnonzero(counts[ids] > 0)
        rows = rows[np.argsort(ids[rows])][:_MOST_FACTS]
        texts = pc.take(args, to_arrow(rows)).to_pylist()
        return [(self._functions[func[r]], t, int(counts[ids[r]])) for r, t in zip(rows, texts, strict=True)]
