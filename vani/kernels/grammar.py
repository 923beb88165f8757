"""Kernels for grammars, see `vani.readers.recorder.grammar.Grammar`: decode and check, count, and expand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.kernels.library import available, call, dtype_of, note

_MOST_DEPTH = 128
"""Maximum depth: no program produces deeper grammars, and descending through more levels per call is too slow."""
_SHORT = 1 << 10
_ARENA = 1 << 22
"""Maximum number of ids that are kept for rules of up to `_SHORT` calls, from which longer rules are built."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rules:
    """A grammar with terminals as `values`; `highest` is the largest of them, or -1."""

    bodies: Ints
    values: Ints
    exponents: Ints
    lengths: Ints
    levels: tuple[Ints, ...]
    start: int
    highest: int


def decoded(stored: NDArray[np.int32], *, terminals: int, most_calls: int) -> Rules | None:
    """Decode a grammar; None if numpy must do it, for example because an integer is wrong.

    Parameters
    ----------
    terminals
        Number of entries in the call table.
    most_calls
        Maximum number of calls of a rule.
    """
    measured = call("rules_measure", stored=stored)
    if measured is None:
        return None
    rules, symbols, deepest = measured["sizes"].tolist()
    out = call(
        "rules",
        stored=stored,
        terminals=terminals,
        most_calls=most_calls,
        rules=rules,
        symbols=symbols,
        deepest=deepest,
    )
    if out is None:
        return None
    start, heights, highest = out["summary"].tolist()
    order, level = out["order"], out["level"]
    return Rules(
        out["bodies"],
        out["values"],
        out["exponents"],
        out["lengths"],
        tuple(order[level[i] : level[i + 1]] for i in range(heights)),
        start,
        highest,
    )


def used(
    bodies: Ints, values: Ints, exponents: Ints, levels: Sequence[Ints], *, start: int, names: int
) -> Ints | None:
    """Count the occurrences of each name, shape (names,); None if numpy must do it."""
    times = np.zeros(len(bodies) - 1, np.uint64)
    times[start] = 1
    out = call(
        "rules_used",
        bodies=bodies,
        values=values,
        exponents=exponents,
        order=np.concatenate(levels),
        rules=len(times),
        names=names,
        times=times,
    )
    return None if out is None else out["counts"].view(np.int64)


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
    """Yield the terminal ids in order, in arrays of `rows`, the last one shorter; it may end early.

    Parameters
    ----------
    levels
        Rules by height: those in a level use those in earlier ones.
    """
    if not available():
        return
    if len(levels) > _MOST_DEPTH:
        note("grammar", used=False)
        return
    order, offsets, size = _short_rules(lengths, levels, start)
    grammar = {
        "bodies": bodies,
        "lengths": lengths,
        "values": values,
        "exponents": exponents,
        "name": names,
        "offsets": offsets,
    }
    expanded = call("grammar_arena", **grammar, order=order, arena_ids=size)
    if expanded is None:
        return
    places, depth = np.zeros(len(levels), dtype_of("grammar", "places")), np.full(1, -1)
    left = int(lengths[start])
    while left > 0:
        wanted = min(rows, left)
        state = {"arena": expanded["arena"], "places": places, "depth": depth}
        out = call("grammar", **grammar, **state, start=start, rows=wanted)
        if out is None or len(out["ids"]) < wanted:
            return
        left -= wanted
        yield out["ids"]


def _short_rules(lengths: Ints, levels: Sequence[Ints], start: int) -> tuple[Ints, Ints, int]:
    """Short rules by height; start of each rule's ids, -1 for others; and the number of ids of all of them."""
    short = (lengths > 0) & (lengths <= _SHORT)
    # A rule is at least as long as those that it uses, so all rules up to a length include these.
    ids_up_to = np.cumsum(np.bincount(lengths[short]) * np.arange(int(lengths[short].max(initial=-1)) + 1))
    short &= lengths < np.searchsorted(ids_up_to, _ARENA, side="right")
    short[start] = False
    order = np.concatenate([level[short[level]] for level in levels])
    ends = np.cumsum(lengths[order])
    offsets = np.full(len(lengths), -1)
    offsets[order] = ends - lengths[order]
    return order, offsets, int(ends[-1]) if len(ends) else 0
