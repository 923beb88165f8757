"""The files that a run wrote, from the records in its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.readers.darshan.log import Log

Ints = NDArray[np.int64]

_MOST_STRIPED: Final = 4096
"""Maximum number of files whose stripe counts are looked up: each requires a search through the log."""
_OF_ALL: Final = -1
_LARGEST: Final = 1 << 62


@dataclass(frozen=True)
class CreatedFiles:
    """Written files in the order of their first opens; each array has shape (files,).

    Attributes
    ----------
    sizes
        Bytes up to the end of the last byte written.
    ranks
        The process that wrote the file; -1 for several.
    stripes
        Lustre targets; 0 if the log does not record them.
    """

    paths: tuple[str, ...]
    sizes: Ints
    ranks: Ints
    stripes: Ints


def read_created(log: Log) -> CreatedFiles:
    """Files that a run wrote without reading them first; a log does not show whether they existed before.

    Raises
    ------
    TraceError
        The log claims something impossible.
    """
    processes = log.job.processes
    modules = [log.records("POSIX"), log.records("STDIO")]
    parts = []
    for module in modules:
        opened, read, wrote = module.begins()
        end = np.where(
            module.count("BYTES_WRITTEN") > 0,
            np.minimum(module.count("MAX_BYTE_WRITTEN"), _LARGEST - 1) + 1,
            0,
        )
        # Logs of programs that write without seeking may lack the offset of the last byte.
        end = np.where(end > 1, end, np.minimum(module.count("BYTES_WRITTEN"), _LARGEST))
        created = (end > 0) & ~((read > 0) & (read < wrote))
        parts.append((module.id[created], module.rank[created], end[created], opened[created]))
    ids, ranks, ends, opened = (np.concatenate(column) for column in zip(*parts, strict=True))
    files, place = np.unique(ids, return_inverse=True)
    size, first = np.zeros(len(files), np.int64), np.full(len(files), np.inf)
    least, most = np.full(len(files), processes), np.full(len(files), _OF_ALL)
    np.maximum.at(size, place, ends)
    np.minimum.at(first, place, opened)
    np.minimum.at(least, place, ranks)
    np.maximum.at(most, place, ranks)
    rank = np.where(least == most, most, _OF_ALL) if processes > 1 else np.zeros(len(files), np.int64)
    order = np.lexsort((files, rank, first))
    names = log.names()
    codes = files[order].tolist()
    stripes = (
        [log.stripes_of(file) or 0 for file in codes] if len(codes) <= _MOST_STRIPED else [0] * len(codes)
    )
    return CreatedFiles(
        tuple(names.get(file, "") for file in codes),
        size[order],
        rank[order],
        np.array(stripes, dtype=np.int64),
    )
