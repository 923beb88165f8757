"""Actual creations of a run in order and predicted ones, as columns, and their packed form in a history."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.history.names import PlainNames

WITHIN: Final = 0.01
"""Relative difference up to which a predicted size is right."""
LARGEST: Final = 1 << 62
NO_RANK: Final = -1
"""Rank of files that several processes create together, and of files with an unknown creator."""

_WIDE: Final = 1 << 32


@dataclass(frozen=True)
class Creations:
    """Files that a run created, in order.

    Attributes
    ----------
    sizes, ranks, stripes
        Shape (creations,): final size in bytes; rank of the creating process, or `NO_RANK`; stripe count, 0 if
        unknown.
    paths
        Paths as the program named them; empty if unknown.
    """

    sizes: Ints
    ranks: Ints
    stripes: Ints
    paths: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def values(self) -> Floats:
        """Sizes as floats."""
        return self.sizes.astype(np.float64)

    @cached_property
    def nth(self) -> Ints:
        """Index of each creation within its rank, from 0."""
        return nth_of_rank(self.ranks)

    @cached_property
    def _sorted_keys(self) -> tuple[Ints, Ints]:
        keys = _keys(self.ranks, self.nth)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def first(self, count: int) -> Creations:
        """The first `count` creations."""
        return self.part(0, count)

    def part(self, begin: int, end: int | None) -> Creations:
        """Creations from `begin` up to and excluding `end`."""
        cut = slice(begin, end)
        return Creations(self.sizes[cut], self.ranks[cut], self.stripes[cut], self.paths[cut])

    def find(self, ranks: Ints, nth: Ints) -> Ints:
        """Index of the nth creation of each rank; -1 if there is none. All of shape (wanted,)."""
        places = np.full(len(ranks), -1, dtype=np.int64)
        keys, order = self._sorted_keys
        if not len(keys):
            return places
        wanted = _keys(ranks, nth)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        there = (keys[at] == wanted) & (nth >= 0)
        places[there] = order[at[there]]
        return places

    def at(self, ranks: Ints, nth: Ints) -> Floats:
        """Size of the nth creation of each rank; NaN if there is none."""
        places = self.find(ranks, nth)
        sizes = np.full(len(places), np.nan)
        sizes[places >= 0] = self.values[places[places >= 0]]
        return sizes


@dataclass(frozen=True)
class Foreseen:
    """The creations that a predictor expects next, in order.

    Attributes
    ----------
    sizes
        Bytes, shape (creations,); NaN without a prediction.
    ranks
        Shape (creations,).
    law
        The law that the predictor found, in a few words.
    """

    sizes: Floats
    ranks: Ints
    law: str = ""

    def __len__(self) -> int:
        return len(self.sizes)

    def find(self, came: Creations) -> Ints:
        """Index of the prediction of each creation: the nth of a rank for its nth; -1 without one."""
        none = np.zeros(len(self), dtype=np.int64)
        return Creations(none, self.ranks, none).find(came.ranks, nth_of_rank(came.ranks))

    def sizes_at(self, places: Ints) -> Floats:
        """Predicted sizes at these indices; NaN for -1."""
        return np.where(places >= 0, np.append(self.sizes, np.nan)[places], np.nan)


def nothing() -> Creations:
    """An empty sequence of creations."""
    return of_sizes(())


def of_sizes(sizes: Sequence[int], ranks: Sequence[int] | None = None) -> Creations:
    """Creations with known sizes, and ranks if given."""
    size_column = np.asarray(sizes, dtype=np.int64)
    who = np.full(len(size_column), NO_RANK) if ranks is None else np.asarray(ranks)
    return Creations(size_column, who.astype(np.int64), np.zeros(len(size_column), dtype=np.int64))


def joined(parts: Sequence[Creations]) -> Creations:
    """Runs concatenated, at least one."""
    sizes, ranks, stripes = zip(*((part.sizes, part.ranks, part.stripes) for part in parts), strict=True)
    return Creations(np.concatenate(sizes), np.concatenate(ranks), np.concatenate(stripes))


def nth_of_rank(ranks: Ints, before: Creations | None = None) -> Ints:
    """Index of each creation within its rank, starting at the rank's number of creations `before` (default 0)."""
    if not len(ranks):
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(ranks, kind="stable")
    sorted_ranks = ranks[order]
    starts = np.flatnonzero(np.r_[True, sorted_ranks[1:] != sorted_ranks[:-1]])
    counts = np.diff(np.r_[starts, len(ranks)])
    nth = np.empty(len(ranks), dtype=np.int64)
    nth[order] = np.arange(len(ranks)) - np.repeat(starts, counts)
    return nth if before is None else nth + count_by_rank(before, ranks)


def count_by_rank(run: Creations, ranks: Ints) -> Ints:
    """Number of creations of each of these ranks in a run."""
    who, created = np.unique(run.ranks, return_counts=True)
    if not len(who):
        return np.zeros(len(ranks), dtype=np.int64)
    at = np.minimum(np.searchsorted(who, ranks), len(who) - 1)
    return np.where(who[at] == ranks, created[at], 0)


def places_by_rank(ranks: Ints) -> dict[int, Ints]:
    """Indices of each rank's creations, in order."""
    order = np.argsort(ranks, kind="stable")
    who, starts = np.unique(ranks[order], return_index=True)
    return dict(zip(who.tolist(), np.split(order, starts[1:]), strict=True)) if len(who) else {}


def is_right(foreseen: Floats, came: Floats) -> Flags:
    """Whether sizes are within 1 % of the actual ones; False for a size without a prediction."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(foreseen - came) <= WITHIN * came)


def _keys(ranks: Ints, nth: Ints) -> Ints:
    return (ranks + 1) * _WIDE + nth


_MAX_RANK = 1 << 28
_MAX_INFLATED: Final = 1 << 28
"""Maximum unpacked size in bytes: more than a million files with long paths."""


def pack_creations(creations: Creations) -> bytes:
    """Pack creations into bytes; paths that are not UTF-8 are escaped."""
    paths = [os.fsencode(path).decode(errors="backslashreplace") for path in creations.paths]
    columns = {"size": creations.sizes, "rank": creations.ranks, "stripes": creations.stripes}
    tree = {**{name: column.tolist() for name, column in columns.items()}, "path": paths}
    return zlib.compress(json.dumps(tree, separators=(",", ":")).encode())


def inflated(content: bytes) -> Any:
    """The document in deflated JSON of limited size.

    Raises
    ------
    ValueError, zlib.error
        There is none.
    """
    stream = zlib.decompressobj()
    text = stream.decompress(content, _MAX_INFLATED)
    if not stream.eof:
        raise ValueError("is cut off, or too large")
    return json.loads(text)


def unpack_creations(content: bytes) -> Creations:
    """Unpack creations.

    Raises
    ------
    ValueError
        The content is invalid.
    """
    try:
        tree = inflated(content)
        columns = [np.array(tree[name], dtype=np.int64) for name in ("size", "rank", "stripes")]
        paths = tuple(tree["path"])
    except (zlib.error, KeyError, TypeError, OverflowError) as error:
        raise ValueError("no creations") from error
    sizes, ranks, stripes = columns
    lengths = {len(column) for column in columns} | ({len(paths)} if paths else set())
    if len(lengths) > 1 or any(column.ndim != 1 for column in columns) or not all(isinstance(of, str) for of in paths):
        raise ValueError("no creations")
    if ((sizes < 0) | (sizes > LARGEST) | (ranks < NO_RANK) | (ranks > _MAX_RANK) | (stripes < 0)).any():
        raise ValueError("no creations")
    return Creations(sizes, ranks, stripes, paths)


def hide_creations(content: bytes, names: PlainNames) -> bytes:
    """Packed creations with paths rewritten by `names`."""
    if names.key_id is None:
        return content
    plain = unpack_creations(content)
    paths = tuple(map(names.path, plain.paths))
    return pack_creations(Creations(plain.sizes, plain.ranks, plain.stripes, paths))
