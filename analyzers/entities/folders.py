"""Folders of the data set, over all its files and not only those that are listed.

A folder's files are those directly in it. Its entries are these files and the folders directly in it that hold files
of the data set, at any depth: what its directory has to keep for this run, at least.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.io_time import SpentTime
from vani.columns import Texts, scalar, texts, to_arrow, to_numpy
from vani.schema.profile import ByteCounts, Folder

__all__ = ["MOST_BY_FILES", "MOST_BY_TIME", "folders"]

MOST_BY_TIME = 100
MOST_BY_FILES = 10

Ints = NDArray[np.int64]


def folders(view: View) -> tuple[list[Folder], Notes]:
    """The folders with most metadata time (operations, where no time is known), then those with most files."""
    codes = view.files
    if not len(codes):
        return [], {}
    paths, folder = _parents(_column(view, codes))
    survey = view.measured.survey.files
    count = len(paths)

    def total(column: str) -> Ints:
        return np.bincount(folder, survey.at(codes, column), count).astype(np.int64)

    files = np.bincount(folder, minlength=count)
    time, operations = total("metadata_time"), total("metadata")
    creates = np.bincount(folder, survey.at(codes, "makes") > 0, count).astype(np.int64)
    read, written = total("bytes_read"), total("bytes_written")
    unread, unwritten = ((total(f"unsized_{n}") == total(n)) & (total(n) > 0) for n in ("reads", "writes"))
    order = np.lexsort((np.arange(count), -files, -operations, -time))
    chosen = order[:MOST_BY_TIME].tolist()
    by_files = np.lexsort((np.arange(count), -files))[:MOST_BY_FILES].tolist()
    chosen += [one for one in by_files if one not in chosen]
    notes = view.nulls(SpentTime, "folders.metadata_time_s")
    if len(chosen) < count:
        notes["folders"] = (
            f"{len(chosen)} of {count:,}: the {MOST_BY_TIME} with most metadata time, "
            f"and the {MOST_BY_FILES} with most files"
        )
    below = _folders_in(paths)
    timed = view.timed
    found = [
        Folder(
            path=paths[i].as_py(),
            files=int(files[i]),
            creates=int(creates[i]),
            entries=int(files[i]) + below.get(paths[i].as_py(), 0),
            bytes=ByteCounts(
                # The size of no such call is known.
                read=None if unread[i] else int(read[i]),
                written=None if unwritten[i] else int(written[i]),
                total=None if unread[i] or unwritten[i] else int(read[i] + written[i]),
            ),
            metadata_time_s=int(time[i]) / 1e9 if timed else None,
        )
        for i in chosen
    ]
    return found, notes


def _column(view: View, codes: Ints) -> pa.Array:
    paths = view.world.paths
    if isinstance(paths, Texts):
        return paths.column.take(to_arrow(codes))
    return texts([paths[code] for code in codes.tolist()])


def _parents(paths: pa.Array) -> tuple[pa.Array, Ints]:
    """Distinct folders of paths, in order of first appearance, and the position of each path's folder among them."""
    cut = pc.replace_substring_regex(paths, "/+[^/]*$", "")
    inside = pc.match_substring(paths, "/")
    # What has no folder lies in the working directory; what lies in the root has nothing before its slash.
    named = pc.if_else(inside, pc.if_else(pc.equal(cut, scalar("")), scalar("/"), cut), scalar("."))
    encoded = named.dictionary_encode()
    return encoded.dictionary, to_numpy(encoded.indices).astype(np.int64)


def _folders_in(paths: pa.Array) -> dict[str, int]:
    """How many folders lie directly in each folder, folders without files of their own included."""
    known: set[str] = set()
    level = set(paths.to_pylist())
    while level:
        known |= level
        level = {parent for path in level if (parent := _parent(path)) is not None} - known
    found: dict[str, int] = {}
    for path in known:
        parent = _parent(path)
        if parent is not None:
            found[parent] = found.get(parent, 0) + 1
    return found


def _parent(path: str) -> str | None:
    if path in ("/", ".") or "/" not in path:
        return None
    return path.rsplit("/", 1)[0] or "/"
