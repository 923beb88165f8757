"""A folder of benchmark results: IO500 output, or output of IOR and mdtest."""

from __future__ import annotations

import configparser
import posixpath
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vani.errors import InputError
from vani.readers.benchmarks.text import Output, count_of, is_output, read_output
from vani.schema.benchmark import Benchmark, BenchmarkPhase
from vani.units import GiB, MiB, counted, format_rate

_SUMMARY: Final = "result_summary.txt"
_SUFFIXES: Final = ("", ".txt", ".out", ".log")
_MOST_FILES: Final = 1000
_MOST: Final = MiB
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
    for path in sorted(folder.iterdir())[:_MOST_FILES]:
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
        _phase(f"{name} {outcome.what}", outcome.rate, output, outcome.seconds, opening=outcome.opening_share)
        for name, output in outputs.items()
        for outcome in output.outcomes
    ]
    first = next(iter(outputs.values()))
    return _with_facts(
        Benchmark(tool=first.tool, version=first.version, phases=phases, problems=problems + _cut(outputs)), outputs
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
    result = Benchmark(
        tool="io500",
        version=version[1] if version else None,
        valid=all(phase.valid for phase in phases) and (score is None or "INVALID" not in score[2]),
        score=float(score[1]) if score is not None else None,
        phases=phases,
        problems=problems + _cut(outputs),
    )
    return _with_facts(result, outputs, _settings(summary.parent))


def _with_facts(result: Benchmark, outputs: dict[str, Output], settings: dict[str, str] | None = None) -> Benchmark:
    """Add facts about the whole run from outputs and settings."""
    settings = settings or {}
    shared = next((o for name, o in outputs.items() if "hard" in name and o.tool == "ior"), None) or next(
        (o for o in outputs.values() if o.tool == "ior"), None
    )
    options = shared.options if shared is not None else {}
    kind = options.get("type")
    any_of = _any_of(outputs)
    return result.model_copy(
        update={
            "nodes": any_of.nodes if any_of else None,
            "processes": (any_of.processes if any_of else None) or count_of(settings.get("procs")),
            "api": (options.get("api") or settings.get("api") or "").split(" ")[0] or None,
            "collective": None if kind is None else kind == "collective",
            "folder": _folder(result.tool, options, outputs) or settings.get("datadir"),
        }
    )


def _phase(
    name: str,
    rate: float,
    output: Output | None,
    seconds: float | None,
    *,
    is_data: bool | None = None,
    valid: bool = True,
    opening: float | None = None,
) -> BenchmarkPhase:
    nodes, processes = (output.nodes, output.processes) if output is not None else (None, None)
    if is_data is None:
        is_data = output is not None and output.tool == "ior"
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
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST)
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror or error})", where=path, todo="name a readable file"
        ) from error
