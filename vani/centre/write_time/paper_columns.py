"""The paper's features as columns of samples, for known file systems and node placements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vani.centre.write_time.models.features import GpfsPool, LustrePool, gpfs_features, lustre_features
from vani.centre.write_time.samples import Floats, Samples
from vani.errors import InputError

_GPFS = {"io": ("s_io", "n_io"), "bridge": ("s_b", "n_b"), "link": ("s_l", "n_l")}
_LUSTRE = {"router": ("s_r", "n_r")}


@dataclass(frozen=True)
class _Patterns:
    nodes: Floats
    per_node: Floats
    megabytes: Floats
    stripes: Floats


@dataclass(frozen=True)
class _Placed:
    largest: Floats
    used: Floats


def with_paper_features(samples: Samples, pool: GpfsPool | LustrePool) -> Samples:
    """Replace all numbers with the features of section III-A of Xie et al.

    Needs the columns `nodes`, `processes_per_node`, `bytes_per_process`, on Lustre `stripe_count`, and for each
    kind of component the largest group of the job's nodes and the number of components used: `s_r`, `n_r`, or
    `s_io`, `n_io`, `s_b`, `n_b`, `s_l`, `n_l`.

    Raises
    ------
    InputError
        A column is missing.
    """
    wanted = _LUSTRE if isinstance(pool, LustrePool) else _GPFS
    names = [
        "nodes",
        "processes_per_node",
        "bytes_per_process",
        *(name for pair in wanted.values() for name in pair),
    ]
    names += ["stripe_count"] if isinstance(pool, LustrePool) else []
    missing = [name for name in names if name not in samples.numbers]
    if missing:
        raise InputError(
            f"no column {missing[0]!r}", where="samples", todo="the features of this machine need it"
        )
    numbers = samples.numbers
    patterns = _Patterns(
        numbers["nodes"],
        numbers["processes_per_node"],
        numbers["bytes_per_process"] / 1e6,
        numbers.get("stripe_count", np.ones(len(samples))),
    )
    placed = {kind: _Placed(numbers[largest], numbers[used]) for kind, (largest, used) in wanted.items()}
    if isinstance(pool, LustrePool):
        features = lustre_features(patterns, pool, **placed)
    else:
        features = gpfs_features(patterns, pool, **placed)
    columns = {name: np.asarray(value, dtype=float) for name, value in features.items()}
    return samples.with_numbers(columns)
