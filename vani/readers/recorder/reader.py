"""`TraceReader` for Recorder traces: their facts, limits and calls."""

import functools
import posixpath
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.calls import Occurrences
from vani.columns import Ints
from vani.errors import TraceError, UnknownFormatError
from vani.kernels import available
from vani.readers.files import Identified, Identity
from vani.readers.functions import function_table
from vani.readers.paths import file_table
from vani.readers.programs import AppName, app_of_folder
from vani.readers.recorder import Shape, probe
from vani.readers.recorder.batches import CallReader, TimeFiles
from vani.readers.recorder.call_sites import (
    Origins,
    call_site_batches,
    is_interpreter,
    is_shared_library,
    read_origins,
)
from vani.readers.recorder.grammar import Grammar
from vani.readers.recorder.metadata import LAYOUTS, Metadata, decode_metadata
from vani.readers.recorder.occurrences import occurrences
from vani.readers.recorder.source import Source, open_sections, part_files
from vani.readers.recorder.tables import TableReader, Tables
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import LIMITS_OF_RECORDER, Limit, Piece, most_of
from vani.units import counted

_MAX_REPORTED = 8
"""Number of executables that are named individually."""
_BELIEVED = 1 << 16
"""Number of ranks accepted without a check: they cost nothing, and lost ranks are reported individually."""
_LOST = 16
"""Ranks accepted per rank with its own files, in layouts with files per rank."""
_FEWEST_FRAMED, _FEWEST_IN_FILES = 1 << 12, 1 << 15
"""Mean calls per rank above which decoding a trace twice more costs less than writing and reading a store.
Opening a rank takes as long as decoding some hundred calls; a rank with its own files takes as long as five to ten
thousand, and longer on a parallel file system: 8 ms. Measured: a store and decoding cost the same for 10,000 ranks
with 1,400 and 14,000 calls and for 2,000 ranks with 5,000; for 33,000 and 100,000 calls decoding takes down to half."""

_LIBRARIES = {"mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "netcdf": "netCDF"}
"""Names of layers whose tracing may be off."""


class RecorderReader(Identified):
    """A Recorder trace of layout 2.3 to 3.x."""

    tool = "recorder"

    def __init__(self, path: Path, shape: Shape | None = None, identity: Identity | None = None) -> None:
        """Recognise the trace and read its metadata.

        Raises
        ------
        TraceError
            The trace cannot be decoded at all.
        """
        super().__init__(path, part_files, identity=identity)
        self._shape = shape or probe(path)
        self._source = Source(path, open_sections(path / "recorder.dat") if self._shape.combined else None)
        try:
            self._read_head()
            if self._shape.newer is not None:
                # Only the tables show whether the assumed layout is right.
                _ = self.tables
        except TraceError as error:
            if self._shape.newer is None:
                raise
            raise UnknownFormatError(
                f"{self._shape.newer}; read as {self._shape.layout} it contradicts itself ({error.what})",
                where=path,
                todo="convert it with the Recorder that wrote it, or update Vani",
            ) from error

    def _read_head(self) -> None:
        layout = LAYOUTS[self._shape.layout]
        where = self._source.where("recorder.mt")
        meta = decode_metadata(self._source.read("recorder.mt"), layout, where=where)
        ranks, self._miscounted = _plausible_ranks(self._source, meta)
        self._meta = replace(meta, ranks=ranks)
        self._lock = threading.Lock()
        self._known: Tables | None = None
        self._table_reader = TableReader(self._source, self._meta)
        self._times = TimeFiles(self._source, self._meta)

    def __reduce__(self) -> tuple[Any, ...]:
        # Cluster workers open the trace themselves, on the shared file system.
        return RecorderReader, (self.path.absolute(), self._shape, self._identity)

    @property
    def format(self) -> str:
        return self._meta.version or self._shape.version

    @property
    def layout(self) -> str:
        return self._shape.layout

    @property
    def app(self) -> str:
        """Name of the executable from its call sites, or else from the directory name.

        An interpreter is not the program that ran, but the directory may have the program's name.
        """
        program = self._program
        return self._app_name.name if program is None else program

    @property
    def _program(self) -> str | None:
        """Name of the executable from its call sites, unless it is an interpreter."""
        program = next(iter(self._origins.programs), None)
        return None if program is None or is_interpreter(program) else program

    @functools.cached_property
    def _app_name(self) -> AppName:
        return app_of_folder(self.path.resolve().name, self._has_folder)

    def _has_folder(self, name: str) -> bool:
        """Return whether a path in the trace, or the trace's own path, contains a folder of that name."""
        if name in self.path.resolve().parent.parts:
            return True
        try:
            paths = self.files()["path"]
        except TraceError:
            return False
        return bool(pc.any(pc.match_substring(paths, f"/{name}/")).as_py())

    @property
    def ranks(self) -> int:
        return self._meta.ranks

    @property
    def start_unix_s(self) -> float | None:
        return self._meta.start_unix_s if self._meta.start_unix_s > 1e9 else None

    @property
    def metadata(self) -> Metadata:
        return self._meta

    @property
    def problems(self) -> list[str]:
        return self.tables.problems

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Facts that Recorder traces never contain, and the assumptions made instead."""
        limits = [
            *LIMITS_OF_RECORDER,
            Limit(
                "io.ops.metadata",
                "stat calls of glibc 2.33 and newer, openat, unlinkat and calls before MPI_Init or after "
                "MPI_Finalize are in no record",
            ),
        ]
        if self._program is None and self._app_name.doubt:
            limits.append(Limit("traces.app", self._app_name.doubt))
        if not self._meta.layers_traced.get("posix", True):
            limits.append(Limit("io", "POSIX tracing was off: file-system calls are not in the trace"))
        if off := [name for key, name in _LIBRARIES.items() if not self._meta.layers_traced.get(key, True)]:
            limits.append(Limit("interfaces.layer", f"tracing of {' and '.join(off)} was off"))
        if self._nested_by_time:
            exception = ", where its call site does not show it" if self._useful_origins else ""
            limits.append(
                Limit(
                    "interfaces",
                    "call depth is not stored or 0 everywhere: a call is taken as made by the library call "
                    f"whose interval contains it{exception}",
                )
            )
        programs = self._origins.programs
        if len(programs) > 1:
            shown = ", ".join(f"{name} ({count})" for name, count in list(programs.items())[:_MAX_REPORTED])
            limits.append(
                Limit(
                    "apps.name",
                    f"the processes ran different executables, {shown}: one app, named by the first",
                )
            )
        return tuple(limits)

    def calls_per_rank(self) -> Ints:
        return self.tables.calls

    def functions(self) -> pa.Table:
        return function_table(self._meta.functions)

    def files(self) -> pa.Table:
        return file_table(self.tables.paths, self.tables.probes)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """(function, arguments, number of calls) of the calls in `functions.FACTS`.

        Also ("several_launches", [], number of ranks from other runs) if several runs wrote into the folder.
        """
        surplus = 0 if self._shape.combined else self._source.surplus_ranks(self._meta.ranks)
        return [*self.tables.facts, *([("several_launches", [], surplus)] if surplus else [])]

    def occurrences(self) -> Occurrences:
        """Occurrences of each call, counted on the grammars only."""
        tables = self.tables
        group = np.where(tables.calls > 0, np.arange(self.ranks), -1) if tables.shared is None else tables.of_rank
        origins = self._useful_origins
        if origins is not None and tables.shared is not None:
            # Equal calls of two ranks may come from different places.
            known = origins.of_rank.astype(np.int64) + 1
            _, pairs = np.unique(group * (known.max() + 1) + known, return_inverse=True)
            group = np.where(group < 0, -1, pairs)
        return occurrences(
            group,
            self._of_rank,
            by_time=self._nested_by_time,
            where=str(self.path),
            origins=None if origins is None else origins.of,
        )

    def call_sites(self) -> Iterator[pa.RecordBatch] | None:
        """`vani.calls.CALL_SITES`; None if the tracer stored none."""
        return call_site_batches(self._source, self.ranks) if self._origins.stored else None

    def caller_of(self, function: str, rank: int) -> str | None:
        """See `NamesCallers`; the calls of this rank decide."""
        names, places = self.functions(), {}
        codes = names["func"].filter(pc.equal(names["name"], function))
        for table in self.call_sites() or ():
            for row in table.filter(pc.equal(table["rank"], rank)).to_pylist():
                if not is_shared_library(row["module"]):
                    places[row["call_site"]] = f"{posixpath.basename(row['module'])[-255:]}+{row['offset']:#x}"
        counts: Counter[str | None] = Counter()
        for batch in self.batches(range(rank, rank + 1), Piece(), call_sites=True) if places else ():
            for entry in pc.value_counts(batch["call_site"].filter(pc.is_in(batch["func"], codes))).to_pylist():
                counts[places.get(entry["values"])] += entry["counts"]
        place = most_of(counts)
        return place if place is None or self.ranks == 1 else f"{place} in rank {rank}"

    @functools.cached_property
    def _origins(self) -> Origins:
        if not self._meta.layout.site_bytes:
            return Origins.none(self.ranks)
        return read_origins(self._source, self.ranks)

    @property
    def _useful_origins(self) -> Origins | None:
        """Origins, if they add anything to depths: a call that no library made has depth 0 anyway."""
        origins = self._origins
        are_useful = origins.libraries or (origins.stored and self._meta.stores_depth is False)
        return origins if are_useful else None

    @property
    def _nested_by_time(self) -> bool:
        """Whether no depth is stored, so that intervals determine the nesting."""
        return self._meta.stores_depth is False or not self.tables.nested

    @property
    def tables(self) -> Tables:
        """Everything that is known without reading time stamps."""
        with self._lock:
            if self._known is None:
                known = self._table_reader.read()
                if not known.calls.any() and known.problems:
                    what = f"no rank can be read: {known.problems[0]}"
                    raise TraceError(what, where=self.path, todo="trace the run again")
                newer = self._shape.newer and (
                    f"{self.path}: {self._shape.newer}: read as {self._shape.layout}, which its metadata, call "
                    "tables and grammars fit; what is new in it is passed over"
                )
                before = [newer, self._miscounted, *self._source.problems(self.ranks), *known.problems]
                problems = [*before, self._times.problem, *self._origins.problems]
                self._known = replace(known, problems=[problem for problem in problems if problem])
            return self._known

    def release(self) -> None:
        """Drop the tables."""
        with self._lock:
            self._known = None
            self._table_reader = TableReader(self._source, self._meta)

    def batches(self, ranks: range, piece: Piece, *, call_sites: bool = False) -> Iterator[pa.RecordBatch]:
        yield from self._calls.batches(ranks, piece, by_time=self._nested_by_time, call_sites=call_sites)

    @property
    def _calls(self) -> CallReader:
        return CallReader(self._meta, self.tables, self._of_rank, self._times, self._useful_origins)

    @property
    def decodes_quickly(self) -> bool:
        """False if ranks have few calls, because opening a rank then takes most of the time."""
        if not available():
            return False
        calls = self.tables.calls
        fewest = _FEWEST_FRAMED if self._meta.layout.framed else _FEWEST_IN_FILES
        return int(calls.sum()) >= fewest * int(np.count_nonzero(calls))

    def tell(self, ranks: range) -> Piece:
        return self._calls.tell(ranks, by_time=self._nested_by_time)

    def _of_rank(self, rank: int) -> tuple[Signatures, Grammar] | None:
        tables = self.tables
        return self._table_reader.of_rank(rank, tables)


def _plausible_ranks(source: Source, metadata: Metadata) -> tuple[int, str | None]:
    """Number of ranks to read, and a problem if the metadata claims another number.

    Per-rank tables take memory, so a large number is accepted only if `ug.mt`, the segment table of
    `recorder.ts` or the ranks' files have room for it.
    """
    claimed = metadata.ranks
    if claimed <= _BELIEVED:
        return claimed, None
    if metadata.layout.framed and _length(source, "recorder.ts") >= 8 * claimed:
        return claimed, None
    if metadata.interprocess:
        # The ranks are followed by the number of grammars.
        plausible, evidence = _length(source, "ug.mt") // 4 - 1, "ug.mt has room for"
        borne_out = plausible >= claimed
    else:
        with_files = source.ranks_with("cst", "cfg")
        plausible, evidence = max(with_files, default=0) + 1, "there are files of"
        borne_out = not metadata.layout.framed and _LOST * len(with_files) >= claimed
    if borne_out or plausible < 1 or plausible >= claimed:
        return claimed, None
    where = source.where("recorder.mt")
    return plausible, f"{where}: claims {counted(claimed, 'rank')}, {evidence} {plausible:,}: read as {plausible:,}"


def _length(source: Source, name: str) -> int:
    extent = source.extent(name)
    return 0 if extent is None else extent.length
