"""Formats of files that still exist on this machine, from their first bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.workload.workload import Workload
from vani.calls import FileClass
from vani.distinct import distinct
from vani.schema.formats import HEAD_BYTES, MOST_LOOKED_AT, format_of_head

Ints = NDArray[np.int64]


def formats_on_disk(workload: Workload, used: Ints, listed: Ints) -> dict[int, str]:
    """Formats by file code, for listed files and those that determine the data set's formats.

    Contains only files whose first bytes are readable and have a known format.

    Parameters
    ----------
    used
        Codes of the files that any process used, ascending.
    """
    codes = used[workload.file_class[used] == FileClass.DATASET]
    wanted = distinct(telling_formats(codes, listed), listed).tolist()
    heads = ((code, _head(workload.paths[code])) for code in wanted)
    return {code: name for code, head in heads if head and (name := format_of_head(head)) is not None}


def telling_formats(codes: Ints, listed: Ints) -> Ints:
    """Files whose first bytes determine the data set's formats: all, or the first listed ones if there are many."""
    return codes if len(codes) <= MOST_LOOKED_AT else listed[:MOST_LOOKED_AT]


def _head(path: str) -> bytes:
    """First bytes of a regular file; empty if there is none. Never blocks on a pipe."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return b""
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(handle, HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(handle)
