"""Check of plans that assign I/O nodes: the pool must still have as many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.plan.checks import Findings
from vani.centre.plan.schema import Left
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.plan.schema import ForwardPlan, ReplayPlan
    from vani.centre.plan.schema.snapshot import Snapshot

_NAMED = 5


def check_io_nodes(plan: ForwardPlan | ReplayPlan, snapshot: Snapshot) -> Findings:
    """Compare the assigned I/O nodes (for a replay, those in use at once) with the forwarding nodes in service."""
    wanted = plan.after.io_nodes or 0
    if not wanted:
        return Findings(notes=["the plan assigns no I/O nodes"])
    if not snapshot.forwarding:
        reason = f"{_assigned(wanted)}, and the snapshot names no forwarding nodes"
        return Findings(broken=[Left(name="pool", reason=reason)])
    offline = [node.name for node in snapshot.forwarding if node.state == "offline"]
    usable = len(snapshot.forwarding) - len(offline)
    notes = []
    degraded = [node.name for node in snapshot.forwarding if node.state == "degraded"]
    if degraded:
        notes.append(f"slower than planned, because degraded: {_named(degraded)}")
    if usable > plan.forward.io_nodes:
        notes.append(f"the pool has {usable:,} I/O nodes, the plan expects {plan.forward.io_nodes:,}")
    if usable >= wanted:
        return Findings(notes=notes)
    reason = f"{_assigned(wanted)}, {usable:,} of {len(snapshot.forwarding):,} can be used"
    if offline:
        reason += f"; offline: {_named(offline)}"
    return Findings(broken=[Left(name="pool", reason=reason)], notes=notes)


def _assigned(wanted: int) -> str:
    return f"{counted(wanted, 'I/O node', 'is', 'are')} assigned"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
