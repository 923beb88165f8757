"""Checks whether a plan is still valid by comparing what it needs with a snapshot of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from vani.centre.plan.checks import Findings
from vani.centre.plan.checks.io_nodes import check_io_nodes
from vani.centre.plan.checks.osts import check_osts
from vani.centre.plan.checks.paths import check_paths
from vani.centre.plan.status import PlanStatus
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.schema import Plan, PlanInput
    from vani.centre.plan.schema.snapshot import Snapshot

CHECKS: Final[Mapping[str, Callable[[Any, Snapshot], Findings]]] = {
    "forward": check_io_nodes,
    "replay": check_io_nodes,
    "path": check_paths,
    "place": check_osts,
}
"""The check of each kind of plan: a function from the plan and a snapshot to findings (`checks`)."""


def check(
    plan: Plan,
    snapshot: Snapshot,
    *,
    of_plan: PlanInput,
    of_snapshot: PlanInput,
    of_inputs: Findings,
    version: str = "",
) -> PlanStatus:
    """Compare a plan with the state of the machine.

    Parameters
    ----------
    of_plan, of_snapshot
        Their entries in the resulting document.
    of_inputs
        Findings about the documents that the plan was made from.

    Raises
    ------
    InputError
        Plans of this kind need nothing from a machine.
    """
    of_kind = CHECKS.get(plan.kind)
    if of_kind is None:
        raise InputError(
            f"plans of kind {plan.kind} need nothing that a snapshot has",
            where=of_plan.path or "plan",
            todo=f"this needs plans of kind {' or '.join(CHECKS)}",
        )
    findings = of_kind(plan, snapshot) + of_inputs
    return PlanStatus(
        version=version,
        kind=plan.kind,
        plan=of_plan,
        snapshot=of_snapshot,
        time=snapshot.time,
        holds=not findings.broken,
        broken=list(findings.broken),
        unknown=list(findings.unknown),
        notes=list(findings.notes),
    )
