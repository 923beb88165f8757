"""Words and figures for a recommended plain layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vani.advisors.data_files import SHOWN, extent
from vani.advisors.lustre.layout_choice import Case, SizeFrom, Striping
from vani.advisors.placement import own_stripes, targets_text
from vani.advisors.rule import Evidence
from vani.units import counted, format_bytes, lfs_size

if TYPE_CHECKING:
    from vani.schema.system import StripingRule

_BECAUSE: Final[Mapping[SizeFrom, str]] = {
    "distance": "which fit the distance between places that neighbours access at the same time",
    "present": "as now: which size is faster differs between machines",
    "site": "as the site has it",
}


def sentence(group: Sequence[Case]) -> str:
    """The finding, the recommendation, and the figures behind it."""
    first, layout = group[0], group[0].layout
    verb = "read" if first.reads else "write"
    files_text = first.file.path if len(group) == 1 else f"{len(group)} files like {first.file.path}"
    has = ""
    if layout.default_count is not None:
        present = "which is" if len(group) == 1 else "which are"
        are = "and new files are" if own_stripes(first.file) is None else present
        has = f", {are} on {targets_text(layout.default_count)}"
    movers = counted(first.movers.processes, "process")
    if first.movers.collective:
        movers += " in collective calls"
    text = f"{movers} {verb} {files_text} ({format_bytes(extent(first.file))}){has}. "
    text += (
        _site_sentence(layout, layout.rule)
        if layout.rule is not None
        else f"Use {targets_text(layout.count)}{_why_so_many(first)}, in stripes of {lfs_size(layout.size)}, "
        f"{_BECAUSE[first.size_from]}.{_as_good(first)}"
    )
    if first.interleaved:
        text = (
            "Collective buffering or larger records come first: records of less than a stripe alternate between "
            f"processes, and each takes a lock from the one before. {text}"
        )
    if first.movers.collective:
        text += " Aggregators follow the stripes: set `cb_nodes` with them (MIO002)."
    if first.place.because:
        text += f" Note: {first.place.because}."
    return text


def _why_so_many(case: Case) -> str:
    """The reason for the count: the nodes that move the bytes."""
    count, wanted = case.layout.count, case.per_node * case.nodes
    reads_wide = case.reads and case.curve is None
    if count == case.targets and (count < wanted or reads_wide):
        return ", all of them"
    if reads_wide:
        return ", since readers do not wait for each other's locks"
    if count < wanted and case.movers.collective and count == case.movers.processes:
        return ", one for each process"
    if count > wanted:
        return f": {case.per_node:g} per node, and at least {count:,}"
    about = "" if count == wanted else "at most "
    nodes = f"each of {case.nodes:,} nodes" if case.nodes > 1 else "the one node"
    if not case.knows_nodes:
        nodes = f"each of {case.nodes:,} processes" if case.nodes == case.movers.processes else f"{nodes} (assumed)"
    measured = "" if case.curve is None else " as measured on this machine"
    return f", {about}{case.per_node:g} for {nodes}{measured}"


def _as_good(case: Case) -> str:
    """Words on what the count rests on, unless measurements of this machine decide."""
    if case.is_fewer:
        return " Far more targets than writers keep busy make these wait for each other."
    if case.curve is not None or case.layout.rule is not None:
        return ""
    if case.least_nodes < case.nodes:
        return (
            " The number of nodes is unknown, and too few targets cost more than too many. Name the nodes with "
            "`--job`: fewer targets may do where processes share a node."
        )
    if case.reads:
        return " This is the fixed rule that lost least on the only machine with such measurements (docs/accuracy.md)."
    return " This is the fixed rule that lost least on five measured machines (docs/accuracy.md)."


def _site_sentence(layout: Striping, rule: StripingRule) -> str:
    pool = f" in the pool {rule.pool}" if rule.pool else ""
    text = (
        f"For files of {format_bytes(rule.above)} and more the site recommends {targets_text(layout.count)}{pool}, in "
        f"stripes of {lfs_size(layout.size)}"
    )
    return f"{text}: {rule.reason.rstrip('.')}." if rule.reason else f"{text}."


def evidence(group: Sequence[Case]) -> list[Evidence]:
    """The figures behind the layout of a group."""
    sizes = []
    for case in group[:SHOWN]:
        where, file = f"files[{case.index}]", case.file
        size = "io.footprint.read" if case.reads else "io.footprint.written"
        footprint = file.io.footprint.read if case.reads else file.io.footprint.written
        sizes += [
            Evidence(f"{where}.path", file.path),
            Evidence(f"{where}.{size}", footprint),
            Evidence(f"{where}.{'readers' if case.reads else 'writers'}", case.movers.calling),
        ]
        if own_stripes(file) is not None:
            sizes += [
                Evidence(f"{where}.stripe_count", file.stripe_count),
                Evidence(f"{where}.stripe_size", file.stripe_size),
            ]
        if file.stride is not None:
            sizes.append(Evidence(f"{where}.stride", file.stride))
        elif case.size_from == "distance" and file.io.access_pattern is not None:
            sizes.append(Evidence(f"{where}.io.access_pattern.consecutive", file.io.access_pattern.consecutive))
    disk, prefix = group[0].place.figures, group[0].place.prefix
    if disk is not None:
        rate = disk.bandwidth_per_target.read if group[0].reads else disk.bandwidth_per_target.write
        direction = "read" if group[0].reads else "write"
        sizes += [
            Evidence(f"{prefix}.targets", disk.targets),
            Evidence(f"{prefix}.bandwidth_per_target.{direction}", rate),
        ]
        if (rule := group[0].layout.rule) is not None:
            sizes.append(Evidence(f"{prefix}.striping_rules[{disk.striping_rules.index(rule)}].above", rule.above))
    return sizes
