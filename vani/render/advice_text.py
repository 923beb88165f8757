"""Advice as a first screen for a scientist: does I/O matter, what to do, how sure, which line to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from vani.errors import one_line
from vani.units import format_count, format_seconds, format_share

if TYPE_CHECKING:
    from rich.console import Console

    from vani.schema.advice import Advice, Expected, JudgedFiles, Recommendation
    from vani.schema.profile import Profile

__all__ = ["render"]

MATTERS = "MAT001"
"""The rule that says whether I/O matters: it has the first line."""

# A scientist reads one screen, and seldom changes more than this before the next run.
THINGS_TO_DO = 3

# More lines than this push the first ones off the screen.
OTHERS = 10

_STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold", "info": "dim"}


def render(advice: Advice, profile: Profile | None, console: Console) -> None:
    """Print advice for eyes.

    Paths come from traces: control characters are escaped and nothing is read as markup. Lines to paste are
    never broken. `profile` is asked for the first line where the advice has none; None: not known.
    """
    first = next((one for one in advice.recommendations if one.rule == MATTERS), None)
    rest = [one for one in advice.recommendations if one.rule != MATTERS]
    console.print(Text(_matters(first, profile), style="bold"), highlight=False)
    console.print(Text(_machine(advice), style="dim"), highlight=False)
    if advice.profile.files is not None:
        console.print(Text(_part(advice.profile.files), style="dim"), highlight=False)
    todo = [one for one in rest if one.severity != "info"][:THINGS_TO_DO]
    for number, one in enumerate(todo, 1):
        console.print()
        _thing_to_do(number, one, console)
    others = [one for one in rest if not any(one is done for done in todo)]
    if others:
        console.print()
        console.print(Text("Also:" if todo else "Noticed all the same:"))
        for one in others[:OTHERS]:
            _one_line(one, console)
        if len(others) > OTHERS:
            console.print(Text(f"  and {len(others) - OTHERS} more (see advice.yaml)"), highlight=False)
    console.print()
    console.print(Text(_silent(advice), style="dim"), highlight=False)


def _matters(first: Recommendation | None, profile: Profile | None) -> str:
    if first is not None:
        return one_line(first.reason)
    share = profile.workflow.io_time_share if profile is not None else None
    if share is None:
        return f"Whether I/O matters was not asked ({MATTERS} was left out)."
    return f"A process spends {format_share(share)} of the run in I/O on average ({MATTERS} was left out)."


def _machine(advice: Advice) -> str:
    if advice.system.name is None:
        return "No machine was described: --system NAME makes the advice better (`vani systems` lists them)."
    if advice.system.name.startswith("generic-"):
        return f"Judged by {one_line(advice.system.name)}: typical figures, not those of your machine."
    return f"Judged by the machine {one_line(advice.system.name)}."


def _part(files: JudgedFiles) -> str:
    share = format_share(files.io_time_share)
    return (
        f"Of {format_count(files.listed)} listed files the {format_count(files.judged)} with the most I/O time "
        f"({share} of it) were judged: gains are at least these (--files all judges all)."
    )


def _thing_to_do(number: int, one: Recommendation, console: Console) -> None:
    heading = Text(f"{number}. {one_line(one.name)} ({one.rule}), ")
    heading.append(one.severity, style=_STYLES[one.severity])
    heading.append(f", {_how_sure(one.confidence)}")
    console.print(heading, highlight=False)
    _indented(one_line(one.reason), console)
    if one.expected is not None:
        _indented(_expected(one.expected), console)
    for line in one.apply:
        # soft_wrap: a terminal may wrap it, but what is copied stays one line.
        console.print(
            Text("     " + one_line(line), style="cyan" if not line.startswith("#") else "dim"),
            soft_wrap=True,
            highlight=False,
        )


def _indented(text: str, console: Console) -> None:
    console.print(Padding(Text(text), (0, 0, 0, 3)), highlight=False)


def _expected(expected: Expected) -> str:
    what = expected.metric.removesuffix("_s").replace("_", " ")
    text = f"Expected {what}: {format_seconds(expected.before)} -> {format_seconds(expected.after)}"
    if expected.speedup is not None:
        text += f", {_times(expected.speedup)} as fast"
        text += f" ({_times(expected.low)} to {_times(expected.high)})"
    return one_line(text + ".")


def _times(factor: float | None) -> str:
    return "any number of times" if factor is None else f"{factor:.3g} times"


def _how_sure(confidence: float) -> str:
    word = "a guess" if confidence < 0.4 else "likely" if confidence < 0.75 else "quite sure"
    return f"{word} ({confidence:.0%})"


def _one_line(one: Recommendation, console: Console) -> None:
    target = one.target.path or one.target.app or one.target.kind
    text = Text(f"  {one.rule} {one_line(one.name)} ({one.severity}): {one_line(target)}")
    console.print(text, no_wrap=True, overflow="ellipsis", highlight=False)


def _silent(advice: Advice) -> str:
    speaking = {one.rule for one in advice.recommendations}
    count = len({one.rule for one in advice.no_recommendation} - speaking)
    rules = "1 rule" if count == 1 else f"{count} rules"
    return f"{rules} had nothing to recommend (see advice.yaml). More: vani explain RULE"
