"""A bounded examination of a data set: number, sizes, formats and shapes of files, their values, compression.

The distribution of the values (table VI) comes from a bounded sample of them. The sample is stratified: the values of
all arrays, in order, are divided into as many equal parts as values are wanted, and one value is taken from each part
at random. The sample is then shuffled and halved. Each distribution is fitted to the first half by maximum likelihood,
and the one with the smallest Bayesian information criterion is chosen, or a simpler one that is as good. Its distance
from the second half, which had no part in this, is the Kolmogorov-Smirnov statistic. The distribution fits if its
distance is at most `ENOUGH`, or if the test does not reject it at 5 %.

Integers are spread evenly over the unit above them, because the distributions are continuous. Gamma, lognormal and
exponential start at 0.

Sources: Massey, "The Kolmogorov-Smirnov Test for Goodness of Fit" (1951); Schwarz, "Estimating the Dimension of a
Model" (1978); Kass and Raftery, "Bayes Factors" (1995), section 3.2. SciPy does the fitting and testing.
"""

import os
import stat
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from vani.collect.arrays import Array, NotExamined, array_of, raw_array
from vani.collect.compression import Sampled, try_codecs
from vani.errors import InputError, os_errors_as
from vani.schema.dataset_facts import Distribution, FormatAttributes, format_of
from vani.schema.job import DatasetFile, DatasetSample
from vani.units import counted

Floats = NDArray[np.float64]
Law = Literal["uniform", "normal", "lognormal", "exponential", "gamma"]

ENOUGH: Final = 0.05
"""Largest distance at which a distribution still describes the values: real data follows none exactly, and with enough
values a test rejects any."""
FEWEST: Final = 200
"""With fewer values, a test rejects almost nothing."""
_STRONG: Final = 10.0
"""Difference of the criterion above which it speaks very strongly for a distribution (Kass and Raftery); below, the
simpler one is taken: for gamma and lognormal values far from 0, a normal distribution is as good."""
_LAWS: Final[Mapping[Law, tuple[str, Mapping[str, int]]]] = {
    "uniform": ("uniform", {}),
    "normal": ("norm", {}),
    "exponential": ("expon", {"floc": 0}),
    "gamma": ("gamma", {"floc": 0}),
    "lognormal": ("lognorm", {"floc": 0}),
}
"""SciPy's name of each distribution, and where it starts; the simplest first."""
_SEED: Final = 20_260_101
"""The same data set gives the same sample."""
_TEST: Final = (
    "Kolmogorov-Smirnov test on the half of the values that was not used for the fit; "
    f"a law fits up to a statistic of {ENOUGH}, or with a p-value of at least 0.05"
)


@dataclass(frozen=True)
class Drawn:
    """A sample of values in random order."""

    values: Floats
    files: int
    """Number of files from which they come."""
    problems: list[str]


def draw(arrays: Sequence[tuple[Path, Array]], wanted: int, seconds: float) -> Drawn:
    """Draw `wanted` values from the arrays, from each in proportion to its number of values."""
    random = np.random.default_rng(_SEED)
    ends_at = time.monotonic() + seconds
    counts = np.array([array.count for _, array in arrays], dtype=np.int64)
    behind = np.cumsum(counts)
    total = int(behind[-1]) if len(behind) else 0
    if total <= wanted:
        places = np.arange(total)
    else:
        edges = np.linspace(0, total, wanted + 1)
        places = np.minimum(edges[:-1] + random.random(wanted) * np.diff(edges), total - 1).astype(np.int64)
    file = np.searchsorted(behind, places, side="right")
    samples, files, problems = [np.empty(0)], 0, []
    # In random order: if time runs out, the files read are a random sample.
    for index in random.permutation(np.unique(file)).tolist():
        if time.monotonic() > ends_at:
            break
        path, array = arrays[index]
        try:
            values = array.read(places[file == index] - (behind[index] - counts[index]), ends_at)
        except (OSError, ValueError) as error:
            problems.append(f"{path}: {error}")
            continue
        values = values[np.isfinite(values)]
        files += bool(len(values))
        samples.append(values)
    values = random.permutation(np.concatenate(samples))
    if time.monotonic() > ends_at:
        problems.append(f"after {seconds:g} s, {len(values):,} of {len(places):,} values of the sample were read")
    return Drawn(values, files, problems)


def law_of(drawn: Drawn) -> Distribution | str:
    """Fit and test the distributions; a sentence if that is impossible."""
    values = drawn.values
    if len(values) < FEWEST:
        return f"{len(values)} values were read, fewer than the {FEWEST} that a test needs"
    size = {"values": len(values), "files": drawn.files}
    if values.min() == values.max():
        same = {"value": float(values[0])}
        return Distribution(
            name="constant", closest="constant", parameters=same, test="all values are equal", **size
        )
    try:
        from scipy import stats  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        return "scipy is not installed (pip install 'vani-io[collect]')"
    counted = bool((values == np.rint(values)).all())
    if counted:
        values = values + np.random.default_rng(_SEED).random(len(values))
    known, unseen = values[::2], values[1::2]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        fitted: dict[Law, Any] = {}
        for law, (name, start) in _LAWS.items():
            # Values below the start have no fit, nor may values that differ by almost nothing.
            with suppress(ValueError, RuntimeError, FloatingPointError, OverflowError):
                fitted[law] = getattr(stats, name)(*getattr(stats, name).fit(known, **start))
        scores = {law: _score(law_fitted, known) for law, law_fitted in fitted.items()}
        usable = {law: score for law, score in scores.items() if np.isfinite(score)}
        if not usable:
            return "no distribution can be fitted to the values"
        best = min(usable.values())
        closest = next(law for law in _LAWS if usable.get(law, np.inf) <= best + _STRONG)
        tested = stats.kstest(unseen, fitted[closest].cdf)
    distance, p_value = float(tested.statistic), float(tested.pvalue)
    fits = distance <= ENOUGH or p_value >= 0.05
    return Distribution(
        name=closest if fits else None,
        closest=closest,
        parameters=_parameters(closest, fitted[closest], counted=counted),
        test=_TEST,
        statistic=distance,
        p_value=p_value,
        **size,
    )


def _score(law: Any, values: Floats) -> float:
    """Bayesian information criterion: the exponential distribution has one parameter, the others two."""
    free = 1 if law.dist.name == "expon" else 2
    return free * float(np.log(len(values))) - 2 * float(law.logpdf(values).sum())


def _parameters(name: Law, law: Any, *, counted: bool) -> dict[str, float]:
    """Parameters of the distribution under their usual names; location and bounds without the spread of integers."""
    *shape, at, scale = (float(value) for value in law.args)
    low, high = (float(np.floor(bound)) if counted else bound for bound in (at, at + scale))
    parameters = {
        "uniform": {"low": low, "high": high},
        "normal": {"mean": at - (0.5 if counted else 0.0), "standard_deviation": scale},
        "exponential": {"mean": scale},
        "lognormal": {"log_mean": float(np.log(scale)), "log_standard_deviation": shape[0] if shape else 0.0},
        "gamma": {"shape": shape[0] if shape else 0.0, "scale": scale},
    }
    return parameters[name]


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
    with os_errors_as(InputError, "cannot be examined", where=root):
        there = root.exists()
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


def _distribution(arrays: list[tuple[Path, Array]], bounds: Bounds, problems: list[str]) -> Distribution | str:
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
