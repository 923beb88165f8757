"""Samples of measured writes, from CSV files, IOR output and histories."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from vani.centre.columns import CsvFile, Flags, Floats, Ints, parse_csv
from vani.errors import InputError, one_line
from vani.schema.document import read_bytes, text_of
from vani.units import MiB, format_bytes, parse_bytes

if TYPE_CHECKING:
    from vani.centre.history.rows import StoredRun

# Samples of writes and their times as columns, and the test of how precisely a mean time is known.


MAX_WRITES: Final = 200_000


@dataclass(frozen=True)
class Writes:
    """Measured writes as in a file, one row per repetition; columns as in `Samples`, shape (writes,)."""

    numbers: Mapping[str, Floats]
    words: Mapping[str, npt.NDArray[np.str_]]
    seconds: Floats

    def __len__(self) -> int:
        return len(self.seconds)


@dataclass(frozen=True)
class Samples(Writes):
    """Writes and their times.

    Parameters
    ----------
    numbers
        Numeric columns by name, shape (samples,). Vani knows the meaning of `nodes`, `processes`, `bytes`,
        `stripe_count`, `io_nodes` and `request`; others are used unchanged.
    words
        Text columns by name, with each sample's setting, shape (samples,).
    seconds
        Mean time of each sample, shape (samples,).
    standard_error
        Standard error relative to each mean, shape (samples,); NaN for a single measurement. None: unknown for all.
    """

    standard_error: Floats | None = None

    def only(self, chosen: Flags | Ints) -> Samples:
        """The samples selected by `chosen`: a mask of shape (samples,), or indices."""
        return Samples(
            {name: column[chosen] for name, column in self.numbers.items()},
            {name: column[chosen] for name, column in self.words.items()},
            self.seconds[chosen],
            None if self.standard_error is None else self.standard_error[chosen],
        )

    def with_numbers(self, numbers: Mapping[str, Floats]) -> Samples:
        """The same samples with other numeric columns."""
        return replace(self, numbers=numbers)

    def of_scale(self, name: str) -> Floats:
        """The column that measures the scale.

        Raises
        ------
        InputError
            The column does not exist.
        """
        if name not in self.numbers:
            known = ", ".join(self.numbers)
            raise InputError(f"no column {name!r}", where="--scale", todo=f"columns of numbers are {known}")
        return self.numbers[name]


def joined(parts: Sequence[tuple[str | Path, Writes]]) -> Writes:
    """Concatenate the writes of several named files.

    Raises
    ------
    InputError
        One file has a column that another lacks, or text where another has numbers; the error names both.
    """
    first, writes = parts[0]
    for path, other in parts[1:]:
        for here, there, path_here, path_there in ((writes, other, first, path), (other, writes, path, first)):
            missing = (set(here.numbers) - set(there.numbers)) | (set(here.words) - set(there.words))
            if missing:
                name = one_line(min(missing))
                what = f"has no {'such ' if name in (*there.numbers, *there.words) else ''}column {name!r} "
                what += f"as {path_here} has"
                raise InputError(what, where=path_there, todo="add it, or fit the files apart")
    if sum(len(part) for _, part in parts) > MAX_WRITES:
        raise InputError(f"more than {MAX_WRITES:,} writes", where=parts[-1][0], todo="leave some out")
    return Writes(
        {name: np.concatenate([part.numbers[name] for _, part in parts]) for name in writes.numbers},
        {name: np.concatenate([part.words[name] for _, part in parts]) for name in writes.words},
        np.concatenate([part.seconds for _, part in parts]),
    )


def sampled(writes: Writes) -> Samples:
    """Merge writes that differ only in their time into one sample, with the mean as Xie et al. define it."""
    numbers, words, times = writes.numbers, writes.words, writes.seconds
    keys = [*numbers.values(), *(np.unique(column, return_inverse=True)[1] for column in words.values())]
    table = np.stack(keys, axis=1) if keys else np.zeros((len(times), 1))
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()  # numpy 2.0 returns two dimensions
    counts = np.bincount(group)
    order = np.argsort(first)
    means = np.bincount(group, weights=times) / counts
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.bincount(group, weights=(times - means[group]) ** 2) / (counts - 1)
        error = np.where(counts > 1, np.sqrt(variance / counts) / means, np.nan)
    chosen = Samples(numbers, words, times).only(first[order])
    return replace(chosen, seconds=means[order], standard_error=error[order])


CONFIDENCE: Final = 0.9
"""The paper's value for Titan; it uses 0.98 for Cetus."""
ERROR: Final = 0.1
"""Error of a mean that has converged, relative to it, at most with the confidence."""


def error_allowed(confidence: float) -> float:
    """Largest standard error of a converged mean, relative to it, by the central limit theorem."""
    return ERROR / NormalDist().inv_cdf((1 + confidence) / 2)


def converged(samples: Samples, confidence: float = CONFIDENCE) -> Flags:
    """Whether each mean has converged, or is a single measurement; shape (samples,)."""
    if samples.standard_error is None:
        return np.ones(len(samples), dtype=bool)
    return ~(samples.standard_error > error_allowed(confidence))


# Prediction interval that contains nine of ten new values, from earlier measurements.

NOMINAL: Final = 0.9
ENOUGH: Final = 19
"""Least number of values with a 5 % quantile."""


def nine_of_ten(values: Floats) -> Floats:
    """Bounds of the interval, shape (2,).

    With `ENOUGH` values or more they are quantiles (split conformal prediction), with fewer those of Student's t.

    Parameters
    ----------
    values
        Measurements in any order, shape (n,) with n >= 1.
    """
    values = np.sort(values)
    count = len(values)
    tail = (1 - NOMINAL) / 2
    if count >= ENOUGH:
        # Rounded, because 0.05 * 40 is just below 2.
        below = max(0, math.floor(round(tail * (count + 1), 9)) - 1)
        return values[[below, count - 1 - below]]
    width = float(values.std(ddof=1)) if count > 1 else float(np.abs(values[0]))
    reach = _student(1 - tail, max(1, count - 1)) * width * float(np.sqrt(1 + 1 / count))
    return np.asarray(values.mean() + np.array([-reach, reach]))


def _student(share: float, freedom: int) -> float:
    """Quantile of Student's t above the median: exact up to two degrees of freedom, within 1 % (Fisher) beyond."""
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z = NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


# Measured writes from a CSV file with a header.

_MAX_COLUMNS: Final = 100
_MAX_WORDS: Final = 20
"""Number of distinct words in a column above which they are names, not settings."""

_SECONDS: Final = (1e-9, 1e9)
"""Limits of a write time."""
_TIMES: Final = ("seconds", "time_s", "total_s")


def read_csv(text: str, path: Path) -> Writes:
    """Read a row per write, or per repetition.

    The time is in `seconds` (or `time_s`, `total_s`), or follows from `bandwidth` (bytes per second) and `bytes`.

    Raises
    ------
    InputError
        There are no writes, a name occurs twice, or a cell is empty or not a number. The error names the line.
    """
    table = parse_csv(text, path, most=MAX_WRITES)
    _refuse_head(table.head, path)
    if not table.rows:
        raise InputError("has no samples", where=path, todo="add a row per write")
    numbers: dict[str, Floats] = {}
    words: dict[str, npt.NDArray[np.str_]] = {}
    for name in table.head:
        cells = table.column(name)
        if "" in cells:
            todo = "fill it in or leave the row out"
            raise InputError(f"no {one_line(name)}", where=table.place(cells.index("")), todo=todo)
        try:
            numbers[name] = np.array([float(cell) for cell in cells])
        except ValueError:
            if len(set(cells)) > _MAX_WORDS or name in (*_TIMES, "bytes", "nodes", "processes"):
                odd = next(cell for cell in cells if not _is_number(cell))
                todo = f"give a number (a column of words has at most {_MAX_WORDS} of them)"
                raise InputError(f"{name} is {odd[:40]!r}", where=path, todo=todo) from None
            words[name] = np.array(cells)
            continue
        wrong = ~np.isfinite(numbers[name]) | (numbers[name] < 0) | (numbers[name] > 1e30)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"{name} is {cells[row]}", where=table.place(row), todo="give 0 or more")
    return Writes(numbers, words, _times(numbers, table))


def _refuse_head(head: Sequence[str], path: Path) -> None:
    if not any(head):
        raise InputError("is empty", where=path, todo="start it with the names of the columns")
    if not all(head):
        raise InputError("has a column without a name", where=path, todo="name it or leave it out")
    if len(head) > _MAX_COLUMNS:
        raise InputError(f"has {len(head):,} columns", where=path, todo=f"keep at most {_MAX_COLUMNS}")
    times = [name for name in (*_TIMES, "bandwidth") if name in head]
    if not times or (times == ["bandwidth"] and "bytes" not in head):
        what = "has neither a column `seconds` nor `bandwidth` and `bytes`"
        raise InputError(what, where=path, todo="add the time of each write")
    if len(times) > 1:
        raise InputError(f"has two times of writes, {times[0]!r} and as {times[1]!r}", where=path, todo="leave one out")


def _times(numbers: dict[str, Floats], table: CsvFile) -> Floats:
    name: str = next((name for name in _TIMES if name in numbers), "bandwidth")
    times = numbers.pop(name)
    if name == "bandwidth":
        times = np.divide(numbers["bytes"], times, out=np.zeros(len(times)), where=times > 0)
    wrong = np.flatnonzero(~((times >= _SECONDS[0]) & (times <= _SECONDS[1])))
    if len(wrong):
        seconds = times[wrong[0]]
        what = f"a write of {seconds:g} s" if seconds > 0 else f"a {name} of 0"
        raise InputError(what, where=table.place(wrong[0]), todo="give seconds, or leave the row out")
    return times


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


# Measured writes from IOR output: text (3.0 to 4.1), or JSON with `-O summaryFormat=JSON` (3.2 and newer).
#
# Each repetition is a write; reads are left out. `bytes` is the final size of the file. If a deadline ended the write
# early (stonewalling), it is the amount moved: bandwidth times time.

_BANNER: Final = re.compile(r"^IOR-\d", re.MULTILINE)
_TITLES: Final = re.compile(r"^access\s+bw\(MiB/s\)\s", re.MULTILINE)
_OPTION: Final = re.compile(r"^\s*([A-Za-z][A-Za-z ]*?)\s*[:=]\s*(.*\S)\s*$")
_CLIENTS: Final = re.compile(r"(\d+) \((\d+) per node\)")
_SIZE: Final = re.compile(r"([0-9.]+) ?(bytes|[KMGTPE]iB)")
_ROUNDED: Final = 0.05
"""Rounding tolerance between bandwidth times time and the size of the file."""
_DEADLINES: Final = ("stonewallingTime", "Using stonewalling", "deadlineForStonewall")
_WORDS: Final = ("layout", "api", "type")


@dataclass(frozen=True)
class _Test:
    """One test in a results file, as far as IOR describes it; sizes are in bytes."""

    nodes: int
    tasks: int
    request: int
    size: int
    stripe_count: int | None
    deadline: bool
    words: tuple[str, str, str]


def is_ior(text: str) -> bool:
    """Whether a text is IOR output, complete or partial."""
    begin = text.lstrip()
    return begin.startswith("{") or bool(_BANNER.search(text) or _TITLES.search(text))


def read_ior(text: str, path: Path) -> Writes:
    """Read the writes of all tests.

    Raises
    ------
    InputError
        The text is damaged or truncated, or contains no write.
    """
    writes = list(_of_json(text, path) if text.lstrip().startswith("{") else _of_text(text, path))
    if not writes:
        raise InputError("has no write", where=path, todo="run IOR with -w, or leave it out")
    tests = [test for test, _, _ in writes]
    nodes, processes, requests = np.array([(test.nodes, test.tasks, test.request) for test in tests], dtype=float).T
    moved = np.array([_moved(*write_, path) for write_ in writes])
    numbers = {"nodes": nodes, "processes": processes, "bytes": moved, "request": requests}
    stripes = [float(test.stripe_count) for test in tests if test.stripe_count is not None]
    if stripes and len(stripes) < len(tests):
        raise InputError("has the stripe count of some tests only", where=path, todo="split it")
    if stripes:
        numbers["stripe_count"] = np.array(stripes)
    words = {name: np.array([test.words[n] for test in tests]) for n, name in enumerate(_WORDS)}
    return Writes(numbers, words, np.array([seconds for _, _, seconds in writes]))


def _moved(test: _Test, mib_per_s: float, seconds: float, path: Path) -> float:
    moved = mib_per_s * MiB * seconds
    if abs(moved - test.size) <= _ROUNDED * test.size:
        return float(test.size)
    if test.deadline:
        return moved
    what = f"{seconds:g} s at {mib_per_s:g} MiB/s are {format_bytes(moved)}, its file has {format_bytes(test.size)}"
    raise InputError(what, where=path, todo="leave it out: it is damaged")


def _of_json(text: str, path: Path) -> Iterator[tuple[_Test, float, float]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        todo = "leave it out, or run IOR to its end"
        raise InputError(f"is not complete JSON ({error})", where=path, todo=todo) from None
    except RecursionError:
        raise InputError("is not IOR's JSON: it is nested too deeply", where=path) from None
    try:
        for number, test in enumerate(document["tests"]):
            options, given, where = test["Options"], test["Parameters"], f"{path}: test {number}"
            settings = {**given, **options, "nodes": options.get("nodes") or given.get("nodes")}
            request, each = int(given["transferSize"]), int(given["blockSize"]) * int(given["segmentCount"])
            known = _known(settings, request=request, each=each, where=where)
            for result in _flat(test["Results"]):
                if result["access"] == "write":
                    yield known, *_checked(result["bwMiB"], result["totalTime"], where=where)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"is not IOR's JSON ({type(error).__name__}: {one_line(str(error))[:60]})"
        raise InputError(what, where=path, todo="write it by `-O summaryFormat=JSON`") from None


def _flat(results: list[Any]) -> Iterator[Mapping[str, Any]]:
    """The results one by one; older versions have a list per repetition."""
    for result in results:
        yield from result if isinstance(result, list) else [result]


def _of_text(text: str, path: Path) -> Iterator[tuple[_Test, float, float]]:
    options: dict[str, Any] = {}
    titles: list[str] = []
    test: _Test | None = None
    rows = 0
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}: line {number}"
        if line.startswith("access ") and "bw(MiB/s)" in line:
            titles, test = line.split(), None
            if not {"bw(MiB/s)", "total(s)"} <= set(titles):
                raise InputError("the titles of its results are damaged", where=where, todo="leave it out")
        elif titles and line.startswith("write "):
            cells = line.split()
            if len(cells) == len(titles):
                test = test or _of_options(options, where)
                row = dict(zip(titles, cells, strict=True))
                yield test, *_checked(row["bw(MiB/s)"], row["total(s)"], where=where)
                rows += 1
            elif not _is_summary(text, line):
                what = f"{len(cells)} figures where IOR prints {len(titles)}: it is cut off or damaged"
                raise InputError(what, where=where, todo="leave it out, or run IOR to its end")
        elif not titles or line.startswith(("Options", "Summary:", "Test ")):
            if line.startswith(("Options", "Summary:")):
                options, titles = {}, []
            option = _OPTION.match(line)
            if option is not None:
                options[option[1]] = option[2]
    if rows == 0 and not titles:
        raise InputError("ends before its results: it is cut off", where=path, todo="run IOR to its end")


def _is_summary(text: str, line: str) -> bool:
    """Whether a line belongs to IOR's summary after the results."""
    places = [at for title in ("Summary of all tests:", "Max Write:") if (at := text.find(title)) >= 0]
    return bool(places) and text.find(line) > min(places)


def _of_options(options: Mapping[str, Any], where: str) -> _Test:
    settings = dict(options)
    clients = _CLIENTS.match(str(settings.get("clients", "")))
    if clients is not None:
        settings |= {"tasks": clients[1], "clients per node": clients[2]}
    try:
        return _known(settings, request=_size(settings["xfersize"]), each=0, where=where)
    except (KeyError, ValueError, OverflowError) as error:
        what = f"IOR's options are damaged or missing ({one_line(str(error))[:60]})"
        raise InputError(what, where=where, todo="leave it out, or let IOR print them") from None


def _known(settings: Mapping[str, Any], *, request: int, each: int, where: str) -> _Test:
    tasks = int(settings["tasks"])
    per_node = int(settings.get("clients per node") or 0)
    nodes = int(settings.get("nodes") or 0) or (math.ceil(tasks / per_node) if per_node > 0 else 0)
    size = each * tasks or _size(settings["aggregate filesize"])
    if tasks < 1 or nodes < 1 or request < 1:
        what = f"{tasks} tasks on {nodes} nodes, {request} bytes at a time"
        raise InputError(what, where=where, todo="leave it out")
    stripes = str(settings.get("stripe count", ""))
    return _Test(
        nodes=nodes,
        tasks=tasks,
        request=request,
        size=size,
        stripe_count=int(stripes.split(maxsplit=1)[0]) if stripes[:1].isdigit() else None,
        deadline=any(str(settings.get(name, "0")).split(" ")[0] not in ("0", "") for name in _DEADLINES),
        words=(
            str(settings.get("access", "")).split(",")[0],
            str(settings.get("api", "")).split("-")[0].split(" ")[0],
            str(settings.get("type", "")) or "independent",
        ),
    )


def _size(text: Any) -> int:
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"size {text!r}")
    return parse_bytes(f"{match[1]}{'B' if match[2] == 'bytes' else match[2]}")


def _checked(*cells: Any, where: str) -> tuple[float, float]:
    """The MiB per second and the seconds of a write."""
    try:
        rate, seconds = map(float, cells)
    except ValueError as error:
        what = f"{str(error).rpartition(': ')[2][:42]} is not a number"
        raise InputError(what, where=where, todo="leave it out") from None
    if not (0 < seconds < math.inf and 0 <= rate < math.inf):
        what = f"a write of {seconds:g} s at {rate:g} MiB/s"
        raise InputError(what, where=where, todo="leave it out: it was not measured")
    return rate, seconds


# Measured writes from files (CSV, or IOR output) and from runs of a history.
#
# A history's runs count if they write and hardly read. Their time is the slowest process's time in I/O, from opening
# to closing; their number of nodes is unknown.

_MAX_BYTES: Final = 1 << 28


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
    text = text_of(read_bytes(path, most=_MAX_BYTES, todo="name a CSV file, or what IOR printed"), path)
    return read_ior(text, path) if is_ior(text) else read_csv(text, path)


MAX_READ: Final = 0.1
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
        what = f"none of {len(runs):,} runs writes, hardly reads, and has its time"
        raise InputError(what, where=where, todo="name another application, or measure with IOR")
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
    written, read = run.bytes_written, run.bytes_read or 0
    return bool(run.complete and run.slowest_s and written and read <= MAX_READ * written)


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
