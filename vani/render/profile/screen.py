"""The first screen of a profile: verdict, cause, time, place, and the next step."""

from __future__ import annotations

import io
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from vani.errors import one_line
from vani.models.verdict import could_matter, verdict_of
from vani.render.diagnosis import HEADING, observation_lines
from vani.render.transferred import SHOWN, by_app, moved
from vani.render.verdict import LIBRARIES, library_words
from vani.render.when import when
from vani.render.where import files_line, shortened
from vani.render.wording import tracer_of
from vani.schema.damage import damage
from vani.schema.inflated import inflated_by
from vani.units import counted, format_bytes, format_count, format_number, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from vani.schema.advice import Observation
    from vani.schema.profile import Profile, Unseen

_LABEL, _LEAST_WIDTH = 7, 80


def screen_of(profile: Profile, diagnosis: Sequence[Observation] = ()) -> str:
    """The first screen as text of 100 columns, without the next step and a final line break."""
    from rich.console import Console  # noqa: PLC0415 - heavy, and few profiles are shown

    sink = io.StringIO()
    console = Console(file=sink, width=100, color_system=None, highlight=False)
    render(profile, console, next_steps=False, diagnosis=diagnosis)
    return sink.getvalue().rstrip("\n")


def render(
    profile: Profile,
    console: Console,
    *,
    saved: Path | None = None,
    program: str = "vani",
    next_steps: bool = True,
    diagnosis: Sequence[Observation] = (),
) -> None:
    """Print the summary of a profile.

    Paths and names come from traces, so control characters are escaped and nothing is interpreted as markup.

    Parameters
    ----------
    saved
        Path of the written profile, for the next step.
    program
        The command typed for `vani`, quoted for a shell.
    next_steps
        Print the next step.
    diagnosis
        The program's behaviour, one line per pattern.
    """
    # On a narrower terminal the lines wrap, which is better than truncated figures.
    console.width = max(console.width, _LEAST_WIDTH)
    lost = damage(profile)
    if lost is not None:
        _paragraph(console, Text(lost, style="bold yellow"))
    _paragraph(console, _what_ran(profile))
    _paragraph(console, Text(one_line(verdict_of(profile).sentence), style="bold"))
    for label, text in _lines(profile, console.width - _LABEL):
        _labelled(console, label, Text(text))
    for remark in _remarks(profile):
        _labelled(console, "Note", Text(remark), style="dim")
    if diagnosis:
        _paragraph(console, Text(HEADING, style="bold"))
        for line in observation_lines(diagnosis, console.width - 3):
            console.print(Text(f"   {line}"), soft_wrap=True, highlight=False)
    if next_steps:
        _next(profile, console, saved, program)


def _lines(profile: Profile, room: int) -> list[tuple[str, str]]:
    cause = verdict_of(profile).cause
    lines = [
        *(("Unseen", _unseen(entry)) for entry in could_matter(profile)),
        ("Why", cause.sentence if cause is not None else ""),
        ("", library_words(profile)),
        ("When", when(profile)),
        ("Where", by_app(profile)),
    ]
    lines.append(("" if lines[-1][1] else "Where", files_line(profile, room)))
    lines.append(("Data", moved(profile)))
    lines += [("Asked", text) for text in _requested(profile)]
    return [(label, text) for label, text in lines if text]


def _paragraph(console: Console, text: Text) -> None:
    for line in text.wrap(console, console.width):
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)


def _label(label: str) -> Text:
    return Text(f"{label:<{_LABEL}}", style="bold")


def _labelled(console: Console, label: str, text: Text, *, style: str = "bold") -> None:
    """Print a label and text that wraps next to it."""
    lines = [part for line in text.split("\n") for part in line.wrap(console, console.width - _LABEL)]
    for place, line in enumerate(lines):
        line.rstrip()
        head = Text(f"{label if not place else '':<{_LABEL}}", style=style)
        # A table would pad its lines with blanks, which a log keeps.
        console.print(head.append_text(line), soft_wrap=True, highlight=False)


def _what_ran(profile: Profile) -> Text:
    workflow = profile.workflow
    names = [
        one_line(app.name) + (f" x {app.instances}" if app.instances > 1 else "") for app in profile.apps
    ]
    text = Text(", ".join(names[:SHOWN]), style="bold")
    if len(names) > SHOWN:
        text.append(f" and {counted(len(names) - SHOWN, 'more app')}")
    rest = [counted(workflow.processes, "process")]
    if profile.job.nodes:
        rest.append(counted(profile.job.nodes, "node"))
    if workflow.runtime_s is not None:
        rest.append(format_seconds(workflow.runtime_s))
    starts = [trace.start_unix_s for trace in profile.traces if trace.start_unix_s]
    if starts:
        rest.append(f"{datetime.fromtimestamp(min(starts), UTC):%-d %b %Y}")
    rest += [", ".join(sorted({tracer_of(trace.tool, trace.format.removesuffix(".0")) for trace in profile.traces}))]
    text.append(": " + ", ".join(rest), style="not bold")
    return text


_EXACT = 10
_AS_MUCH = (0.9, 1.5)
"""Ratios of moved to requested bytes that headers and rounding to blocks explain."""


def _requested(profile: Profile) -> list[str]:
    """The bytes that each app requested from its outermost library, if moved bytes differ or are incomplete."""
    texts: dict[str, str] = {}
    for row in profile.interfaces or ():
        requested, name = row.asked, LIBRARIES.get(row.layer)
        if name is None or requested is None or not requested.total:
            continue
        factor = None if row.amplification is None else row.amplification.total
        if row.app in texts or (factor is not None and _AS_MUCH[0] <= factor < _AS_MUCH[1]):
            continue
        sides = ((requested.written, "write"), (requested.read, "read"))
        text = f"{name} to {' and '.join(f'{verb} {format_bytes(size)}' for size, verb in sides if size)}"
        times = "" if factor is None else format_number(factor, 2) if factor < _EXACT else format_count(round(factor))
        texts[row.app] = text + (f"; {times} times as much was transferred" if times else "")
    return list(texts.values())[:SHOWN]


def _remarks(profile: Profile) -> list[str]:
    """Reasons why the numbers above may mislead."""
    remarks = []
    inflated = inflated_by(profile)
    if inflated is not None:
        remarks.append(f"{inflated[0]} adds {inflated[1]} to each call: counts and bytes are exact, times too long")
    low, high = profile.bounds.get("workflow.io.busy_s.total", (0.0, 0.0))
    if high:
        remarks.append(
            f"some process is in I/O for {format_seconds(low)} to {format_seconds(high)}: counts do not record when "
            "each call took place"
        )
    if profile.provenance.get("traces.path", "").startswith("copies"):
        remarks.append(profile.provenance["traces.path"])
    sides = [
        side
        for side, rate in (
            ("read", profile.workflow.io.bandwidth.read),
            ("write", profile.workflow.io.bandwidth.write),
        )
        if rate is None and f"io.bandwidth.{side}" in profile.provenance
    ]
    if sides and profile.workflow.runtime_s is not None:
        remarks.append("more was requested than can have been moved in that time: no rate is given")
    past = profile.workflow.io.past_end.read
    if past:
        remarks.append(f"{format_bytes(past)} of the reads are past the end of their file and returned no data")
    return remarks


def _unseen(entry: Unseen) -> str:
    """The files of unobserved activity, its probable cause, and how to observe it."""
    names = [shortened(path, _LEAST_WIDTH - _LABEL - 4) for path in entry.files[:SHOWN]]
    more = len(entry.files) - len(names)
    rest = f"\nand {format_count(more)} more" if more > 0 else ""
    listed = "".join(f"\n{name}" for name in names)
    return f"{one_line(entry.cause)}.{listed}{rest}\nTo see it: {one_line(entry.see_with)}"


def _next(profile: Profile, console: Console, saved: Path | None, program: str) -> None:
    verdict = verdict_of(profile)
    if profile.workflow.runtime_s is None or not profile.workflow.io.ops.all or verdict.matters == "open":
        _labelled(console, "Next", Text(one_line(verdict.remedy or "")))
        if verdict.matters == "open" and profile.workflow.io.time_s.total and saved is not None and str(saved) != "-":
            line = f"{'':<{_LABEL}}recorded part: {program} advise {shlex.quote(one_line(str(saved)))}"
            console.print(Text(line), soft_wrap=True, highlight=False)
        return
    if saved is None or str(saved) == "-":
        _labelled(console, "Next", Text("save it with -o profile.yaml, then vani advise profile.yaml"))
        return
    name = shlex.quote(one_line(str(saved)))
    if verdict.matters == "no":
        line = f"{verdict.remedy}    details: {program} advise {name}"
        console.print(_label("Next").append(line, "not bold"), soft_wrap=True, highlight=False)
        return
    system = "" if profile.storage.shared.type else " --system NAME"
    line, page = f"{program} advise {name}{system}", f"page: {program} report {name} -o report.html"
    text = _label("Next").append(line, "not bold")
    # Lines to copy are never wrapped.
    if _LABEL + len(line) + len(page) + 4 <= console.width:
        console.print(text.append(f"    {page}", "not bold"), soft_wrap=True, highlight=False)
        return
    console.print(text, soft_wrap=True, highlight=False)
    console.print(Text(f"{'':<{_LABEL}}{page}"), soft_wrap=True, highlight=False)
