"""Numbers that kernels use for attributes of calls, as in their sources' `enum`s."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class ActivityBit(IntFlag):
    """Attributes that a group's calls share, for the kernel `activity`."""

    COUNTED = 1
    READS = 2
    WRITES = 4
    OPENS = 8


class ReachKind(IntEnum):
    """Kinds of groups of calls, for the kernel `reach`."""

    LEFT_OUT = 0
    WRITES = 1
    CUTS = 2


class PatternBit(IntFlag):
    """Attributes that a group's calls share, or a process's files (the last two), for the kernel `pattern`."""

    IS_DATA = 1
    IS_WRITE = 2
    IS_SEEK = 4
    IS_OPEN = 8
    IS_APPEND = 16
    FOLLOWS = 32
    GOES_ON = 64
    LISTED = 128


class OperationBit(IntFlag):
    """Attributes of a single operation, in the kernel `pattern`."""

    JUMPED = 1
    FIRST = 2
    COUNTED = 4
    APPENDED = 8
    FROM_POSITION = 16
