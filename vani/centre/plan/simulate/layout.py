"""Splits a file into the parts on each object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vani.centre.plan.creations import layout_of
from vani.centre.plan.placement.stripe_size import BUFFERED
from vani.centre.plan.simulate.rates import Floats

if TYPE_CHECKING:
    from vani.centre.plan.schema import PlacedExtent

@dataclass(frozen=True)
class Component:
    """Bytes `start` to `end` (None: end of the file) on `count` objects, round-robin in stripes of `size` bytes.

    A component without objects is on the metadata target.
    """

    start: float
    end: float | None
    count: int
    size: float


@dataclass(frozen=True)
class Piece:
    """Bytes of a component that are moved at the same time, with `share[o]` of them on its object `o`."""

    component: int
    bytes: float
    share: Floats


def components_of(
    layout: int | str | None, *, targets: int, count: int, size: int, where: str
) -> tuple[Component, ...]:
    """Components of a layout in jobs.yaml; the machine's defaults are `count` and `size`.

    A component has at most `targets` objects, because each is on a different target.

    Raises
    ------
    InputError
        The text is not a valid layout.
    """
    if layout is None or isinstance(layout, int):
        wanted = layout or count
        return (Component(0.0, None, min(targets, wanted if wanted > 0 else targets), float(size)),)
    parts, _ = layout_of(layout, {}, where)
    components, stated = [], float(size)
    for start, part in zip(parts.starts(), parts.components, strict=True):
        if not part.on_mdt:
            stated = float(part.size or stated)
        wanted = part.count if part.count is not None else count
        objects = 0 if part.on_mdt else min(targets, wanted if wanted > 0 else targets)
        components.append(Component(float(start), part.end and float(part.end), objects, stated))
    return tuple(components)


def components_of_plan(extents: Sequence[PlacedExtent]) -> tuple[Component, ...]:
    """Components that a plan sets. The last extends to the end of the file."""
    last = len(extents)
    return tuple(
        Component(
            float(extent.start),
            None if number == last else float(extent.end),
            len(extent.osts),
            float(extent.set_stripe_size),
        )
        for number, extent in enumerate(extents, start=1)
    )


def pieces_of(
    components: tuple[Component, ...],
    size: float,
    begin: float,
    end: float,
    *,
    in_turn: bool,
    strided: bool = False,
) -> list[Piece]:
    """Successive pieces in which a process moves bytes `begin` to `end` of a file of `size` bytes.

    With `in_turn`, stripes are round-robin. If a client can buffer several stripes, or processes alternate in the file
    (`strided`), all objects of a component are used at once; otherwise one stripe after another. Without `in_turn`,
    each object has one contiguous piece of its component, and they are used in sequence.
    """
    pieces = []
    for number, part in enumerate(components):
        low, high = max(begin, part.start), min(end, size if part.end is None else part.end)
        if high <= low:
            continue
        if not part.count:
            pieces.append(Piece(number, high - low, np.zeros(0)))
            continue
        if in_turn and (part.size <= BUFFERED or strided or part.count == 1):
            on = dealt(part, low, high)
            pieces.append(Piece(number, high - low, on / on.sum()))
            continue
        # A partly filled component keeps its stripe size.
        length = (max(size, high) if part.end is None else part.end) - part.start
        stripe = part.size if in_turn else length / part.count
        for stripe_number in range(int((low - part.start) // stripe), math.ceil((high - part.start) / stripe)):
            start = part.start + stripe_number * stripe
            moved = min(high, start + stripe) - max(low, start)
            if moved > 0:
                share = np.zeros(part.count)
                share[stripe_number % part.count] = 1.0
                pieces.append(Piece(number, moved, share))
    return pieces


def dealt(part: Component, low: float, high: float) -> Floats:
    """Bytes `low` to `high` of a file on each object of a component with round-robin stripes, shape (objects,)."""
    before, after = (_below(end - part.start, part.count, part.size) for end in (low, high))
    return after - before


def _below(end: float, count: int, stripe: float) -> Floats:
    rounds, rest = divmod(end, stripe * count)
    below: Floats = rounds * stripe + np.clip(rest - np.arange(count) * stripe, 0.0, stripe)
    return below
