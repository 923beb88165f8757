"""Measured writes from IOR output: text (3.0 to 4.1), or JSON with `-O summaryFormat=JSON` (3.2 and newer).

Each repetition is a write; reads are left out. `bytes` is the final size of the file. If a deadline ended the write
early (stonewalling), it is the amount moved: bandwidth times time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vani.centre.write_time.samples import MOST_WRITES, Writes
from vani.errors import InputError, one_line
from vani.units import format_bytes, parse_bytes

_MiB: Final = 1 << 20
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
    if len(writes) > MOST_WRITES:
        raise InputError(f"has more than {MOST_WRITES:,} writes", where=path, todo="leave some out")
    tests = [test for test, _, _ in writes]
    numbers = {
        "nodes": np.array([float(test.nodes) for test in tests]),
        "processes": np.array([float(test.tasks) for test in tests]),
        "bytes": np.array([_moved(*write_, path) for write_ in writes]),
        "request": np.array([float(test.request) for test in tests]),
    }
    with_stripes = {test.stripe_count is not None for test in tests}
    if len(with_stripes) > 1:
        raise InputError("has the stripe count of some tests only", where=path, todo="split it")
    if True in with_stripes:
        numbers["stripe_count"] = np.array([float(test.stripe_count or 0) for test in tests])
    words = {name: np.array([test.words[n] for test in tests]) for n, name in enumerate(_WORDS)}
    return Writes(numbers, words, np.array([seconds for _, _, seconds in writes]))


def _moved(test: _Test, mib_per_s: float, seconds: float, path: Path) -> float:
    moved = mib_per_s * _MiB * seconds
    if abs(moved - test.size) <= _ROUNDED * test.size:
        return float(test.size)
    if test.deadline:
        return moved
    raise InputError(
        f"{seconds:g} s at {mib_per_s:g} MiB/s are {format_bytes(moved)}, its file has {format_bytes(test.size)}",
        where=path,
        todo="leave it out: it is damaged",
    )


def _of_json(text: str, path: Path) -> Iterator[tuple[_Test, float, float]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"is not complete JSON ({error})", where=path, todo="leave it out, or run IOR to its end"
        ) from None
    except RecursionError:
        raise InputError("is not IOR's JSON: it is nested too deeply", where=path) from None
    try:
        for number, test in enumerate(document["tests"]):
            options, given = test["Options"], test["Parameters"]
            known = _known(
                {**given, **options, "nodes": options.get("nodes") or given.get("nodes")},
                request=int(given["transferSize"]),
                block=int(given["blockSize"]),
                segments=int(given["segmentCount"]),
                where=f"{path}: test {number}",
            )
            for result in _flat(test["Results"]):
                if result["access"] == "write":
                    seconds, rate = float(result["totalTime"]), float(result["bwMiB"])
                    yield known, *_checked(rate, seconds, f"{path}: test {number}")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"is not IOR's JSON ({type(error).__name__}: {one_line(str(error))[:60]})",
            where=path,
            todo="write it by `-O summaryFormat=JSON`",
        ) from None


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
                yield (
                    test,
                    *_checked(_number(row["bw(MiB/s)"], where), _number(row["total(s)"], where), where),
                )
                rows += 1
            elif not _is_summary(text, line):
                raise InputError(
                    f"{len(cells)} figures where IOR prints {len(titles)}: it is cut off or damaged",
                    where=where,
                    todo="leave it out, or run IOR to its end",
                )
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
    end = text.find("Summary of all tests:")
    begin = text.find("Max Write:")
    behind = min((at for at in (begin, end) if at >= 0), default=-1)
    return behind >= 0 and text.find(line) > behind


def _of_options(options: Mapping[str, Any], where: str) -> _Test:
    settings = dict(options)
    clients = _CLIENTS.match(str(settings.get("clients", "")))
    if clients is not None:
        settings |= {"tasks": clients[1], "clients per node": clients[2]}
    try:
        return _known(
            settings,
            request=_size(settings["xfersize"]),
            block=0,
            segments=0,
            where=where,
        )
    except (KeyError, ValueError, OverflowError) as error:
        raise InputError(
            f"IOR's options are damaged or missing ({one_line(str(error))[:60]})",
            where=where,
            todo="leave it out, or let IOR print them",
        ) from None


def _known(settings: Mapping[str, Any], *, request: int, block: int, segments: int, where: str) -> _Test:
    tasks = int(settings["tasks"])
    per_node = int(settings.get("clients per node") or 0)
    nodes = int(settings.get("nodes") or 0) or (math.ceil(tasks / per_node) if per_node > 0 else 0)
    size = block * segments * tasks or _size(settings["aggregate filesize"])
    if tasks < 1 or nodes < 1 or request < 1:
        raise InputError(
            f"{tasks} tasks on {nodes} nodes, {request} bytes at a time", where=where, todo="leave it out"
        )
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


def _number(cell: str, where: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{cell[:40]!r} is not a number", where=where, todo="leave it out") from None


def _checked(rate: float, seconds: float, where: str) -> tuple[float, float]:
    if not (0 < seconds < math.inf and 0 <= rate < math.inf):
        raise InputError(
            f"a write of {seconds:g} s at {rate:g} MiB/s",
            where=where,
            todo="leave it out: it was not measured",
        )
    return rate, seconds
