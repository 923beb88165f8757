"""The functions that DFTracer wraps, and the meaning of their arguments.

Sources: wrappers of DFTracer 1.0 (`src/dftracer/brahma`), and DFTracer 2.2's events for a program that makes each call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from vani.calls import Flag, Kind, Layer
from vani.readers.functions import Meaning, PositionRule, layer_of, meaning_of


class Size(Enum):
    """Arguments that contain the number of bytes that a call moved."""

    NONE = 0
    RETURNED = 1
    ITEMS = 2
    """Number of items moved, or requested, of `size` bytes each."""
    LENGTH = 3
    """`ret_len`, the length of a line."""
    BYTE = 4
    """One byte, unless the call returned -1."""


@dataclass(frozen=True)
class Call:
    """Meaning of a function's events."""

    layer: Layer
    kind: Kind
    rule: PositionRule
    flags: Flag
    size: Size = Size.NONE
    seeks: bool = False
    """Whether the call has an offset and a whence."""


PROCESSES = frozenset(
    ["fork", "vfork", "wait", "waitpid", "execl", "execlp", "execv", "execve", "execvp", "execvpe", "exit", "_exit",
     "umask", "popen", "pclose", "tmpnam", "perror", "sleep"]
)  # fmt: skip
"""Functions without file I/O: they start processes, and wait for them."""
OTHERS = "(other)"
"""Name shared by a program's functions if it has more than fit the table."""

_READ, _WRITE = (
    Call(Layer.STDIO, kind, PositionRule.ADVANCE, Flag(0), Size.RETURNED) for kind in (Kind.READ, Kind.WRITE)
)
_COPY = Call(Layer.POSIX, Kind.WRITE, PositionRule.ADVANCE, Flag(0), Size.RETURNED)
_AGAIN = Call(Layer.POSIX, Kind.METADATA, PositionRule.FORGET, Flag.WRITABLE)
"""Functions after which calls through the new descriptor leave no record."""
_TABLE = {
    **dict.fromkeys(("fgetc", "getc", "getc_unlocked"), replace(_READ, size=Size.BYTE)),
    **dict.fromkeys(("fputc", "putc", "putc_unlocked"), replace(_WRITE, size=Size.BYTE)),
    **dict.fromkeys(("getline", "getdelim"), _READ),
    "fgets": replace(_READ, size=Size.LENGTH),
    "fputs": replace(_WRITE, size=Size.NONE),
    "fprintf": _WRITE,
    "vfprintf": _WRITE,
    **dict.fromkeys(("copy_file_range", "sendfile", "sendfile64"), _COPY),
    **dict.fromkeys(("dup", "dup2"), _AGAIN),
    **dict.fromkeys(
        ("readlink", "readlinkat", "access", "faccessat"),
        Call(Layer.POSIX, Kind.METADATA, PositionRule.NONE, Flag.STAT),
    ),
}


@cache
def call_of(category: str, name: str) -> Call:
    """The meaning of an event, by its category and name."""
    if category not in ("POSIX", "STDIO"):
        layer = layer_of(name)
        if not Layer.MPIIO <= layer <= Layer.GPU:
            layer = Layer.USER
        meaning = meaning_of(name)
        kind = Kind.OTHER if layer is Layer.USER else meaning.kind
        # Library events have neither files nor bytes.
        return Call(
            layer,
            kind,
            PositionRule.NONE,
            Flag(0) if layer is Layer.USER else meaning.flags & Flag.COLLECTIVE,
        )
    known = _TABLE.get(name)
    if known is not None:
        return known
    meaning = meaning_of(name)
    layer = Layer.STDIO if category == "STDIO" else Layer.POSIX
    size = _size(meaning) if meaning.kind in (Kind.READ, Kind.WRITE) else Size.NONE
    return Call(layer, meaning.kind, meaning.rule, meaning.flags, size, seeks=meaning.whence >= 0)


def _size(meaning: Meaning) -> Size:
    return Size.ITEMS if len(meaning.size) == 2 else Size.RETURNED
