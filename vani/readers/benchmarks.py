"""Output of IOR, mdtest and IO500, and the folders that contain it.

The layouts follow `PrintReducedResult` in IOR's `src/ior-output.c` and `summarize_results_rank0` in `src/mdtest.c`.
"""

import configparser
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from vani.errors import InputError
from vani.readers.files import head_of, readable
from vani.schema.benchmark import Benchmark, BenchmarkPhase
from vani.units import GiB, KiB, MiB, counted, format_rate

UNITS: Final[Mapping[str, float]] = {
    "KiB/s": KiB, "MiB/s": MiB, "GiB/s": GiB, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "B/s": 1.0,
}
_MAX_OUTPUT: Final = 16 * MiB
"""Longer output comes from IOR at high verbosity; its beginning and end contain all that is needed."""
_HEAD: Final = 64 * KiB
_IOR: Final = re.compile(r"^IOR-(\S+): MPI Coordinated Test", re.MULTILINE)
_MDTEST: Final = re.compile(
    r"^(?:-- started .*\n+)?mdtest-(\S+) was launched with (\d{1,9}) total task\(s\) on (\d{1,9}) node", re.MULTILINE
)
_OPTION: Final = re.compile(r"^\s*(\w[\w ]*?)\s*[:=] (.*)$")
_SUMMARY_LINE: Final = re.compile(r"^SUMMARY (rate|time)\b", re.IGNORECASE)
_ROW: Final = re.compile(
    r"^\s+((?:Directory|File|Tree) (?:creation|stat|read|removal|rename))\s*:?((?:\s+(?:[\d.]+|-?nan|inf))+)\s*$"
)
_BEST: Final = re.compile(r"^Max (Write|Read):\s+(\d{1,15}\.\d+) MiB/sec", re.MULTILINE)
_JSON: Final = re.compile(r'^\s*\{\s*"Version": "\S+",\s*"Began":', re.MULTILINE)


@dataclass(frozen=True)
class MeasuredRate:
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
    outcomes: list[MeasuredRate] = field(default_factory=list)
    is_whole: bool = True


def is_output(path: Path) -> bool:
    """Whether a file begins like IOR or mdtest output, after anything a launcher may print."""
    head = head_of(path, _HEAD).decode("utf-8", "replace")
    return any(pattern.search(head) for pattern in (_IOR, _MDTEST, _JSON))


def read_output(path: Path) -> Output:
    """Read the output of IOR or mdtest.

    Raises
    ------
    InputError
        The file is not such output, cannot be read, has rates in an unknown unit, or ends before its first result.
    """
    text = _output_text(path)
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


def _output_text(path: Path) -> str:
    with readable(path), path.open("rb") as file:
        content = file.read(_MAX_OUTPUT // 2)
        file.seek(0, 2)
        if (length := file.tell()) > _MAX_OUTPUT:
            file.seek(length - _MAX_OUTPUT // 2)
            content += b"\n"
        else:
            file.seek(len(content))
        content += file.read(_MAX_OUTPUT)
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
            output.outcomes.append(MeasuredRate(what, _mean(some, "bw") or 0.0, total, share))
        elif best.get(what):
            output.outcomes.append(MeasuredRate(what, best[what]))
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
        if match := _SUMMARY_LINE.match(line):
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
                output.outcomes.append(MeasuredRate(match[1].lower(), mean))
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


_SUMMARY: Final = "result_summary.txt"
_SUFFIXES: Final = ("", ".txt", ".out", ".log")
_MAX_FILES: Final = 1000
_MAX_READ: Final = MiB
# `[RESULT] ior-easy-write 1.5 GiB/s : time 300.1 seconds [INVALID]`; before 2020 `[RESULT] BW phase 1 ior_easy_write`.
_RESULT: Final = re.compile(
    r"^\[(RESULT|  {5})\]\s+(?:(?:BW|IOPS)\s+phase\s+\d+\s+)?([a-zA-Z][\w-]*)\s+(\d{1,15}(?:\.\d*)?)\s+([\w/]+)\s+:\s+"
    r"time\s+(\d{1,15}(?:\.\d*)?)\s+seconds(.*)$",
    re.MULTILINE,
)
_SCORE: Final = re.compile(r"^\[SCORE ?\].*\bTOTAL (\d{1,15}(?:\.\d*)?)(?![\d.])(.*)$", re.MULTILINE)
_VERSION: Final = re.compile(r"^IO500 version (\S+)", re.MULTILINE)
# IO500 printed MiB/s divided by 1024 as GB/s before it printed GiB/s.
_FACTORS: Final = {"gib/s": float(GiB), "gb/s": float(GiB), "kiops": 1e3}
_PHASES: Final = 12
"""Phases that make up the IO500 score."""
_ALIKE: Final = 0.05


def is_result(path: Path) -> bool:
    """Whether a path is a folder of results, or an output file of IOR or mdtest."""
    try:
        if path.is_dir():
            return (path / _SUMMARY).is_file() or any(True for _ in outputs_of(path))
        return path.is_file() and (path.name == _SUMMARY or is_output(path))
    except (OSError, ValueError):
        return False


def outputs_of(folder: Path) -> Iterator[Path]:
    """Output files of IOR and mdtest in a folder, sorted by name."""
    for path in sorted(folder.iterdir())[:_MAX_FILES]:
        if path.suffix in _SUFFIXES and path.is_file() and is_output(path):
            yield path


def read_result(path: Path) -> Benchmark:
    """Read a folder of results, or one output file.

    Raises
    ------
    InputError
        Nothing in it is readable.
    """
    if path.name == _SUMMARY and path.is_file():
        path = path.parent
    outputs: dict[str, Output] = {}
    problems: list[str] = []
    for file in outputs_of(path) if path.is_dir() else [path]:
        try:
            outputs[file.stem.replace("_", "-")] = read_output(file)
        except InputError as error:
            if not path.is_dir():
                raise
            problems.append(f"{file.name}: {error.what}")
    summary = path / _SUMMARY
    if path.is_dir() and summary.is_file():
        return _of_io500(summary, outputs, problems)
    if not outputs:
        raise InputError(problems[0], where=path, todo="give the whole output, or run it again")
    phases = [
        _phase(
            *(f"{name} {outcome.what}", outcome.rate, output, outcome.seconds),
            is_data=output.tool == "ior",
            opening=outcome.opening_share,
        )
        for name, output in outputs.items()
        for outcome in output.outcomes
    ]
    first = next(iter(outputs.values()))
    facts = _facts(first.tool, outputs, {})
    return Benchmark(
        tool=first.tool, version=first.version, phases=phases, problems=problems + _cut(outputs), **facts
    )


def _of_io500(summary: Path, outputs: dict[str, Output], problems: list[str]) -> Benchmark:
    text = _read(summary)
    phases: list[BenchmarkPhase] = []
    for kind, word, number, unit, seconds, rest in _RESULT.findall(text):
        name = word.replace("_", "-")
        factor = _FACTORS.get(unit.lower())
        if factor is None:
            raise InputError(
                f"the rate of {name} is in {unit!r}, which is not known",
                where=summary,
                todo="known are GiB/s, GB/s (of old versions, also 2^30) and kIOPS: give an unchanged file",
            )
        if not kind.strip() or not float(number):
            continue
        output, rate = outputs.get(name), float(number) * factor
        is_data = unit.lower() != "kiops"
        outcomes = output.outcomes if output is not None and is_data else []
        own = next((outcome for outcome in outcomes if outcome.what == name.rpartition("-")[2]), None)
        if own is not None and own.rate and abs(rate / own.rate - 1) > _ALIKE:
            problems.append(
                f"{name}: {summary.name} says {format_rate(rate)}, its own text {format_rate(own.rate)}, which counts"
            )
            rate = own.rate
        phases.append(
            _phase(
                name,
                rate,
                output or _any_of(outputs),
                float(seconds),
                is_data=is_data,
                valid="INVALID" not in rest,
                opening=own.opening_share if own is not None else None,
            )
        )
    if not phases:
        raise InputError(
            "has no line with [RESULT] (cut off, or the run ended before its first phase)",
            where=summary,
            todo="give the whole file, or run IO500 again",
        )
    score, version = _SCORE.search(text), _VERSION.search(text)
    if score is None:
        problems.append(f"{summary.name} ends before its score: {len(phases)} of {_PHASES} phases are there")
    elif len(phases) < _PHASES:
        problems.append(f"{counted(_PHASES - len(phases), 'phase')} of {_PHASES} did not run or have no rate")
    return Benchmark(
        tool="io500",
        version=version[1] if version else None,
        valid=all(phase.valid for phase in phases) and (score is None or "INVALID" not in score[2]),
        score=float(score[1]) if score is not None else None,
        phases=phases,
        problems=problems + _cut(outputs),
        **_facts("io500", outputs, _settings(summary.parent)),
    )


def _facts(tool: str, outputs: dict[str, Output], settings: dict[str, str]) -> dict[str, Any]:
    """Facts about the whole run, from outputs and settings."""
    shared = next((o for name, o in outputs.items() if "hard" in name and o.tool == "ior"), None) or next(
        (o for o in outputs.values() if o.tool == "ior"), None
    )
    options = shared.options if shared is not None else {}
    kind = options.get("type")
    any_of = _any_of(outputs)
    return {
        "nodes": any_of.nodes if any_of else None,
        "processes": (any_of.processes if any_of else None) or count_of(settings.get("procs")),
        "api": (options.get("api") or settings.get("api") or "").split(" ")[0] or None,
        "collective": None if kind is None else kind == "collective",
        "folder": _folder(tool, options, outputs) or settings.get("datadir"),
    }


def _phase(
    name: str,
    rate: float,
    output: Output | None,
    seconds: float | None,
    *,
    is_data: bool,
    valid: bool = True,
    opening: float | None = None,
) -> BenchmarkPhase:
    nodes, processes = (output.nodes, output.processes) if output is not None else (None, None)
    return BenchmarkPhase(
        name=name,
        rate=rate,
        unit="bytes/s" if is_data else "operations/s",
        seconds=seconds,
        valid=valid,
        nodes=nodes,
        processes=processes,
        per_node=rate / nodes if nodes else None,
        per_process=rate / processes if processes else None,
        opening_share=opening,
    )


def _any_of(outputs: dict[str, Output]) -> Output | None:
    return next((output for output in outputs.values() if output.nodes), None)


def _cut(outputs: dict[str, Output]) -> list[str]:
    return [f"{name}: ends before IOR's or mdtest's last lines" for name, o in outputs.items() if not o.is_whole]


def _folder(tool: str, options: dict[str, str], outputs: dict[str, Output]) -> str | None:
    """The benchmark's data folder; for IO500, the parent of the phases' folders."""
    name = options.get("test filename")
    if name:
        above = posixpath.dirname(name)
        return posixpath.dirname(above) if tool == "io500" else above
    for output in outputs.values():
        try:
            words = shlex.split(output.options.get("command line", ""))
        except ValueError:
            continue
        if "-d" in words[:-1]:
            return words[words.index("-d") + 1]
    return None


def _settings(folder: Path) -> dict[str, str]:
    """Data folder, interface and process count from `config.ini` and `result.txt`, which has the same syntax."""
    settings: dict[str, str] = {}
    for name, section in (("config-orig.ini", "global"), ("config.ini", "global"), ("result.txt", "run")):
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True, comment_prefixes=("#", ";"))
        try:
            parser.read_string(_read(folder / name))
        except (InputError, configparser.Error):
            continue
        if parser.has_section(section):
            settings |= {key: value for key, value in parser.items(section) if value}
    return settings


def _read(path: Path) -> str:
    with readable(path), path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_MAX_READ)
