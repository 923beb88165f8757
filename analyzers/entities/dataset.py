"""The data set (table X): all files of the workload together."""

from __future__ import annotations

from collections import Counter

import numpy as np

from vani.analyzers.entities.files import format_by_library, format_of_file
from vani.analyzers.entities.view import View
from vani.analyzers.iostats import histogram, sizes_of
from vani.schema.formats import format_of_name
from vani.schema.profile import Dataset, Role, SizeDistribution

__all__ = ["dataset"]

_MOST_LOOKED_AT = 1000


def dataset(view: View, role_of: dict[int, Role | None], size_of: dict[int, int | None]) -> Dataset:
    """Formats, size, number and roles of the files; I/O is the workload's."""
    layers = view.interface_of_files
    codes = view.files.tolist()
    if len(codes) > _MOST_LOOKED_AT:
        view.notes["dataset.format"] = (
            f"by library and suffix for all but the {_MOST_LOOKED_AT:,} files with most I/O time"
        )
    looked_at = set(view.measured.listed[:_MOST_LOOKED_AT].tolist())
    formats: Counter[str] = Counter()
    survey = view.measured.survey.files
    moved = (survey.at(view.files, "reads") + survey.at(view.files, "writes")).tolist()
    for code, operations in zip(codes, moved, strict=True):
        path = view.world.paths[code]
        formats[
            _format(
                view,
                path,
                layers.get(code) if operations else None,
                look=code in looked_at or len(codes) <= _MOST_LOOKED_AT,
            )
        ] += 1
    known = np.array([s for s in (size_of[c] for c in codes) if s is not None], dtype=np.int64)
    ones = np.ones(len(known), np.int64)
    found = sizes_of(known, ones)
    missing = len(codes) - len(known)
    view.notes["dataset.size"] = (
        "furthest that writes, truncations or job.yaml reach in the files whose size is known"
        + (f" ({len(known):,} of {len(codes):,}; the others were only read)" if missing else "")
    )
    return Dataset(
        format=dict(sorted(formats.items(), key=lambda f: (-f[1], f[0]))),
        size=int(known.sum()) if len(known) else None,
        files=len(codes),
        io=view.workload_stats,
        roles={str(r): n for r, n in sorted(Counter(role_of[c] or "unused" for c in codes).items())},
        size_distribution=SizeDistribution(
            known=len(known),
            min=found.min if found else None,
            p50=found.p50 if found else None,
            p90=found.p90 if found else None,
            max=found.max if found else None,
            histogram=histogram(known, ones),
        ),
    )


def _format(view: View, path: str, layer: int | None, *, look: bool) -> str:
    if look:
        return format_of_file(view, path, layer)
    return format_by_library(layer) or format_of_name(path) or "bin"
