"""Measured writes from files of any kind that Vani knows: CSV, and what IOR prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from vani.errors import InputError
from vani.history.write_time.csv_file import read_csv
from vani.history.write_time.ior_file import is_ior, read_ior
from vani.history.write_time.samples import Samples, Writes, joined, sampled
from vani.units import format_bytes

__all__ = ["read_samples", "read_writes"]

_MOST_BYTES: Final = 1 << 28


def read_samples(paths: Sequence[Path], more: Sequence[tuple[str, Writes]] = ()) -> Samples:
    """Read all files, and make one sample of the writes that agree in everything but their time.

    Parameters
    ----------
    more
        Writes that were read already, each with the name of where they are from.

    Raises
    ------
    InputError
        A file cannot be used, or has other columns than another one.
    """
    return sampled(joined([*((path, read_writes(path)) for path in paths), *more]))


def read_writes(path: Path) -> Writes:
    """Read the writes of one file.

    Raises
    ------
    InputError
        No such file, or it is damaged; names the line.
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
