"""System calls that work on files, and the positions of their arguments, as a table instead of code.

Other calls never reach a file system: memory, signals, clocks, waiting, sockets, and calls that only change the
descriptor table (dup, most of fcntl).
"""

from dataclasses import dataclass
from enum import IntEnum

from vani.calls import LOCK, Flag, Kind
from vani.readers.functions import PositionRule


class Names(IntEnum):
    """The argument that names the file."""

    DESCRIPTOR = 1
    PATH = 2
    """A path, possibly after the descriptor of a folder (openat); an empty path means the descriptor itself."""
    MAPPED = 3
    """The fifth argument (mmap)."""
    TWO = 4
    """Two descriptors; data moves from one to the other."""
    NONE = 5


class Offset(IntEnum):
    """The argument with the offset."""

    NONE = 0
    LAST = 1
    BEFORE_FLAGS = 2
    """The last argument but one; -1 means the file position (preadv2)."""
    RETURNED = 3


_NONE = Flag(0)


@dataclass(frozen=True)
class SystemCall:
    """One system call."""

    kind: Kind
    names: Names
    rule: PositionRule = PositionRule.NONE
    flags: Flag = _NONE
    offset: Offset = Offset.NONE
    opens: bool = False
    """Whether it has O_ flags."""
    renames: bool = False
    asks: bool = False
    """Whether it only queries a path, which is not a file of the run if it does not exist."""


_READ, _WRITE, _META, _SYNC = Kind.READ, Kind.WRITE, Kind.METADATA, Kind.SYNC
_FD, _PATH = Names.DESCRIPTOR, Names.PATH
_ADVANCE, _AT = PositionRule.ADVANCE, PositionRule.AT
_OPEN = SystemCall(_META, _PATH, PositionRule.OPEN, Flag.OPEN, opens=True)
_STAT = SystemCall(_META, _PATH, flags=Flag.STAT, asks=True)
_GONE = SystemCall(_META, _PATH, PositionRule.GONE, Flag.REMOVE)
_RENAME = SystemCall(_META, _PATH, PositionRule.GONE, Flag.RENAME, renames=True)
_FOLDER = SystemCall(_META, _PATH, flags=Flag.DIRECTORY)
_OTHER = SystemCall(_META, _PATH)
_ON_OPEN = SystemCall(_META, _FD)

LOCKS = ("flock", "fcntl")
"""Calls that lock files; of fcntl, only its commands about locks count."""
CALLS: dict[str, SystemCall] = {
    **dict.fromkeys(("open", "openat", "openat2"), _OPEN),
    "creat": SystemCall(
        _META,
        _PATH,
        PositionRule.OPEN,
        Flag.OPEN | Flag.CREATE | Flag.TRUNCATE | Flag.WRITABLE,
    ),
    "close": SystemCall(_META, _FD, flags=Flag.CLOSE),
    **dict.fromkeys(("read", "readv"), SystemCall(_READ, _FD, _ADVANCE)),
    **dict.fromkeys(("write", "writev"), SystemCall(_WRITE, _FD, _ADVANCE)),
    **dict.fromkeys(("pread64", "preadv"), SystemCall(_READ, _FD, _AT, offset=Offset.LAST)),
    **dict.fromkeys(("pwrite64", "pwritev"), SystemCall(_WRITE, _FD, _AT, offset=Offset.LAST)),
    "preadv2": SystemCall(_READ, _FD, _AT, offset=Offset.BEFORE_FLAGS),
    "pwritev2": SystemCall(_WRITE, _FD, _AT, offset=Offset.BEFORE_FLAGS),
    **dict.fromkeys(
        ("lseek", "_llseek"),
        SystemCall(_META, _FD, PositionRule.SEEK_SET, Flag.SEEK, offset=Offset.RETURNED),
    ),
    **dict.fromkeys(("fsync", "fdatasync", "sync_file_range", "syncfs"), SystemCall(_SYNC, _FD)),
    **dict.fromkeys(("sync", "msync"), SystemCall(_SYNC, Names.NONE)),
    **dict.fromkeys(
        ("ftruncate", "ftruncate64"),
        SystemCall(_META, _FD, PositionRule.RESIZE, Flag.RESIZE, offset=Offset.LAST),
    ),
    **dict.fromkeys(
        ("truncate", "truncate64"),
        SystemCall(_META, _PATH, PositionRule.RESIZE, Flag.RESIZE, offset=Offset.LAST),
    ),
    "mmap": SystemCall(_META, Names.MAPPED),
    "mmap2": SystemCall(_META, Names.MAPPED),
    **dict.fromkeys(
        ("stat", "lstat", "newfstatat", "fstatat64", "statx", "stat64", "lstat64", "access", "faccessat", "faccessat2",
         "readlink", "readlinkat", "statfs", "getxattr", "lgetxattr", "listxattr", "llistxattr"),
        _STAT,
    ),
    **dict.fromkeys(
        ("fstat", "fstat64", "fstatfs", "fgetxattr", "flistxattr"),
        SystemCall(_META, _FD, flags=Flag.STAT),
    ),
    **dict.fromkeys(("getdents", "getdents64", "fchdir"), SystemCall(_META, _FD, flags=Flag.DIRECTORY)),
    **dict.fromkeys(("mkdir", "mkdirat", "rmdir", "chdir"), _FOLDER),
    **dict.fromkeys(("unlink", "unlinkat"), _GONE),
    **dict.fromkeys(("rename", "renameat", "renameat2"), _RENAME),
    **dict.fromkeys(
        ("link", "linkat", "mknod", "mknodat", "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime",
         "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "removexattr", "lremovexattr"),
        _OTHER,
    ),
    # Their first argument is a text, and the new name comes last.
    **dict.fromkeys(("symlink", "symlinkat"), SystemCall(_META, Names.NONE)),
    **dict.fromkeys(
        ("fchmod", "fchown", "fallocate", "fadvise64", "readahead", "fsetxattr", "fremovexattr"), _ON_OPEN
    ),
    **dict.fromkeys(LOCKS, SystemCall(_META, _FD, flags=LOCK)),
    **dict.fromkeys(("sendfile", "sendfile64", "copy_file_range", "splice"), SystemCall(_WRITE, Names.TWO)),
    "io_uring_setup": SystemCall(_META, Names.NONE),
    **dict.fromkeys(("io_uring_enter", "io_uring_register"), _ON_OPEN),
    # Used for requests that the log does not contain.
    "io_submit": SystemCall(_META, Names.NONE),
}  # fmt: skip

FAMILY = frozenset({"clone", "clone3", "fork", "vfork"})
RING = frozenset({"io_uring_setup", "io_uring_enter", "io_uring_register"})
"""Calls of io_uring, whose reads and writes are in memory that strace does not see."""
WANTED: tuple[str, ...] = (*CALLS, *sorted(FAMILY), "execve", "execveat")
"""All calls that the reader uses and `vani trace` records."""

SUBMITTED = {
    "PREAD": "io_submit:read",
    "PREADV": "io_submit:read",
    "PWRITE": "io_submit:write",
    "PWRITEV": "io_submit:write",
    "FSYNC": "io_submit:sync",
    "FDSYNC": "io_submit:sync",
}
"""Function as which a request of io_submit is counted, by opcode (`IOCB_CMD_*`)."""
_TWO = tuple(name for name, call in CALLS.items() if call.names is Names.TWO)
FUNCTIONS: tuple[str, ...] = (*CALLS, *(f"{name}:read" for name in _TWO), *dict.fromkeys(SUBMITTED.values()))
"""Functions by code. A call that moves data between files is two rows: a read of one file, and a write of the other.
Each io_submit request is a row."""
_KINDS = {"read": Kind.READ, "write": Kind.WRITE, "sync": Kind.SYNC}


def kind_of(function: str) -> Kind:
    """The kind of a function in `FUNCTIONS`."""
    name, _, part = function.partition(":")
    return _KINDS[part] if part else CALLS[name].kind
