"""The stripe size of a component, chosen from how its file is written.

A process that writes a file in order reaches one stripe after another. With one contiguous piece per target (Tarazu,
section 5.8) it keeps one target busy at a time, and files that grow together meet on the same targets. Stripes of 1 to
16 MiB, several of which fit in a client's cache, keep all targets of a file busy at once. A stripe as large as
a process's region of a shared file is right if enough processes write to use all targets equally.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from vani.models.striping import LARGEST_STRIPE, STRIPE_UNIT, whole_stripes
from vani.units import MiB

Purpose = Literal["stated", "regions", "records", "dealing", "paper"]

PURPOSES: Final[dict[Purpose, str]] = {
    "stated": "as the layout states",
    "regions": "one process's region of the shared file is one stripe",
    "records": "a stripe contains complete records of the processes that take turns in the shared file",
    "dealing": "a process that writes the file in order keeps all its OSTs busy",
    "paper": "Tarazu's: one contiguous piece per OST, one at a time is used by a process that writes in order",
}

BUFFERED: Final = 16 * MiB
"""Largest stripe for a file written in order: several per target fit in a client (`max_dirty_mb`, RPCs in flight)."""

_USUAL: Final = 4 * MiB
"""Lustre's compiled default, for an unknown request size."""
_LARGEST_REGION: Final = 64 * MiB
"""As in the rule LUS002."""
_EVEN_ENOUGH: Final = 1.001
_UNEVEN: Final = 1.05
_ROUNDS: Final = 64
_PAIR: Final = 2 * STRIPE_UNIT


@dataclass(frozen=True)
class Writing:
    """How a file is written.

    `writers` is the number of processes, `request` the bytes of a request (None: unknown). `strided` means that the
    requests of different processes alternate.
    """

    writers: int = 1
    request: int | None = None
    strided: bool = False


@lru_cache(maxsize=4096)
def stripe_size_for(
    writing: Writing, start: int, filled: int, end: int | None, count: int
) -> tuple[int, Purpose]:
    """The stripe size of a component in bytes, and the reason for it.

    Parameters
    ----------
    start, end
        Offsets at which the component begins and ends; None: it ends with the file.
    filled
        Offset at which the file's bytes in it end, at most `end`.
    count
        Number of stripes.
    """
    if writing.writers > 1 and writing.strided and writing.request:
        size = whole_stripes(writing.request, MiB, BUFFERED)
        if end is None or end % size == 0:
            return size, "records"
    elif writing.writers > 1 and start == 0 and end is None:
        region, rest = divmod(filled, writing.writers)
        turns = writing.writers / count
        # A large stripe keeps a writer on one OST for long, which is right only if no other process writes to it.
        largest = LARGEST_STRIPE if writing.writers <= count else _LARGEST_REGION
        fits = MiB <= region <= largest and region % STRIPE_UNIT == 0 and rest == 0
        if fits and turns >= 1 and math.ceil(turns) / turns <= _UNEVEN:
            return region, "regions"
    if filled <= start:
        # No file is expected to reach this component. Lustre needs an end between two stripes.
        return _USUAL if end is None else max(STRIPE_UNIT, math.gcd(end, _USUAL)), "dealing"
    near = min(BUFFERED, max(MiB, 1 << (writing.request - 1).bit_length())) if writing.request else _USUAL
    return _dealt(start, filled, end, count, near), "dealing"


def _dealt(start: int, filled: int, end: int | None, count: int, near: int) -> int:
    """The size of 1 to 16 MiB that spreads the bytes most evenly over targets; of equal ones, the nearest to `near`."""
    piece = math.ceil((filled - start) / count)
    if end is not None:
        sizes = _divisors(end, BUFFERED)
        sizes = sizes[sizes >= min(MiB, int(sizes.max()), max(STRIPE_UNIT, piece // STRIPE_UNIT * STRIPE_UNIT))]
    elif piece < MiB:
        return STRIPE_UNIT * math.ceil(piece / STRIPE_UNIT)
    else:
        sizes = MiB << np.arange((BUFFERED // MiB).bit_length())
        if min(_unevenness(start, filled, int(size), count) for size in sizes) > _EVEN_ENOUGH:
            least = math.ceil(piece / BUFFERED)
            rounds = np.arange(least, min(piece // MiB, least + _ROUNDS) + 1)
            sizes = np.concatenate([sizes, STRIPE_UNIT * np.ceil(piece / rounds / STRIPE_UNIT).astype(np.int64)])

    def worth(size: int) -> tuple[float, float, int]:
        unevenness = _unevenness(start, filled, size, count)
        return unevenness if unevenness > _EVEN_ENOUGH else 1.0, abs(math.log2(size / near)), size

    return min((int(size) for size in sizes), key=worth)


def _unevenness(start: int, end: int, size: int, count: int) -> float:
    """Bytes of the fullest stripe over the mean of all."""
    on = stripe_bytes(start, end, size, count)
    return max(on) * count / max(1, sum(on))


def tarazu_stripe_size(length: int, count: int) -> int:
    """Stripe size by equations 2 and 3 of Tarazu: one piece per stripe, an even multiple of 64 KiB."""
    return _PAIR * max(1, math.ceil(length / (_PAIR * count)))


@lru_cache(maxsize=4096)
def settable(length: int, count: int, end: int | None) -> int:
    """The largest stripe size that Lustre accepts for a component and that fills its stripes evenly.

    Parameters
    ----------
    length
        Bytes of the component, or the file's bytes in a component without an end.
    end
        Offset at which the component ends; None: it ends with the file.
    """
    piece = tarazu_stripe_size(length, count)
    if end is None:
        if piece * count == length:
            return int(_divisors(piece, LARGEST_STRIPE).max())
        # The last stripe is short in any case: use as few rounds as possible.
        rounds = math.ceil(piece / LARGEST_STRIPE)
        return STRIPE_UNIT * math.ceil(piece / rounds / STRIPE_UNIT)
    exact, rest = divmod(length, count)
    alike = math.gcd(end, exact)
    if rest == 0 and alike % STRIPE_UNIT == 0:
        return int(_divisors(alike, LARGEST_STRIPE).max())
    return int(_divisors(end, min(LARGEST_STRIPE, max(STRIPE_UNIT, piece))).max())


@lru_cache(maxsize=4096)
def stripe_bytes(start: int, end: int, size: int, count: int) -> tuple[int, ...]:
    """Bytes of a file's range [start, end) on each of `count` targets with stripes of `size` bytes."""
    first = np.arange(count, dtype=np.int64) * size

    def before(offset: int) -> np.ndarray:
        rounds, rest = divmod(offset, size * count)
        return rounds * size + np.clip(rest - first, 0, size)

    return tuple((before(max(start, end)) - before(start)).tolist())


@lru_cache(maxsize=4096)
def _divisors(size: int, most: int) -> np.ndarray:
    """Divisors of `size` that are multiples of 64 KiB and at most `most`, ascending."""
    units, limit = size // STRIPE_UNIT, most // STRIPE_UNIT
    small = np.arange(1, math.isqrt(units) + 1, dtype=np.int64)
    small = small[units % small == 0]
    both = np.unique(np.concatenate([small, units // small]))
    return both[both <= limit] * STRIPE_UNIT
