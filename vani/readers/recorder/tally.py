"""Sums over the calls of grammars, without expanding any of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.readers.probes import Probes
from vani.readers.signatures import Signatures

__all__ = ["Tally"]

Ints = NDArray[np.int64]


class Tally:
    """Sums over all grammars: calls by signature, ranks by file, kinds of calls with patterns by grammar."""

    def __init__(self, signatures: Signatures, files: int, ranks: Ints, probes: Probes) -> None:
        """`ranks[grammar]`: ranks that share it."""
        self._signatures, self._ranks, self._files = signatures, ranks, files
        self.probes = probes
        self.totals = np.zeros(len(signatures), dtype=np.int64)
        self.users = np.zeros(files, dtype=np.int32)
        self.kinds: Ints | None = None
        if signatures.slope.any():
            self.kinds = np.zeros(
                (len(ranks), int(signatures.slope_group.max(initial=-1)) + 1), dtype=np.int64
            )

    def add(self, grammar: Ints, ids: Ints, often: Ints) -> None:
        """Add the terminals of some grammars."""
        ranks = self._ranks[grammar]
        np.add.at(self.totals, ids, often * ranks)
        self.probes.see(self._signatures, ids)
        file = self._signatures.file[ids]
        named = np.flatnonzero(file >= 0)
        pairs = distinct(grammar[named] * max(1, self._files) + file[named])
        np.add.at(self.users, pairs % max(1, self._files), self._ranks[pairs // max(1, self._files)])
        if self.kinds is not None:
            group = self._signatures.slope_group[ids]
            some = group >= 0
            np.add.at(self.kinds, (grammar[some], group[some]), 1)
