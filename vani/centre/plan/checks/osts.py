"""Check of plans that choose OSTs: these must be in service and have room for the planned bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.plan.checks import Findings
from vani.centre.plan.schema import Left
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.centre.plan.schema import PlacePlan
    from vani.centre.plan.schema.snapshot import Snapshot

def check_osts(plan: PlacePlan, snapshot: Snapshot) -> Findings:
    """Compare the OSTs that get bytes with the snapshot.

    An OST breaks the plan if it is missing or offline, has less free space than the plan adds, or belongs to another
    server. An OST that has become fuller or degraded is only a note: some files of the plan may already be on it.
    """
    there = {target.index: target for target in snapshot.ost}
    used = [target for target in plan.targets if target.added]
    if not used:
        return Findings(notes=["the plan places nothing on OSTs"])
    findings = Findings()
    for use in used:
        name, now = f"OST {use.index}", there.get(use.index)
        if now is None:
            findings += Findings(broken=[Left(name=name, reason="it is not in the snapshot")])
            continue
        if now.state == "offline":
            findings += Findings(broken=[Left(name=name, reason="it is offline")])
        elif now.state == "degraded" and use.state == "ok":
            findings += Findings(notes=[f"{name} is degraded since"])
        if now.oss is not None and use.oss is not None and now.oss != use.oss:
            findings += Findings(broken=[Left(name=name, reason=f"it belongs to {now.oss}, not {use.oss}")])
        free = now.size - now.used
        if use.added > free:
            reason = f"{format_bytes(use.added)} will be written, {format_bytes(free)} are free"
            findings += Findings(broken=[Left(name=name, reason=reason)])
        elif now.used + use.added > plan.place.ceiling * now.size:
            findings += Findings(notes=[f"{name} will be above the ceiling of {plan.place.ceiling:g}"])
    return findings
