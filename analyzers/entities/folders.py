"""Folders of the data set, over all its files, including unlisted ones.

A folder's files are those directly in it. Its entries are these files and the direct subfolders that contain data set
files at any depth: a lower bound of the entries that this run adds to its directory.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.analyzers.entities.dataset import size_distribution
from vani.analyzers.entities.file_sums import FileSums, most_important
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.tables.int_table import NO_VALUE
from vani.columns import scalar, to_numpy
from vani.schema.profile import Folder, SizeDistribution

MOST_BY_TIME = 100
MOST_BY_FILES = 10
_NO_CREATION = "opens that make their file are not counted apart"

Ints = NDArray[np.int64]


def folders(view: View, size_of: Ints) -> tuple[list[Folder], Notes]:
    """The folders with most metadata time (or operations, if no time is known), then those with most files.

    `size_of` is as returned by `sizes`.
    """
    codes = view.files
    if not len(codes):
        return [], {}
    paths, folder = _parents(view.paths_of_files)
    count = len(paths)
    sums = FileSums(view, folder, count)
    timed = view.timed
    created = sums.sum(view.surveyed("makes") > 0)
    records_creation = view.measured.survey.records_creation
    records_removal = view.measured.survey.records_removal
    removes = sums.sum(view.measured.survey.removed(codes))
    opens = sums.total("opens")
    makers = sums.ranks("first_maker", "last_maker", view.surveyed("makes") > 0)
    chosen = most_important(
        sums.metadata_time, sums.total("metadata"), sums.files, by_time=MOST_BY_TIME, by_files=MOST_BY_FILES
    )
    sizes, of_sizes = _sizes(view, codes, folder, size_of, chosen)
    notes = view.nulls(SpentTime, "folders.metadata_time_s", "folders.time_s") | of_sizes
    if not records_creation:
        notes["folders.creates"] = notes["folders.makers"] = _NO_CREATION
    elif makers is None:
        notes["folders.makers"] = "calls were counted for several processes at once (--quick)"
    if not records_removal:
        notes["folders.removes"] = "removals are not recorded"
    if len(chosen) < count:
        notes["folders"] = (
            f"{len(chosen)} of {count:,}: the {MOST_BY_TIME} with most metadata time, "
            f"and the {MOST_BY_FILES} with most files"
        )
    below = _folders_in(paths)
    entities = [
        Folder(
            path=paths[i].as_py(),
            files=int(sums.files[i]),
            creates=int(created[i]) if records_creation else None,
            entries=int(sums.files[i]) + below.get(paths[i].as_py(), 0),
            bytes=sums.bytes(i),
            metadata_time_s=int(sums.metadata_time[i]) / 1e9 if timed else None,
            time_s=int(sums.time[i]) / 1e9 if timed else None,
            opens=int(opens[i]),
            removes=int(removes[i]) if records_removal else None,
            makers=None if makers is None else int(makers[0][i]),
            sizes=sizes[i],
        )
        for i in chosen
    ]
    return entities, notes


def _sizes(
    view: View, codes: Ints, folder: Ints, size_of: Ints, chosen: list[int]
) -> tuple[dict[int, SizeDistribution | None], Notes]:
    """Size distributions of the files in some folders, and reasons for nulls."""
    lengths = view.measured.of(FileLengths)
    if lengths is None:
        return dict.fromkeys(chosen), {"folders.sizes": view.measured.why(FileLengths)}
    why = view.measured.results.why(FileLengths)
    hidden = np.bincount(folder, lengths.uncertain[codes] & (why is not None), folder.max() + 1) > 0
    order = np.argsort(folder, kind="stable")
    bounds = np.searchsorted(folder[order], np.add.outer((0, 1), chosen))
    distributions: dict[int, SizeDistribution | None] = {}
    for number, begin, end in zip(chosen, *bounds.tolist(), strict=True):
        sizes = size_of[codes[order[begin:end]]]
        distributions[number] = None if hidden[number] else size_distribution(sizes[sizes != NO_VALUE])
    return distributions, {"folders.sizes": why} if why is not None and hidden[chosen].any() else {}


def _parents(paths: pa.Array) -> tuple[pa.Array, Ints]:
    """Distinct folders of paths, in order of first appearance, and the index of each path's folder among them."""
    cut = pc.replace_substring_regex(paths, "/+[^/]*$", "")
    inside = pc.match_substring(paths, "/")
    # Paths without a folder are in the working directory; paths in the root folder have nothing before their slash.
    named = pc.if_else(inside, pc.if_else(pc.equal(cut, scalar("")), scalar("/"), cut), scalar("."))
    encoded = pc.dictionary_encode(named)
    return encoded.dictionary, to_numpy(encoded.indices).astype(np.int64)


def _folders_in(paths: pa.Array) -> dict[str, int]:
    """Number of direct subfolders of each folder, including folders without files of their own."""
    known: set[str] = set()
    level = set(paths.to_pylist())
    while level:
        known |= level
        level = {parent for path in level if (parent := _parent(path)) is not None} - known
    counts: dict[str, int] = {}
    for path in known:
        parent = _parent(path)
        if parent is not None:
            counts[parent] = counts.get(parent, 0) + 1
    return counts


def _parent(path: str) -> str | None:
    if path in ("/", ".") or "/" not in path:
        return None
    return path.rsplit("/", 1)[0] or "/"
