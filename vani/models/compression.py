"""The time of moving data that is compressed on the way, against moving it as it is.

A process moves a byte in 1 / b seconds: its bytes by the time that all processes spend in these calls. A codec makes r
bytes of data one byte, at c bytes of data per second of one core. Compressed, a byte of data takes

    1 / (r b) + 1 / c,    a part 1 / r + b / c of the time before,

which is less only where c > b r / (r - 1): behind fast storage compressing costs more than it saves. Each process
compresses its bytes, and the next step of the program waits, as it did for the storage. At best the cores have
nothing else to do meanwhile and only 1 / r is left.

Requests that wait for a server, and not for their bytes, become no faster: the possible saving is the time that the
bytes take at b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.dataset_facts import Codec

__all__ = ["Choice", "best_codec"]


@dataclass(frozen=True)
class Choice:
    """A codec, the part of the time that is left with it, and the part that is left at best."""

    codec: Codec
    rest: float
    best: float


def best_codec(codecs: Sequence[Codec], moves: Sequence[tuple[int, float, bool]]) -> Choice | None:
    """The codec that leaves the least time; None without one, or if nothing was timed.

    Parameters
    ----------
    moves
        Bytes, their seconds summed over the processes, and whether they were read, by file and direction.
    """
    total = sum(seconds for _, seconds, _ in moves)
    if not total or not codecs:
        return None

    def left(codec: Codec) -> Choice:
        rest = best = 0.0
        for moved, seconds, reads in moves:
            rest += seconds / codec.ratio + moved / (codec.decompress if reads else codec.compress)
            best += seconds / codec.ratio
        return Choice(codec, rest / total, best / total)

    # The first of equals, which is the simplest.
    return min((left(codec) for codec in codecs), key=lambda choice: choice.rest)
