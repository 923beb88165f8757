"""Counters of Darshan that contradict each other, as damaged or edited logs have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vani.readers.darshan.records import Module

__all__ = ["without_contradictions"]


def without_contradictions(
    modules: Mapping[str, Module], names: Mapping[int, str]
) -> tuple[dict[str, Module], list[str]]:
    """Remove contradictory values; returns the modules and the records that had some.

    Left out are bytes that no operation moved, and sizes of more operations than there were.
    """
    sound, problems = dict(modules), []
    for name in ("POSIX", "STDIO"):
        if (module := modules.get(name)) is None:
            continue
        counters = dict(module.counters)
        none = np.zeros(len(module), np.int64)
        for done, calls, moved, size in (
            ("read", "READS", "BYTES_READ", "SIZE_READ"),
            ("written", "WRITES", "BYTES_WRITTEN", "SIZE_WRITE"),
        ):
            count = np.maximum(counters.get(f"{name}_{calls}", none), 0)
            total = counters.get(f"{name}_{moved}", none)
            bins = [bin_ for bin_ in counters if bin_.startswith(f"{name}_{size}_")]
            # As floats: the sum of damaged counters may be beyond 64 bits.
            sized = np.sum([np.maximum(counters[bin_], 0) for bin_ in bins], axis=0, dtype=np.float64)
            for wrong, columns, claim in (
                ((total > 0) & (count == 0), [f"{name}_{moved}"], f"bytes {done} by no call"),
                ((sized > count) & (f"{name}_{calls}" in counters), bins, f"sizes of more calls than have {done}"),
            ):
                if not wrong.any():
                    continue
                counters |= {column: np.where(wrong, 0, counters[column]) for column in columns}
                path = names.get(int(module.id[wrong.argmax()]), "a file without a name")
                more = f" (and {int(wrong.sum()) - 1:,} more)" if wrong.sum() > 1 else ""
                problems.append(
                    f"the {name} record of {path}{more} contradicts itself: {claim}, which are unknown and left out"
                )
        sound[name] = replace(module, counters=counters)
    return sound, problems
