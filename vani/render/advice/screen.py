"""Advice on one screen: whether I/O matters, what to do, how certain that is, and which line to paste."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.text import Text

from vani.errors import one_line
from vani.render.diagnosis import HEADING, acts_on, advised_rules, observation_lines
from vani.render.wording import (
    benchmark_lines,
    by_rule,
    expected_gain,
    how_sure,
    judged_by,
    judged_part,
    matters,
    target,
    things_to_do,
)
from vani.units import counted, format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from vani.schema.advice import Advice, NextRun, Recommendation
    from vani.schema.profile import Profile

# More lines than this push the first ones off the screen.
OTHERS = 10

_STYLES = {"high": "bold red", "medium": "bold yellow", "low": "bold", "info": "dim"}


def render(
    advice: Advice, profile: Profile | None, console: Console, *, written: str | None = None
) -> None:
    """Print advice for people.

    Paths come from traces, so control characters are escaped and nothing is interpreted as markup. Lines to paste
    are never wrapped. `profile` supplies the first line if the advice has none. `written` is the name of the file
    with the complete advice, if there is one.
    """
    written = one_line(written or "`-o advice.yaml`")
    todo, others = things_to_do(advice)
    if advice.damage is not None:
        _wrapped(Text(one_line(advice.damage), style="bold red"), console)
    if advice.next_run is not None:
        for line in _before_run(advice.next_run):
            console.print(Text(line), soft_wrap=True, highlight=False)
        if advice.next_run.default is not None:
            return
    _wrapped(Text(matters(advice, profile), style="bold"), console)
    if advice.verdict is not None and advice.verdict.cause is not None:
        _wrapped(Text(f"Why: {one_line(advice.verdict.cause.sentence)}"), console)
    if advice.remainder is not None:
        _wrapped(Text(one_line(advice.remainder.sentence)), console)
    for line in benchmark_lines(advice.benchmark) if advice.benchmark is not None else ():
        _wrapped(Text(f"- {line}"), console)
    _wrapped(Text(judged_by(advice), style="dim"), console)
    if advice.profile.files is not None:
        _wrapped(Text(judged_part(advice.profile.files), style="dim"), console)
    for number, recommendation in enumerate(todo, 1):
        console.print()
        same = [other for other in others if other.rule == recommendation.rule]
        _thing_to_do(number, recommendation, same, console, written)
    named = {recommendation.rule for recommendation in todo}
    rules = by_rule(other for other in others if other.rule not in named)
    if rules:
        console.print()
        console.print(Text("Also:" if todo else "Also noticed:"))
        for some in rules[:OTHERS]:
            _one_line(some, console)
        if len(rules) > OTHERS:
            _wrapped(Text(f"  and {len(rules) - OTHERS} more (see {written})"), console)
    if advice.diagnosis:
        console.print()
        console.print(Text(HEADING))
        for line in observation_lines(advice.diagnosis, console.width - 3, advised_rules(advice)):
            console.print(Text(f"   {line}"), no_wrap=True, overflow="ellipsis", highlight=False)
    if advice.recommendations or advice.no_recommendation:
        console.print()
        _wrapped(Text(_silent(advice, written), style="dim"), console)


def screen_of(advice: Advice) -> str:
    """The screen as text of 100 columns, without a final line break."""
    from rich.console import Console  # noqa: PLC0415 - heavy, and few programs print advice

    sink = io.StringIO()
    render(advice, None, Console(file=sink, width=100, color_system=None, highlight=False), written="`advice.save`")
    return "\n".join(line.rstrip() for line in sink.getvalue().rstrip("\n").split("\n"))


def _thing_to_do(
    number: int,
    recommendation: Recommendation,
    same: Sequence[Recommendation],
    console: Console,
    written: str,
) -> None:
    """Show one recommendation, and the other targets for which its rule recommends something."""
    heading = Text(f"{number}. {one_line(recommendation.name)} ({recommendation.rule}), ")
    heading.append(recommendation.severity, style=_STYLES[recommendation.severity])
    heading.append(f", {how_sure(recommendation.confidence)}")
    _wrapped(heading, console)
    _indented(one_line(recommendation.reason), console)
    if recommendation.patterns:
        _indented(acts_on(recommendation.patterns), console)
    if gain := expected_gain(recommendation):
        _indented(f"{gain}.", console)
    for line in recommendation.apply:
        # soft_wrap: a terminal may wrap the line, but it is copied as one.
        console.print(
            Text("     " + one_line(line), style="cyan" if not line.startswith("#") else "dim"),
            soft_wrap=True,
            highlight=False,
        )
    if same:
        places = list(dict.fromkeys(target(other) for other in same))
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        _indented(f"The same for {one_line(places[0])}{more} (see {written}).", console)


def _indented(text: str, console: Console) -> None:
    _wrapped(Text(text), console, indent=3)


def _wrapped(text: Text, console: Console, *, indent: int = 0) -> None:
    """Print text in lines without trailing blanks, which a log or a pipe would keep."""
    for line in text.wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), soft_wrap=True, highlight=False)


def _one_line(some: Sequence[Recommendation], console: Console) -> None:
    """Show on one line what a rule recommends, and in how many places; the end of a path is most informative."""
    first = some[0]
    often = f", {len(some)} places" if len(some) > 1 else ""
    outcome: str = first.severity
    if first.measured is not None and not first.measured.helps:
        outcome = "measured: no gain" if first.measured.verdict == "no_gain" else "measured: the program failed"
    start, place = (
        f"  {first.rule} {one_line(first.name)} ({outcome}{often}): ",
        one_line(target(first)),
    )
    room = console.width - len(start)
    if len(place) > room > 1:
        place = f"\u2026{place[1 - room :]}"
    console.print(Text(start + place), no_wrap=True, overflow="ellipsis", highlight=False)


def _silent(advice: Advice, written: str) -> str:
    speaking = {recommendation.rule for recommendation in advice.recommendations}
    count = len({silent.rule for silent in advice.no_recommendation} - speaking)
    return f"{counted(count, 'rule')} had nothing to recommend (see {written}). More: vani explain RULE"


def _before_run(run: NextRun) -> Iterator[str]:
    """Lines about the next run, its most likely behaviours, and that the defaults remain if too little is known."""
    whose = f" by {one_line(run.user)}" if run.user is not None else ""
    on = f" on {counted(run.processes, 'process')}" if run.processes is not None else ""
    yield f"For the next run of {one_line(run.application)}{whose}{on}."
    for behaviour in run.behaviours:
        like = (
            f"like {one_line(behaviour.run)}" if behaviour.run is not None else "without a profile"
        )
        yield f"  {format_share(behaviour.probability)}: behaviour {behaviour.behaviour}, {like}"
    if run.default is not None:
        yield f"Leave the defaults as they are: {one_line(run.default)}."
