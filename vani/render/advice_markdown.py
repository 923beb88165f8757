"""Advice as Markdown, for a merge request, an issue or a wiki page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.schema.advice import Advice, Expected, Recommendation

__all__ = ["render"]


def render(advice: Advice) -> str:
    """Write a table of all recommendations, then a section each, then what had nothing to recommend.

    Text from traces is escaped: it can be neither markup nor a link, nor end a block of code.
    """
    lines = ["# Advice", ""]
    lines += [f"Profile: {_code(advice.profile.path or 'given as a model')}  "]
    lines += [f"Machine: {_code(advice.system.name or 'none was described')}", ""]
    if advice.recommendations:
        lines += ["| | rule | severity | target | seconds won | confidence |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [_row(number, one) for number, one in enumerate(advice.recommendations, 1)]
    else:
        lines += ["Nothing is recommended."]
    for number, one in enumerate(advice.recommendations, 1):
        lines += ["", *_section(number, one)]
    if advice.no_recommendation:
        lines += ["", "## Nothing to recommend", ""]
        lines += [f"- {one.rule}: {_escaped(one.why)}" for one in advice.no_recommendation]
    return "\n".join(lines) + "\n"


def _row(number: int, one: Recommendation) -> str:
    target = one.target.path or one.target.app or one.target.kind
    cells = [
        str(number),
        f"{one.rule} {_escaped(one.name)}",
        one.severity,
        _code(target).replace("|", "\\|"),
        _won(one.expected),
        f"{one.confidence:.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def _won(expected: Expected | None) -> str:
    if expected is None or expected.before is None or expected.after is None:
        return "unknown"
    return format_seconds(max(0.0, expected.before - expected.after))


def _section(number: int, one: Recommendation) -> list[str]:
    lines = [f"## {number}. {_escaped(one.name)} ({one.rule})", "", _escaped(one.reason), ""]
    if one.expected is not None:
        lines += [_expected(one.expected), ""]
    if one.apply:
        text = [one_line(line) for line in one.apply]
        longest = max((len(run) for line in text for run in re.findall(r"`+", line)), default=0)
        fence = "`" * max(3, longest + 1)
        lines += [f"{fence}sh", *text, fence, ""]
    lines += ["Evidence:", ""]
    lines += [f"- {_code(item.attribute)} = {_code(str(item.value))}" for item in one.evidence]
    return [*lines, "", f"Sources: {'; '.join(_escaped(source) for source in one.source)}."]


def _expected(expected: Expected) -> str:
    what = _escaped(expected.metric.removesuffix("_s").replace("_", " "))
    text = f"Expected {what}: {format_seconds(expected.before)} -> {format_seconds(expected.after)}"
    if expected.speedup is not None:
        low, high = (_times(factor) for factor in (expected.low, expected.high))
        text += f", {_times(expected.speedup)} as fast ({low} to {high})"
    return f"{text}. Method: {_escaped(expected.method)}"


def _times(factor: float | None) -> str:
    return "any number of times" if factor is None else f"{factor:.3g} times"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&!@:$])", r"\\\1", one_line(text)) if text else ""


def _code(text: str) -> str:
    """Text as a span of code: its fence is longer than any run of backticks in it."""
    text = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"
