"""Plans of kind `path`: by which nodes each job's I/O goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import listed, table
from vani.units import counted, format_rate, format_share, lfs_size

if TYPE_CHECKING:
    from vani.schema.plan import Flow, JobPath, PathPlan

__all__ = ["body", "missing"]

_NAMED: Final = 4
"""Nodes that are named one by one; of more only how many there are."""
_WORTH_SAYING: Final = 1.01
_LAYERS: Final = {"forwarding": "forwarding nodes", "storage": "storage nodes", "ost": "OSTs"}
_BINDS: Final = {"iobw": "bytes", "iops": "operations", "mdops": "metadata"}


def body(plan: PathPlan) -> list[str]:
    """Who goes where, with which settings, and how that loads the layers."""
    return [
        _headline(plan),
        "",
        *table(
            ("job", "forwarding nodes", "storage nodes", "OSTs", "nodes", "asks for", "binds", "carried"),
            [_row(one) for one in plan.jobs],
            left=4,
        ),
        "",
        *table(
            ("layer", "nodes", "not used", "most loaded", "balance index"),
            [_layer(plan, number) for number in range(len(plan.layers))],
        ),
        *_map(plan.jobs),
        *_settings(plan.jobs),
    ]


def missing(plan: PathPlan) -> list[str]:
    """The parts that the plan leaves out, as parts of a sentence."""
    parts = []
    if plan.unplaced:
        parts.append(f"{counted(len(plan.unplaced), 'job')} unplaced")
    jobs = {one.name for one in plan.jobs}
    short = [one for one in plan.over_capacity if one.name in jobs]
    if short:
        parts.append(f"demand of {counted(len(short), 'job')} not met")
    if len(short) < len(plan.over_capacity):
        parts.append(f"{counted(len(plan.over_capacity) - len(short), 'node')} over a peak")
    if plan.no_data:
        parts.append(f"figures of {counted(len({one.name for one in plan.no_data}), 'part')} missing")
    return parts


def _headline(plan: PathPlan) -> str:
    asked = [one for one in plan.jobs if one.met is not None]
    met = sum((one.met or 0.0) >= 1 - 1e-6 for one in asked)
    by = "a maximum flow" if plan.path.exact else "Algorithm 1"
    if plan.path.capacity == "eq1":
        by += ", capacities by equation 1 as printed"
    if plan.path.pack:
        by += ", packed"
    text = f"{by}: the demand of {met:,} of {counted(len(asked), 'job')} is met"
    if len(asked) < len(plan.jobs):
        text += f", that of {len(plan.jobs) - len(asked):,} more is not known"
    expected = plan.expected
    if expected is None or expected.speedup is None or expected.speedup < _WORTH_SAYING:
        return f"{text}."
    after, before = format_share(expected.after), format_share(expected.before)
    return f"{text}: {after} in the mean where a static map carries {before}."


def _row(one: JobPath) -> tuple[str, ...]:
    demand = [format_rate(one.iobw)] if one.iobw is not None else []
    demand += [f"{one.mdops:,.0f} mdops"] if one.mdops and one.binds == "mdops" else []
    return (
        one_line(one.name),
        _named([row.forwarding for row in one.map]),
        _named([flow.storage for flow in one.flows]),
        _named([str(flow.ost) for flow in sorted(one.flows, key=_ost)]),
        f"{one.nodes:,}",
        ", ".join(demand) or "unknown",
        "" if one.binds is None else _BINDS[one.binds],
        "" if one.met is None else format_share(one.met),
    )


def _ost(flow: Flow) -> int:
    return flow.ost


def _named(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(map(one_line, names)))
    if len(found) > _NAMED:
        return f"{len(found):,} of them"
    return ", ".join(found) or "-"


def _layer(plan: PathPlan, number: int) -> tuple[str, ...]:
    one = plan.layers[number]
    before, after = getattr(plan.before, one.layer), getattr(plan.after, one.layer)
    return (
        _LAYERS[one.layer],
        f"{one.nodes:,}",
        f"{one.unused:,}",
        f"{format_share(one.largest_before)} -> {format_share(one.largest_after)}",
        "unknown" if before is None or after is None else f"{before:.3f} -> {after:.3f}",
    )


def _map(jobs: Sequence[JobPath]) -> Iterable[str]:
    rows = [
        f"  {one_line(job.name)}: {row.hosts or _numbers(row.first, row.nodes)} -> {one_line(row.forwarding)}"
        for job in jobs
        for row in job.map
    ]
    if rows:
        yield ""
        yield "Forwarding node of each compute node:"
        yield from listed(rows)


def _numbers(first: int, nodes: int) -> str:
    return f"node {first:,}" if nodes == 1 else f"nodes {first:,} to {first + nodes - 1:,}"


def _settings(jobs: Sequence[JobPath]) -> Iterable[str]:
    rows = [row for job in jobs for row in _of_job(job)]
    if rows:
        yield ""
        yield "Settings (of the others, --format yaml says why they stay):"
        yield from listed(rows)


def _of_job(job: JobPath) -> Iterable[str]:
    name = one_line(job.name)
    if job.request_split:
        share = job.request_split[0].metadata_share
        where = _named(one.forwarding for one in job.request_split)
        yield f"  {name}: metadata and other requests as {share:g} : {1 - share:.4g} on {where}"
    if job.prefetch_chunk is not None:
        yield f"  {name}: read ahead {lfs_size(job.prefetch_chunk)} of each file"
    if job.stripe_count is not None:
        size = "" if job.stripe_size is None else f" -S {lfs_size(job.stripe_size)}"
        yield f"  {name}: stripes -c {job.stripe_count}{size}"
