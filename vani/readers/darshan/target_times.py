"""The time that files spend on each Lustre target, from a log's records or its text by darshan-parser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.readers.darshan.log import Log, mount_of
from vani.readers.darshan.records import Records

Floats = NDArray[np.float64]

_MOST_TARGETS: Final = 8
"""Maximum number of targets per file: files on more show little about any one of them (our choice)."""
_MOST_FILES: Final = 100_000
"""Maximum number of files that are looked up."""
_STREAMS: Final = ("<STDIN>", "<STDOUT>", "<STDERR>")


def target_times(log: Log, mount: str) -> str | None:
    """The times of files on each target of one file system; None if the log names no targets.

    A file on n targets adds 1/n of its figures to each.

    Returns
    -------
    str or None
        JSON: a list of [target, files, seconds of the slowest process in reads and writes, bytes moved], each a sum.
    """
    targets = log.targets()
    if not targets:
        return None
    modules = [log.records("POSIX"), log.records("STDIO")]
    spent = [_of_slowest(m.rank, m.read_s + m.write_s, m.slowest[1]) for m in modules]
    moved = [module.count("BYTES_READ", "BYTES_WRITTEN") for module in modules]
    return _written([m.id for m in modules], spent, moved, targets, log.names(), log.job.mounts, mount)


def printed_target_times(records: Records, mount: str) -> str | None:
    """Do the same from a profile's records, which also come from printed logs."""
    if records.targets is None:
        return None
    targets: dict[int, tuple[int, ...]] = {}
    for file, target in zip(records.targets["id"].tolist(), records.targets["target"].tolist(), strict=True):
        targets[file] = (*targets.get(file, ()), target)
    modules = {name: records.modules[name] for name in ("POSIX", "STDIO") if name in records.modules}
    if not targets or not modules:
        return None
    names = dict(zip(records.ids.tolist(), records.names, strict=True))
    mounts = sorted(records.mounts, key=lambda entry: -len(entry[0]))
    spent, moved = [], []
    for name, module in modules.items():
        none = np.zeros(len(module))
        read_s, write_s, slowest_s = (
            np.maximum(module.times.get(f"{name}_F_{kind}_TIME", none), 0) for kind in ("READ", "WRITE", "SLOWEST_RANK")
        )
        spent.append(_of_slowest(module.rank, read_s + write_s, slowest_s))
        counts = (module.counters.get(f"{name}_BYTES_{kind}", none) for kind in ("READ", "WRITTEN"))
        moved.append(sum(np.maximum(count, 0) for count in counts))
    return _written([m.id for m in modules.values()], spent, moved, targets, names, mounts, mount)


def _of_slowest(rank: NDArray[np.int64], data: Floats, slowest: Floats) -> Floats:
    """Seconds of data calls; a record shared by all processes has the time of the slowest one."""
    return np.where((rank < 0) & (slowest > 0), np.minimum(slowest, data), data)


def _written(
    ids_by_module: Sequence[NDArray[np.uint64]],
    spent: Sequence[Floats],
    moved: Sequence[Any],
    targets: Mapping[int, tuple[int, ...]],
    names: Mapping[int, str],
    mounts: Sequence[tuple[str, str]],
    mount: str,
) -> str | None:
    files, place = np.unique(np.concatenate(ids_by_module), return_inverse=True)
    seconds, size = np.zeros(len(files)), np.bincount(place, np.concatenate(moved), len(files))
    np.maximum.at(seconds, place, np.concatenate(spent))
    of_target: dict[int, Floats] = {}
    for number, file in enumerate(files[:_MOST_FILES].tolist()):
        own, name = targets.get(file, ()), names.get(file, "")
        if not 0 < len(own) <= _MOST_TARGETS or not size[number] or name in _STREAMS:
            continue
        if mount_of(name, mounts)[0] != mount:
            continue
        share = np.array([1.0, seconds[number], size[number]]) / len(own)
        for target in own:
            of_target[target] = of_target.get(target, np.zeros(3)) + share
    rows = [[target, *(round(float(value), 6) for value in of_target[target])] for target in sorted(of_target)]
    return json.dumps(rows, separators=(",", ":")) if rows else None
