"""Floors: the least time that bytes need with any setting."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vani.advisors.placement import own_stripes, present_stripes
from vani.advisors.rule import Finding, Perhaps
from vani.models.calibration import ANCHOR
from vani.models.stripe_count import CLIENT_RATE
from vani.units import format_rate

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, System

_DIRECTIONS: Final = {"read": (True,), "write": (False,), "data": (True, False)}
"""Directions (True: reads) in each metric that is a time of data."""

UNKNOWN_RATES: Final = "the rates of this machine's storage are unknown: supply them (`vani systems detect --measure`)"
"""Why a gain on data has no number on a machine without rates, or with typical ones."""


def above_floor(finding: Finding, profile: Profile, system: System) -> Finding:
    """Limit a finding's gain to what its bytes allow, or replace it with a phrase if they already move at that rate.

    Bytes pass the nodes, the targets and the whole file system, and the slowest of these sets the floor. If the trace
    exceeds a described rate, that rate is raised. Without described rates, the gain orders advice and has no number.
    """
    gain = finding.known_gain
    directions = _DIRECTIONS.get(gain.metric.partition("_")[0], ()) if gain else ()
    files = [file for file in profile.files if file.path in finding.files] if directions else []
    if gain is None or not files or not gain.before_s:
        return finding
    floor, rate, why = 0.0, 0.0, ""
    for reads in directions:
        moved = sum(_moved(file, reads=reads) for file in files)
        if not moved:
            continue
        reached = moved / gain.before_s
        offered, rated = _offered(finding, files, profile, system, reached, reads=reads)
        if math.isfinite(offered):
            floor, rate = floor + moved / offered, offered
            why = _why_no_faster(reached, rated, reads=reads)
        # The time of a library's own work does not depend on the storage.
        if finding.acts_on == "file_system" and (system.generic or not math.isfinite(offered)):
            gain = replace(gain, why_no_number=UNKNOWN_RATES)
    finding = replace(finding, gain=gain)
    if floor <= gain.best_s:
        return finding
    if gain.after_s < floor and floor * 1.05 >= gain.before_s:
        return replace(finding, gain=Perhaps(why))
    method = gain.method if gain.after_s >= floor else f"{gain.method}; no faster than {format_rate(rate)}"
    # Described rates may err as much as the model.
    best = max(gain.best_s, floor / ANCHOR)
    after = max(gain.after_s, floor)
    return replace(
        finding,
        gain=replace(gain, best_s=best, after_s=after, worst_s=max(after, gain.worst_s), method=method),
    )


def _why_no_faster(reached: float, rated: float, *, reads: bool) -> str:
    """Why bytes that move at `reached` on storage with the described rate `rated` cannot get faster."""
    # Described rates may err as much as the model. A higher rate means that a cache answered.
    if reads and reached > ANCHOR * rated:
        return f"a cache served the reads, at {format_rate(reached)}; the storage itself delivers {format_rate(rated)}"
    done = "reads" if reads else "writes"
    return f"the {done} already reach {format_rate(reached)}, the most that their targets or nodes should deliver"


def _moved(file: FileEntity, *, reads: bool) -> int:
    """Bytes that must move at least once."""
    moved = (file.io.bytes.read if reads else file.io.bytes.written) or 0
    distinct = file.io.footprint.read if reads else file.io.footprint.written
    return min(moved, distinct) if distinct is not None else moved


def _offered(
    finding: Finding,
    files: list[FileEntity],
    profile: Profile,
    system: System,
    reached: float,
    *,
    reads: bool,
) -> tuple[float, float]:
    """Bytes per second of the slowest of nodes, targets and the whole file system; infinite if nothing is known.

    The first rate is at least `reached`. The second is the described rate with the present layout.
    """
    disk = system.file_system_for(files[0].path) or (
        system.file_systems[0] if len(system.file_systems) == 1 else None
    )
    if disk is None:
        return math.inf, math.inf
    way = "read" if reads else "write"
    whole, target = getattr(disk.max_bandwidth, way), _target_rate(disk, way)
    if whole is None and target is None:
        return math.inf, math.inf
    nodes = min(profile.job.nodes or profile.workflow.processes, profile.workflow.processes)
    network = system.network.bandwidth_per_node
    client = getattr(disk.bandwidth_per_client, way) or min(CLIENT_RATE, network or math.inf)
    rates = [whole, nodes * client]
    described = list(rates)
    if disk.type == "lustre" and target is not None:
        now, most = sum(_count(file, disk) for file in files), disk.targets or math.inf
        if reached > now * target and any(own_stripes(file) is None for file in files):
            # The default layout cannot be that fast, so the files had another.
            now = most
        described.append(min(now, most) * target)
        target = max(target, reached / min(now, most))
        recommended = finding.recommended.get("stripe_count")
        after = now if not isinstance(recommended, int) else recommended * len(files) if recommended > 0 else most
        rates.append(min(after, most) * target)
    slowest = min((rate for rate in rates if rate), default=math.inf)
    return max(reached, slowest), min((rate for rate in described if rate), default=math.inf)


def _target_rate(disk: FileSystem, way: str) -> float | None:
    """Bytes per second of one target: the described rate, or its share of a server's or the whole file system's."""
    rate, server, whole = (
        getattr(rates, way) for rates in (disk.bandwidth_per_target, disk.bandwidth_per_server, disk.max_bandwidth)
    )
    if rate or not disk.targets:
        return rate or None
    return (server * disk.servers if server and disk.servers else whole or 0.0) / disk.targets or None


def _count(file: FileEntity, disk: FileSystem) -> float:
    """The number of targets of a file; infinite if it has all of them or the number is unknown."""
    count = present_stripes(file, disk)[0]
    return math.inf if count is None or count < 1 else count
