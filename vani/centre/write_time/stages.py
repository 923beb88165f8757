"""Features of any write: the load of each stage of its path, as far as the columns allow.

A stage is something that bytes or requests have to pass: the whole file system, a compute node, a process, a
target, an I/O node. Its load is the total bytes (or requests) divided by the number of its members. Each setting in
a text column (layout, interface) has a load of its own, since a shared file is slower per byte, not by a constant
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vani.centre.write_time.models.features import GPFS, LOADS, LUSTRE
from vani.centre.write_time.samples import Floats, Samples

_SPREADS = ("nodes", "processes", "stripe_count", "io_nodes")
_PAPER = frozenset((*GPFS, *LUSTRE))
KNOWN = ("bytes", "request", *_SPREADS)
"""Columns with a known meaning."""


Kinds = Mapping[str, Sequence[str]]
"""The settings that occur in each text column, in order."""


def kinds_of(samples: Samples) -> dict[str, list[str]]:
    """The settings in each text column."""
    return {name: sorted(set(column.tolist())) for name, column in samples.words.items()}


class Columns(dict[str, Floats]):
    """Columns of samples by name, shape (samples,) each; a load that none of these samples has is 0.

    Samples to predict need not have all loads of the fitted ones, such as that of I/O nodes.
    """

    def __init__(self, columns: Mapping[str, Floats], samples: Samples) -> None:
        super().__init__(columns)
        self._length = len(samples)

    def __missing__(self, name: str) -> Floats:
        return np.zeros(self._length)


def stage_loads(samples: Samples, kinds: Kinds) -> Columns:
    """Loads that take proportional time, and columns unknown to Vani, by name; shape (samples,), non-negative."""
    loads = dict(_loads(samples))
    columns = dict(loads)
    for name, known in kinds.items():
        # One setting of each text column is the base, whose load is in the plain columns.
        for kind in known[1:]:
            there = (samples.words[name] == kind).astype(float)
            columns |= {f"{load} [{name}={kind}]": column * there for load, column in loads.items()}
    columns |= {name: column for name, column in samples.numbers.items() if name not in KNOWN}
    return Columns(columns, samples)


def _loads(samples: Samples) -> Iterator[tuple[str, Floats]]:
    numbers = samples.numbers
    ones = np.ones(len(samples))
    yield "1", ones
    size = numbers.get("bytes", ones)
    if "bytes" in numbers:
        yield from _over_members("bytes", size, numbers)
    if "request" in numbers:
        requests = size / np.maximum(numbers["request"], 1.0)
        yield from _over_members("requests", requests, numbers)
    for name in ("nodes", "processes", "stripe_count"):
        if name in numbers:
            yield name, numbers[name]


def _over_members(what: str, load: Floats, numbers: Mapping[str, Floats]) -> Iterator[tuple[str, Floats]]:
    yield what, load
    for name in _SPREADS:
        if name not in numbers:
            continue
        members = numbers[name]
        yield f"{what}/{name}", np.divide(load, members, out=np.zeros_like(load), where=members > 0)
        if (members == 0).any():
            yield f"{what} without {name}", np.where(members == 0, load, 0.0)


def only_loads(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """The paper's features that are a stage's load; all features of other models."""
    return {name: column for name, column in columns.items() if name in LOADS or name not in _PAPER}


def described(samples: Samples, kinds: Kinds) -> dict[str, Floats]:
    """Columns that distinguish samples, with sizes and counts in doublings; for distances and trees."""
    numbers = samples.numbers
    columns = {name: np.log2(np.maximum(column, 0.5)) for name, column in numbers.items()}
    for name in _SPREADS[1:]:
        if name in numbers and "nodes" in numbers:
            columns[f"{name}/nodes"] = np.log2(
                np.maximum(numbers[name], 0.5) / np.maximum(numbers["nodes"], 1.0)
            )
    for name, known in kinds.items():
        columns |= {f"{name}={kind}": 4.0 * (samples.words[name] == kind) for kind in known[1:]}
    return columns
