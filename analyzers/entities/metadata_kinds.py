"""Kinds of metadata operations, by function name (POSIX.1-2017, and glibc's additions).

Names are those of the C library, not a tracer's: the suffix `64`, the prefix in `__x` and `_unlocked` are ignored.
"""

from __future__ import annotations

import re
from functools import cache

KINDS = ("open", "close", "stat", "seek", "directory", "remove", "other")
"""Kinds in the order of `vani.schema.profile.MetadataKinds`."""
OTHER = KINDS.index("other")

_NAMES = {
    "open": "open openat open_by_handle_at creat fopen fdopen freopen tmpfile mkstemp mkostemp shm_open",
    "close": "close fclose fcloseall close_range",
    "stat": "stat lstat fstat fstatat newfstatat statx xstat lxstat fxstat fxstatat access faccessat faccessat2 "
    "eaccess euidaccess readlink readlinkat statfs fstatfs statvfs fstatvfs getxattr lgetxattr fgetxattr",
    "seek": "lseek llseek _llseek fseek fseeko ftell ftello rewind fgetpos fsetpos",
    "directory": "mkdir mkdirat rmdir chdir fchdir getcwd opendir fdopendir readdir readdir_r rewinddir telldir "
    "seekdir closedir scandir getdents",
    "remove": "unlink unlinkat remove rename renameat renameat2",
}
_KIND = {name: KINDS.index(kind) for kind, names in _NAMES.items() for name in names.split()}
_SPELLING = re.compile(r"^_*(?P<name>.*?)(?:64)?(?:_unlocked)?$")


@cache
def metadata_kind(function: str) -> int:
    """Index in `KINDS` of a metadata operation with this name; `OTHER` for unknown names."""
    if function in _KIND:
        return _KIND[function]
    match = _SPELLING.match(function)
    return _KIND.get(match["name"], OTHER) if match else OTHER
