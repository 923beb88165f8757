"""Call sites: the place in a program or library that made a call (format document, section 8).

The tracer numbers call sites within each rank, and stores one table per rank: the modules (ELF files) by path, and the
module and code offset of each site. A number may mean different places in two ranks.
"""

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import CALL_SITES, Layer
from vani.columns import Int8s, Int32s, Ints, UInt64s, merged, texts, to_arrow
from vani.errors import TraceError
from vani.readers.recorder.source import Source
from vani.units import counted

UNKNOWN = -1
"""Origin of a call whose call site is unknown, or whose module is not a library of a layer."""

_HEAD = struct.Struct("<4I")
_ENTRY = np.dtype([("module", "<u4"), ("offset", "<u8")])
# Compiled on first use, because most traces have no call sites.
_SHARED_LIBRARY = r"\.so(\.|$)|^ld-|^\[|^$"
_LIBRARIES = (
    # MPICH and its relatives, Open MPI with its MPI-IO components, and standalone ROMIO. MPIR is an integer library.
    (Layer.MPIIO, r"lib[fp]?mpi(?!r\b)|libromio|mca_(io|fbtl|fs|fcoll|sharedfp)_|libmca_common_ompio"),
    (Layer.HDF5, r"libhdf5"),
    (Layer.PNETCDF, r"libpnetcdf"),
    (Layer.NETCDF, r"libnetcdf"),
)
_INTERPRETER = (
    r"(python|pypy|perl|ruby|julia|node|lua|tclsh|octave(-cli)?)[-.\d]*"
    r"|java|R|Rscript|MATLAB|matlab|bash|dash|sh|zsh|ksh|tcsh|csh"
)
_MAX_REPORTED = 8
"""Number of damaged tables that are reported individually."""


@dataclass(frozen=True, eq=False)
class CallSites:
    """One rank's table of call sites.

    Attributes
    ----------
    modules
        Paths; invalid UTF-8 was replaced with replacement characters.
    module, offset
        Shape (sites,): index into `modules`, and the call's offset in that file as `addr2line` expects it.
    """

    modules: tuple[str, ...]
    module: Ints
    offset: UInt64s

    def __len__(self) -> int:
        return len(self.module)


def decode_call_sites(content: bytes, *, where: str) -> CallSites:
    """Decode and check one rank's table; counts are checked before memory of their size is allocated.

    Raises
    ------
    TraceError
        The table has another version, or counts that contradict its length or each other.
    """
    modules, names, table = _parts(content, where)
    module = table["module"].astype(np.int64)
    if len(module) and module.max() >= modules:
        raise TraceError(f"a call site names module {module.max()} of {modules}", where=where)
    paths = tuple(name.decode("utf-8", "replace") for name in names.split(b"\0")[:-1])
    return CallSites(paths, module, table["offset"].copy())


def _parts(content: bytes, where: str) -> tuple[int, bytes, NDArray[np.void]]:
    """Number of modules, their paths, and the sites of a table with consistent sizes."""
    if len(content) < _HEAD.size:
        raise TraceError(f"call sites of {counted(len(content), 'byte')}", where=where)
    version, modules, sites, text = _HEAD.unpack_from(content)
    if version != 1:
        raise TraceError(f"call sites of version {version}, Vani reads version 1", where=where)
    if len(content) != _HEAD.size + text + sites * _ENTRY.itemsize:
        raise TraceError(
            f"claims {counted(sites, 'call site')} and {counted(text, 'byte')} of paths "
            f"in {counted(len(content), 'byte')}",
            where=where,
        )
    names = content[_HEAD.size : _HEAD.size + text]
    if names.count(b"\0") != modules or (text and names[-1]):
        raise TraceError(
            f"claims {counted(modules, 'module')}, there are {names.count(bytes(1))} in {counted(text, 'byte')}",
            where=where,
        )
    return modules, names, np.frombuffer(content, _ENTRY, sites, _HEAD.size + text)


def _base(module: str) -> str:
    return module.rpartition("/")[2]


def library_of(module: str) -> Layer | None:
    """Layer of the library at a module's path; None if it is something else."""
    name = _base(module)
    if not is_shared_library(name):
        return None
    return next((layer for layer, form in _LIBRARIES if re.match(form, name)), None)


def executable_of(modules: Iterable[str]) -> str | None:
    """Name of the executable among a rank's modules: the first one that is not a shared library.

    None if libraries made every call, which happens if an interpreter is itself a library.
    """
    return next((_base(m) for m in modules if not is_shared_library(m)), None)


def is_shared_library(module: str) -> bool:
    """Return whether a module is a shared library by its name."""
    return re.search(_SHARED_LIBRARY, _base(module)) is not None


class Origins:
    """Origins of calls by rank and call site.

    Attributes
    ----------
    problems
        Sentences about ranks whose call sites are lost.
    of_rank
        Shape (ranks,): ranks with equal numbers share the origin of each site; -1 if none is known.
    stored
        Whether any rank has complete call sites.
    libraries
        Whether any site is in a library of a layer.
    """

    def __init__(self, kinds: Sequence[Int8s], of_rank: Int32s, programs: dict[str, int]) -> None:
        """`kinds` are distinct tables with the origin of each site; `of_rank` has indices into them, -1 for none."""
        self._lookup = [np.append(kind, np.int8(UNKNOWN)) for kind in kinds]
        self.of_rank = of_rank
        self._programs = programs
        self.problems: list[str] = []
        self.stored = bool(kinds)
        self.libraries = any(((kind > UNKNOWN) & (kind < Layer.USER)).any() for kind in kinds)

    @classmethod
    def none(cls, ranks: int) -> "Origins":
        """Origins for a trace without call sites."""
        return cls([], np.full(ranks, -1, np.int32), {})

    @property
    def programs(self) -> dict[str, int]:
        """Executables with the number of ranks that ran them, most frequent first; ties in rank order."""
        return dict(sorted(self._programs.items(), key=lambda item: -item[1]))

    def of(self, rank: int, sites: Int32s) -> Int8s | None:
        """Origins of a rank's calls, given their sites, shape (n,); None if none is known.

        An origin is the layer of the library that made the call, `Layer.USER` for the executable, or else `UNKNOWN`.
        """
        table = int(self.of_rank[rank])
        if table < 0:
            return None
        lookup = self._lookup[table]
        # The last entry is for all numbers that the table lacks; -1 becomes the largest of them.
        return lookup[np.minimum(sites.view(np.uint32), len(lookup) - 1)]


def read_origins(source: Source, ranks: int) -> Origins:
    """Read all ranks' call sites; only one of several tables with the same modules is decoded.

    Damage affects only the call sites of its rank.
    """
    if not source.names("callsites"):
        return Origins.none(ranks)
    stored = np.zeros(ranks, np.bool_)
    stored[[rank for rank in source.ranks_with("callsites") if rank < ranks]] = True
    absent = np.flatnonzero(~stored)
    kinds: dict[bytes, int] = {}
    seen: dict[bytes, tuple[int, str | None]] = {}
    of_rank = np.full(ranks, -1, np.int32)
    programs: dict[str, int] = {}
    lost: list[str] = []
    # A wrong number of ranks may claim millions without files, which need not be searched.
    ranks_to_read = sorted([*np.flatnonzero(stored).tolist(), *absent[:_MAX_REPORTED].tolist()])
    for rank, content in zip(ranks_to_read, source.read_ranks(ranks_to_read, "callsites"), strict=True):
        try:
            if isinstance(content, TraceError):
                raise content
            where = source.where(f"{rank}.callsites")
            _, names, table = _parts(content, where)
            # Hash only what ranks may share; the offsets may differ in every rank.
            shared_content = content[: _HEAD.size] + names + table["module"].tobytes()
            digest = hashlib.blake2b(shared_content, digest_size=16).digest()
            if digest not in seen:
                sites = decode_call_sites(content, where=where)
                kind = kinds.setdefault(_kinds(sites).tobytes(), len(kinds))
                seen[digest] = kind, executable_of(sites.modules)
        except TraceError as error:
            lost.append(f"rank {rank}: call sites left out, {error}")
            continue
        of_rank[rank], program = seen[digest]
        if program is not None:
            programs[program] = programs.get(program, 0) + 1
    origins = Origins([np.frombuffer(k, np.int8) for k in kinds], of_rank, programs)
    origins.problems = lost[:_MAX_REPORTED]
    count = len(lost) + max(0, len(absent) - _MAX_REPORTED)
    if count > _MAX_REPORTED:
        origins.problems.append(f"{source.path}: the call sites of {counted(count, 'rank')} are left out in all")
    return origins


def _kinds(sites: CallSites) -> Int8s:
    """Origin of each site, without trailing unknown ones."""
    program = executable_of(sites.modules)
    layers = []
    for module in sites.modules:
        layer = library_of(module)
        own = layer is None and program is not None and _base(module) == program
        layers.append(Layer.USER if own else UNKNOWN if layer is None else layer)
    kinds = np.array(layers, np.int8)[sites.module] if layers else np.empty(0, np.int8)
    known = np.flatnonzero(kinds != UNKNOWN)
    return kinds[: known[-1] + 1] if len(known) else kinds[:0]


def is_interpreter(program: str) -> bool:
    """Return whether an executable is an interpreter, so that its script is the program."""
    return re.fullmatch(_INTERPRETER, program) is not None


def call_site_batches(source: Source, ranks: int) -> Iterator[pa.RecordBatch]:
    """Yield `vani.calls.CALL_SITES` of all ranks with complete call sites."""
    return merged(_batches(source, [rank for rank in source.ranks_with("callsites") if rank < ranks]))


def _batches(source: Source, ranks: list[int]) -> Iterator[pa.RecordBatch]:
    for rank, content in zip(ranks, source.read_ranks(ranks, "callsites"), strict=True):
        if isinstance(content, TraceError):
            continue
        try:
            sites = decode_call_sites(content, where=str(rank))
        except TraceError:
            continue
        columns = [
            to_arrow(np.full(len(sites), rank, np.int32)),
            to_arrow(np.arange(len(sites), dtype=np.int32)),
            texts(sites.modules).take(to_arrow(sites.module)),
            to_arrow(sites.offset),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=CALL_SITES)
