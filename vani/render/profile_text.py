"""The first screen of a profile: what ran, how much of it was I/O, what dominates, which files, what next."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from vani.errors import one_line
from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from rich.console import Console

    from vani.schema.profile import FileEntity, Profile

__all__ = ["render"]

_KINDS = {"read": "reading", "write": "writing", "metadata": "metadata (open, close, seek, stat, ...)"}


def render(profile: Profile, console: Console, *, saved: Path | None = None) -> None:
    """Print the summary of a profile.

    Parameters
    ----------
    saved
        Where the profile was written, for the line that says what to do next.
    """
    workflow, io = profile.workflow, profile.workflow.io
    apps = Counter({a.name: a.instances for a in profile.apps})
    ran = ", ".join(f"{_plain(n)}" + (f" x {c}" if c > 1 else "") for n, c in list(apps.items())[:4])
    more = f" and {len(apps) - 4} more apps" if len(apps) > 4 else ""
    console.print(
        f"[bold]{ran}[/bold]{more}: {format_count(workflow.processes)} processes, {format_seconds(workflow.runtime_s)}"
        f"{_job(profile)}"
    )
    console.print(_share(profile))
    console.print(
        f"  {format_bytes(io.bytes.read)} read, {format_bytes(io.bytes.written)} written in "
        f"{format_count(io.ops.read + io.ops.write)} data and {format_count(io.ops.metadata)} metadata operations on "
        f"{format_count(workflow.files.total)} files ({format_count(workflow.files.shared)} shared)"
    )
    rates = [
        f"{verb} at {format_rate(rate)}"
        for verb, side, rate in (("read", "read", io.bandwidth.read), ("written", "write", io.bandwidth.write))
        if rate and f"io.bandwidth.{side}" not in profile.provenance
    ]
    if rates:
        console.print(f"  {', '.join(rates)}, all processes together, while any of them did")
    for side in ("read", "write"):
        if f"io.bandwidth.{side}" in profile.provenance:
            console.print(f"  {side} rate not shown: requests for more than was moved (provenance: io.bandwidth.{side})")
    if io.past_end.read:
        console.print(f"  {format_bytes(io.past_end.read)} of the reads asked for what lies beyond the end of the files")
    for line in _dominates(profile):
        console.print(f"  {line}")
    if profile.files:
        console.print(_files(profile.files[:3], len(profile.files)))
    lost = [f"{_plain(Path(t.path).name)}: {_plain(t.problems[0])}" for t in profile.traces if t.problems]
    lost += [_plain(v) for k, v in profile.provenance.items() if k.startswith("traces[")]
    for line in lost[:3]:
        console.print(f"[yellow]incomplete:[/yellow] {line}")
    if len(lost) > 3:
        console.print(f"[yellow]incomplete:[/yellow] {len(lost) - 3} more, see `traces` in the profile")
    name = _plain(str(saved)) if saved is not None else "profile.yaml"
    first = "" if saved is not None else f"save it (-o {name}), then "
    console.print(f"[bold]Next:[/bold] {first}vani advise {name}")


def _plain(text: str) -> str:
    """Text of a trace, made harmless: control characters and rich's markup."""
    return escape(one_line(text))


def _job(profile: Profile) -> str:
    nodes = profile.job.nodes
    return f", {format_count(nodes)} nodes" if nodes else ""


def _share(profile: Profile) -> str:
    share = profile.workflow.io_time_share
    balanced = [(a, a.balance) for a in profile.apps if a.balance is not None]
    if share is None or not balanced:
        return "I/O time: unknown"
    app, slowest = max(balanced, key=lambda b: b[1].slowest_io_time_s)
    name = f"rank {slowest.slowest_rank}" + (f" of {_plain(app.name)}" if len(profile.apps) > 1 else "")
    worst = f", the slowest ({name}) {format_seconds(slowest.slowest_io_time_s)}" if profile.workflow.processes > 1 else ""
    mean = profile.workflow.io.time_s.total / max(1, profile.workflow.processes)
    return f"[bold]I/O: {format_share(share)} of the run[/bold] ({format_seconds(mean)} per process{worst})"


def _dominates(profile: Profile) -> list[str]:
    time = profile.workflow.io.time_s
    parts = {"read": time.read, "write": time.write, "metadata": time.metadata}
    total = sum(parts.values())
    if not total:
        return ["no I/O on files of a data set"]
    kind = max(parts, key=lambda k: parts[k])
    lines = [f"{format_share(parts[kind] / total)} of the I/O time is {_KINDS[kind]}"]
    longest = max(profile.phases, key=lambda p: p.io.time_s.total, default=None)
    if longest is not None and len(profile.phases) > 1:
        whole = sum(p.io.time_s.total for p in profile.phases)
        lines.append(
            f"{len(profile.phases)} I/O phases; {format_share(longest.io.time_s.total / whole)} of the I/O time is in the one at "
            f"{format_seconds(longest.start_s)} ({longest.kind}, {format_count(longest.processes)} {'process' if longest.processes == 1 else 'processes'}, "
            f"{format_seconds(longest.runtime_s)})"
        )
    return lines


def _files(files: list[FileEntity], listed: int) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1))
    table.add_column(f"  most I/O time (of {listed} listed)" if listed > 3 else "  files", overflow="fold", ratio=1)
    for name in ("time", "read", "written", "processes"):
        table.add_column(name, justify="right", no_wrap=True)
    for file in files:
        io = file.io
        table.add_row(
            f"  {_plain(file.path)}" + (f" ({file.role})" if file.role else ""),
            format_seconds(io.time_s.total), format_bytes(io.bytes.read), format_bytes(io.bytes.written),
            format_count(file.processes),
        )
    return table
