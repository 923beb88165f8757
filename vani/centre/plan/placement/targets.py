"""Targets and stripes for the placement algorithms, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """Targets, one entry each; every column has shape (targets,).

    Attributes
    ----------
    size
        Capacity in bytes.
    base
        Bytes that count before anything is placed: weighted past use.
    room
        Bytes that may be added.
    server
        Number of its server, from 0 without gaps; -1 if unknown.
    """

    size: Floats
    base: Floats
    room: Floats
    server: Ints

    def __len__(self) -> int:
        return len(self.size)

    def part(self, indices: Ints) -> Targets:
        """A subset of the targets, given by index."""
        return Targets(self.size[indices], self.base[indices], self.room[indices], renumbered(self.server[indices]))

    @cached_property
    def server_sizes(self) -> Floats:
        """Capacity of each server's targets in bytes, shape (servers,)."""
        return self.by_server(self.size)

    def by_server(self, values: Floats) -> Floats:
        """Sum over the targets of each server, shape (servers,). Targets without a known server are left out."""
        known = self.server >= 0
        count = int(self.server.max(initial=-1)) + 1
        sums = np.zeros(count)
        np.add.at(sums, self.server[known], values[known])
        return sums


def renumbered(server: Ints) -> Ints:
    """Renumber servers from 0 without gaps. -1 stays."""
    known = server >= 0
    numbers = np.full(len(server), -1, dtype=np.int64)
    numbers[known] = np.unique(server[known], return_inverse=True)[1]
    return numbers


@dataclass(frozen=True)
class Stripes:
    """Stripes of all requests, one entry each, in request order.

    `first[i]` is the index of the first stripe of request i, and `first[-1]` the number of stripes.
    """

    bytes: Floats
    request: Ints
    first: Ints

    @classmethod
    def of(cls, requests: Sequence[Sequence[int]]) -> Stripes:
        """Build the columns from requests, each a sequence of the bytes of its stripes."""
        counts = np.array([len(request) for request in requests], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sizes = np.fromiter((size for request in requests for size in request), np.float64, int(first[-1]))
        return cls(sizes, np.repeat(np.arange(len(requests), dtype=np.int64), counts), first)

    def chosen(self, indices: Ints) -> Stripes:
        """A subset of the stripes in the given order, with `first` as if each were a request of its own."""
        return Stripes(self.bytes[indices], self.request[indices], np.arange(len(indices) + 1, dtype=np.int64))
