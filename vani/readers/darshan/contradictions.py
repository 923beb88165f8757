"""Contradictory Darshan counters, which occur in damaged or edited logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from vani.counts import Unsound
from vani.readers.darshan.records import Module


def without_contradictions(
    modules: Mapping[str, Module], names: Mapping[int, str]
) -> tuple[dict[str, Module], list[str], dict[str, set[Unsound]]]:
    """Remove contradictory values: bytes without an operation, and sizes of more operations than were counted.

    Returns
    -------
    modules
        Modules without these values.
    problems
        Sentences that name the records.
    unsound
        Unknown facts about each file, by path.
    """
    sound, problems = dict(modules), []
    unsound: dict[str, set[Unsound]] = {}
    for name in ("POSIX", "STDIO"):
        if (module := modules.get(name)) is None:
            continue
        counters = dict(module.counters)
        none = np.zeros(len(module), np.int64)
        sides: tuple[tuple[Literal["read", "written"], str, str, str], ...] = (
            ("read", "READS", "BYTES_READ", "SIZE_READ"),
            ("written", "WRITES", "BYTES_WRITTEN", "SIZE_WRITE"),
        )
        for done, calls, moved, size in sides:
            count = np.maximum(counters.get(f"{name}_{calls}", none), 0)
            total = counters.get(f"{name}_{moved}", none)
            bins = [bin_ for bin_ in counters if bin_.startswith(f"{name}_{size}_")]
            # As floats: sums of damaged counters may exceed 64 bits.
            sized = np.sum([np.maximum(counters[bin_], 0) for bin_ in bins], axis=0, dtype=np.float64)
            bytes_of_none = (total > 0) & (count == 0)
            too_many_sizes = (sized > count) & (f"{name}_{calls}" in counters)
            for wrong, columns, claim, what in (
                (bytes_of_none, [f"{name}_{moved}"], f"bytes {done} by no call", "bytes"),
                (too_many_sizes, bins, f"sizes of more calls than have {done}", "sizes"),
            ):
                if not wrong.any():
                    continue
                counters |= {column: np.where(wrong, 0, counters[column]) for column in columns}
                paths = [names.get(int(id_), "a file without a name") for id_ in module.id[wrong]]
                for path in paths:
                    unsound.setdefault(path, set()).add((what, done))
                path, more = paths[0], f" (and {len(paths) - 1:,} more)" if len(paths) > 1 else ""
                problems.append(
                    f"the {name} record of {path}{more} contradicts itself: {claim}, which are unknown and left out"
                )
        sound[name] = replace(module, counters=counters)
    return sound, problems, unsound
