"""Plans of kind `path` as text: the nodes through which each job's I/O passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from vani.errors import InputError, one_line
from vani.render.table import listed, table
from vani.schema.host_list import HostList
from vani.units import counted, format_rate, format_share, lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import JobPath, MappedNodes, PathPlan

_NAMED: Final = 4
"""Maximum number of nodes to name; for more, only their number is shown."""
_WORTH_SAYING: Final = 1.01
_LAYERS: Final = {"forwarding": "forwarding nodes", "storage": "storage nodes", "ost": "OSTs"}
_BINDS: Final = {"iobw": "bytes", "iops": "operations", "mdops": "metadata"}


def path_body(plan: PathPlan) -> list[str]:
    """Lines with the path and settings of each job, and the load of each layer."""
    return [
        _headline(plan),
        "",
        *table(
            ("job", "forwarding nodes", "storage nodes", "OSTs", "nodes", "needs", "binds", "carried"),
            [_row(job) for job in plan.jobs],
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


def path_missing(plan: PathPlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    jobs = {job.name for job in plan.jobs}
    short = sum(left.name in jobs for left in plan.over_capacity)
    nodes, no_data = len(plan.over_capacity) - short, {left.name for left in plan.no_data}
    omitted = (
        (plan.unplaced, f"{counted(len(plan.unplaced), 'job')} unplaced"),
        (short, f"demand of {counted(short, 'job')} not met"),
        (nodes, f"{counted(nodes, 'node')} over a peak"),
        (no_data, f"figures of {counted(len(no_data), 'part')} missing"),
    )
    return [text for some, text in omitted if some]


def _headline(plan: PathPlan) -> str:
    with_demand = [job for job in plan.jobs if job.met is not None]
    met = sum((job.met or 0.0) >= 1 - 1e-6 for job in with_demand)
    by = "a maximum flow" if plan.path.exact else "Algorithm 1"
    if plan.path.capacity == "eq1":
        by += ", capacities by equation 1 as printed"
    if plan.path.pack:
        by += ", packed"
    text = f"{by}: the demand of {met:,} of {counted(len(with_demand), 'job')} is met"
    if len(with_demand) < len(plan.jobs):
        text += f", the demand of {len(plan.jobs) - len(with_demand):,} more is not known"
    expected = plan.expected
    if expected is None or expected.speedup is None or expected.speedup < _WORTH_SAYING:
        return f"{text}."
    after, before = format_share(expected.after), format_share(expected.before)
    return f"{text}: {after} on average, {before} with a static map."


def _row(job: JobPath) -> tuple[str, ...]:
    demand = [format_rate(job.iobw)] if job.iobw is not None else []
    demand += [f"{job.mdops:,.0f} mdops"] if job.mdops and job.binds == "mdops" else []
    return (
        one_line(job.name),
        _named([row.forwarding for row in job.map]),
        _named([flow.storage for flow in job.flows]),
        _named(map(str, sorted(flow.ost for flow in job.flows))),
        f"{job.nodes:,}",
        ", ".join(demand) or "unknown",
        "" if job.binds is None else _BINDS[job.binds],
        "" if job.met is None else _carried(job.met, job.bound),
    )


def _carried(met: float, bound: float | None) -> str:
    """The share carried, and its upper bound if the two may differ."""
    share = format_share(met)
    return share if bound is None or met >= bound - 1e-4 else f"{share} (at most {format_share(bound)})"


def _named(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(map(one_line, names)))
    if len(distinct) > _NAMED:
        return f"{len(distinct):,} of them"
    return ", ".join(distinct) or "-"


def _layer(plan: PathPlan, number: int) -> tuple[str, ...]:
    layer = plan.layers[number]
    before, after = getattr(plan.before, layer.layer), getattr(plan.after, layer.layer)
    return (
        _LAYERS[layer.layer],
        f"{layer.nodes:,}",
        f"{layer.unused:,}",
        f"{format_share(layer.largest_before)} -> {format_share(layer.largest_after)}",
        "unknown" if before is None or after is None else f"{before:.3f} -> {after:.3f}",
    )


def _map(jobs: Sequence[JobPath]) -> list[str]:
    rows = [
        f"  {one_line(job.name)}: {row.hosts or _numbers(row.first, row.nodes)} -> {one_line(row.forwarding)}"
        for job in jobs
        for row in job.map
    ]
    return ["", "Forwarding node of each compute node:", *listed(rows)] if rows else []


def _numbers(first: int, nodes: int) -> str:
    return f"node {first:,}" if nodes == 1 else f"nodes {first:,} to {first + nodes - 1:,}"


def _settings(jobs: Sequence[JobPath]) -> list[str]:
    rows = [row for job in jobs for row in _of_job(job)]
    return ["", "Settings (--format yaml states why others are unchanged):", *listed(rows)] if rows else []


def _of_job(job: JobPath) -> Iterable[str]:
    name = one_line(job.name)
    if job.request_split:
        share = job.request_split[0].metadata_share
        where = _named(part.forwarding for part in job.request_split)
        yield f"  {name}: metadata and other requests as {share:g} : {1 - share:.4g} on {where}"
    if job.prefetch_chunk is not None:
        yield f"  {name}: read ahead {lfs_size(job.prefetch_chunk)} of each file"
    if job.stripe_count is not None:
        size = "" if job.stripe_size is None else f" -S {lfs_size(job.stripe_size)}"
        yield f"  {name}: stripes -c {job.stripe_count}{size}"
    if job.dom is not None:
        yield f"  {name}: the first {lfs_size(job.dom)} of each file on the metadata target"
    yield from (f"    {one_line(line)}" for line in job.lines)


def path_to_map(plan: PathPlan) -> str:
    """Write the forwarding node of each compute node by name, with one `HOST FORWARDING_NODE` per line.

    For programs that remap nodes, such as AIOT's tuning server, whose own format is not published.

    Raises
    ------
    InputError
        The hosts of a job are unknown.
    """
    return "".join(f"{host} {node.forwarding}\n" for host, node in _mapped_hosts(plan))


def path_to_gekkofwd(plan: PathPlan) -> str:
    """Write the map that GekkoFWD's clients poll (`LIBGKFS_FORWARDING_MAP_FILE`), with one `HOST ID` per line.

    The ID is the position, from 0, of an I/O node's daemon in GekkoFS' hosts file (GekkoFS,
    docs/sphinx/users/forwarding.rst), here a forwarding node's position in the snapshot.

    Raises
    ------
    InputError
        The hosts of a job are unknown.
    """
    return "".join(f"{host} {node.number}\n" for host, node in _mapped_hosts(plan))


def _mapped_hosts(plan: PathPlan) -> Iterator[tuple[str, MappedNodes]]:
    """Yield each host with its nodes."""
    for job in plan.jobs:
        for part in job.map:
            if part.hosts is None:
                what = "its hosts are not known, and a map lists each host"
                todo = "add `hosts` in jobs.yaml, or write the plan with --format yaml"
                raise InputError(what, where=f"job {job.name}", todo=todo)
            yield from ((host, part) for host in HostList.parse(part.hosts).names())
