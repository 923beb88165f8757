"""The data set (table X): all files of the workload together."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.files import ROLES, UNSIZED, format_by_library, format_of_file
from vani.analyzers.entities.formats_on_disk import telling_formats
from vani.analyzers.entities.transfer_sizes import histogram, sizes_of
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.libraries import LibraryUse
from vani.analyzers.tables.int_table import NO_VALUE, exact_sum
from vani.schema.formats import MOST_LOOKED_AT, format_of_name
from vani.schema.profile import Dataset, SizeDistribution

_NOT_SAMPLED = "a trace contains no values: `vani collect --dataset` reads a sample of them, for --job"
_AT_ONCE = 1 << 16


def dataset(
    view: View, role_of: NDArray[np.int8], without_role: NDArray[np.bool_], size_of: NDArray[np.int64]
) -> tuple[Dataset, Notes]:
    """Formats, size, number and roles of the files; I/O is the workload's.

    Parameters
    ----------
    role_of, without_role, size_of
        As returned by `roles` and `sizes`.
    """
    codes = view.files
    formats, of_formats = _formats(view, codes)
    early = len(codes) > MOST_LOOKED_AT
    notes: Notes = dict(of_formats) if early else {}
    sizes = size_of[codes]
    known = sizes[sizes != NO_VALUE]
    roles = np.bincount(role_of[codes], minlength=len(ROLES)).tolist()
    no_roles = bool(without_role[codes].any())
    no_sizes, of_lengths = _explain_lengths(view, sizes)
    notes |= of_lengths
    missing = len(codes) - len(known)
    notes["dataset.size"] = "from writes, truncations and job.yaml, for the files whose size is known" + (
        f" ({len(known):,} of {len(codes):,}; see files.size)" if missing else ""
    )
    sample = view.job.dataset if view.job is not None else None
    notes["dataset.distribution"] = (
        _NOT_SAMPLED
        if view.job is None or sample is None
        else view.job_name
        if sample.distribution is not None
        else f"{view.job_name}: {view.job.unknown.get('dataset.distribution', 'no reason given')}"
    )
    if view.job is not None and sample is not None:
        notes["dataset.compression"] = (
            view.job_name
            if sample.compression is not None
            else f"{view.job_name}: {view.job.unknown.get('dataset.compression', 'no reason given')}"
        )
    if no_roles:
        notes |= dict.fromkeys(("dataset.roles", "files.role"), view.why_no_links)
    if no_sizes:
        of_sizes = ("dataset.size", "files.size", "dataset.size_distribution")
        notes |= dict.fromkeys(of_sizes, view.measured.why(FileLengths)) | of_lengths
    entity = Dataset(
        format=None if formats is None else dict(sorted(formats.items(), key=lambda f: (-f[1], f[0]))),
        size=exact_sum(known) if len(known) and not no_sizes else None,
        files=len(codes),
        io=view.workload_stats,
        roles=None
        if no_roles
        else {
            r: n for r, n in sorted((role or "unused", n) for role, n in zip(ROLES, roles, strict=True)) if n
        },
        size_distribution=None if no_sizes else size_distribution(known),
        distribution=sample.distribution if sample is not None else None,
        compression=sample.compression if sample is not None else None,
    )
    return entity, notes if early else notes | of_formats


def size_distribution(known: NDArray[np.int64]) -> SizeDistribution:
    """Distribution of the known file sizes, in bytes."""
    ones = np.ones(len(known), np.int64)
    sizes = sizes_of(known, ones)
    return SizeDistribution(
        known=len(known),
        min=sizes.min if sizes else None,
        p50=sizes.p50 if sizes else None,
        p90=sizes.p90 if sizes else None,
        max=sizes.max if sizes else None,
        histogram=histogram(known, ones),
    )


def _explain_lengths(view: View, sizes: NDArray[np.int64]) -> tuple[bool, Notes]:
    """Remarks on sizes that depend on unknown facts, and reasons for null sizes."""
    lengths = view.measured.of(FileLengths)
    if lengths is None or view.measured.results.why(FileLengths) is None:
        return lengths is None, {}
    hidden = lengths.uncertain[view.files]
    unsized = bool((sizes[~hidden] == NO_VALUE).any())
    return bool(hidden.any()), {"files.size": UNSIZED} if unsized else {}


def _formats(view: View, codes: NDArray[np.int64]) -> tuple[Counter[str] | None, Notes]:
    """Number of files per format; None if a file's format is unknown."""
    measured = view.measured
    if np.isin(codes, view.files_without_caller).any():
        return None, {"dataset.format": measured.why(LibraryUse)}
    if "dataset.format" in measured.unknown:
        return None, {"dataset.format": measured.unknown["dataset.format"]}
    moved = (view.surveyed("reads") + view.surveyed("writes")) > 0
    layers = np.where(moved, view.interface_of_files[codes], -1)
    looked_at = np.isin(codes, telling_formats(codes, measured.listed))
    formats: Counter[str] = Counter()
    for at in range(0, len(codes), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        for code, layer, look in zip(
            codes[some].tolist(), layers[some].tolist(), looked_at[some].tolist(), strict=True
        ):
            formats[_format(view, code, layer if layer >= 0 else None, look=look)] += 1
    if len(codes) <= MOST_LOOKED_AT:
        return formats, {}
    most = f"{MOST_LOOKED_AT:,}"
    return formats, {
        "dataset.format": f"by library and suffix for all but the {most} files with most I/O time"
    }


def _format(view: View, code: int, layer: int | None, *, look: bool) -> str:
    if look:
        return format_of_file(view, code, layer)
    return format_by_library(layer) or format_of_name(view.workload.paths[code]) or "bin"
