"""The time that files take on each Lustre target, from the records of a log."""

from __future__ import annotations

import json
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vani.readers.darshan.log import Log

__all__ = ["target_times"]

_MOST_TARGETS: Final = 8
"""Files on more targets show little about one of them (ours)."""
_MOST_FILES: Final = 100_000
"""Beyond, files are looked up no further."""


def target_times(log: Log, mount: str) -> str | None:
    """The times of files on each target of one file system; None where the log names no targets.

    A file counts on each of its n targets with 1/n.

    Returns
    -------
    str or None
        JSON: a list of [target, files, seconds of the slowest process in reads and writes, bytes moved], each added up.
    """
    targets = log.targets()
    if not targets:
        return None
    job = log.job
    modules = [log.records("POSIX"), log.records("STDIO")]
    ids = np.concatenate([module.id for module in modules])
    spent = []
    for module in modules:
        data = module.read_s + module.write_s
        # A record of all processes has the time of the slowest one.
        slowest = np.minimum(module.slowest[1], data)
        spent.append(np.where((module.rank < 0) & (slowest > 0), slowest, data))
    moved = np.concatenate([module.count("BYTES_READ", "BYTES_WRITTEN") for module in modules])
    files, place = np.unique(ids, return_inverse=True)
    seconds, size = np.zeros(len(files)), np.bincount(place, moved, len(files))
    np.maximum.at(seconds, place, np.concatenate(spent))
    names = log.names()
    of_target: dict[int, NDArray[np.float64]] = {}
    for number, file in enumerate(files[:_MOST_FILES].tolist()):
        own = targets.get(file, ())
        if not 0 < len(own) <= _MOST_TARGETS or not size[number]:
            continue
        if job.mount_of(names.get(file, ""))[0] != mount:
            continue
        share = np.array([1.0, seconds[number], size[number]]) / len(own)
        for target in own:
            of_target[target] = of_target.get(target, np.zeros(3)) + share
    rows = [[target, *(round(float(value), 6) for value in of_target[target])] for target in sorted(of_target)]
    return json.dumps(rows, separators=(",", ":")) if rows else None
