"""Grammars as they are stored: checked, put in order, and counted."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.kernels.arrays import address
from vani.kernels.library import function, note

__all__ = ["Rules", "decoded", "used"]

_POINTER = ctypes.c_void_p

Ints = NDArray[np.int64]


class _Rules(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in (
                *("integers", "terminals", "most_calls", "rules", "symbols", "deepest"),
                *("start", "levels", "highest"),
            )
        ),
        *(
            (name, _POINTER)
            for name in (
                *("stored", "bodies", "values", "exponents", "lengths", "order", "level"),
                *("index", "height", "steps"),
            )
        ),
    )


@dataclass(frozen=True, eq=False)
class Rules:
    """See `vani.readers.recorder.grammar.Grammar`; `values` hold terminals, of which `highest` is the largest or -1."""

    bodies: Ints
    values: Ints
    exponents: Ints
    lengths: Ints
    levels: tuple[Ints, ...]
    start: int
    highest: int


def decoded(stored: NDArray[Any], *, terminals: int, most_calls: int) -> Rules | None:
    """A grammar of its 4-byte integers; None if numpy decides, as where one is wrong.

    Parameters
    ----------
    terminals
        Entries of the call table.
    most_calls
        That a rule may stand for.
    """
    measure = function("vani_rules_measure", ctypes.POINTER(_Rules))
    decode = function("vani_rules", ctypes.POINTER(_Rules))
    if measure is None or decode is None:
        return None
    # Grammars of many ranks lie one behind the other, wherever.
    stored = np.require(stored, np.int32, ["C", "A"])
    given = _Rules(
        integers=len(stored), terminals=terminals, most_calls=most_calls, stored=address(stored, np.int32)
    )
    if measure(ctypes.byref(given)):
        note("rules", used=False)
        return None
    rules, symbols = given.rules, given.symbols
    wide = {"bodies": rules + 1, "values": symbols, "exponents": symbols, "lengths": rules}
    wide |= {"order": rules, "level": rules + 1, "steps": 2 * rules}
    arrays = {name: np.empty(n, np.int64) for name, n in wide.items()}
    narrow = {"index": np.empty(given.deepest + 1, np.int32), "height": np.empty(rules, np.int32)}
    for name, array in arrays.items():
        setattr(given, name, address(array, np.int64))
    for name, numbers in narrow.items():
        setattr(given, name, address(numbers, np.int32))
    done = decode(ctypes.byref(given)) == 0
    note("rules", used=done)
    if not done:
        return None
    order, level = arrays["order"], arrays["level"]
    levels = tuple(order[level[i] : level[i + 1]] for i in range(given.levels))
    return Rules(
        arrays["bodies"],
        arrays["values"],
        arrays["exponents"],
        arrays["lengths"],
        levels,
        start=given.start,
        highest=given.highest,
    )


def used(
    bodies: Ints, values: Ints, exponents: Ints, levels: Sequence[Ints], *, start: int, names: int
) -> Ints | None:
    """How often each name occurs, shape (names,); None if numpy decides."""
    count = function("vani_rules_used", ctypes.POINTER(_Rules), ctypes.c_int64, _POINTER, _POINTER)
    if count is None:
        return None
    rules = len(bodies) - 1
    order = np.concatenate([level.astype(np.int64, copy=False) for level in levels])
    given = _Rules(
        rules=rules,
        symbols=len(values),
        bodies=address(bodies, np.int64),
        values=address(values, np.int64),
        exponents=address(exponents, np.int64, len(values)),
        order=address(order, np.int64, rules),
    )
    times, counts = np.zeros(rules, np.int64), np.zeros(names, np.int64)
    times[start] = 1
    done = count(ctypes.byref(given), names, address(times, np.int64), address(counts, np.int64)) == 0
    note("used", used=done)
    return counts if done else None
