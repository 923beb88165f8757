"""Parts of a file by the object that they lie on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vani.errors import InputError
from vani.models.pfl import parse_options
from vani.plan.simulate.rates import Floats

__all__ = ["Component", "Piece", "components_of", "pieces_of"]


@dataclass(frozen=True)
class Component:
    """Bytes `start` to `end` (None: of the file) on `count` objects, dealt in stripes of `size` bytes."""

    start: float
    end: float | None
    count: int
    size: float


@dataclass(frozen=True)
class Piece:
    """Bytes that are moved at one time: of component `component`, `share[o]` of them on its object `o`."""

    component: int
    bytes: float
    share: Floats


def components_of(
    layout: int | str | None, *, targets: int, count: int, size: int, where: str
) -> tuple[Component, ...]:
    """Components of a layout: stripes of a file, options of `lfs setstripe`, or the machine's own (`count`, `size`).

    All targets are `targets`; no component has more, since its objects lie on distinct ones.

    Raises
    ------
    InputError
        The options are none, or a part lies where nothing is simulated: on the metadata target.
    """
    if layout is None or isinstance(layout, int):
        wanted = layout or count
        return (Component(0.0, None, min(targets, wanted if wanted > 0 else targets), float(size)),)
    try:
        parts = parse_options(layout)
    except InputError as error:
        raise InputError(error.what, where=where, todo=error.todo) from None
    components, stated = [], float(size)
    for start, part in zip(parts.starts(), parts.components, strict=True):
        if part.on_mdt:
            raise InputError(
                "the layout has a part on the metadata target",
                where=where,
                todo="leave it out: bytes are simulated on targets",
            )
        stated = float(part.size or stated)
        wanted = part.count if part.count is not None else count
        components.append(
            Component(
                float(start),
                None if part.end is None else float(part.end),
                min(targets, wanted if wanted > 0 else targets),
                stated,
            )
        )
    return tuple(components)


def pieces_of(
    components: tuple[Component, ...], size: float, begin: float, end: float, *, in_turn: bool
) -> list[Piece]:
    """Pieces in which bytes `begin` to `end` of a file of `size` bytes are moved, one after the other.

    In turn: all objects of a component at once, each with its share. Else each object holds one contiguous piece of
    its component, and one comes after the other.
    """
    pieces = []
    for number, part in enumerate(components):
        low, high = max(begin, part.start), min(end, size if part.end is None else part.end)
        if high <= low:
            continue
        if in_turn:
            on = _dealt(low - part.start, high - part.start, part.count, part.size)
            pieces.append(Piece(number, high - low, on / on.sum()))
            continue
        # A component that the file fills in part keeps its stripes.
        length = (max(size, high) if part.end is None else part.end) - part.start
        stripe = length / part.count
        for stripe_number in range(part.count):
            start = part.start + stripe_number * stripe
            moved = min(high, start + stripe) - max(low, start)
            if moved > 0:
                share = np.zeros(part.count)
                share[stripe_number] = 1.0
                pieces.append(Piece(number, moved, share))
    return pieces


def _dealt(low: float, high: float, count: int, stripe: float) -> Floats:
    """Bytes on each object of bytes `low` to `high` of a component whose stripes are dealt in turn."""
    return _below(high, count, stripe) - _below(low, count, stripe)


def _below(end: float, count: int, stripe: float) -> Floats:
    rounds, rest = divmod(end, stripe * count)
    below: Floats = rounds * stripe + np.clip(rest - np.arange(count) * stripe, 0.0, stripe)
    return below
