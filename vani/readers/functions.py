"""A trace's functions and the meaning of their arguments, as a table instead of code.

Sources: the wrappers listed in Recorder's format (format document, section 6), and POSIX.
A function that is missing here still gets a layer and a kind from its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import pyarrow as pa

from vani.calls import FUNCTIONS, Flag, Kind, Layer
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
    """The command of fcntl; only commands that duplicate a descriptor matter."""
    comm: int = -1
    rule: PositionRule = PositionRule.NONE
    flags: Flag = _NONE


P, S = Layer.POSIX, Layer.STDIO
READ, WRITE, META, SYNC = Kind.READ, Kind.WRITE, Kind.METADATA, Kind.SYNC
_NEW = Flag.OPEN | Flag.CREATE | Flag.TRUNCATE | Flag.WRITABLE

_TABLE: dict[str, Meaning] = {
    "creat": Meaning(P, META, path=0, rule=PositionRule.OPEN, flags=_NEW),
    "open": Meaning(P, META, path=0, open_flags=1, rule=PositionRule.OPEN, flags=Flag.OPEN),
    "openat": Meaning(P, META, path=1, open_flags=2, rule=PositionRule.OPEN, flags=Flag.OPEN),
    "close": Meaning(P, META, path=0, flags=Flag.CLOSE),
    "fsync": Meaning(P, SYNC, path=0),
    "fdatasync": Meaning(P, SYNC, path=0),
    "sync_file_range": Meaning(P, SYNC, path=0),
    "syncfs": Meaning(P, SYNC, path=0),
    "sync": Meaning(P, SYNC),
    "aio_fsync": Meaning(P, SYNC),
    "read": Meaning(P, READ, path=0, size=(2,), rule=PositionRule.ADVANCE),
    "write": Meaning(P, WRITE, path=0, size=(2,), rule=PositionRule.ADVANCE),
    "pread": Meaning(P, READ, path=0, size=(2,), offset=3, rule=PositionRule.AT),
    "pwrite": Meaning(P, WRITE, path=0, size=(2,), offset=3, rule=PositionRule.AT),
    "readv": Meaning(P, READ, path=0, size=(1,), rule=PositionRule.ADVANCE),
    "writev": Meaning(P, WRITE, path=0, size=(1,), rule=PositionRule.ADVANCE),
    "preadv": Meaning(P, READ, path=0, size=(1,), offset=3, rule=PositionRule.AT),
    "pwritev": Meaning(P, WRITE, path=0, size=(1,), offset=3, rule=PositionRule.AT),
    "lseek": Meaning(P, META, path=0, offset=1, whence=2, flags=Flag.SEEK),
    "ftruncate": Meaning(P, META, path=0, offset=1, rule=PositionRule.RESIZE, flags=Flag.RESIZE),
    "truncate": Meaning(P, META, path=0, offset=1, rule=PositionRule.RESIZE, flags=Flag.RESIZE),
    "mmap": Meaning(P, META, path=4),
    "msync": Meaning(P, SYNC),
    "stat": Meaning(P, META, path=0, flags=Flag.STAT),
    "lstat": Meaning(P, META, path=0, flags=Flag.STAT),
    "fstat": Meaning(P, META, path=0, flags=Flag.STAT),
    "__xstat": Meaning(P, META, path=1, flags=Flag.STAT),
    "__lxstat": Meaning(P, META, path=1, flags=Flag.STAT),
    "__fxstat": Meaning(P, META, path=1, flags=Flag.STAT),
    "access": Meaning(P, META, path=0, flags=Flag.STAT),
    "faccessat": Meaning(P, META, path=1, flags=Flag.STAT),
    "chmod": Meaning(P, META, path=0),
    "chown": Meaning(P, META, path=0),
    "lchown": Meaning(P, META, path=0),
    "utime": Meaning(P, META, path=0),
    "mkdir": Meaning(P, META, path=0, flags=Flag.DIRECTORY),
    "rmdir": Meaning(P, META, path=0, flags=Flag.DIRECTORY),
    "chdir": Meaning(P, META, path=0, flags=Flag.DIRECTORY),
    "opendir": Meaning(P, META, path=0, flags=Flag.DIRECTORY),
    "readdir": Meaning(P, META),
    "rewinddir": Meaning(P, META),
    "closedir": Meaning(P, META),
    "mkfifo": Meaning(P, META, path=0),
    "mknod": Meaning(P, META, path=0),
    "mknodat": Meaning(P, META, path=1),
    "unlink": Meaning(P, META, path=0, rule=PositionRule.GONE, flags=Flag.REMOVE),
    "unlinkat": Meaning(P, META, path=1, rule=PositionRule.GONE, flags=Flag.REMOVE),
    "remove": Meaning(P, META, path=0, rule=PositionRule.GONE, flags=Flag.REMOVE),
    "rename": Meaning(P, META, path=0, rename_to=1, rule=PositionRule.GONE, flags=Flag.RENAME),
    "link": Meaning(P, META, path=0),
    "symlink": Meaning(P, META, path=0),
    "linkat": Meaning(P, META, path=1),
    "symlinkat": Meaning(P, META, path=0),
    "readlink": Meaning(P, META, path=0, flags=Flag.STAT),
    "readlinkat": Meaning(P, META, path=1, flags=Flag.STAT),
    "fcntl": Meaning(P, META, path=0, command=1),
    "dup": Meaning(P, META),
    "dup2": Meaning(P, META),
    "pipe": Meaning(P, META),
    "umask": Meaning(P, META),
    "getcwd": Meaning(P, META),
    "fopen": Meaning(S, META, path=0, open_mode=1, rule=PositionRule.OPEN, flags=Flag.OPEN),
    "fdopen": Meaning(S, META, path=0),
    "fclose": Meaning(S, META, path=0, flags=Flag.CLOSE),
    "fflush": Meaning(S, SYNC, path=0),
    "ftell": Meaning(S, META, path=0),
    "ftello": Meaning(S, META, path=0),
    "fileno": Meaning(S, META, path=0),
    "tmpfile": Meaning(S, META),
    "fread": Meaning(S, READ, path=3, size=(1, 2), rule=PositionRule.ADVANCE),
    "fwrite": Meaning(S, WRITE, path=3, size=(1, 2), rule=PositionRule.ADVANCE),
    "vfprintf": Meaning(S, WRITE, path=0, size=(1,), less=1, rule=PositionRule.ADVANCE),
    "fseek": Meaning(S, META, path=0, offset=1, whence=2, flags=Flag.SEEK),
    "fseeko": Meaning(S, META, path=0, offset=1, whence=2, flags=Flag.SEEK),
    "rewind": Meaning(S, META, path=0, rule=PositionRule.SEEK_SET, flags=Flag.SEEK),
}
_TABLE["openat64"] = _TABLE["openat"]
for _name in (
    "creat",
    "open",
    "pread",
    "pwrite",
    "preadv",
    "pwritev",
    "lseek",
    "ftruncate",
    "truncate",
    "mmap",
    "stat",
    "lstat",
    "fstat",
    "__xstat",
    "__lxstat",
    "__fxstat",
    "fopen",
    "fseeko",
    "ftello",
    "tmpfile",
):
    _TABLE[f"{_name}64"] = _TABLE[_name]

M = Layer.MPIIO
_ALL = Flag.COLLECTIVE
_TABLE["MPI_File_open"] = Meaning(M, META, path=1, handle=4, binds=True, comm=0, flags=Flag.OPEN | _ALL)
_TABLE["MPI_File_close"] = Meaning(M, META, handle=0, flags=Flag.CLOSE | _ALL)
_TABLE["MPI_File_sync"] = Meaning(M, SYNC, handle=0, flags=_ALL)
_TABLE["MPI_File_set_size"] = Meaning(
    M, META, handle=0, offset=1, rule=PositionRule.RESIZE, flags=Flag.RESIZE | _ALL
)
_TABLE["MPI_File_set_view"] = Meaning(M, META, handle=0, offset=1, flags=_ALL)
for _verb, _kind in (("read", READ), ("write", WRITE)):
    for _name, _collective in (
        ("", 0),
        ("_all", 1),
        ("_shared", 0),
        ("_ordered", 1),
        ("_all_begin", 1),
        ("_ordered_begin", 1),
    ):
        _flags = _ALL if _collective else Flag(0)
        _TABLE[f"MPI_File_{_verb}{_name}"] = Meaning(M, _kind, handle=0, size=(2,), datatype=3, flags=_flags)
        if not _name.startswith("_ordered") and not _name.startswith("_all"):
            _TABLE[f"MPI_File_i{_verb}{_name}"] = Meaning(
                M, _kind, handle=0, size=(2,), datatype=3, flags=_flags
            )
    _TABLE[f"MPI_File_i{_verb}_all"] = Meaning(M, _kind, handle=0, size=(2,), datatype=3, flags=_ALL)
    for _name, _collective in (("_at", 0), ("_at_all", 1), ("_at_all_begin", 1)):
        _flags = _ALL if _collective else Flag(0)
        _TABLE[f"MPI_File_{_verb}{_name}"] = Meaning(
            M, _kind, handle=0, offset=1, size=(3,), datatype=4, flags=_flags
        )
    _TABLE[f"MPI_File_i{_verb}_at"] = Meaning(M, _kind, handle=0, offset=1, size=(3,), datatype=4)
    _TABLE[f"MPI_File_i{_verb}_at_all"] = Meaning(
        M, _kind, handle=0, offset=1, size=(3,), datatype=4, flags=_ALL
    )

# MPI-4 has the same calls with 64-bit counts.
for _name in [name for name in _TABLE if name.startswith(("MPI_File_read", "MPI_File_write", "MPI_File_i"))]:
    _TABLE[f"{_name}_c"] = _TABLE[_name]
_TABLE["MPI_Barrier"] = Meaning(Layer.MPI, Kind.COMMUNICATION, comm=0, flags=_ALL)
for _name in ("H5Fcreate", "H5Fopen"):
    _TABLE[_name] = Meaning(Layer.HDF5, META, path=0, flags=Flag.OPEN)
for _name in ("H5Dread", "H5Aread", "H5Dread_async", "H5Aread_async", "H5Dread_multi", "H5Dread_chunk"):
    _TABLE[_name] = Meaning(Layer.HDF5, READ)
for _name in ("H5Dwrite", "H5Awrite", "H5Dwrite_async", "H5Awrite_async", "H5Dwrite_multi", "H5Dwrite_chunk"):
    _TABLE[_name] = Meaning(Layer.HDF5, WRITE)
for _name in ("ncmpi_create", "ncmpi_open"):
    _TABLE[_name] = Meaning(Layer.PNETCDF, META, path=1, handle=4, binds=True, flags=Flag.OPEN | _ALL)
for _name, _id in (("nc_create", 2), ("nc_open", 2), ("nc_create_par", 4), ("nc_open_par", 4)):
    _TABLE[_name] = Meaning(Layer.NETCDF, META, path=0, handle=_id, binds=True, flags=Flag.OPEN)

DATATYPE_BYTES: dict[str, int] = {
    **dict.fromkeys(
        (
            "MPI_BYTE",
            "MPI_CHAR",
            "MPI_SIGNED_CHAR",
            "MPI_UNSIGNED_CHAR",
            "MPI_PACKED",
            "MPI_CHARACTER",
            "MPI_C_BOOL",
            "MPI_CXX_BOOL",
            "MPI_INT8_T",
            "MPI_UINT8_T",
            "MPI_INTEGER1",
            "MPI_LOGICAL1",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "MPI_SHORT",
            "MPI_UNSIGNED_SHORT",
            "MPI_INT16_T",
            "MPI_UINT16_T",
            "MPI_INTEGER2",
            "MPI_REAL2",
            "MPI_LOGICAL2",
        ),
        2,
    ),
    "MPI_SHORT_INT": 6,
    **dict.fromkeys(("MPI_LONG_INT", "MPI_DOUBLE_INT"), 12),
    "MPI_LONG_DOUBLE_INT": 20,
    **dict.fromkeys(
        (
            "MPI_INT",
            "MPI_UNSIGNED",
            "MPI_FLOAT",
            "MPI_INT32_T",
            "MPI_UINT32_T",
            "MPI_INTEGER",
            "MPI_INTEGER4",
            "MPI_REAL",
            "MPI_REAL4",
            "MPI_LOGICAL",
            "MPI_LOGICAL4",
            "MPI_COMPLEX4",
            "MPI_WCHAR",
        ),
        4,
    ),
    **dict.fromkeys(
        (
            "MPI_LONG",
            "MPI_UNSIGNED_LONG",
            "MPI_LONG_LONG",
            "MPI_LONG_LONG_INT",
            "MPI_UNSIGNED_LONG_LONG",
            "MPI_DOUBLE",
            "MPI_DOUBLE_PRECISION",
            "MPI_INT64_T",
            "MPI_UINT64_T",
            "MPI_INTEGER8",
            "MPI_REAL8",
            "MPI_COMPLEX",
            "MPI_COMPLEX8",
            "MPI_C_COMPLEX",
            "MPI_C_FLOAT_COMPLEX",
            "MPI_AINT",
            "MPI_COUNT",
            "MPI_OFFSET",
            "MPI_LOGICAL8",
            "MPI_CXX_FLOAT_COMPLEX",
            "MPI_2INT",
            "MPI_2INTEGER",
            "MPI_2REAL",
            "MPI_FLOAT_INT",
        ),
        8,
    ),
    **dict.fromkeys(
        (
            "MPI_LONG_DOUBLE",
            "MPI_DOUBLE_COMPLEX",
            "MPI_C_DOUBLE_COMPLEX",
            "MPI_CXX_DOUBLE_COMPLEX",
            "MPI_COMPLEX16",
            "MPI_REAL16",
            "MPI_INTEGER16",
            "MPI_LOGICAL16",
            "MPI_2DOUBLE_PRECISION",
        ),
        16,
    ),
    **dict.fromkeys(("MPI_C_LONG_DOUBLE_COMPLEX", "MPI_CXX_LONG_DOUBLE_COMPLEX", "MPI_COMPLEX32"), 32),
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
    [
        "fprintf",
        "vprintf",
        "printf",
        "dprintf",
        "vdprintf",
        "fscanf",
        "vfscanf",
        "scanf",
        "fputs",
        "puts",
        "fputc",
        "putc",
        "putchar",
        "fgets",
        "fgetc",
        "getc",
        "getchar",
        "ungetc",
        "getline",
        "getdelim",
        "fgetpos",
        "fsetpos",
        "fgetpos64",
        "fsetpos64",
        "freopen",
        "freopen64",
        "fcloseall",
        "setbuf",
        "setvbuf",
        "setbuffer",
        "setlinebuf",
        "feof",
        "ferror",
        "clearerr",
        "fgetwc",
        "fputwc",
        "fgetws",
        "fputws",
        "fmemopen",
        "open_memstream",
        "popen",
        "pclose",
        "perror",
    ]
)
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
        if verb.startswith(("put_var", "iput_var", "bput_var")):
            return Meaning(layer, WRITE, handle=handle, flags=_ALL if name.endswith("_all") else Flag(0))
        if verb.startswith(("get_var", "iget_var")):
            return Meaning(layer, READ, handle=handle, flags=_ALL if name.endswith("_all") else Flag(0))
        return _of_layer(layer, META, handle)
    if layer is Layer.MPI:
        quiet = (
            "MPI_Wtime",
            "MPI_Comm_rank",
            "MPI_Comm_size",
            "MPI_Get_processor_name",
            "MPI_Finalized",
            "MPI_Init",
            "MPI_Finalize",
        )
        return _of_layer(layer, Kind.OTHER if name.startswith(quiet) else Kind.COMMUNICATION)
    if layer is Layer.MPIIO:
        return _of_layer(layer, META, 0)
    if layer in (Layer.GPU, Layer.USER):
        return _of_layer(layer, Kind.OTHER)
    return _of_layer(layer, META)


@cache
def _of_layer(layer: Layer, kind: Kind, handle: int = -1) -> Meaning:
    """A row shared by many functions: a trace lists two thousand, and creating rows dominates start-up."""
    return Meaning(layer, kind, handle=handle)


FACTS = frozenset(
    {
        "H5Screate_simple",
        "H5Pset_chunk",
        "H5Pset_layout",
        "H5Pset_dxpl_mpio",
        "H5Pset_fapl_mpio",
        "H5Pset_alignment",
        "H5Pset_coll_metadata_write",
        "H5Pset_all_coll_metadata_ops",
        "H5Pset_deflate",
        "H5Pset_filter",
        "H5Dcreate1",
        "H5Dcreate2",
        "MPI_Info_set",
        "mmap",
        "mmap64",
        "MPI_File_open",
        "MPI_File_set_view",
        "nc_def_dim",
        "nc_def_var",
        "nc_def_var_chunking",
        "nc_var_par_access",
        "ncmpi_def_dim",
        "ncmpi_def_var",
    }
)
"""Calls whose arguments appear in attributes (dims, chunks, hints, transfer modes); the store keeps all arguments."""


def function_table(names: Sequence[str]) -> pa.Table:
    """`vani.calls.FUNCTIONS` for a trace's function list."""
    layers, kinds = [int(layer_of(n)) for n in names], [int(meaning_of(n).kind) for n in names]
    return small_table([range(len(names)), names, layers, kinds], FUNCTIONS)
