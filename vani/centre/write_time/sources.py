"""Measured writes from files (CSV, or IOR output) and from runs of a history.

A history's runs count if they write and hardly read. Their time is the slowest process's time in I/O, from opening
to closing; their number of nodes is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.write_time.csv_file import read_csv
from vani.centre.write_time.ior_file import is_ior, read_ior
from vani.centre.write_time.samples import Floats, Samples, Writes, joined, sampled
from vani.errors import InputError
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.centre.history.rows import StoredRun

_MOST_BYTES: Final = 1 << 28


def read_samples(paths: Sequence[Path], more: Sequence[tuple[str, Writes]] = ()) -> Samples:
    """Read all files, and merge writes that agree in everything except their time into one sample.

    Parameters
    ----------
    more
        Writes that were read already, each with the name of its source.

    Raises
    ------
    InputError
        A file cannot be used, or its columns differ from another file's.
    """
    return sampled(joined([*((path, read_writes(path)) for path in paths), *more]))


def read_writes(path: Path) -> Writes:
    """Read the writes of one file.

    Raises
    ------
    InputError
        The file is missing or damaged; the error names the line.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(
                f"is larger than {format_bytes(_MOST_BYTES)}", where=path, todo="leave some writes out"
            )
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except IsADirectoryError:
        raise InputError("is a directory", where=path, todo="name a CSV file, or what IOR printed") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read as CSV ({why})", where=path) from error
    return read_ior(text, path) if is_ior(text) else read_csv(text, path)


_MOST_READ: Final = 0.1
"""Maximum ratio of bytes read to bytes written at which a run's I/O time counts as its write time."""
_ALIKE: Final = 0.01
"""Relative difference below which amounts are equal: a few lines in a log do not make a different write."""


def writes_of(runs: Sequence[StoredRun], where: str) -> Writes:
    """The writes of runs: processes, bytes, bytes per request, stripes if all have them, mounts if there are several.

    Raises
    ------
    InputError
        There is no run that writes and hardly reads.
    """
    used = [run for run in runs if _is_sample(run)]
    if not used:
        raise InputError(
            f"none of {len(runs):,} runs writes, hardly reads, and has its time",
            where=where,
            todo="name another application, or measure with IOR",
        )
    size = _rounded([float(run.bytes_written or 0) for run in used])
    numbers = {"processes": np.array([float(run.processes) for run in used]), "bytes": size}
    if all(run.writes for run in used):
        numbers["request"] = _rounded([(run.bytes_written or 0) / (run.writes or 1) for run in used])
    if all(run.stripes for run in used):
        numbers["stripe_count"] = np.array([float(run.stripes or 0) for run in used])
    mounts = np.array([run.mount or "unknown" for run in used])
    return Writes(
        numbers,
        {"mount": mounts} if len(set(mounts.tolist())) > 1 else {},
        np.array([float(run.slowest_s or 0.0) for run in used]),
    )


def _is_sample(run: StoredRun) -> bool:
    return bool(
        run.complete
        and run.slowest_s
        and run.bytes_written
        and (run.bytes_read or 0) <= _MOST_READ * run.bytes_written
    )


def _rounded(values: Sequence[float]) -> Floats:
    """Each amount replaced by the smallest one that counts as equal."""
    known, place = np.unique(np.maximum(values, 1.0), return_inverse=True)
    least = known.copy()
    begin = 0
    while begin < len(known):
        end = int(np.searchsorted(known, known[begin] * (1 + _ALIKE), side="right"))
        least[begin:end] = known[begin]
        begin = end
    return np.asarray(least[place])
