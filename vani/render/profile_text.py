"""The first screen of a profile: what ran, how much was I/O, what dominates it and where, what next."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from vani.errors import one_line
from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from rich.console import Console

    from vani.schema.profile import FileEntity, Phase, Profile

__all__ = ["render", "shortened"]

_SHOWN = 3
"""Files, apps and losses that fit a screen; the profile has them all."""

_METADATA = "metadata (open, seek, stat ...)"
_DOING = {"read": "reading", "write": "writing", "mixed": "reading and writing", "metadata": "metadata only"}
_LABEL, _LEAST_WIDTH = 7, 80


def render(profile: Profile, console: Console, *, saved: Path | None = None) -> None:
    """Print the summary of a profile.

    Paths and names come from traces: control characters are escaped, and nothing is read as markup.

    Parameters
    ----------
    saved
        Where the profile was written, for the line that says what to do next.
    """
    # On a narrower terminal the lines wrap, which is better than figures that are cut off.
    console.width = max(console.width, _LEAST_WIDTH)
    _print(console, _what_ran(profile))
    _print(console, _how_much(profile))
    if profile.workflow.io.time_s.total or (_is_untimed(profile) and _calls(profile)):
        console.print()
        console.print(_kinds(profile))
        for remark in _remarks(profile):
            _labelled(console, "", Text(remark, style="dim"))
        console.print()
        _where(profile, console)
    if profile.files:
        _files(profile, console)
    for line in _lost(profile):
        _labelled(console, "Lost", Text(line), style="yellow")
    if _is_untimed(profile):
        _labelled(console, "Next", Text("profile it without --quick for times, phases and advice"))
    elif saved is None or str(saved) == "-":
        _labelled(console, "Next", Text("save it with -o profile.yaml, then vani advise profile.yaml"))
    else:
        _print_unbroken(
            console, _label("Next").append(f"vani advise {shlex.quote(one_line(str(saved)))}", "not bold")
        )


def _is_untimed(profile: Profile) -> bool:
    """Whether the profile was made without reading time stamps (--quick)."""
    return profile.workflow.runtime_s is None


def _calls(profile: Profile) -> int:
    ops = profile.workflow.io.ops
    return ops.read + ops.write + ops.metadata


def shortened(path: str, width: int) -> str:
    """Cut the middle out of a path, whole folders first, so that it has at most `width` letters."""
    path = one_line(path)
    if len(path) <= width:
        return path
    parts = path.split("/")
    # The root of an absolute path is the empty part in front.
    head, tail = ([parts[0] + "/" + parts[1]], parts[2:]) if path.startswith("/") else ([parts[0]], parts[1:])
    for kept in range(1, len(tail)):
        short = "/".join([*head, "…", *tail[kept:]])
        if len(short) <= width:
            return short
    name = "…/" + parts[-1] if len(parts) > 1 else path
    if len(name) <= width:
        return name
    # The end of a name tells files apart more often than its beginning: numbers and suffixes are there.
    front = max(0, (width - 1) // 3)
    return name[:front] + "…" + name[len(name) - (width - 1 - front) :] if width > 1 else "…"


def _print(console: Console, text: Text) -> None:
    console.print(text, highlight=False)


def _label(label: str) -> Text:
    return Text(f"{label:<{_LABEL}}", style="bold")


def _labelled(console: Console, label: str, text: Text, *, style: str = "bold") -> None:
    """Print a label and text that wraps beside it."""
    line = Table.grid(padding=0)
    line.add_column(width=_LABEL)
    line.add_column(overflow="fold")
    line.add_row(Text(label, style=style), text)
    console.print(line)


def _print_unbroken(console: Console, text: Text) -> None:
    """Print a line that is copied, or that is short enough: it is never broken."""
    console.print(text, soft_wrap=True, highlight=False)


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{format_count(count)} {one if count == 1 else many or one + 's'}"


def _what_ran(profile: Profile) -> Text:
    workflow = profile.workflow
    names = [
        one_line(app.name) + (f" x {app.instances}" if app.instances > 1 else "") for app in profile.apps
    ]
    text = Text(", ".join(names[:_SHOWN]), style="bold")
    if len(names) > _SHOWN:
        text.append(f" and {_plural(len(names) - _SHOWN, 'more app')}")
    rest = [_plural(workflow.processes, "process", "processes")]
    if profile.job.nodes:
        rest.append(_plural(profile.job.nodes, "node"))
    if workflow.runtime_s is not None:
        rest.append(format_seconds(workflow.runtime_s))
    text.append(": " + ", ".join(rest), style="not bold")
    return text


def _how_much(profile: Profile) -> Text:
    workflow = profile.workflow
    if not _calls(profile):
        return Text("No I/O on files of a data set", style="bold")
    if workflow.io.time_s.total is None:
        return Text("Time: unknown (--quick)", style="bold").append(
            f", {_plural(_calls(profile), 'I/O call')} counted", style="not bold"
        )
    if not workflow.io.time_s.total:
        return Text("I/O takes less time than the trace's clock can tell", style="bold")
    share = workflow.io_time_share
    text = Text(
        "I/O time is unknown" if share is None else f"I/O is {format_share(share)} of the run", style="bold"
    )
    mean = format_seconds(workflow.io.time_s.total / max(1, workflow.processes))
    if workflow.processes == 1:
        return text.append(f": {mean}", style="not bold")
    slow = [
        (app.balance.slowest_io_time_s, app, app.balance.slowest_rank)
        for app in profile.apps
        if app.balance is not None and app.balance.slowest_io_time_s is not None
    ]
    text.append(f": {mean} a process", style="not bold")
    if slow:
        longest, app, rank = max(slow, key=lambda one: one[0])
        who, part = f"rank {rank}", ""
        if len(profile.apps) > 1:
            who += f" of {one_line(app.name)}"
        elif app.runtime_s:
            part = f" ({format_share(longest / app.runtime_s)})"
        text.append(f", most in {who}: {format_seconds(longest)}{part}", style="not bold")
    return text


def _kinds(profile: Profile) -> Table:
    """What the I/O consists of, the kind that takes longest (or has most calls) first."""
    io, timed = profile.workflow.io, not _is_untimed(profile)
    rows = [
        (
            "reading",
            io.time_s.read or 0.0,
            io.ops.read,
            io.bytes.read,
            _rate(profile, "read", io.bandwidth.read),
        ),
        (
            "writing",
            io.time_s.write or 0.0,
            io.ops.write,
            io.bytes.written,
            _rate(profile, "write", io.bandwidth.write),
        ),
        (_METADATA, io.time_s.metadata or 0.0, io.ops.metadata, None, ""),
    ]
    total = sum(row[1] for row in rows)
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(
        " " * _LABEL + f"{_plural(profile.workflow.files.total, 'file')}{_shared(profile)}", no_wrap=True
    )
    for heading in ("I/O time", "calls", "bytes", "rate") if timed else ("calls", "bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for place, (name, seconds, calls, size, rate) in enumerate(
        sorted((r for r in rows if r[2]), key=lambda r: -r[1] if timed else -r[2])
    ):
        amount = "" if name == _METADATA else format_bytes(size)
        cells = [format_count(calls), amount]
        if timed:
            cells = [format_share(seconds / total), *cells, rate]
        texts = (Text(cell) for cell in (" " * _LABEL + name, *cells))
        table.add_row(*texts, style="bold" if place == 0 else None)
    return table


def _shared(profile: Profile) -> str:
    files = profile.workflow.files
    if not files.shared:
        return "" if profile.workflow.processes == 1 else ", none shared"
    return ", shared" if files.total == 1 else f", {format_count(files.shared)} shared"


def _rate(profile: Profile, side: str, rate: float | None) -> str:
    return "?" if f"io.bandwidth.{side}" in profile.provenance else "" if rate is None else format_rate(rate)


def _remarks(profile: Profile) -> list[str]:
    """What keeps the numbers above from being what they seem."""
    remarks = []
    if any(f"io.bandwidth.{side}" in profile.provenance for side in ("read", "write")):
        remarks.append("?: more was asked for than can have been moved in that time")
    past = profile.workflow.io.past_end.read
    if past:
        remarks.append(f"{format_bytes(past)} of the reads lie past the end of their file: asked for in vain")
    return remarks


def _where(profile: Profile, console: Console) -> None:
    phases = [(phase.io.time_s.total or 0.0, phase) for phase in profile.phases or ()]
    whole = sum(time for time, _ in phases)
    if len(phases) > 1 and whole:
        time, longest = max(phases, key=lambda pair: pair[0])
        _labelled(console, "When", Text(_phase(longest, time / whole, len(phases))))
    if len(profile.apps) > 1:
        by_app: dict[str, float] = defaultdict(float)
        for app in profile.apps:
            by_app[app.name] += app.io.time_s.total or 0.0
        total = sum(by_app.values())
        most = sorted(by_app, key=lambda name: -by_app[name])[:_SHOWN]
        if total:
            text = ", ".join(f"{one_line(name)} {format_share(by_app[name] / total)}" for name in most)
            _labelled(console, "Where", Text(f"{text} of the I/O time"))


def _phase(phase: Phase, share: float, of: int) -> str:
    return (
        f"{format_share(share)} of the I/O time is in one of {format_count(of)} phases: {_DOING[phase.kind]} "
        f"by {_plural(phase.processes, 'process', 'processes')} from {format_seconds(phase.start_s)} on, "
        f"for {format_seconds(phase.runtime_s)}"
    )


def _files(profile: Profile, console: Console) -> None:
    """The files with most I/O time (or most bytes), one line each."""
    timed = not _is_untimed(profile)
    files = profile.files[:_SHOWN]
    total = profile.workflow.files.total
    folder = _folder([file.path for file in files])
    most = "I/O time" if timed else "bytes"
    what = f"the {len(files)} with most {most} of {format_count(total)}" if total > len(files) else ""
    if folder:
        room = console.width - _LABEL - len(what) - len(", in ")
        what += (", in " if what else "in ") + shortened(folder, max(20, room))
    if what:
        _print_unbroken(console, _label("Files").append(what, "not bold"))
    headings = ("I/O time", "read", "written", "procs", "")[0 if timed else 1 :]
    rows = [(*_figures(file), file.role or "")[0 if timed else 1 :] for file in files]
    widths = [max(len(heading), *(len(row[i]) for row in rows)) for i, heading in enumerate(headings)]
    label = " " * _LABEL if what else f"{'Files':<{_LABEL}}"
    room = console.width - _LABEL - sum(width + 2 for width in widths)
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(Text(label, style="not dim bold"), no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for file, row in zip(files, rows, strict=True):
        name = shortened(file.path[len(folder) :] if folder else file.path, max(12, room))
        table.add_row(Text(" " * _LABEL + name), *(Text(cell) for cell in row))
    console.print(table)


def _figures(file: FileEntity) -> tuple[str, str, str, str]:
    io = file.io
    return (
        format_seconds(io.time_s.total),
        format_bytes(io.bytes.read),
        format_bytes(io.bytes.written),
        format_count(file.processes),
    )


def _folder(paths: Sequence[str]) -> str:
    """The folder that several paths share, with a slash at its end; empty if it is not worth a line."""
    if len(paths) < 2 or not all(path.startswith("/") for path in paths):
        return ""
    shared = os.path.commonpath([os.path.dirname(path) for path in paths])  # noqa: PTH120 - text, not places on this machine
    return shared.rstrip("/") + "/" if shared.count("/") > 1 else ""


def _lost(profile: Profile) -> list[str]:
    lost = [
        f"{one_line(Path(t.path).name)}: {one_line(problem)}"
        for t in profile.traces
        for problem in t.problems[:1]
    ]
    lost += [one_line(why) for key, why in profile.provenance.items() if key.startswith("traces[")]
    if len(lost) > _SHOWN:
        lost[_SHOWN:] = [f"{len(lost) - _SHOWN} more, see `traces` and `provenance` in the profile"]
    return lost
