"""The wording of advice, shared by the terminal, Markdown and pages."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import counted, format_count, format_number, format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vani.schema.advice import Advice, Expected, JudgedFiles, Measured, Recommendation
    from vani.schema.benchmark import Benchmark
    from vani.schema.profile import Profile

MATTERS = "MAT001"
"""The rule on whether I/O matters, which has the first line."""

THINGS_TO_DO = 3
"""A scientist reads one screen, and rarely changes more than this before the next run."""


_SHOWS_BELOW, _SHOWS_ABOVE = 0.95, 1.05
"""Bounds of a time within this distance of it are left out."""


def matters(advice: Advice, profile: Profile | None) -> str:
    """Whether I/O matters at all, taken from `profile` if the advice has no answer."""
    first = next((entry for entry in advice.recommendations if entry.rule == MATTERS), None)
    if first is not None:
        return one_line(first.reason)
    if advice.benchmark is not None and advice.verdict is None:
        return one_line(_run_of(advice.benchmark))
    if advice.verdict is not None:
        todo = advice.verdict.remedy if advice.verdict.matters in ("open", "too_short") else None
        return one_line(advice.verdict.sentence + (f" {todo[:1].upper()}{todo[1:]}." if todo else ""))
    silent = next((entry for entry in advice.no_recommendation if entry.rule == MATTERS), None)
    if silent is not None:
        return one_line(f"Whether I/O matters is not known: {silent.why}.")
    share = profile.workflow.io_time_share if profile is not None else None
    if share is None:
        return f"Whether I/O matters was not judged ({MATTERS} was left out)."
    return f"Some process does I/O in {format_share(share)} of the run ({MATTERS} was left out)."


def benchmark_lines(benchmark: Benchmark) -> list[str]:
    """Lines on what limited a benchmark's run, how it agrees with its trace, and faults of its output."""
    agreed = [entry.sentence for entry in benchmark.agreement]
    limits = [] if agreed else benchmark.limits
    return [*map(one_line, (*agreed, *limits, *(f"Note: {problem}." for problem in benchmark.problems)))]


def _run_of(benchmark: Benchmark) -> str:
    name = {"io500": "IO500", "ior": "IOR"}.get(benchmark.tool, benchmark.tool)
    text = f"{name} {benchmark.version or ''}".rstrip()
    if benchmark.score is not None:
        text += f", score {benchmark.score:.2f}"
    if not benchmark.valid:
        text += " (invalid)"
    return f"{text}, {_scale(benchmark.processes, benchmark.nodes)}."


def things_to_do(advice: Advice) -> tuple[list[Recommendation], list[Recommendation]]:
    """The few recommendations to follow first, one per rule, and all others except the one on whether I/O matters."""
    rest = [entry for entry in advice.recommendations if entry.rule != MATTERS]
    groups = by_rule(entry for entry in rest if entry.severity != "info")
    todo = [group[0] for group in groups][:THINGS_TO_DO]
    return todo, [entry for entry in rest if not any(entry is first for first in todo)]


def by_rule(recommendations: Iterable[Recommendation]) -> list[list[Recommendation]]:
    """Recommendations grouped by rule, in the order of the first of each."""
    groups: dict[str, list[Recommendation]] = {}
    for recommendation in recommendations:
        groups.setdefault(recommendation.rule, []).append(recommendation)
    return list(groups.values())


def judged_by(advice: Advice) -> str:
    """The machine whose figures the advice is based on, and other file systems that the trace recorded."""
    if advice.system.name is None:
        text = "No machine was described. --system NAME gives better advice (`vani systems` lists machines)."
    elif advice.system.name.startswith("generic-"):
        text = f"Machine: {one_line(advice.system.name)} (typical figures, not your machine's)."
    else:
        text = f"Machine: {one_line(advice.system.name)}."
    return " ".join([text, *map(one_line, advice.notes or ())])


def judged_part(files: JudgedFiles) -> str:
    """Which part of a long list of files was judged."""
    share = format_share(files.io_time_share)
    return (
        f"The {format_count(files.judged)} of {format_count(files.listed)} listed files with the most I/O time "
        f"({share} of it) were judged: gains are at least these (--files all judges all)."
    )


def tracer_of(tool: str, version: str) -> str:
    """A tracer in its authors' spelling, with the version of its format if that is a number."""
    names = {"recorder": "Recorder", "wisio": "WisIO", "darshan": "Darshan", "dftracer": "DFTracer", "otf2": "OTF2"}
    name = names.get(tool, tool)
    return one_line(f"{name} {version}" if version[:1].isdecimal() else name)


def expected_gain(recommendation: Recommendation) -> str:
    """The measured or expected gain of a recommendation with its range, or why it is missing; may be empty."""
    if recommendation.measured is not None:
        return measured_gain(recommendation.measured)
    if recommendation.direction is not None:
        direction = recommendation.direction
        return one_line(
            f"Expected: {direction.direction}, by an unknown factor: measure it ({direction.why_no_number})"
        )
    if recommendation.gain is None:
        return ""
    expected = recommendation.gain
    what = expected.metric.removesuffix("_s").replace("_", " ")
    before, after = format_seconds(expected.before), format_seconds(expected.after)
    if expected.before == 0:
        return one_line(f"Expected {what}: nothing, once those above are followed")
    if before == after and expected.before is not None:
        high = expected.high or 1.0
        most = f", at most {format_number(high)} times as fast" if high >= 1.005 else ""
        return one_line(f"Expected {what}: {before} as before{most}")
    text = f"Expected {what}: {before}{_bounds(expected)} -> {after}"
    if expected.speedup is not None and expected.speedup > _NEARLY_ALL * (1 - 1e-6):
        least = expected.low or 0.0
        worst = f"at least {format_number(least)} times as fast" if least >= 1.005 else "at worst none"
        text += f", nearly all of it ({worst})"
    elif expected.speedup is not None:
        text += f", {format_number(expected.speedup)} times as fast{_range(expected.low, expected.high)}"
    elif expected.low and expected.before is not None:
        text += f" (at worst {format_seconds(expected.before / expected.low)})"
    return one_line(text)


def measured_gain(measured: Measured) -> str:
    """The outcome of `vani tune` for a setting, with its interval, day and scale."""
    times = "" if measured.speedup is None else f"{measured.speedup:.2f} times as fast"
    if measured.low is not None and measured.high is not None:
        times += f" ({measured.low:.2f} to {measured.high:.2f})"
    text = {
        "proven": times,
        "not_proven": f"{times}, not proven",
        "no_gain": "no gain",
        "failed": "the program failed with it",
    }[measured.verdict]
    text = f"Measured on this machine: {text}, {day(measured.date)}, {_scale(measured.processes, measured.nodes)}"
    if measured.together_with is not None:
        text += f", together with {measured.together_with}"
    if measured.verdict in ("no_gain", "failed"):
        text += "; leave it as it is"
    this = (measured.this_processes, measured.this_nodes)
    if _differs(measured.processes, this[0]) or _differs(measured.nodes, this[1]):
        text += f" (this run: {_scale(*this)})"
    return one_line(text)


def day(date: str) -> str:
    """A date as people write it; text that is not an ISO date is unchanged."""
    try:
        parsed = datetime.date.fromisoformat(date)
    except ValueError:
        return date
    return f"{parsed.day} {parsed:%B} {parsed.year}"


def _scale(processes: int | None, nodes: int | None) -> str:
    text = "an unknown number of processes" if processes is None else counted(processes, "process")
    return text if nodes is None else f"{text} on {counted(nodes, 'node')}"


def _differs(measured: int | None, this: int | None) -> bool:
    return measured is not None and this is not None and measured != this


def _bounds(expected: Expected) -> str:
    """How much longer or shorter the time may have been, if that is noticeable."""
    if expected.before is None or expected.before_bounds is None:
        return ""
    low, high = expected.before_bounds
    if low >= _SHOWS_BELOW * expected.before and high <= _SHOWS_ABOVE * expected.before:
        return ""
    return f" (by counts: {format_seconds(low)} to {format_seconds(high)})"


def how_sure(recommendation: Recommendation) -> str:
    """A recommendation's severity and confidence in words: what to do first, and how likely it is right."""
    return f"{recommendation.severity} priority, {format_share(recommendation.confidence)} sure"


def target(recommendation: Recommendation) -> str:
    """The target of a recommendation as the trace names it, not yet safe to print."""
    return recommendation.target.path or recommendation.target.app or recommendation.target.kind


_NOISE = 1.05
"""Factors below this are within the variation of repeated runs."""
_NEARLY_ALL = 100.0
"""A larger factor only means that next to nothing is left."""


def _range(low: float | None, high: float | None) -> str:
    """The range of a factor; without an upper end, there may be no time left."""
    if low is not None and low < _NOISE:
        most = "" if high is None or high > _NEARLY_ALL else f", at most {format_number(high)}"
        return f" (may gain nothing{most})"
    if low is None:
        return "" if high is None else f" (at most {format_number(high)})"
    if high is None or high > _NEARLY_ALL:
        return f" ({format_number(low)} or more)"
    return f" ({format_number(low)} to {format_number(high)})"
