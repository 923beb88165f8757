"""Advice as Markdown, for a merge request, an issue or a wiki page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.diagnosis import acts_on, pattern_words, place
from vani.render.wording import benchmark_lines, expected_gain, matters, target
from vani.units import format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.advice import Advice, Observation, Recommendation

def render(advice: Advice, **_: object) -> str:
    """Write a table of all recommendations, a section for each, and then the rules without one.

    Text from traces is escaped, so that it cannot be markup or a link, or end a code block.
    """
    lines = ["# Advice", ""]
    if advice.damage is not None:
        lines += [f"**{escaped(advice.damage)}**", ""]
    lines += [escaped(matters(advice, None)), ""]
    if advice.verdict is not None and advice.verdict.cause is not None:
        lines += [f"Why: {escaped(advice.verdict.cause.sentence)}", ""]
    if advice.remainder is not None:
        lines += [escaped(advice.remainder.sentence), ""]
    if advice.benchmark is not None:
        lines += [*(f"- {escaped(line)}" for line in benchmark_lines(advice.benchmark)), ""]
    lines += [f"Profile: {code(advice.profile.path or 'given as a model')}  "]
    lines += [f"Machine: {code(advice.system.name or 'none was described')}", ""]
    for note in advice.notes or ():
        lines += [escaped(note), ""]
    if advice.recommendations:
        lines += [
            "| | rule | severity | target | seconds saved | confidence |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [_row(*numbered) for numbered in enumerate(advice.recommendations, 1)]
    else:
        lines += ["Nothing is recommended."]
    for number, recommendation in enumerate(advice.recommendations, 1):
        lines += ["", *_section(number, recommendation)]
    if advice.diagnosis:
        lines += ["", "## The program", "", *_observations(advice.diagnosis)]
    if advice.no_recommendation:
        lines += ["", "## Nothing to recommend", ""]
        lines += [f"- {silent.rule}: {escaped(silent.why)}" for silent in advice.no_recommendation]
    return "\n".join(lines) + "\n"


def _row(number: int, recommendation: Recommendation) -> str:
    cells = [
        str(number),
        f"{recommendation.rule} {escaped(recommendation.name)}",
        recommendation.severity,
        code(target(recommendation)).replace("|", "\\|"),
        _gain(recommendation),
        format_share(recommendation.confidence),
    ]
    return f"| {' | '.join(cells)} |"


def _gain(recommendation: Recommendation) -> str:
    expected = recommendation.gain
    if recommendation.measured is not None:
        speedup = recommendation.measured.speedup
        helps = recommendation.measured.helps and speedup is not None
        return f"measured: {f'{speedup:.2f} times as fast' if helps else 'none'}"
    if expected is None or expected.before is None or expected.after is None:
        return "unknown" if recommendation.expected is None else "faster"
    return format_seconds(max(0.0, expected.before - expected.after))


def _section(number: int, recommendation: Recommendation) -> list[str]:
    heading = f"## {number}. {escaped(recommendation.name)} ({recommendation.rule})"
    lines = [heading, "", escaped(recommendation.reason), ""]
    if recommendation.patterns:
        lines += [escaped(acts_on(recommendation.patterns)), ""]
    if recommendation.expected is not None or recommendation.measured is not None:
        lines += [_expected(recommendation), ""]
    if recommendation.apply:
        lines += [*fenced(recommendation.apply), ""]
    lines += ["Evidence:", ""]
    lines += [f"- {code(item.attribute)} = {code(str(item.value))}" for item in recommendation.evidence]
    return [*lines, "", f"Sources: {'; '.join(escaped(source) for source in recommendation.source)}."]


def _expected(recommendation: Recommendation) -> str:
    text = f"{escaped(expected_gain(recommendation))}."
    return text if recommendation.gain is None else f"{text} Method: {escaped(recommendation.gain.method)}"


def _observations(observations: Sequence[Observation]) -> list[str]:
    lines = ["| pattern | where | share of the I/O time | evidence | rules |", "| --- | --- | --- | --- | --- |"]
    for observation in observations:
        cells = [
            pattern_words(observation.pattern),
            code(place(observation) or "job").replace("|", "\\|"),
            "unknown" if observation.share is None else format_share(observation.share),
            ", ".join(
                code(f"{item.attribute} = {item.value}").replace("|", "\\|") for item in observation.evidence
            ),
            ", ".join(map(escaped, observation.rules)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def fenced(lines: Sequence[str]) -> list[str]:
    """Shell lines as a code block that none of them can end."""
    text = [one_line(line) for line in lines]
    longest = max((len(run) for line in text for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}sh", *text, fence]


def escaped(text: str) -> str:
    """Text that Markdown shows unchanged."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&!@:$])", r"\\\1", one_line(text)) if text else ""


def code(text: str) -> str:
    """Text as a code span, with a fence longer than any run of backticks in the text."""
    text = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"
