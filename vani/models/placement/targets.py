"""The targets that stripes are placed on, and the stripes, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Ints", "Stripes", "Targets", "counted_anew"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """One entry per target.

    Attributes
    ----------
    size
        Capacity in bytes.
    base
        Bytes that count before anything is placed: past use by its weight.
    room
        Bytes that may be added.
    server
        Its server, counted from 0 without gaps; -1: not known.
    """

    size: Floats
    base: Floats
    room: Floats
    server: Ints

    def __len__(self) -> int:
        return len(self.size)

    def part(self, some: Ints) -> Targets:
        """Some of the targets, by their numbers."""
        return Targets(self.size[some], self.base[some], self.room[some], counted_anew(self.server[some]))

    @cached_property
    def server_sizes(self) -> Floats:
        """Capacity of each server's targets in bytes."""
        return self.by_server(self.size)

    def by_server(self, values: Floats) -> Floats:
        """Sums over the targets of each server; those without a server are left out."""
        known = self.server >= 0
        count = int(self.server.max(initial=-1)) + 1
        sums = np.zeros(count)
        np.add.at(sums, self.server[known], values[known])
        return sums


def counted_anew(server: Ints) -> Ints:
    """The same servers, counted from 0 without gaps; -1 stays."""
    known = server >= 0
    numbers = np.full(len(server), -1, dtype=np.int64)
    numbers[known] = np.unique(server[known], return_inverse=True)[1]
    return numbers


@dataclass(frozen=True)
class Stripes:
    """Stripes of all requests, one entry each, those of a request side by side.

    `first[i]` is the first stripe of request i, `first[-1]` the number of all.
    """

    bytes: Floats
    request: Ints
    first: Ints

    @classmethod
    def of(cls, requests: Sequence[Sequence[int]]) -> Stripes:
        """Stripes of requests, each the bytes of its stripes."""
        counts = np.array([len(request) for request in requests], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sizes = np.fromiter((size for request in requests for size in request), np.float64, int(first[-1]))
        return cls(sizes, np.repeat(np.arange(len(requests), dtype=np.int64), counts), first)

    def chosen(self, some: Ints) -> Stripes:
        """Some of the stripes, in that order; `first` is that of separate stripes."""
        return Stripes(self.bytes[some], self.request[some], np.arange(len(some) + 1, dtype=np.int64))
