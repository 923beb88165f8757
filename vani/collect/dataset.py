"""A bounded examination of a data set: number, sizes, formats and shapes of files, their values, compression."""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vani.collect.arrays import Array, NotExamined, array_of, raw_array
from vani.collect.compression import Sampled, try_codecs
from vani.collect.distribution import draw, law_of
from vani.errors import InputError
from vani.schema.dataset_facts import Distribution, FormatAttributes, format_of
from vani.schema.job import DatasetFile, DatasetSample
from vani.units import counted


@dataclass(frozen=True)
class Bounds:
    """Limits of the examination."""

    files: int = 1_000_000
    """Maximum number of files that are counted."""
    listed: int = 10_000
    """Maximum number of files that are listed with path and size."""
    opened: int = 1_000
    """Maximum number of listed files that are opened for their format and shape."""
    seconds: float = 60.0
    """Time for examining files, and again for reading values."""
    values: int = 8192
    """Maximum number of values that are read to find their distribution; 0 for none."""
    read: int = 64
    """Maximum number of files from which they are read, evenly chosen from those that were opened."""
    packed: int = 16 << 20
    """Maximum bytes that each installed codec compresses; 0 for none."""
    packing_s: float = 10.0
    """Time for reading and compressing them."""
    problems: int = 20
    """Maximum number of problems that are listed."""


def type_of_values(name: str) -> np.dtype:
    """The numpy type with this name: `float32`, `>f4`, `i2`.

    Raises
    ------
    InputError
        There is no such type, or its values are not real numbers.
    """
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        dtype = None
    if dtype is None or dtype.kind not in "fiu":
        raise InputError(
            f"no number type is called {name!r}", todo="name one as NumPy does: float32, >f8, int16, ..."
        )
    return dtype


def sample_dataset(
    root: Path,
    bounds: Bounds = Bounds(),
    *,
    raw_type: np.dtype | None = None,
    unknown: dict[str, str] | None = None,
) -> DatasetSample:
    """Examine `root` (a folder or a file), in name order.

    Files with several names count once. Links to folders are not followed.

    Parameters
    ----------
    raw_type
        Type of the values in files of unknown format; None if these are not read.
    unknown
        Gets the reasons why facts about the data set are null.

    Raises
    ------
    InputError
        There is nothing at `root`.
    """
    unknown = {} if unknown is None else unknown
    try:
        there = root.exists()
    except OSError as error:
        raise InputError(f"cannot be examined ({error.strerror})", where=root) from error
    if not there:
        raise InputError("no such data set", where=root, todo="name the folder of the input files")
    ends_at = time.monotonic() + bounds.seconds
    problems: list[str] = []
    files: list[DatasetFile] = []
    formats: Counter[str] = Counter()
    count = total = 0
    is_whole = True
    seen: set[tuple[int, int]] = set()
    arrays: list[tuple[Path, Array]] = []
    sampled: list[Sampled] = []
    lacking: Counter[str] = Counter()
    for path in _walk(root.absolute(), problems):
        if count >= bounds.files or time.monotonic() > ends_at:
            is_whole = False
            break
        try:
            status = path.stat()
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
            continue
        # Pipes and devices are not data, and opening them could block forever.
        if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        count, total = count + 1, total + status.st_size
        if len(files) < bounds.listed:
            file, array = _look(
                path,
                status.st_size,
                opens=len(files) < bounds.opened,
                raw_type=raw_type,
                problems=problems,
                lacking=lacking,
            )
            files.append(file)
            if file.format is not None:
                attributes = array.attributes if array is not None else None
                sampled.append(Sampled(path, file.size, file.format, _value_bytes(attributes)))
            formats.update([file.format] if file.format else [])
            arrays += [(path, array)] if array is not None and array.count else []
        else:
            is_whole = False
    missing = "; ".join(
        f"{counted(count, 'file', 'was', 'were')} not examined: {why}" for why, count in lacking.items()
    )
    if missing:
        unknown["dataset.attributes"] = missing
    distribution = _distribution(arrays, bounds, problems)
    if isinstance(distribution, str):
        unknown["dataset.distribution"] = "; ".join(filter(None, (distribution, missing)))
    compression = (
        try_codecs(_text(str(root.absolute())), sampled, bounds.packed, bounds.packing_s, problems)
        if bounds.packed
        else "no sample was requested (`--sample 0`)"
    )
    if isinstance(compression, str):
        unknown["dataset.compression"] = compression
    shown = [_text(problem) for problem in problems[: bounds.problems]]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    return DatasetSample(
        root=_text(str(root.absolute())),
        files=files,
        count=count,
        formats=dict(sorted(formats.items())),
        total_size=total,
        sampled=not is_whole,
        distribution=None if isinstance(distribution, str) else distribution,
        compression=None if isinstance(compression, str) else compression,
        problems=shown,
    )


def _look(
    path: Path,
    size: int,
    *,
    opens: bool,
    raw_type: np.dtype | None,
    problems: list[str],
    lacking: Counter[str],
) -> tuple[DatasetFile, Array | None]:
    """The format of a file, and the array in it whose values can be read."""
    kind, array, described = None, None, None
    if opens:
        try:
            kind = format_of(path)
            array = described = array_of(path, kind)
        except NotExamined as error:
            lacking[str(error)] += 1
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
    if kind == "bin" and raw_type is not None and size >= raw_type.itemsize:
        # The user vouches for the type, not the file.
        array = raw_array(path, size, raw_type)
    file = DatasetFile(
        path=_text(str(path)),
        size=size,
        format=kind,
        dims=list(described.shape) if described is not None else None,
        attributes=described.attributes if described is not None else None,
    )
    return file, array


def _distribution(
    arrays: list[tuple[Path, Array]], bounds: Bounds, problems: list[str]
) -> Distribution | str:
    """The distribution of the values, or the reason why it is unknown."""
    if not bounds.values:
        return "no values were requested (`--sample 0`)"
    if not arrays:
        return (
            "no file contains numbers of a known type: NumPy, FITS, netCDF and HDF5 files state "
            "it, raw files need `--dtype`"
        )
    step = -(-len(arrays) // bounds.read)
    drawn = draw(arrays[::step], bounds.values, bounds.seconds)
    problems += drawn.problems
    return law_of(drawn)


def _value_bytes(attributes: FormatAttributes | None) -> int | None:
    """Bytes per number in the largest array; a complex value is two numbers."""
    if attributes is None or attributes.type is None:
        return None
    try:
        type_ = np.dtype(attributes.type)
    except TypeError:
        return None
    return type_.itemsize // (2 if type_.kind == "c" else 1) if type_.kind in "fiuc" else None


def _walk(root: Path, problems: list[str]) -> Iterator[Path]:
    """Paths of everything below `root` except folders, folder by folder."""
    if not root.is_dir():
        yield root
        return
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(f"{folder}: {error.strerror}")
            continue
        below = []
        for entry in children:
            if entry.is_dir(follow_symlinks=False):
                below.append(folder / entry.name)
            elif not (entry.is_symlink() and (folder / entry.name).is_dir()):
                yield folder / entry.name
        waiting += reversed(below)


def _text(path: str) -> str:
    """Text of a file name; bytes that are not text are shown as escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")
