"""The terminals that a grammar stands for, in order."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["terminals"]

_MOST_DEPTH = 128
"""Deeper grammars are no program's: to go through all levels for each call would take too long."""
_SHORT = 1 << 10
_ARENA = 1 << 22
"""Ids that are kept, those of rules up to `_SHORT` calls: longer ones are put together of these."""
_POINTER = ctypes.c_void_p

Ints = NDArray[np.int64]


class _Walk(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rules", "symbols", "names", "most_depth")),
        *(
            (name, _POINTER)
            for name in ("bodies", "lengths", "values", "exponents", "name", "offsets", "arena")
        ),
        ("arena_ids", ctypes.c_int64),
        ("places", _POINTER),
        ("depth", ctypes.c_int64),
    )


def terminals(
    bodies: Ints,
    lengths: Ints,
    values: Ints,
    exponents: Ints,
    names: Ints,
    *,
    start: int,
    levels: Sequence[Ints],
    rows: int,
) -> Iterator[NDArray[np.int32]]:
    """Yield the terminal ids in order, in arrays of `rows`, the last one shorter; all of them or fewer.

    Parameters
    ----------
    bodies, lengths, values, exponents, names, start
        See `vani.readers.recorder.grammar.Grammar`, which goes on where this ends.
    levels
        Rules by height: those of a level use those of earlier ones.
    """
    walk_type = ctypes.POINTER(_Walk)
    fill = function("vani_grammar_arena", walk_type, _POINTER, ctypes.c_int64)
    begin = function("vani_grammar_start", walk_type, ctypes.c_int64)
    go_on = function("vani_grammar_next", walk_type, _POINTER, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
    if fill is None or begin is None or go_on is None:
        return
    depth, rules, symbols = len(levels), len(lengths), len(values)
    if depth > _MOST_DEPTH:
        note("grammar", used=False)
        return
    places: NDArray[Any] = np.zeros((depth, 3), np.int64)
    order, offsets, arena = _arena(lengths, levels, start)
    walk = _Walk(
        rules=rules,
        symbols=symbols,
        names=len(names),
        most_depth=depth,
        bodies=address(bodies, np.int64, rules + 1),
        lengths=address(lengths, np.int64),
        values=address(values, np.int64),
        exponents=address(exponents, np.int64, symbols),
        name=address(names, np.int64),
        offsets=address(offsets, np.int64, rules),
        arena=address(arena, np.int32),
        arena_ids=len(arena),
        places=address(places, np.int64),
    )
    used = fill(ctypes.byref(walk), address(order, np.int64), len(order)) == 0
    used = used and begin(ctypes.byref(walk), start) == 0
    left = int(lengths[start])
    while used and left > 0:
        written = ctypes.c_int64()
        ids = np.empty(min(rows, left), np.int32)
        used = go_on(ctypes.byref(walk), address(ids, np.int32), len(ids), ctypes.byref(written)) == 0
        if not used or written.value < len(ids):
            used = False
            break
        left -= len(ids)
        yield ids
    note("grammar", used=used)


def _arena(lengths: Ints, levels: Sequence[Ints], start: int) -> tuple[Ints, Ints, NDArray[np.int32]]:
    """Room for the ids of short rules: these in order of height, where the ids of each rule begin, and the room."""
    short = (lengths > 0) & (lengths <= _SHORT)
    # Whatever a rule uses is no longer than itself: with all rules up to a length, that is there, too.
    held = np.cumsum(np.bincount(lengths[short]) * np.arange(int(lengths[short].max(initial=-1)) + 1))
    short &= lengths < np.searchsorted(held, _ARENA, side="right")
    short[start] = False
    order = np.concatenate([level[short[level]] for level in levels])
    ends = np.cumsum(lengths[order])
    offsets = np.full(len(lengths), -1)
    offsets[order] = ends - lengths[order]
    return order, offsets, np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
