"""A trace's functions and the meaning of their arguments, as a table instead of code.

Sources: the wrappers listed in Recorder's format (format document, section 6), and POSIX.
A function that is missing here still gets a layer and a kind from its name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa

from vani.calls import FUNCTIONS, LOCK, Flag, Kind, Layer
from vani.columns import small_table


class PositionRule(IntEnum):
    """How a call relates to the position in its file."""

    NONE = 0
    ADVANCE = 1
    """Moves data at the file position and advances it (read, fwrite, writev)."""
    AT = 2
    """Moves data at an explicit offset (pread)."""
    SEEK_SET = 3
    SEEK_CUR = 4
    SEEK_END = 5
    OPEN = 6
    RESIZE = 7
    GONE = 8
    """Removes the name (unlink, rename): the next file with that name begins empty."""
    FORGET = 9
    """Makes both the position and the length of the file unknown."""


_NONE = Flag(0)


@dataclass(frozen=True, eq=False)
class Meaning:
    """Positions of a function's arguments by meaning; -1 means that it has no such argument."""

    layer: Layer
    kind: Kind
    path: int = -1
    size: tuple[int, ...] = ()
    """Arguments whose product is the number of bytes (or of elements, if `datatype` is set)."""
    less: int = 0
    """Bytes by which the size argument is too large."""
    offset: int = -1
    whence: int = -1
    open_flags: int = -1
    open_mode: int = -1
    """Mode string of fopen; `open_flags` is a number of O_ bits."""
    datatype: int = -1
    handle: int = -1
    """An id that an earlier call bound to a path (MPI-IO file handle, ncid)."""
    binds: bool = False
    """Whether the call binds `handle` to `path`."""
    rename_to: int = -1
    command: int = -1
    """The command of fcntl; only commands that duplicate a descriptor or lock matter."""
    comm: int = -1
    rule: PositionRule = PositionRule.NONE
    flags: Flag = _NONE


_P, _S, _M = Layer.POSIX, Layer.STDIO, Layer.MPIIO
_READ, _WRITE, _META, _SYNC = Kind.READ, Kind.WRITE, Kind.METADATA, Kind.SYNC
_ADVANCE, _AT, _OPEN, _GONE = PositionRule.ADVANCE, PositionRule.AT, PositionRule.OPEN, PositionRule.GONE
_NEW = Flag.OPEN | Flag.CREATE | Flag.TRUNCATE | Flag.WRITABLE
_ALL = Flag.COLLECTIVE

_ROWS = (
    ("creat creat64", Meaning(_P, _META, path=0, rule=_OPEN, flags=_NEW)),
    ("open open64", Meaning(_P, _META, path=0, open_flags=1, rule=_OPEN, flags=Flag.OPEN)),
    ("openat openat64", Meaning(_P, _META, path=1, open_flags=2, rule=_OPEN, flags=Flag.OPEN)),
    ("close", Meaning(_P, _META, path=0, flags=Flag.CLOSE)),
    ("fsync fdatasync sync_file_range syncfs", Meaning(_P, _SYNC, path=0)),
    ("sync aio_fsync msync", Meaning(_P, _SYNC)),
    ("read", Meaning(_P, _READ, path=0, size=(2,), rule=_ADVANCE)),
    ("write", Meaning(_P, _WRITE, path=0, size=(2,), rule=_ADVANCE)),
    ("pread pread64", Meaning(_P, _READ, path=0, size=(2,), offset=3, rule=_AT)),
    ("pwrite pwrite64", Meaning(_P, _WRITE, path=0, size=(2,), offset=3, rule=_AT)),
    ("readv", Meaning(_P, _READ, path=0, size=(1,), rule=_ADVANCE)),
    ("writev", Meaning(_P, _WRITE, path=0, size=(1,), rule=_ADVANCE)),
    ("preadv preadv64", Meaning(_P, _READ, path=0, size=(1,), offset=3, rule=_AT)),
    ("pwritev pwritev64", Meaning(_P, _WRITE, path=0, size=(1,), offset=3, rule=_AT)),
    ("lseek lseek64", Meaning(_P, _META, path=0, offset=1, whence=2, flags=Flag.SEEK)),
    ("ftruncate ftruncate64 truncate truncate64",
     Meaning(_P, _META, path=0, offset=1, rule=PositionRule.RESIZE, flags=Flag.RESIZE)),
    ("mmap mmap64", Meaning(_P, _META, path=4)),
    ("stat lstat fstat stat64 lstat64 fstat64 access readlink", Meaning(_P, _META, path=0, flags=Flag.STAT)),
    ("__xstat __lxstat __fxstat __xstat64 __lxstat64 __fxstat64 faccessat readlinkat",
     Meaning(_P, _META, path=1, flags=Flag.STAT)),
    ("chmod chown lchown utime mkfifo mknod link symlink symlinkat", Meaning(_P, _META, path=0)),
    ("mknodat linkat", Meaning(_P, _META, path=1)),
    ("mkdir rmdir chdir opendir", Meaning(_P, _META, path=0, flags=Flag.DIRECTORY)),
    ("readdir rewinddir closedir dup dup2 pipe umask getcwd", Meaning(_P, _META)),
    ("unlink remove", Meaning(_P, _META, path=0, rule=_GONE, flags=Flag.REMOVE)),
    ("unlinkat", Meaning(_P, _META, path=1, rule=_GONE, flags=Flag.REMOVE)),
    ("rename", Meaning(_P, _META, path=0, rename_to=1, rule=_GONE, flags=Flag.RENAME)),
    ("fcntl", Meaning(_P, _META, path=0, command=1)),
    ("flock lockf lockf64", Meaning(_P, _META, path=0, flags=LOCK)),
    ("fopen fopen64", Meaning(_S, _META, path=0, open_mode=1, rule=_OPEN, flags=Flag.OPEN)),
    ("fdopen ftell ftello ftello64 fileno", Meaning(_S, _META, path=0)),
    ("fclose", Meaning(_S, _META, path=0, flags=Flag.CLOSE)),
    ("fflush", Meaning(_S, _SYNC, path=0)),
    ("tmpfile tmpfile64", Meaning(_S, _META)),
    ("fread", Meaning(_S, _READ, path=3, size=(1, 2), rule=_ADVANCE)),
    ("fwrite", Meaning(_S, _WRITE, path=3, size=(1, 2), rule=_ADVANCE)),
    ("vfprintf", Meaning(_S, _WRITE, path=0, size=(1,), less=1, rule=_ADVANCE)),
    ("fseek fseeko fseeko64", Meaning(_S, _META, path=0, offset=1, whence=2, flags=Flag.SEEK)),
    ("rewind", Meaning(_S, _META, path=0, rule=PositionRule.SEEK_SET, flags=Flag.SEEK)),
    ("MPI_File_open", Meaning(_M, _META, path=1, handle=4, binds=True, comm=0, flags=Flag.OPEN | _ALL)),
    ("MPI_File_close", Meaning(_M, _META, handle=0, flags=Flag.CLOSE | _ALL)),
    ("MPI_File_sync", Meaning(_M, _SYNC, handle=0, flags=_ALL)),
    ("MPI_File_set_size",
     Meaning(_M, _META, handle=0, offset=1, rule=PositionRule.RESIZE, flags=Flag.RESIZE | _ALL)),
    ("MPI_File_set_view", Meaning(_M, _META, handle=0, offset=1, flags=_ALL)),
    ("MPI_Barrier", Meaning(Layer.MPI, Kind.COMMUNICATION, comm=0, flags=_ALL)),
    ("H5Fcreate H5Fopen", Meaning(Layer.HDF5, _META, path=0, flags=Flag.OPEN)),
    ("H5Dread H5Aread H5Dread_async H5Aread_async H5Dread_multi H5Dread_chunk", Meaning(Layer.HDF5, _READ)),
    ("H5Dwrite H5Awrite H5Dwrite_async H5Awrite_async H5Dwrite_multi H5Dwrite_chunk", Meaning(Layer.HDF5, _WRITE)),
    ("ncmpi_create ncmpi_open",
     Meaning(Layer.PNETCDF, _META, path=1, handle=4, binds=True, flags=Flag.OPEN | _ALL)),
    ("nc_create nc_open", Meaning(Layer.NETCDF, _META, path=0, handle=2, binds=True, flags=Flag.OPEN)),
    ("nc_create_par nc_open_par", Meaning(Layer.NETCDF, _META, path=0, handle=4, binds=True, flags=Flag.OPEN)),
)  # fmt: skip
_MPI_FORMS: tuple[tuple[tuple[str, ...], str, dict[str, Any], bool], ...] = (
    # Prefixes of the verb, suffixes, the arguments after the handle, and whether all processes take part.
    (("", "i"), " _shared", {"size": (2,), "datatype": 3}, False),
    (("", "i"), "_all", {"size": (2,), "datatype": 3}, True),
    (("",), "_ordered _all_begin _ordered_begin", {"size": (2,), "datatype": 3}, True),
    (("", "i"), "_at", {"offset": 1, "size": (3,), "datatype": 4}, False),
    (("", "i"), "_at_all", {"offset": 1, "size": (3,), "datatype": 4}, True),
    (("",), "_at_all_begin", {"offset": 1, "size": (3,), "datatype": 4}, True),
)


def _mpi_calls() -> Iterator[tuple[str, Meaning]]:
    """Calls of MPI-IO that move data; MPI-4 has the same calls with 64-bit counts."""
    for verb, kind in (("read", _READ), ("write", _WRITE)):
        for before, after, arguments, together in _MPI_FORMS:
            meaning = Meaning(_M, kind, handle=0, flags=_ALL if together else _NONE, **arguments)
            for prefix, suffix in product(before, after.split(" ")):
                yield from ((f"MPI_File_{prefix}{verb}{suffix}{wide}", meaning) for wide in ("", "_c"))


_TABLE: dict[str, Meaning] = {name: meaning for names, meaning in _ROWS for name in names.split()} | dict(_mpi_calls())

DATATYPE_BYTES: dict[str, int] = {
    f"MPI_{name}": size
    for size, names in (
        (1, "BYTE CHAR SIGNED_CHAR UNSIGNED_CHAR PACKED CHARACTER C_BOOL CXX_BOOL INT8_T UINT8_T INTEGER1 LOGICAL1"),
        (2, "SHORT UNSIGNED_SHORT INT16_T UINT16_T INTEGER2 REAL2 LOGICAL2"),
        (4, "INT UNSIGNED FLOAT INT32_T UINT32_T INTEGER INTEGER4 REAL REAL4 LOGICAL LOGICAL4 COMPLEX4 WCHAR"),
        (6, "SHORT_INT"),
        (8, "LONG UNSIGNED_LONG LONG_LONG LONG_LONG_INT UNSIGNED_LONG_LONG DOUBLE DOUBLE_PRECISION INT64_T UINT64_T"),
        (8, "INTEGER8 REAL8 COMPLEX COMPLEX8 C_COMPLEX C_FLOAT_COMPLEX AINT COUNT OFFSET LOGICAL8 CXX_FLOAT_COMPLEX"),
        (8, "2INT 2INTEGER 2REAL FLOAT_INT"),
        (12, "LONG_INT DOUBLE_INT"),
        (16, "LONG_DOUBLE DOUBLE_COMPLEX C_DOUBLE_COMPLEX CXX_DOUBLE_COMPLEX COMPLEX16 REAL16 INTEGER16 LOGICAL16"),
        (16, "2DOUBLE_PRECISION"),
        (20, "LONG_DOUBLE_INT"),
        (32, "C_LONG_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX COMPLEX32"),
    )
    for name in names.split()
}
"""Bytes of the named MPI datatypes on an LP64 host."""


@cache
def datatype_bytes(text: str) -> int | None:
    """Bytes per element of an MPI datatype, from its name or MPICH's handle; None for derived types.

    MPICH stores the size of a basic type in the third byte of its handle, 0x4c00SSnn (mpi.h).
    """
    known = DATATYPE_BYTES.get(text)
    if known is not None or not text[:1].isdigit():
        return known
    try:
        handle = int(text, 0)
    except ValueError:
        return None
    return (handle >> 8 & 0xFF) or None if handle >> 16 == _MPICH_BASIC else None


_MPICH_BASIC = 0x4C00

_LAYER_PREFIXES = (
    ("MPI_File_", Layer.MPIIO),
    ("MPI_", Layer.MPI),
    ("H5", Layer.HDF5),
    ("ncmpi_", Layer.PNETCDF),
    ("nc_", Layer.NETCDF),
    ("NC_", Layer.NETCDF),
    ("nctypelen", Layer.NETCDF),
    ("cuda", Layer.GPU),
    ("hip", Layer.GPU),
    ("user_function", Layer.USER),
    # Calls whose file-system work no other call shows; a profile names them in `unseen`.
    ("dfs_", Layer.USER),
    ("daos_", Layer.USER),
)
_PREFIXES = tuple(prefix for prefix, _ in _LAYER_PREFIXES)


_STREAM_CALLS = frozenset(
    {
        "fprintf", "vprintf", "printf", "dprintf", "vdprintf", "fscanf", "vfscanf", "scanf", "fputs", "puts",
        "fputc", "putc", "putchar", "fgets", "fgetc", "getc", "getchar", "ungetc", "getline", "getdelim",
        "fgetpos", "fsetpos", "fgetpos64", "fsetpos64", "freopen", "freopen64", "fcloseall", "setbuf",
        "setvbuf", "setbuffer", "setlinebuf", "feof", "ferror", "clearerr", "fgetwc", "fputwc", "fgetws",
        "fputws", "fmemopen", "open_memstream", "popen", "pclose", "perror",
    }
)  # fmt: skip
"""Calls on streams that no tracer records today (C11 7.21, POSIX 2017, glibc)."""


def layer_of(name: str) -> Layer:
    """A function's layer, by its name (format document, section 4)."""
    if name.startswith(_PREFIXES):
        return next(layer for prefix, layer in _LAYER_PREFIXES if name.startswith(prefix))
    known = _TABLE.get(name)
    if known is not None:
        return known.layer
    return Layer.STDIO if name.removesuffix("_unlocked") in _STREAM_CALLS else Layer.POSIX


@cache
def meaning_of(name: str) -> Meaning:
    """A function's row in the table, or a row derived from its name."""
    known = _TABLE.get(name)
    if known is not None:
        return known
    layer = layer_of(name)
    if layer in (Layer.PNETCDF, Layer.NETCDF):
        verb = name.split("_", 1)[1] if "_" in name else name
        handle = 0 if layer is Layer.NETCDF or verb not in ("delete", "strerror") else -1
        kind = next((kind for kind, begins in _VARIABLES.items() if verb.startswith(begins)), _META)
        together = kind is not _META and name.endswith("_all")
        return Meaning(layer, kind, handle=handle, flags=_ALL) if together else _of_layer(layer, kind, handle)
    if layer is Layer.MPI:
        return _of_layer(layer, Kind.OTHER if name.startswith(_QUIET) else Kind.COMMUNICATION)
    if layer in (Layer.GPU, Layer.USER):
        return _of_layer(layer, Kind.OTHER)
    return _of_layer(layer, _META, 0 if layer is Layer.MPIIO else -1)


_VARIABLES = {_WRITE: ("put_var", "iput_var", "bput_var"), _READ: ("get_var", "iget_var")}
"""Beginnings of the names of netCDF functions that move data."""
_QUIET = (
    "MPI_Wtime", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Get_processor_name", "MPI_Init", "MPI_Finalize",
)  # fmt: skip
"""Beginnings of the names of MPI functions that do not communicate."""


@cache
def _of_layer(layer: Layer, kind: Kind, handle: int = -1) -> Meaning:
    """A row shared by many functions: a trace lists two thousand, and creating rows dominates start-up."""
    return Meaning(layer, kind, handle=handle)


FACTS = frozenset(
    {
        "H5Screate_simple", "H5Pset_chunk", "H5Pset_layout", "H5Pset_dxpl_mpio", "H5Pset_fapl_mpio",
        "H5Pset_alignment", "H5Pset_coll_metadata_write", "H5Pset_all_coll_metadata_ops", "H5Pset_deflate",
        "H5Pset_filter", "H5Dcreate1", "H5Dcreate2", "MPI_Info_set", "mmap", "mmap64", "MPI_File_open",
        "MPI_File_set_view", "nc_def_dim", "nc_def_var", "nc_def_var_chunking", "nc_var_par_access",
        "ncmpi_def_dim", "ncmpi_def_var",
    }
)  # fmt: skip
"""Calls whose arguments appear in attributes (dims, chunks, hints, transfer modes); the store keeps all arguments."""


def function_table(
    names: Sequence[str], layers: Sequence[int] | None = None, kinds: Sequence[int] | None = None
) -> pa.Table:
    """`vani.calls.FUNCTIONS` for a trace's function list; layers and kinds follow from names if they are omitted."""
    layers = [layer_of(n) for n in names] if layers is None else layers
    kinds = [meaning_of(n).kind for n in names] if kinds is None else kinds
    return small_table([range(len(names)), names, layers, kinds], FUNCTIONS)
