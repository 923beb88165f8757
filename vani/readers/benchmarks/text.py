"""Output of IOR and mdtest: versions 3 and 4 of IOR, and mdtest since 1.9.

The layouts follow `PrintReducedResult` in IOR's `src/ior-output.c` and `summarize_results_rank0` in `src/mdtest.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from vani.errors import InputError
from vani.units import GiB, KiB, MiB

UNITS: Final[Mapping[str, float]] = {
    "KiB/s": KiB, "MiB/s": MiB, "GiB/s": GiB, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "B/s": 1.0,
}
_MOST: Final = 16 * MiB
"""Longer output comes from IOR at high verbosity; its beginning and end contain all that is needed."""
_HEAD: Final = 64 * KiB
_IOR: Final = re.compile(r"^IOR-(\S+): MPI Coordinated Test", re.MULTILINE)
_MDTEST: Final = re.compile(
    r"^(?:-- started .*\n+)?mdtest-(\S+) was launched with (\d{1,9}) total task\(s\) on (\d{1,9}) node", re.MULTILINE
)
_OPTION: Final = re.compile(r"^\s*(\w[\w ]*?)\s*[:=] (.*)$")
_SUMMARY: Final = re.compile(r"^SUMMARY (rate|time)\b", re.IGNORECASE)
_ROW: Final = re.compile(
    r"^\s+((?:Directory|File|Tree) (?:creation|stat|read|removal|rename))\s*:?((?:\s+(?:[\d.]+|-?nan|inf))+)\s*$"
)
_BEST: Final = re.compile(r"^Max (Write|Read):\s+(\d{1,15}\.\d+) MiB/sec", re.MULTILINE)
_JSON: Final = re.compile(r'^\s*\{\s*"Version": "\S+",\s*"Began":', re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """Rate of one kind of operation, averaged over its repetitions.

    Attributes
    ----------
    what
        `write` or `read` for IOR; for mdtest, a name such as `file creation`.
    rate
        Bytes per second for IOR, operations per second for mdtest.
    seconds
        Mean time of a repetition; None if not printed.
    opening_share
        Share of that time in which the slowest process opens the file; None if not printed.
    """

    what: str
    rate: float
    seconds: float | None = None
    opening_share: float | None = None


@dataclass
class Output:
    """Output of IOR or mdtest."""

    tool: Literal["ior", "mdtest"]
    version: str
    options: dict[str, str] = field(default_factory=dict)
    nodes: int | None = None
    processes: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    is_whole: bool = True


def is_output(path: Path) -> bool:
    """Whether a file begins like IOR or mdtest output, after anything a launcher may print."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except (OSError, ValueError):
        return False
    return any(pattern.search(head) for pattern in (_IOR, _MDTEST, _JSON))


def read_output(path: Path) -> Output:
    """Read the output of IOR or mdtest.

    Raises
    ------
    InputError
        The file is not such output, cannot be read, has rates in an unknown unit, or ends before its first result.
    """
    text = _text(path)
    if (head := _IOR.search(text)) is not None:
        output = _ior(head[1], text, path)
    elif (head := _MDTEST.search(text)) is not None:
        output = _mdtest(head, text)
    elif _JSON.search(text):
        raise InputError("is IOR's JSON", where=path, todo="run IOR without -O summaryFormat, or give its text")
    else:
        raise InputError("is not the output of IOR or mdtest", where=path, todo="name what `ior` or `mdtest` printed")
    if not output.outcomes:
        why = "ends before its first result" if not output.is_whole else "has no result"
        raise InputError(
            f"{why} (IOR and mdtest print them at the end)",
            where=path,
            todo="give the whole output, or run it again",
        )
    return output


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST // 2)
            file.seek(0, 2)
            if (length := file.tell()) > _MOST:
                file.seek(length - _MOST // 2)
                content += b"\n"
            else:
                file.seek(len(content))
            content += file.read(_MOST)
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror or error})", where=path, todo="name a readable file"
        ) from error
    return content.decode("utf-8", "replace")


def _ior(version: str, text: str, path: Path) -> Output:
    output = Output("ior", version)
    columns: list[str] = []
    rows: dict[str, list[dict[str, float]]] = {}
    unit = 1.0
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["access"] and len(words) > 2 and words[1].startswith("bw("):
            columns, unit = words, _unit(words[1], path)
        elif columns and words[:1] in (["write"], ["read"]) and len(words) == len(columns):
            numbers = zip(columns[1:], map(_number, words[1:]), strict=True)
            row = {name: number for name, number in numbers if number is not None}
            if columns[1] in row:
                rows.setdefault(words[0], []).append(row | {"bw": row[columns[1]] * unit})
        elif match := _OPTION.match(line):
            output.options.setdefault(match[1].strip().lower(), match[2].strip())
    best = {match[1].lower(): float(match[2]) * MiB for match in _BEST.finditer(text)}
    # Within IO500, IOR prints nothing after its rows.
    repetitions = count_of(output.options.get("repetitions")) or 1
    output.is_whole = bool(best) or (bool(rows) and all(len(some) >= repetitions for some in rows.values()))
    for what in ("write", "read"):
        some = rows.get(what, [])
        if some:
            total, opening = _mean(some, "total(s)"), _mean(some, "open(s)")
            share = min(1.0, opening / total) if total and opening is not None else None
            output.outcomes.append(Outcome(what, _mean(some, "bw") or 0.0, total, share))
        elif best.get(what):
            output.outcomes.append(Outcome(what, best[what]))
    output.nodes = count_of(output.options.get("nodes"))
    output.processes = count_of(output.options.get("tasks"))
    # IOR 3.0: "clients = 160 (16 per node)".
    if match := re.match(r"(\d{1,9}) \((\d{1,9}) per node\)", output.options.get("clients", "")):
        output.processes = int(match[1])
        output.nodes = -(-int(match[1]) // int(match[2])) if int(match[2]) else None
    return output


def _mdtest(head: re.Match[str], text: str) -> Output:
    output = Output("mdtest", head[1], nodes=int(head[3]) or None, processes=int(head[2]) or None)
    kind = None
    for line in text.splitlines():
        if match := _SUMMARY.match(line):
            kind = match[1].lower()
        elif line.startswith("Command line used"):
            output.options["command line"] = line.partition(":")[2].strip()
        elif line.startswith("Path:"):
            output.options["path"] = line.partition(":")[2].strip()
        elif kind == "rate" and (match := _ROW.match(line)):
            numbers = [_number(word) for word in match[2].split()]
            # With per-rank statistics, three more columns precede these.
            mean = numbers[-2] if len(numbers) >= 4 else None
            if mean:
                output.outcomes.append(Outcome(match[1].lower(), mean))
    output.is_whole = bool(re.search(r"^-- finished at", text, re.MULTILINE))
    return output


def _unit(column: str, path: Path) -> float:
    unit = column[column.find("(") + 1 : -1]
    if unit not in UNITS:
        raise InputError(
            f"its rates are in {unit!r}, which is not known",
            where=path,
            todo=f"known are {', '.join(UNITS)}: give the output of an unchanged IOR",
        )
    return UNITS[unit]


def _mean(rows: list[dict[str, float]], name: str) -> float | None:
    values = [row[name] for row in rows if name in row]
    return sum(values) / len(values) if values else None


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if 0 <= number < 1e18 else None


def count_of(text: str | None) -> int | None:
    """A positive number of nodes, processes or repetitions; None for other texts and for more than nine digits."""
    return int(text) or None if text and len(text) <= 9 and text.isdecimal() else None
