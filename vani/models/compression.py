"""The time to compress data and move it, compared with moving it uncompressed.

A process moves a byte in 1 / b seconds, where b is its bytes over the time that all processes spend in these calls. A
codec turns r bytes into one, at c bytes of uncompressed data per second and core. With compression, a byte takes

    1 / (r b) + 1 / c seconds,    or 1 / r + b / c of the time before.

This is less only if c > b r / (r - 1): with fast storage, compression costs more than it saves. Each process
compresses its own bytes, and the program's next step waits for that as it waited for the storage. In the best case the
cores are idle anyway, and only 1 / r of the time is left.

Requests that wait for a server rather than for their bytes do not become faster: the possible saving is the time that
the bytes take at b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.dataset_facts import Codec

@dataclass(frozen=True)
class Choice:
    """A codec and the share of the time that remains with it, `rest` expected and `best` at best."""

    codec: Codec
    rest: float
    best: float


def best_codec(codecs: Sequence[Codec], moves: Sequence[tuple[int, float, bool]]) -> Choice | None:
    """The codec with the least remaining time; None if there is no codec or no time.

    Parameters
    ----------
    moves
        For each file and direction: bytes, seconds summed over processes, and True if the bytes were read.
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

    # Of equal codecs the first, which is the simplest.
    return min((left(codec) for codec in codecs), key=lambda choice: choice.rest)
