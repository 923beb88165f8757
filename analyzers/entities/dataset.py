"""The data set (table X): all files of the workload together."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import NO_VALUE
from vani.analyzers.entities.files import ROLES, format_by_library, format_of_file
from vani.analyzers.entities.view import View
from vani.analyzers.iostats import histogram, sizes_of
from vani.analyzers.keyed import exact_sum
from vani.schema.formats import format_of_name
from vani.schema.profile import Dataset, SizeDistribution

__all__ = ["dataset"]

_NOT_SAMPLED = "a trace holds no values: `vani collect --dataset` reads a sample of them, for --job"
_MOST_LOOKED_AT = 1000
_AT_ONCE = 1 << 16


def dataset(view: View, role_of: NDArray[np.int8], size_of: NDArray[np.int64]) -> Dataset:
    """Formats, size, number and roles of the files; I/O is the workload's.

    Parameters
    ----------
    role_of, size_of
        As `roles` and `sizes` give them.
    """
    codes = view.files
    if len(codes) > _MOST_LOOKED_AT:
        view.notes["dataset.format"] = (
            f"by library and suffix for all but the {_MOST_LOOKED_AT:,} files with most I/O time"
        )
    formats = _formats(view, codes)
    sizes = size_of[codes]
    known = sizes[sizes != NO_VALUE]
    ones = np.ones(len(known), np.int64)
    roles = np.bincount(role_of[codes], minlength=len(ROLES)).tolist()
    found = sizes_of(known, ones)
    missing = len(codes) - len(known)
    view.notes["dataset.size"] = (
        "what writes, truncations and job.yaml tell of the files whose size is known"
        + (f" ({len(known):,} of {len(codes):,}; files.size says why)" if missing else "")
    )
    sample = view.job.dataset if view.job is not None else None
    view.notes["dataset.distribution"] = (
        _NOT_SAMPLED
        if view.job is None or sample is None
        else view.job_name
        if sample.distribution is not None
        else f"{view.job_name}: {view.job.unknown.get('dataset.distribution', 'not said')}"
    )
    return Dataset(
        format=dict(sorted(formats.items(), key=lambda f: (-f[1], f[0]))),
        size=exact_sum(known) if len(known) else None,
        files=len(codes),
        io=view.workload_stats,
        roles={
            r: n for r, n in sorted((role or "unused", n) for role, n in zip(ROLES, roles, strict=True)) if n
        },
        size_distribution=SizeDistribution(
            known=len(known),
            min=found.min if found else None,
            p50=found.p50 if found else None,
            p90=found.p90 if found else None,
            max=found.max if found else None,
            histogram=histogram(known, ones),
        ),
        distribution=sample.distribution if sample is not None else None,
    )


def _formats(view: View, codes: NDArray[np.int64]) -> Counter[str]:
    """Files of each format."""
    survey = view.measured.survey.files
    moved = (survey.at(codes, "reads") + survey.at(codes, "writes")) > 0
    layers = np.where(moved, view.interface_of_files[codes], -1)
    looked_at = np.isin(codes, view.measured.listed[:_MOST_LOOKED_AT]) | (len(codes) <= _MOST_LOOKED_AT)
    formats: Counter[str] = Counter()
    for at in range(0, len(codes), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        for code, layer, look in zip(
            codes[some].tolist(), layers[some].tolist(), looked_at[some].tolist(), strict=True
        ):
            formats[_format(view, view.world.paths[code], layer if layer >= 0 else None, look=look)] += 1
    return formats


def _format(view: View, path: str, layer: int | None, *, look: bool) -> str:
    if look:
        return format_of_file(view, path, layer)
    return format_by_library(layer) or format_of_name(path) or "bin"
