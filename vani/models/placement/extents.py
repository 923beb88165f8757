"""The bytes of a file on each stripe, by component of its layout.

Tarazu cuts a component into one piece per stripe (section 5.5.2): stripe size = length / stripes, rounded up to an
even multiple of 64 KiB (equations 2 and 3). Lustre refuses some of these sizes: a component's end is a multiple of its
stripe size, and a stripe is smaller than 4 GiB. `settable` is the largest size that Lustre takes and that puts the
same bytes on each stripe.

Lustre counts stripes from the beginning of the file, not of the component (`lov_stripe_number` of the release).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from vani.models.pfl import Component, Layout
from vani.models.striping import LARGEST_STRIPE, STRIPE_UNIT

__all__ = ["Extent", "extents", "settable", "stripe_bytes", "tarazu_stripe_size"]

_EVEN: Final = 2 * STRIPE_UNIT


@dataclass(frozen=True)
class Extent:
    """The part of a file in one component.

    `number` counts from 1; `end` is the component's, or the file's where the component has none. `size` is the stripe
    size by which `stripes` (bytes, in the order of stripes) are counted, `settable` the one that a command can name.
    `why_free` says why no targets can be listed for it; None: they can.
    """

    number: int
    start: int
    end: int
    count: int
    size: int
    settable: int
    stripes: tuple[int, ...]
    why_free: str | None = None


def extents(layout: Layout, size: int, targets: int, *, as_printed: bool = False) -> list[Extent]:
    """The components that a file of `size` bytes reaches, at least the first.

    Parameters
    ----------
    targets
        What a stripe count of -1 stands for, as far as a file may have so many stripes.
    as_printed
        Count bytes by Tarazu's stripe sizes, extent by extent, whether Lustre takes them or not.
    """
    pieces = []
    stated: int | None = None
    on_all = sum(part.count == -1 for part in layout.components)
    wide = max(1, min(targets, 1 + (layout.max_stripes - layout.stripes) // max(1, on_all)))
    for number, (start, part) in enumerate(zip(layout.starts(), layout.components, strict=True), start=1):
        stated = part.size or stated
        if start >= size and number > 1:
            break
        if part.on_mdt:
            continue
        count = wide if part.count == -1 else part.count or 1
        whole = (part.end if part.end is not None else max(size, start + 1)) - start
        ours = stated or tarazu_stripe_size(whole, count)
        can = stated or settable(whole, count, part.end)
        filled = min(size, part.end if part.end is not None else size)
        # The paper counts from where the extent begins.
        place = (0, filled - start, ours) if as_printed else (start, filled, can)
        pieces.append(
            Extent(
                number,
                start,
                end=part.end if part.end is not None else max(size, start),
                count=count,
                size=ours if as_printed else can,
                settable=can,
                stripes=stripe_bytes(*place, count),
                why_free=_why_free(part),
            )
        )
    return pieces


def _why_free(part: Component) -> str | None:
    if part.overstripe:
        return "it is overstriped: several of its stripes lie on one OST"
    if part.extension is not None:
        return "it extends itself: where it goes on is decided as it grows"
    if part.pool is not None:
        return f"it lies in the pool {part.pool}: a snapshot does not list the OSTs of pools"
    return None


def tarazu_stripe_size(length: int, count: int) -> int:
    """Equations 2 and 3: one piece per stripe, an even multiple of 64 KiB."""
    return _EVEN * max(1, math.ceil(length / (_EVEN * count)))


@lru_cache(maxsize=4096)
def settable(length: int, count: int, end: int | None) -> int:
    """The largest stripe size that Lustre takes for a component and that fills its stripes alike.

    Parameters
    ----------
    length
        Bytes of the component; of one without an end, those that the file has in it.
    end
        Where the component ends; None: with the file.
    """
    piece = tarazu_stripe_size(length, count)
    if end is None:
        if piece * count == length:
            return _largest_divisor(piece, LARGEST_STRIPE)
        # The last stripe is short in any case; as few rounds as it takes.
        rounds = math.ceil(piece / LARGEST_STRIPE)
        return STRIPE_UNIT * math.ceil(piece / rounds / STRIPE_UNIT)
    exact, rest = divmod(length, count)
    alike = math.gcd(end, exact)
    if rest == 0 and alike % STRIPE_UNIT == 0:
        return _largest_divisor(alike, LARGEST_STRIPE)
    return _largest_divisor(end, min(LARGEST_STRIPE, max(STRIPE_UNIT, piece)))


@lru_cache(maxsize=4096)
def stripe_bytes(start: int, end: int, size: int, count: int) -> tuple[int, ...]:
    """Bytes of [start, end) of a file on each of `count` stripes of `size` bytes."""
    first = np.arange(count, dtype=np.int64) * size

    def before(offset: int) -> np.ndarray:
        rounds, rest = divmod(offset, size * count)
        return rounds * size + np.clip(rest - first, 0, size)

    return tuple((before(max(start, end)) - before(start)).tolist())


def _largest_divisor(size: int, most: int) -> int:
    """The largest divisor of `size` of at most `most` bytes; all in whole units of 64 KiB."""
    units, limit = size // STRIPE_UNIT, most // STRIPE_UNIT
    if units <= limit:
        return units * STRIPE_UNIT
    small = np.arange(1, math.isqrt(units) + 1, dtype=np.int64)
    small = small[units % small == 0]
    both = np.concatenate([small, units // small])
    return int(both[both <= limit].max()) * STRIPE_UNIT
