"""Profiles and advice on one screen of a terminal.

A profile has its verdict, cause, time and place, and the next step; advice says whether I/O matters, what to do, how
certain that is, and which line to paste. Paths and names come from traces, so control characters are escaped and
nothing is interpreted as markup.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from vani.errors import one_line
from vani.models.verdict import could_matter, locking, verdict_of
from vani.render import answers, wording
from vani.schema.damage import damage, overhead_of
from vani.units import counted, format_bytes, format_count, format_number, format_seconds, format_share

if TYPE_CHECKING:
    from vani.schema.advice import Advice, NextRun, Observation, Recommendation
    from vani.schema.profile import Profile, Unseen

# --- lines without trailing blanks, which a log or a pipe would keep --------------------------------


def line(console: Console, text: str | Text, style: str = "") -> None:
    """Print one line that is never wrapped, since people copy it."""
    shown = text if isinstance(text, Text) else Text(text, style=style)
    console.print(shown, soft_wrap=True, highlight=False)


def paragraph(
    console: Console, text: str | Text, style: str = "", *, indent: int = 0, label: str = "", label_style: str = ""
) -> None:
    """Print text in lines that wrap, with a label in the first `indent` columns."""
    whole = text if isinstance(text, Text) else Text(text, style=style)
    lines = [part for piece in whole.split("\n") for part in piece.wrap(console, console.width - indent)]
    for place, part in enumerate(lines):
        part.rstrip()
        head = Text(f"{'' if place else label:<{indent}}", style=label_style)
        # A table would pad its lines with blanks.
        line(console, head.append_text(part))


def clipped(console: Console, text: str) -> None:
    """Print one line, cut at the end of the screen."""
    console.print(Text(text), no_wrap=True, overflow="ellipsis", highlight=False)


def captured(show: Callable[[Console], None], width: int) -> str:
    """Text that `show` prints on a screen of `width` columns, without colours and without trailing blanks."""
    sink = io.StringIO()
    show(Console(file=sink, width=width, color_system=None, force_terminal=False, highlight=False))
    return "\n".join(text.rstrip() for text in sink.getvalue().split("\n"))


# --- profile ----------------------------------------------------------------------------------------

_LABEL, _LEAST_WIDTH = 7, 80


def profile_screen(profile: Profile, diagnosis: Sequence[Observation] = ()) -> str:
    """The first screen as text of 100 columns, without the next step and a final line break."""
    shown = captured(lambda console: print_profile(profile, console, next_steps=False, diagnosis=diagnosis), 100)
    return shown.rstrip("\n")


def print_profile(
    profile: Profile,
    console: Console,
    *,
    saved: Path | None = None,
    next_steps: bool = True,
    diagnosis: Sequence[Observation] = (),
) -> None:
    """Print the summary of a profile.

    Parameters
    ----------
    saved
        Path of the written profile, for the next step.
    next_steps
        Print the next step.
    diagnosis
        The program's behaviour, one line per pattern.
    """
    # On a narrower terminal the lines wrap, which is better than truncated figures.
    console.width = max(console.width, _LEAST_WIDTH)
    lost = damage(profile)
    if lost is not None:
        paragraph(console, lost, "bold yellow")
    paragraph(console, _what_ran(profile))
    paragraph(console, one_line(verdict_of(profile).sentence), "bold")
    for label, text in _lines(profile, console.width - _LABEL):
        _labelled(console, label, text)
    for remark in _remarks(profile):
        _labelled(console, "Note", remark, style="dim")
    if diagnosis:
        paragraph(console, answers.PROGRAM, "bold")
        for observed in answers.observation_lines(diagnosis, console.width - 3):
            line(console, f"   {observed}")
    if next_steps:
        _next(profile, console, saved)


def _lines(profile: Profile, room: int) -> list[tuple[str, str]]:
    verdict = verdict_of(profile)
    cause = verdict.cause
    # The verdict names what it is open for, and the last line how to record it.
    stated = f"{verdict.sentence} {verdict.remedy if verdict.matters == 'open' else ''}".lower()
    lines = [
        *(("Unseen", _unseen(entry, stated)) for entry in could_matter(profile)),
        ("Why", cause.sentence if cause is not None else ""),
        ("", answers.library_words(profile)),
        ("When", answers.when(profile)),
        ("Where", answers.by_app(profile)),
    ]
    lines.append(("" if lines[-1][1] else "Where", answers.files_line(profile, room)))
    lines.append(("Data", answers.moved(profile)))
    lines += [("Asked", text) for text in _requested(profile)]
    return [(label, text) for label, text in lines if text]


def _labelled(console: Console, label: str, text: str, *, style: str = "bold") -> None:
    """Print a label and text that wraps next to it."""
    paragraph(console, text, indent=_LABEL, label=label, label_style=style)


def _what_ran(profile: Profile) -> Text:
    workflow = profile.workflow
    names = [one_line(app.name) + (f" x {app.instances}" if app.instances > 1 else "") for app in profile.apps]
    text = Text(", ".join(names[:answers.MAX_APPS]), style="bold")
    if len(names) > answers.MAX_APPS:
        text.append(f" and {counted(len(names) - answers.MAX_APPS, 'more app')}")
    rest = [counted(workflow.processes, "process")]
    if profile.job.nodes:
        rest.append(counted(profile.job.nodes, "node"))
    if workflow.runtime_s is not None:
        rest.append(format_seconds(workflow.runtime_s))
    starts = [trace.start_unix_s for trace in profile.traces if trace.start_unix_s]
    if starts:
        rest.append(f"{datetime.fromtimestamp(min(starts), UTC):%-d %b %Y}")
    tracers = {wording.tracer_of(trace.tool, trace.format.removesuffix(".0")) for trace in profile.traces}
    rest.append(", ".join(sorted(tracers)))
    text.append(": " + ", ".join(rest), style="not bold")
    return text


_EXACT = 10
_AS_MUCH = (0.9, 1.5)
"""Ratios of moved to requested bytes that headers and rounding to blocks explain."""


def _requested(profile: Profile) -> list[str]:
    """The bytes that each app requested from its outermost library, if moved bytes differ or are incomplete."""
    texts: dict[str, str] = {}
    for row in profile.interfaces or ():
        requested, name = row.asked, answers.LIBRARIES.get(row.layer)
        if name is None or requested is None or not requested.total:
            continue
        factor = None if row.amplification is None else row.amplification.total
        if row.app in texts or (factor is not None and _AS_MUCH[0] <= factor < _AS_MUCH[1]):
            continue
        sides = ((requested.written, "write"), (requested.read, "read"))
        text = f"{name} to {' and '.join(f'{verb} {format_bytes(size)}' for size, verb in sides if size)}"
        times = "" if factor is None else format_number(factor, 2) if factor < _EXACT else format_count(round(factor))
        texts[row.app] = text + (f"; {times} times as much was transferred" if times else "")
    return list(texts.values())[:answers.MAX_APPS]


def _remarks(profile: Profile) -> list[str]:
    """Reasons why the numbers above may mislead."""
    remarks = locking(profile)
    overhead = overhead_of(profile)
    if overhead is not None:
        remarks.append(f"{overhead[0]} adds {overhead[1]} to each call: counts and bytes are exact, times too long")
    low, high = map(format_seconds, profile.bounds.get("workflow.io.busy_s.total", (0.0, 0.0)))
    if low != high:
        remarks.append(f"some process is in I/O for {low} to {high}: counts do not record when each call took place")
    if profile.provenance.get("traces.path", "").startswith("copies"):
        remarks.append(profile.provenance["traces.path"])
    rates = profile.workflow.io.bandwidth
    is_impossible = any(
        getattr(rates, side) is None and f"io.bandwidth.{side}" in profile.provenance for side in ("read", "write")
    )
    if is_impossible and profile.workflow.runtime_s is not None:
        remarks.append("more was requested than can have been moved in that time: no rate is given")
    past = profile.workflow.io.past_end.read
    if past:
        remarks.append(f"{format_bytes(past)} of the reads are past the end of their file and returned no data")
    return remarks


def _unseen(entry: Unseen, stated: str) -> str:
    """The files of unobserved activity, its probable cause, and how to observe it, without what is `stated`."""
    names = [answers.shortened(path, _LEAST_WIDTH - _LABEL - 4) for path in entry.files[:answers.MAX_APPS]]
    more = len(entry.files) - len(names)
    rest = f"\nand {format_count(more)} more" if more > 0 else ""
    listed = "".join(f"\n{name}" for name in names)
    cause, remedy = one_line(entry.cause), one_line(entry.see_with)
    after = "" if remedy.lower() in stated else f"\nTo see it: {remedy}"
    amount = "" if not entry.bytes or format_bytes(entry.bytes) in cause else f"{format_bytes(entry.bytes)}: "
    before = f"{amount}{cause}."
    if cause.lower() in stated:
        before = "as stated above." if after and not names else ""
    return f"{before}{listed}{rest}{after}".strip()


def _next(profile: Profile, console: Console, saved: Path | None) -> None:
    verdict, is_saved = verdict_of(profile), saved is not None and str(saved) != "-"
    name = shlex.quote(one_line(str(saved)))
    if profile.workflow.runtime_s is None or not profile.workflow.io.ops.all or verdict.matters == "open":
        _labelled(console, "Next", one_line(verdict.remedy or ""))
        if verdict.matters == "open" and profile.workflow.io.time_s.total and is_saved:
            line(console, f"{'':<{_LABEL}}recorded part: vani advise {name}")
        return
    if not is_saved:
        _labelled(console, "Next", "save it with -o profile.yaml, then vani advise profile.yaml")
        return
    head = Text(f"{'Next':<{_LABEL}}", style="bold")
    if verdict.matters == "no":
        line(console, head.append(f"{verdict.remedy}    details: vani advise {name}", "not bold"))
        return
    system = "" if profile.storage.shared.type else " --system NAME"
    command, page = f"vani advise {name}{system}", f"page: vani report {name} -o report.html"
    # Lines to copy are never wrapped.
    if _LABEL + len(command) + len(page) + 4 <= console.width:
        line(console, head.append(f"{command}    {page}", "not bold"))
    else:
        line(console, head.append(command, "not bold"))
        line(console, f"{'':<{_LABEL}}{page}")


# --- advice -----------------------------------------------------------------------------------------

# More lines than this push the first ones off the screen.
MAX_OTHERS: Final = 10

_STYLES: Final = {"high": "bold red", "medium": "bold yellow", "low": "bold", "info": "dim"}


def print_advice(advice: Advice, profile: Profile | None, console: Console, *, written: str | None = None) -> None:
    """Print advice for people.

    Lines to paste are never wrapped. `profile` supplies the first line if the advice has none. `written` is the name
    of the file with the complete advice, if there is one.
    """
    written = one_line(written or "`-o advice.yaml`")
    todo, others = wording.things_to_do(advice)
    if advice.damage is not None:
        paragraph(console, one_line(advice.damage), "bold red")
    if advice.next_run is not None:
        for text in _before_run(advice.next_run):
            line(console, text)
        if advice.next_run.default is not None:
            return
    paragraph(console, wording.matters(advice, profile), "bold")
    if advice.verdict is not None and advice.verdict.cause is not None:
        paragraph(console, f"Why: {one_line(advice.verdict.cause.sentence)}")
    if advice.remainder is not None:
        paragraph(console, one_line(advice.remainder.sentence))
    for remark in wording.benchmark_lines(advice.benchmark) if advice.benchmark is not None else ():
        paragraph(console, f"- {remark}")
    paragraph(console, wording.judged_by(advice), "dim")
    if advice.profile.files is not None:
        paragraph(console, wording.judged_part(advice.profile.files), "dim")
    for number, recommendation in enumerate(todo, 1):
        console.print()
        same = [other for other in others if other.rule == recommendation.rule]
        _thing_to_do(number, recommendation, same, console, written)
    named = {recommendation.rule for recommendation in todo}
    rules = wording.by_rule(other for other in others if other.rule not in named)
    if rules:
        console.print()
        console.print(Text("Also:" if todo else "Also noticed:"))
        for some in rules[:MAX_OTHERS]:
            _one_line(some, console)
        if len(rules) > MAX_OTHERS:
            paragraph(console, f"  and {len(rules) - MAX_OTHERS} more (see {written})")
    if advice.diagnosis:
        console.print()
        console.print(Text(answers.PROGRAM))
        for observed in answers.observation_lines(advice.diagnosis, console.width - 3, answers.advised_rules(advice)):
            clipped(console, f"   {observed}")
    if advice.recommendations or advice.no_recommendation:
        console.print()
        paragraph(console, _silent(advice, written), "dim")


def advice_screen(advice: Advice) -> str:
    """The screen as text of 100 columns, without a final line break."""
    return captured(lambda console: print_advice(advice, None, console, written="`advice.save`"), 100).rstrip("\n")


def _thing_to_do(
    number: int,
    recommendation: Recommendation,
    same: Sequence[Recommendation],
    console: Console,
    written: str,
) -> None:
    """Show one recommendation, and the other targets for which its rule recommends something."""
    heading = Text(f"{number}. {one_line(recommendation.name)} ({recommendation.rule}), ")
    heading.append(wording.how_sure(recommendation), style=_STYLES[recommendation.severity])
    paragraph(console, heading)
    paragraph(console, one_line(recommendation.reason), indent=3)
    if recommendation.patterns:
        paragraph(console, answers.acts_on(recommendation.patterns), indent=3)
    if gain := wording.expected_gain(recommendation):
        paragraph(console, f"{gain}.", indent=3)
    for command in recommendation.apply:
        line(console, "     " + one_line(command), "dim" if command.startswith("#") else "cyan")
    if same:
        places = list(dict.fromkeys(wording.target(other) for other in same))
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        paragraph(console, f"The same for {one_line(places[0])}{more} (see {written}).", indent=3)


def _one_line(some: Sequence[Recommendation], console: Console) -> None:
    """Show on one line what a rule recommends, and in how many places; the end of a path is most informative."""
    first = some[0]
    often = f", {len(some)} places" if len(some) > 1 else ""
    outcome: str = first.severity
    if first.measured is not None and not first.measured.helps:
        outcome = "measured: no gain" if first.measured.verdict == "no_gain" else "measured: the program failed"
    start, where = f"  {first.rule} {one_line(first.name)} ({outcome}{often}): ", one_line(wording.target(first))
    clipped(console, start + answers.kept_end(where, console.width - len(start)))


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
        like = f"like {one_line(behaviour.run)}" if behaviour.run is not None else "without a profile"
        yield f"  {format_share(behaviour.probability)}: behaviour {behaviour.behaviour}, {like}"
    if run.default is not None:
        yield f"Leave the defaults as they are: {one_line(run.default)}."

def to_text(advice: Advice, **_: object) -> str:
    """Write the screen without colours and with the width of a letter, for a file or another program."""
    return captured(lambda console: print_advice(advice, None, console), 80)
