"""Extents and stripe sizes of files, the commands that create them, and Lustre's own allocator."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeVar

import numpy as np

from vani.models.pfl import Component, Layout
from vani.models.striping import LARGEST_STRIPE, STRIPE_UNIT, whole_stripes
from vani.units import MiB

# The bytes of a file on each stripe, by component of its layout.
#
# Tarazu cuts a component into one piece per stripe (section 5.5.2): stripe size = length / stripes, rounded up to an
# even multiple of 64 KiB (equations 2 and 3). Lustre refuses some of these sizes: a component must end at a multiple of
# its stripe size, and a stripe must be smaller than 4 GiB. `settable` is the largest size that Lustre accepts and that
# puts the same bytes on each stripe. Other plans choose the size from how the file is written (`stripe_size`).
#
# Lustre counts stripes from the beginning of the file, not of the component (`lov_stripe_number` in the release).

@dataclass(frozen=True)
class Extent:
    """The part of a file in one component.

    `number` counts from 1. `end` is the component's end, or the file's if the component has none. `stripes` are the
    bytes of each stripe with a stripe size of `size`. `settable` is the stripe size for a command, and `purpose` the
    reason for it. `why_free` states why no targets can be listed for the part; None if they can. A part on the
    metadata target has no stripes but `on_mdt` bytes.
    """

    number: int
    start: int
    end: int
    count: int
    size: int
    settable: int
    stripes: tuple[int, ...]
    purpose: Purpose
    why_free: str | None = None
    on_mdt: int | None = None


def extents(
    layout: Layout, size: int, targets: int, writing: Writing | None = None, most: int | None = None
) -> list[Extent]:
    """The components that a file of `size` bytes reaches, up to at least the first with targets.

    Parameters
    ----------
    targets
        Number of targets that a stripe count of -1 means, limited by the most stripes of a file.
    writing
        How the file is written. None: count bytes with Tarazu's stripe sizes, extent by extent, even if Lustre refuses
        these sizes.
    most
        Number of targets in service, the most stripes of a component; None: unknown.
    """
    pieces: list[Extent] = []
    stated: int | None = None
    on_all = sum(part.count == -1 for part in layout.components)
    wide = max(1, min(targets, 1 + (layout.max_stripes - layout.stripes) // max(1, on_all)))
    for number, (start, part) in enumerate(zip(layout.starts(), layout.components, strict=True), start=1):
        stated = part.size or stated
        if start >= size and any(piece.on_mdt is None for piece in pieces):
            break
        filled = min(size, part.end if part.end is not None else size)
        if part.on_mdt:
            end = part.end or 0
            pieces.append(Extent(number, start, end, 0, end, end, (), "stated", on_mdt=filled - start))
            continue
        # As Lustre does, stripes that exceed the OSTs are left out.
        count = wide if part.count == -1 else min(part.count or 1, most or part.count or 1)
        whole = (part.end if part.end is not None else max(size, start + 1)) - start
        if stated is not None:
            counted_by = sets = stated
            purpose: Purpose = "stated"
        elif writing is None:
            counted_by, sets, purpose = tarazu_stripe_size(whole, count), settable(whole, count, part.end), "paper"
        else:
            sets, purpose = stripe_size_for(writing, start, max(filled, start), part.end, count)
            counted_by = sets
        # The paper counts stripes from the beginning of the extent.
        place = (0, filled - start, counted_by) if writing is None else (start, filled, sets)
        pieces.append(
            Extent(
                number,
                start,
                end=part.end if part.end is not None else max(size, start),
                count=count,
                size=counted_by,
                settable=sets,
                stripes=stripe_bytes(*place, count),
                purpose=purpose,
                why_free=_why_free(part),
            )
        )
    return pieces


def _why_free(part: Component) -> str | None:
    if part.overstripe:
        return "it is overstriped: several of its stripes are on one OST"
    if part.extension is not None:
        return "it extends itself: its next place is decided as it grows"
    if part.pool is not None:
        return f"it is in the pool {part.pool}: a snapshot does not list the OSTs of pools"
    return None


# The stripe size of a component, chosen from how its file is written.
#
# A process that writes a file in order reaches one stripe after another. With one contiguous piece per target
# (Tarazu,
# section 5.8) it keeps one target busy at a time, and files that grow together meet on the same targets.
# Stripes of 1 to
# 16 MiB, several of which fit in a client's cache, keep all targets of a file busy at once. A stripe as large as
# a process's region of a shared file is right if enough processes write to use all targets equally.

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
def stripe_size_for(writing: Writing, start: int, filled: int, end: int | None, count: int) -> tuple[int, Purpose]:
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
    return float(max(on) * count / max(1, sum(on)))


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


Bytes = TypeVar("Bytes", int, float)
"""Whole bytes stay exact."""


@lru_cache(maxsize=4096, typed=True)
def stripe_bytes(start: Bytes, end: Bytes, size: Bytes, count: int) -> tuple[Bytes, ...]:
    """Bytes of a file's range [start, end) on each of `count` targets with stripes of `size` bytes."""
    first = np.arange(count) * size

    def before(offset: Bytes) -> np.ndarray:
        rounds, rest = divmod(offset, size * count)
        return np.asarray(rounds * size + np.clip(rest - first, 0, size))

    return tuple((before(max(start, end)) - before(start)).tolist())


@lru_cache(maxsize=4096)
def _divisors(size: int, most: int) -> np.ndarray:
    """Divisors of `size` that are multiples of 64 KiB and at most `most`, ascending."""
    units, limit = size // STRIPE_UNIT, most // STRIPE_UNIT
    small = np.arange(1, math.isqrt(units) + 1, dtype=np.int64)
    small = small[units % small == 0]
    both = np.unique(np.concatenate([small, units // small]))
    return both[both <= limit] * STRIPE_UNIT


def sized(layout: Layout, parts: Sequence[Extent]) -> Layout:
    """A layout with the stripe sizes of a plan."""
    sizes = {extent.number: extent.settable for extent in parts if extent.on_mdt is None}
    components = (
        part if part.on_mdt or number not in sizes else replace(part, size=sizes[number])
        for number, part in enumerate(layout.components, start=1)
    )
    return Layout(tuple(components), layout.max_stripes)


# The `lfs setstripe` command that creates a file on chosen OSTs, for any layout that Lustre accepts.

def setstripe(path: str, layout: Layout, sizes: Mapping[int, int], osts: Mapping[int, Sequence[int]]) -> str:
    """The command, with every word quoted.

    It also sets components that the file is not expected to reach, without OSTs, in case the file grows.

    Parameters
    ----------
    sizes
        Stripe sizes of the components that the file reaches, by component number.
    osts
        OSTs by component number. Lustre chooses those of components without an entry.

    Raises
    ------
    InputError
        Lustre would refuse the layout.
    """
    parts: list[Component] = []
    for number, (start, part) in enumerate(zip(layout.starts(), layout.components, strict=True), start=1):
        if part.on_mdt:
            parts.append(part)
            continue
        size = part.size or sizes.get(number)
        if size is None:
            size, _ = stripe_size_for(Writing(), start, 0, part.end, max(1, part.count or 1))
        chosen = osts.get(number)
        if chosen is None:
            parts.append(replace(part, count=part.count or 1, size=size))
        else:
            parts.append(replace(part, count=len(chosen), size=size, osts=tuple(chosen)))
    return f"lfs setstripe {Layout(tuple(parts), layout.max_stripes).to_options()} {shlex.quote(path)}"
