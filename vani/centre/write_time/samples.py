"""Samples of writes and their times as columns, and the test of how precisely a mean time is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from vani.errors import InputError, one_line

Floats = npt.NDArray[np.float64]

MOST_WRITES: Final = 200_000


@dataclass(frozen=True)
class Samples:
    """Writes and their times.

    Parameters
    ----------
    numbers
        Numeric columns by name, shape (samples,). Vani knows the meaning of `nodes`, `processes`, `bytes`,
        `stripe_count`, `io_nodes` and `request`; others are used unchanged.
    words
        Text columns by name, with each sample's setting, shape (samples,).
    seconds
        Mean time of each sample, shape (samples,).
    standard_error
        Standard error relative to each mean, shape (samples,); NaN for a single measurement. None: unknown for all.
    """

    numbers: Mapping[str, Floats]
    words: Mapping[str, npt.NDArray[np.str_]]
    seconds: Floats
    standard_error: Floats | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    def only(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Samples:
        """The samples selected by `chosen`: a mask of shape (samples,), or indices."""
        return Samples(
            {name: column[chosen] for name, column in self.numbers.items()},
            {name: column[chosen] for name, column in self.words.items()},
            self.seconds[chosen],
            None if self.standard_error is None else self.standard_error[chosen],
        )

    def with_numbers(self, numbers: Mapping[str, Floats]) -> Samples:
        """The same samples with other numeric columns."""
        return replace(self, numbers=numbers)

    def of_scale(self, name: str) -> Floats:
        """The column that measures the scale.

        Raises
        ------
        InputError
            The column does not exist.
        """
        if name not in self.numbers:
            known = ", ".join(self.numbers)
            raise InputError(f"no column {name!r}", where="--scale", todo=f"columns of numbers are {known}")
        return self.numbers[name]


@dataclass(frozen=True)
class Writes:
    """Measured writes as in a file, one row per repetition; columns as in `Samples`, shape (writes,)."""

    numbers: Mapping[str, Floats]
    words: Mapping[str, npt.NDArray[np.str_]]
    seconds: Floats

    def __len__(self) -> int:
        return len(self.seconds)


def joined(parts: Sequence[tuple[str | Path, Writes]]) -> Writes:
    """Concatenate the writes of several named files.

    Raises
    ------
    InputError
        One file has a column that another lacks, or text where another has numbers; the error names both.
    """
    first, writes = parts[0]
    for path, other in parts[1:]:
        for here, there, path_here, path_there in (
            (writes, other, first, path),
            (other, writes, path, first),
        ):
            missing = (set(here.numbers) - set(there.numbers)) | (set(here.words) - set(there.words))
            if missing:
                name = one_line(min(missing))
                raise InputError(
                    f"has no {'such ' if name in (*there.numbers, *there.words) else ''}column {name!r} "
                    f"as {path_here} has",
                    where=path_there,
                    todo="add it, or fit the files apart",
                )
    if sum(len(part) for _, part in parts) > MOST_WRITES:
        raise InputError(f"more than {MOST_WRITES:,} writes", where=parts[-1][0], todo="leave some out")
    return Writes(
        {name: np.concatenate([part.numbers[name] for _, part in parts]) for name in writes.numbers},
        {name: np.concatenate([part.words[name] for _, part in parts]) for name in writes.words},
        np.concatenate([part.seconds for _, part in parts]),
    )


def sampled(writes: Writes) -> Samples:
    """Merge writes that differ only in their time into one sample, with the mean as Xie et al. define it."""
    numbers, words, times = writes.numbers, writes.words, writes.seconds
    keys = [
        *numbers.values(),
        *(np.unique(column, return_inverse=True)[1].astype(float) for column in words.values()),
    ]
    table = np.stack(keys, axis=1) if keys else np.zeros((len(times), 1))
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()  # numpy 2.0 returns two dimensions
    counts = np.bincount(group)
    order = np.argsort(first)
    means = np.bincount(group, weights=times) / counts
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.bincount(group, weights=(times - means[group]) ** 2) / (counts - 1)
        error = np.where(counts > 1, np.sqrt(variance / counts) / means, np.nan)
    chosen = first[order]
    return Samples(
        {name: column[chosen] for name, column in numbers.items()},
        {name: column[chosen] for name, column in words.items()},
        means[order],
        error[order],
    )


CONFIDENCE: Final = 0.9
"""The paper's value for Titan; it uses 0.98 for Cetus."""
_ERROR: Final = 0.1


def converged(samples: Samples, confidence: float = CONFIDENCE) -> npt.NDArray[np.bool_]:
    """Whether each mean has converged, or is a single measurement; shape (samples,)."""
    if samples.standard_error is None:
        return np.ones(len(samples), dtype=bool)
    times = NormalDist().inv_cdf((1 + confidence) / 2)
    return ~(times * samples.standard_error > _ERROR)
