"""Writes Recorder trace directories in every known layout, from calls given as text.

The counterpart of the readers, which must return the written calls unchanged. Layouts are
named as on the page that describes them, after the tracer's version:

    2.3      raw files per rank, call table without rank and count
    2.4      as 2.5p, another VERSION
    2.5p     raw files per rank, `<rank>.ts`
    2.5g     zlib frames, `recorder.ts`, one-byte function ids
    3.0      zlib frames, `recorder.ts`, four-byte function ids, 1024-byte metadata block
    3.x-mt   as 3.0 without VERSION, version numbers and 64-byte names in `recorder.mt`
    3.x-dat  the files of 3.x-mt as sections of one `recorder.dat`, format 1
    3.x-mt2, 3.x-dat2  the same with a call site in each key, and the call sites of each rank; format 2

All numbers on disk are little-endian; a tick is `resolution` seconds.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "LAYERS",
    "UNKNOWN_SITE",
    "Call",
    "CallTableEntry",
    "Layout",
    "Rules",
    "compress_sequence",
    "default_functions",
    "encode_call_sites",
    "encode_cst",
    "encode_grammar",
    "encode_key",
    "encode_metadata",
    "encode_rules",
    "encode_times",
    "write_trace",
    "zframe",
]

Layout = Literal["2.3", "2.4", "2.5p", "2.5g", "3.0", "3.x-dat", "3.x-mt", "3.x-dat2", "3.x-mt2"]
Rules = Mapping[int, Sequence[tuple[int, int]]]

LAYERS = ("posix", "mpi", "mpiio", "hdf5", "pnetcdf", "netcdf")
"""The layers with a tracing flag in the metadata, in the order of their flags."""

UNKNOWN_SITE = 0xFFFFFFFF

USER_FUNCTION = 255
"""In 3.0 the id of functions instrumented by the compiler: no library call may have it."""

_VERSIONS: dict[Layout, str] = {
    "2.3": "2.3.3",
    "2.4": "2.4.0",
    "2.5p": "2.5.0",
    "2.5g": "2.5.0",
    "3.0": "3.0.0",
}
_RAW: frozenset[Layout] = frozenset({"2.3", "2.4", "2.5p"})
_WITH_SITES: frozenset[Layout] = frozenset({"3.x-dat2", "3.x-mt2"})
_WIDE_IDS: frozenset[Layout] = frozenset({"3.0", "3.x-dat", "3.x-mt"}) | _WITH_SITES

_POSIX = """
creat creat64 open open64 close write read lseek lseek64 pread pread64 pwrite pwrite64 readv writev mmap
mmap64 fopen fopen64 fclose fwrite fread ftell fseek fsync fdatasync __xstat __xstat64 __lxstat __lxstat64
__fxstat __fxstat64 getcwd mkdir rmdir chdir link linkat unlink symlink symlinkat readlink readlinkat rename
chmod chown lchown utime opendir readdir closedir rewinddir mknod mknodat fcntl dup dup2 pipe mkfifo umask
fdopen fileno access faccessat tmpfile remove truncate ftruncate msync fseeko ftello fflush
"""
_MPI = """
MPI_File_close MPI_File_set_size MPI_File_iread_at MPI_File_iread MPI_File_iread_shared MPI_File_iwrite_at
MPI_File_iwrite MPI_File_iwrite_shared MPI_File_open MPI_File_read_all_begin MPI_File_read_all
MPI_File_read_at_all MPI_File_read_at_all_begin MPI_File_read_at MPI_File_read MPI_File_read_ordered_begin
MPI_File_read_ordered MPI_File_read_shared MPI_File_set_view MPI_File_sync MPI_File_write_all_begin
MPI_File_write_all MPI_File_write_at_all_begin MPI_File_write_at_all MPI_File_write_at MPI_File_write
MPI_File_write_ordered_begin MPI_File_write_ordered MPI_File_write_shared MPI_File_seek MPI_File_seek_shared
MPI_File_get_size MPI_Finalized MPI_Wtime MPI_Comm_rank MPI_Comm_size MPI_Get_processor_name
MPI_Get_processor_name MPI_Comm_set_errhandler MPI_Barrier MPI_Bcast MPI_Gather MPI_Gatherv MPI_Scatter
MPI_Scatterv MPI_Allgather MPI_Allgatherv MPI_Alltoall MPI_Reduce MPI_Allreduce MPI_Reduce_scatter MPI_Scan
MPI_Type_commit MPI_Type_contiguous MPI_Type_extent MPI_Type_free MPI_Type_size MPI_Cart_rank MPI_Cart_create
MPI_Cart_get MPI_Cart_shift MPI_Wait MPI_Send MPI_Recv MPI_Sendrecv MPI_Isend MPI_Irecv MPI_Info_create
MPI_Info_set MPI_Info_get MPI_Waitall MPI_Waitsome MPI_Waitany MPI_Ssend MPI_Comm_split MPI_Comm_dup
MPI_Comm_create MPI_Ibcast MPI_Test MPI_Testall MPI_Testsome MPI_Testany MPI_Ireduce MPI_Comm_free
MPI_Cart_sub MPI_Comm_split_type
"""
_HDF5 = """
H5Fcreate H5Fopen H5Fclose H5Fflush H5Gclose H5Gcreate1 H5Gcreate2 H5Gopen1 H5Gopen2 H5Dclose H5Dcreate1
H5Dcreate2 H5Dget_create_plist H5Dget_space H5Dget_type H5Dopen1 H5Dopen2 H5Dread H5Dwrite H5Dset_extent
H5Sclose H5Screate H5Screate_simple H5Sget_simple_extent_dims H5Sselect_hyperslab H5Sselect_none H5Tclose
H5Tcopy H5Aclose H5Acreate1 H5Acreate2 H5Aopen H5Aopen_name H5Aread H5Awrite H5Pclose H5Pcreate H5Pset_chunk
H5Pset_alignment H5Pset_dxpl_mpio H5Pset_fapl_mpio H5Pset_coll_metadata_write H5Pset_all_coll_metadata_ops
H5Lexists H5Literate1 H5Literate2 H5Oclose H5Oget_info H5Oopen
"""
_PNETCDF = """
ncmpi_create ncmpi_open ncmpi_enddef ncmpi_redef ncmpi_sync ncmpi_close ncmpi_def_dim ncmpi_def_var
ncmpi_inq_dimid ncmpi_inq_dimlen ncmpi_inq_varid ncmpi_put_att_text ncmpi_get_att_text ncmpi_wait_all
ncmpi_put_vara_int_all ncmpi_put_vara_float_all ncmpi_put_vara_double_all ncmpi_get_vara_int_all
ncmpi_get_vara_float_all ncmpi_get_vara_double_all ncmpi_iput_vara_double ncmpi_iget_vara_double
ncmpi_begin_indep_data ncmpi_end_indep_data ncmpi_put_vara_double ncmpi_get_vara_double
"""
_NETCDF = """
nc_create nc_open nc_create_par nc_open_par nc_enddef nc_redef nc_sync nc_close nc_def_dim nc_def_var
nc_def_var_chunking nc_inq_dimid nc_inq_dimlen nc_inq_varid nc_var_par_access nc_put_att_text nc_get_att_text
nc_put_vara_int nc_put_vara_float nc_put_vara_double nc_get_vara_int nc_get_vara_float nc_get_vara_double
"""

# Position of the offset among the arguments.
_AT = dict.fromkeys(
    ("MPI_File_read_at", "MPI_File_read_at_all", "MPI_File_write_at", "MPI_File_write_at_all"), 1
)
_INTERPROCESS_OFFSET = {"lseek": 1, "lseek64": 1, "pread": 3, "pread64": 3, "pwrite": 3, "pwrite64": 3} | _AT
# pread and pread64 are missing on purpose: the tracer computes their difference but stores the plain offset.
_INTRAPROCESS_OFFSET = {"lseek": 1, "lseek64": 1, "pwrite": 3, "pwrite64": 3, "MPI_File_set_view": 1} | _AT

_MAX_INT = 2**31 - 1
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Call:
    """One traced call; `start` and `end` are ticks since the start of its rank's tracer, `site` is its call site."""

    function: str
    args: tuple[str, ...]
    depth: int = 0
    thread: int = 0
    start: int = 0
    end: int = 0
    site: int = 0


@dataclass(frozen=True, slots=True)
class CallTableEntry:
    """One distinct signature: its id, the rank that first had it, its number of calls, its bytes."""

    terminal: int
    rank: int
    count: int
    key: bytes


def default_functions(layout: Layout, used: Iterable[str] = ()) -> list[str]:
    """List the function names of a tracer, `creat` first, followed by those of `used` that it lacks.

    Shorter than a real list and with other ids. In the layouts with four-byte ids, 255 is `user_function`.
    """
    names = (_POSIX + _MPI + _HDF5).split()
    if layout in _WIDE_IDS:
        names += (_PNETCDF + _NETCDF).split()
    names += sorted(set(used) - set(names) - {"user_function"})
    if layout in _WIDE_IDS:
        names.insert(USER_FUNCTION, "user_function")
    return names


def zframe(content: bytes, *, level: int = -1) -> bytes:
    """Compress `content` into a frame: compressed size, plain size (8 bytes each), one zlib stream."""
    packed = zlib.compress(content, level)
    return struct.pack("<QQ", len(packed), len(content)) + packed


def encode_key(
    function: int, args: Sequence[str], *, layout: Layout, depth: int = 0, thread: int = 0, site: int = 0
) -> bytes:
    """Encode one signature. Spaces inside arguments become `_`, as in the tracer; layouts without sites drop it.

    Raises
    ------
    ValueError
        The function id, the depth or the number of arguments does not fit its field.
    """
    text = b"".join(arg.replace(" ", "_").encode("utf-8", "surrogateescape") + b" " for arg in args)
    head = "<QiB" if layout in _WIDE_IDS else "<QBB"
    try:
        place = struct.pack("<I", site) if layout in _WITH_SITES else b""
        return (
            struct.pack(head, thread, function, depth)
            + place
            + struct.pack("<Bi", len(args), len(text))
            + text
        )
    except struct.error as error:
        raise ValueError(f"function {function}, depth {depth}, {len(args)} arguments: {error}") from error


def encode_cst(entries: Sequence[CallTableEntry], *, layout: Layout) -> bytes:
    """Encode a call table, not compressed; counts are stored modulo 2**32."""
    parts = [struct.pack("<i", len(entries))]
    for entry in entries:
        if layout == "2.3":
            head = struct.pack("<ii", entry.terminal, len(entry.key))
        else:
            head = struct.pack("<iiiI", entry.terminal, entry.rank, len(entry.key), entry.count % 2**32)
        parts += (head, entry.key)
    return b"".join(parts)


def encode_call_sites(modules: Sequence[str | bytes], sites: Sequence[tuple[int, int]]) -> bytes:
    """Encode the call sites of a rank: paths of modules, and for each site the number of its module and an offset."""
    paths = b"".join((m.encode() if isinstance(m, str) else m) + b"\0" for m in modules)
    head = struct.pack("<4I", 1, len(modules), len(sites), len(paths))
    return head + paths + b"".join(struct.pack("<IQ", module, offset) for module, offset in sites)


def encode_rules(rules: Rules) -> bytes:
    """Encode a grammar given as rule -> [(terminal >= 0 or rule < 0, exponent), ...]; the start rule is -1.

    Nothing is checked: damaged grammars can be written as well.
    """
    numbers = [len(rules)]
    for rule, symbols in rules.items():
        numbers += (rule, len(symbols))
        numbers += (number for symbol in symbols for number in symbol)
    return np.array(numbers, dtype="<i4").tobytes()


def encode_grammar(sequence: ArrayLike) -> bytes:
    """Encode a sequence of terminal ids as a grammar, not compressed by zlib; see `compress_sequence`."""
    return encode_rules(compress_sequence(sequence))


def compress_sequence(sequence: ArrayLike) -> dict[int, list[tuple[int, int]]]:
    """Find a grammar for a sequence of terminal ids: repeats become exponents, repeated pairs become rules.

    Every pair of neighbours that occurs twice or more gets a rule, most frequent first, many pairs at
    a time (Re-Pair: Larsson and Moffat, Proc. IEEE 88(11), 2000; picking pairs that outrank both
    neighbours keeps the number of passes logarithmic). A loop so ends as one symbol with an exponent. Rules
    used once are put back in place. The start rule -1 is first; the others are -2, -3, ...

    Raises
    ------
    ValueError
        A terminal is negative.
    """
    values = np.array(sequence, dtype=np.int64).reshape(-1)
    if values.size and values.min() < 0:
        raise ValueError(f"terminal {values.min()} is negative")
    exponents = np.ones_like(values)
    order = np.random.default_rng(0)
    bodies: dict[int, list[tuple[int, int]]] = {}
    while True:
        values, exponents = _merge_repeats(values, exponents)
        at = _pairs_to_replace(values, exponents, order)
        if at.size == 0:
            break
        _, first, kind = np.unique(
            np.stack([values[at], exponents[at], values[at + 1], exponents[at + 1]]),
            axis=1, return_index=True, return_inverse=True,
        )  # fmt: skip
        new = -2 - len(bodies) - np.arange(first.size)
        for rule, i in zip(new.tolist(), at[first].tolist(), strict=True):
            bodies[rule] = [(int(values[j]), int(exponents[j])) for j in (i, i + 1)]
        values[at], exponents[at] = new[kind.reshape(-1)], 1
        values, exponents = np.delete(values, at + 1), np.delete(exponents, at + 1)
    return _without_single_uses(bodies, list(zip(values.tolist(), exponents.tolist(), strict=True)))


def _merge_repeats(
    values: NDArray[np.int64], exponents: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if values.size == 0:
        return values, exponents
    heads = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return values[heads], np.add.reduceat(exponents, heads)


def _pairs_to_replace(
    values: NDArray[np.int64], exponents: NDArray[np.int64], order: np.random.Generator
) -> NDArray[np.int64]:
    """Choose positions i: their pairs (i, i + 1) do not overlap, and each kind is chosen twice or more."""
    none = np.empty(0, dtype=np.int64)
    if values.size < 4:
        return none
    low = values.min()
    _, item = np.unique((values - low) * (exponents.max() + 1) + exponents, return_inverse=True)
    _, kind, count = np.unique(
        item[:-1] * (item.max() + 1) + item[1:], return_inverse=True, return_counts=True
    )
    if count.max() < 2:
        return none
    # Random order among similar counts, because an order that follows the sequence would favour its first
    # pair.
    rank = np.empty(count.size, dtype=np.int64)
    rank[np.lexsort((order.permutation(count.size), np.frexp(count)[1]))] = np.arange(count.size)
    outranks = np.concatenate([[-1], rank[kind], [-1]])
    wins = (outranks[1:-1] > outranks[:-2]) & (outranks[1:-1] > outranks[2:]) & (count[kind] > 1)
    at = np.flatnonzero(wins)
    return at[np.bincount(kind[at], minlength=count.size)[kind[at]] > 1]


def _without_single_uses(
    bodies: dict[int, list[tuple[int, int]]], start: list[tuple[int, int]]
) -> dict[int, list[tuple[int, int]]]:
    uses: Counter[int] = Counter()
    for body in (*bodies.values(), start):
        for value, exponent in body:
            uses[value] += 2 if exponent > 1 else 1
    bodies = bodies | {-1: start}
    # A body names only rules made before it, so these are already in their final form.
    for rule, body in bodies.items():
        if any(value < 0 and uses[value] == 1 for value, _ in body):
            bodies[rule] = [
                symbol
                for old in body
                for symbol in (bodies[old[0]] if old[0] < 0 and uses[old[0]] == 1 else [old])
            ]
    kept = [-1, *(rule for rule in bodies if uses[rule] > 1)]
    new = {old: -1 - i for i, old in enumerate(kept)}
    return {new[rule]: [(new.get(v, v) if v < 0 else v, e) for v, e in bodies[rule]] for rule in kept}


def encode_times(starts: ArrayLike, ends: ArrayLike) -> bytes:
    """Encode the times of one rank's calls, in recorded order: 8 bytes per call, not compressed.

    Both are ticks since the rank's start. Both are stored relative to the start of the call before,
    modulo 2**32: a start before the previous one wraps, and a gap of 2**32 ticks or more is lost.
    """
    start, end = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    before = np.concatenate([[0], start[:-1]]) if start.size else start
    return (np.stack([start - before, end - before], axis=1) % 2**32).astype("<u4").tobytes()


def encode_metadata(
    layout: Layout,
    functions: Sequence[str],
    *,
    ranks: int,
    start_unix: float = 1.7e9,
    resolution: float = 1e-7,
    buffer_elements: int | None = None,
    tracing: Collection[str] = ("posix", "mpiio", "hdf5", "pnetcdf", "netcdf"),
    store_thread: bool = False,
    store_depth: bool = True,
    compress_times: bool = True,
    interprocess: bool = False,
    interprocess_patterns: bool = False,
    intraprocess_patterns: bool = False,
    version: tuple[int, int, int] = (3, 1, 0),
) -> bytes:
    """Encode `recorder.mt`: the tracer's settings and the function names, whose position is their id.

    `tracing` names layers (`LAYERS`); layouts without a flag for a setting drop it.

    Raises
    ------
    ValueError
        A function name does not fit its cell of 64 bytes (3.x only).
    """
    if buffer_elements is None:
        buffer_elements = 1 << 18 if layout in _RAW else 1 << 20
    names = "".join(f"{name}\n" for name in functions).encode()
    if layout == "2.3":
        return struct.pack("<i4xddii", ranks, start_unix, resolution, buffer_elements, 0) + names
    if layout in _RAW:
        return (
            struct.pack("<i4xddiii4x", ranks, start_unix, resolution, buffer_elements, 0, interprocess)
            + names
        )
    layers = LAYERS[:4] if layout == "2.5g" else LAYERS
    stored = (*(layer in tracing for layer in layers), store_thread, store_depth)
    packing = (compress_times, interprocess, interprocess_patterns, intraprocess_patterns)
    if layout == "2.5g":
        return (
            struct.pack("<i6?6xddi4?", ranks, *stored, start_unix, resolution, buffer_elements, *packing)
            + names
        )
    if layout == "3.0":
        block = struct.pack("<i8?4xddi4?", ranks, *stored, start_unix, resolution, buffer_elements, *packing)
        return block.ljust(1024, b"\0") + names
    if too_long := [name for name in functions if len(name.encode()) > 63]:
        raise ValueError(f"function name {too_long[0]!r} is longer than 63 bytes")
    head = struct.pack(
        "<5i8?4xddi4?",
        *version,
        ranks,
        len(functions),
        *stored,
        start_unix,
        resolution,
        buffer_elements,
        *packing,
    )
    return head + b"".join(name.encode().ljust(64, b"\0") for name in functions)


def write_trace(
    directory: Path,
    ranks: Sequence[Sequence[Call]],
    *,
    layout: Layout,
    interprocess: bool | None = None,
    compress_times: bool = True,
    interprocess_patterns: bool = False,
    intraprocess_patterns: bool = False,
    store_thread: bool = True,
    store_depth: bool = True,
    resolution: float = 1e-7,
    start_unix: float = 1.7e9,
    functions: Sequence[str] | None = None,
    tracing: Collection[str] = ("posix", "mpiio", "hdf5", "pnetcdf", "netcdf"),
    buffer_elements: int | None = None,
    call_sites: Sequence[bytes] | None = None,
    late: Collection[int] = (),
    version: tuple[int, int, int] = (3, 1, 0),
) -> None:
    """Write the calls of each rank, in recorded order, as a trace directory.

    `interprocess` (one call table for all ranks, equal grammars stored once) is by default what the tracer does: on
    from 2.5g on. Offsets are given plain; the pattern flags put them into the tracer's coded form. `functions` are
    the names to store, by default `default_functions`; `version` (3.x) is the tracer's own. `call_sites`, one of
    `encode_call_sites` for each rank, goes with the layouts whose keys have sites; None as if the tracer had been
    told to store none. The parts of `late` ranks are next to recorder.dat, and their sections are empty. The
    directory is created; it must not contain another trace.

    Raises
    ------
    ValueError
        The layout has no such setting, or a call does not fit it (function ids of 2.x are one byte).
    """
    if layout not in get_args(Layout):
        raise ValueError(f"layout {layout!r}; known are {', '.join(get_args(Layout))}")
    if interprocess is None:
        interprocess = layout not in _RAW
    if layout == "2.3" and interprocess:
        raise ValueError("layout 2.3 has no inter-process compression")
    if layout in _RAW and (interprocess_patterns or intraprocess_patterns):
        raise ValueError(f"layout {layout} never codes offsets as patterns")
    if call_sites is not None and layout not in _WITH_SITES:
        raise ValueError(f"layout {layout} has no call sites")
    if late and (interprocess or "dat" not in layout):
        raise ValueError("only a recorder.dat without inter-process compression leaves ranks out")
    names = _names_of(layout, ranks, functions)
    tables = [
        _RankTable.of(
            _offset_differences(calls, running=layout in _WIDE_IDS) if intraprocess_patterns else calls,
            store_thread=store_thread,
            store_depth=store_depth,
            store_site=call_sites is not None,
        )
        for calls in ranks
    ]
    if interprocess_patterns:
        _replace_offsets_by_lines(tables)
    metadata = encode_metadata(
        layout,
        names,
        ranks=len(ranks),
        start_unix=start_unix,
        resolution=resolution,
        buffer_elements=buffer_elements,
        tracing=tracing,
        store_thread=store_thread,
        store_depth=store_depth,
        compress_times=compress_times,
        interprocess=interprocess,
        interprocess_patterns=interprocess_patterns,
        intraprocess_patterns=intraprocess_patterns,
        version=version,
    )
    parts = _merged_parts(tables, names, layout) if interprocess else _parts_per_rank(tables, names, layout)
    times = [encode_times([c.start for c in calls], [c.end for c in calls]) for calls in ranks]
    directory.mkdir(parents=True, exist_ok=True)
    if "dat" in layout:
        sections = _sections(metadata, _joined_times(times, compress_times), parts, call_sites)
        _write_sections(directory, sections, version=2 if layout in _WITH_SITES else 1, late=late)
        return
    for name, content in parts.files(layout):
        (directory / name).write_bytes(content)
    for rank, content in enumerate(call_sites or ()):
        (directory / f"{rank}.callsites").write_bytes(content)
    if layout in _RAW:
        for rank, content in enumerate(times):
            (directory / f"{rank}.ts").write_bytes(content)
    else:
        (directory / "recorder.ts").write_bytes(_joined_times(times, compress_times))
    if layout in _VERSIONS:
        (directory / "VERSION").write_text(_VERSIONS[layout])
    (directory / "recorder.mt").write_bytes(metadata)


def _names_of(layout: Layout, ranks: Sequence[Sequence[Call]], functions: Sequence[str] | None) -> list[str]:
    used = {call.function for calls in ranks for call in calls}
    names = default_functions(layout, used) if functions is None else list(functions)
    if missing := used - set(names):
        raise ValueError(f"functions not in the list: {', '.join(sorted(missing))}")
    return names


@dataclass(slots=True)
class _RankTable:
    """One rank: distinct signatures (calls without times), first called first; their ids in call order."""

    signatures: list[Call]
    sequence: NDArray[np.int64]

    @classmethod
    def of(
        cls, calls: Iterable[Call], *, store_thread: bool, store_depth: bool, store_site: bool
    ) -> _RankTable:
        ids: dict[Call, int] = {}
        sequence = []
        for call in calls:
            args = tuple(arg.replace(" ", "_") for arg in call.args)
            signature = Call(
                call.function,
                args,
                call.depth * store_depth,
                call.thread * store_thread,
                site=call.site * store_site,
            )
            sequence.append(ids.setdefault(signature, len(ids)))
        return cls(list(ids), np.array(sequence, dtype=np.int64))

    def move_to_end(self, rows: list[int]) -> None:
        """Renumber: the signatures at `rows` become the last ones, in that order."""
        moved = set(rows)
        order = [row for row in range(len(self.signatures)) if row not in moved] + rows
        self.signatures = [self.signatures[row] for row in order]
        new = np.empty(len(order), dtype=np.int64)
        new[order] = np.arange(len(order))
        self.sequence = new[self.sequence]

    def counts(self) -> list[int]:
        counts: list[int] = np.bincount(self.sequence, minlength=len(self.signatures)).tolist()
        return counts


def _offset_of(call: Call, position: int) -> int | None:
    text = call.args[position] if position < len(call.args) else ""
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


def _with_offset(call: Call, position: int, text: str) -> Call:
    return replace(call, args=(*call.args[:position], text, *call.args[position + 1 :]))


def _offset_differences(calls: Iterable[Call], *, running: bool) -> Iterator[Call]:
    """Replace offsets by differences to the function's previous call, or to its first if not `running`."""
    reference: dict[str, int] = {}
    for call in calls:
        position = _INTRAPROCESS_OFFSET.get(call.function)
        offset = None if position is None else _offset_of(call, position)
        if position is None or offset is None:
            yield call
            continue
        before = reference.get(call.function, 0)
        if running or call.function not in reference:
            reference[call.function] = offset
        yield _with_offset(call, position, str(offset - before))


def _replace_offsets_by_lines(tables: list[_RankTable]) -> None:
    """Write offsets that are linear in the rank as `a*r+b`.

    For each function, ranks with equally many signatures of it form a group; r is the position in the
    group. Only groups of three or more ranks, and only signatures whose i-th offsets lie on one line in
    all of the group.
    """
    replaced: list[list[int]] = [[] for _ in tables]
    for function, position in _INTERPROCESS_OFFSET.items():
        groups: defaultdict[int, list[tuple[int, list[int]]]] = defaultdict(list)
        for rank, table in enumerate(tables):
            rows = [row for row, signature in enumerate(table.signatures) if signature.function == function]
            groups[len(rows)].append((rank, rows))
        for size, group in groups.items():
            for i in range(size if len(group) > 2 else 0):
                places = [(tables[rank].signatures, rows[i]) for rank, rows in group]
                if _replace_by_line(places, position):
                    for rank, rows in group:
                        replaced[rank].append(rows[i])
    # The tracer removes an entry from its hash table and inserts it again, so it becomes the last one.
    for table, rows in zip(tables, replaced, strict=True):
        if rows:
            table.move_to_end(rows)


def _replace_by_line(places: list[tuple[list[Call], int]], position: int) -> bool:
    offsets = [_offset_of(signatures[row], position) for signatures, row in places]
    first, second = offsets[:2]
    if first is None or second is None:
        return False
    slope = second - first
    if any(offset != slope * r + first for r, offset in enumerate(offsets)):
        return False
    for signatures, row in places:
        signatures[row] = _with_offset(signatures[row], position, f"{slope}*r+{first}")
    return True


@dataclass(slots=True)
class _Parts:
    """Call tables and grammars before zlib: one each per rank, or one table and the unique grammars."""

    tables: list[bytes]
    grammars: list[bytes]
    grammar_of_rank: list[int] | None = None

    def grammar_ids(self) -> bytes:
        """Content of `ug.mt`."""
        ids = [*(self.grammar_of_rank or ()), len(self.grammars)]
        return np.array(ids, dtype="<i4").tobytes()

    def files(self, layout: Layout) -> Iterator[tuple[str, bytes]]:
        framed = layout not in _RAW
        merged = self.grammar_of_rank is not None
        for i, table in enumerate(self.tables):
            yield ("recorder.cst" if merged and framed else f"{i}.cst"), (zframe(table) if framed else table)
        if merged:
            yield "ug.mt", self.grammar_ids()
        if merged and framed:
            yield "ug.cfg", b"".join(map(zframe, self.grammars))
            return
        for i, grammar in enumerate(self.grammars):
            yield f"{i}.cfg", (zframe(grammar) if framed else grammar)


def _parts_per_rank(tables: list[_RankTable], names: list[str], layout: Layout) -> _Parts:
    return _Parts(
        [
            encode_cst(
                _entries(table.signatures, table.counts(), [rank] * len(table.signatures), names, layout),
                layout=layout,
            )
            for rank, table in enumerate(tables)
        ],
        [encode_grammar(table.sequence) for table in tables],
    )


def _merged_parts(tables: list[_RankTable], names: list[str], layout: Layout) -> _Parts:
    ids: dict[Call, int] = {}
    counts: Counter[int] = Counter()
    first_rank: list[int] = []
    grammar_ids: dict[bytes, int] = {}
    grammar_of_rank = []
    grammars: list[bytes] = []
    for rank, table in enumerate(tables):
        new = np.array(
            [ids.setdefault(signature, len(ids)) for signature in table.signatures], dtype=np.int64
        )
        first_rank += [rank] * (len(ids) - len(first_rank))
        counts.update(dict(zip(new.tolist(), table.counts(), strict=True)))
        sequence = new[table.sequence] if new.size else table.sequence
        # Ranks with the same calls in the same order have the same grammar, which is compressed once.
        grammar_of_rank.append(grammar_ids.setdefault(sequence.tobytes(), len(grammar_ids)))
        if len(grammar_ids) > len(grammars):
            grammars.append(encode_grammar(sequence))
    entries = _entries(list(ids), [counts[i] for i in range(len(ids))], first_rank, names, layout)
    return _Parts([encode_cst(entries, layout=layout)], grammars, grammar_of_rank)


def _entries(
    signatures: list[Call], counts: list[int], first_rank: list[int], names: list[str], layout: Layout
) -> list[CallTableEntry]:
    # A name may be listed twice (MPI_Get_processor_name): the first id is the one in use.
    function_ids = {name: i for i, name in reversed(list(enumerate(names)))}
    return [
        CallTableEntry(
            terminal,
            rank,
            count,
            encode_key(
                function_ids[s.function], s.args, layout=layout, depth=s.depth, thread=s.thread, site=s.site
            ),
        )
        for terminal, (s, count, rank) in enumerate(zip(signatures, counts, first_rank, strict=True))
    ]


def _joined_times(times: list[bytes], compress: bool) -> bytes:
    """Content of `recorder.ts`; a rank without calls has a segment of 0 bytes."""
    segments = [zframe(content) if compress and content else content for content in times]
    return np.array([len(segment) for segment in segments], dtype="<u8").tobytes() + b"".join(segments)


_Section = tuple[int, int, bytes]
"""Type, rank and content."""


def _sections(
    metadata: bytes, times: bytes, parts: _Parts, call_sites: Sequence[bytes] | None
) -> list[_Section]:
    sections: list[_Section] = [(0, -1, metadata), (1, -1, times)]
    sections += [(7, rank, content) for rank, content in enumerate(call_sites or ())]
    if parts.grammar_of_rank is None:
        for rank, (table, grammar) in enumerate(zip(parts.tables, parts.grammars, strict=True)):
            sections += [(5, rank, zframe(table)), (6, rank, zframe(grammar))]
    else:
        sections.append((2, -1, zframe(parts.tables[0])))
        sections.append((3, -1, b"".join(map(zframe, parts.grammars))))
        sections.append((4, -1, parts.grammar_ids()))
    return sections


def _write_sections(
    directory: Path, sections: Sequence[_Section], *, version: int, late: Collection[int]
) -> None:
    suffixes = {5: "cst", 6: "cfg", 7: "callsites"}
    head = [struct.pack("<8sII", b"RECORDER", version, len(sections))]
    written: list[bytes] = []
    offset = 16 + 24 * len(sections)
    for kind, rank, content in sections:
        if rank in late:
            (directory / f"{rank}.{suffixes[kind]}").write_bytes(content)
        size = 0 if rank in late else len(content)
        head.append(struct.pack("<IiQQ", kind, rank, offset, size))
        written.append(content[:size])
        offset += size
    (directory / "recorder.dat").write_bytes(b"".join(head + written))
