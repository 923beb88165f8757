"""Advice as Markdown and as a table of settings; `code_hosts.py` has SARIF and `screen.py` has the text."""

from collections.abc import Sequence
from typing import Final

from vani.render.answers import acts_on, numbers_of, pattern_words, place, worth_showing
from vani.render.table import cell, code, csv_table, escaped, fenced, markdown_table
from vani.render.wording import benchmark_lines, expected_gain, matters, target
from vani.schema.advice import Advice, Observation, Recommendation
from vani.schema.syntax.json_text import json_text
from vani.units import format_seconds, format_share


def to_markdown(advice: Advice, **_: object) -> str:
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
        head = ("", "rule", "severity", "target", "seconds saved", "confidence")
        lines += markdown_table(head, [_row(*numbered) for numbered in enumerate(advice.recommendations, 1)])
    else:
        lines += ["Nothing is recommended."]
    for number, recommendation in enumerate(advice.recommendations, 1):
        lines += ["", *_section(number, recommendation)]
    if advice.diagnosis:
        lines += ["", "## The program", "", *_observations(worth_showing(advice.diagnosis))]
    if advice.no_recommendation:
        lines += ["", "## Nothing to recommend", ""]
        lines += [f"- {silent.rule}: {escaped(silent.why)}" for silent in advice.no_recommendation]
    return "\n".join(lines) + "\n"


def _row(number: int, recommendation: Recommendation) -> Sequence[str]:
    return [
        str(number),
        f"{recommendation.rule} {escaped(recommendation.name)}",
        recommendation.severity,
        code(target(recommendation), in_table=True),
        _gain(recommendation),
        format_share(recommendation.confidence),
    ]


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
    if numbers := numbers_of(recommendation):
        lines += [f"Evidence: {', '.join(map(escaped, numbers))}.", ""]
    return [*lines, f"Sources: {'; '.join(escaped(source) for source in recommendation.source)}."]


def _expected(recommendation: Recommendation) -> str:
    text = f"{escaped(expected_gain(recommendation))}."
    return text if recommendation.gain is None else f"{text} Method: {escaped(recommendation.gain.method)}"


def _observations(observations: Sequence[Observation]) -> list[str]:
    rows = [
        (
            pattern_words(observation.pattern),
            code(place(observation) or "job", in_table=True),
            "unknown" if observation.share is None else format_share(observation.share),
            ", ".join(map(escaped, numbers_of(observation))),
            ", ".join(map(escaped, observation.rules)),
        )
        for observation in observations
    ]
    return markdown_table(("pattern", "where", "share of the I/O time", "evidence", "rules"), rows)


# --- CSV --------------------------------------------------------------------------------------------

_COLUMNS: Final = (
    "rule", "name", "severity", "confidence", "target", "path", "app", "setting", "current", "recommended", "commands",
)  # fmt: skip


def to_csv(advice: Advice, **_: object) -> str:
    """Write one row per recommended setting, with sizes in bytes.

    Unknown values are empty, and commands are one per line.
    """
    rows: list[Sequence[object]] = [_COLUMNS]
    for some in advice.recommendations:
        # Some recommendations have only commands. The one on whether I/O matters has neither.
        for setting in some.recommended or ([None] if some.apply else []):
            # Every cell is a single line, except the commands.
            commands = "\n".join(str(cell(line)) for line in some.apply)
            rows.append([*map(cell, _setting(some, setting)), commands])
    return csv_table(rows)


def _setting(some: Recommendation, setting: str | None) -> list[object]:
    current, recommended = ((of.get(setting) if setting else None) for of in (some.current, some.recommended))
    target = some.target
    return [
        some.rule, some.name, some.severity, some.confidence, target.kind, target.path, target.app, setting,
        _plain(current), _plain(recommended),
    ]  # fmt: skip


def _plain(value: object) -> object:
    return json_text(value, indent=None).rstrip("\n") if isinstance(value, list | dict | bool) else value
