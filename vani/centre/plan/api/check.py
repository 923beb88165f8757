"""Implements `vani plan check`."""

from __future__ import annotations

import hashlib
import stat
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import vani
from vani.api.arguments import PathLike
from vani.centre.plan.api.inputs import loaded, refuse_old
from vani.centre.plan.check import check
from vani.centre.plan.checks import Findings
from vani.centre.plan.schema import Left, Plan
from vani.centre.plan.schema.snapshot import Snapshot
from vani.schema.document import MAX_BYTES

if TYPE_CHECKING:
    from vani.centre.plan.schema import PlanInput
    from vani.centre.plan.status import PlanStatus

_CHANGING_INPUTS: Final = {"snapshot", "plan"}
"""Inputs that are expected to change: the machine's state, and the plan before this one."""


def plan_check(
    plan: PathLike | Plan,
    snapshot: PathLike | Snapshot,
    *,
    max_age: float | None = None,
    now: datetime | None = None,
) -> PlanStatus:
    """Check whether a plan is still valid on the machine in its present state.

    Parameters
    ----------
    plan
        A plan.yaml of any kind, or the document itself.
    max_age
        Maximum age of the snapshot in seconds; None: any age.
    now
        The time at which its age is measured; None: now.

    Raises
    ------
    InputError
        A document cannot be used, or the snapshot is too old, from the future, or without a time.
    """
    # `Plan` accepts plans of all kinds.
    known = loaded("plan", plan, Plan)
    state = loaded("snapshot", snapshot, Snapshot)
    refuse_old(state.document, max_age, now, state.where)
    return check(
        known.document,
        state.document,
        of_plan=known.source,
        of_snapshot=state.source,
        of_inputs=_inputs_now(known.document, known.folder),
        version=vani.__version__,
    )


def _inputs_now(plan: Plan, folder: Path) -> Findings:
    """Compare the documents that a plan was made from with their present content, if they still exist."""
    inputs_now = Findings()
    for source in plan.inputs:
        if source.kind in _CHANGING_INPUTS or source.path is None:
            continue
        digest = _digest(source, folder)
        if digest is None:
            lost = Left(name=source.path, reason=f"the {source.kind} document cannot be read: not compared")
            inputs_now += Findings(unknown=[lost])
        elif digest != source.sha256:
            changed = Left(
                name=source.path, reason=f"the {source.kind} document has changed since the plan was made"
            )
            inputs_now += Findings(broken=[changed])
    return inputs_now


def files_compared(plan: Plan, folder: Path) -> list[Path]:
    """Files other than the plan and the snapshot that `plan_check` reads for a plan in that folder."""
    named = [source for source in plan.inputs if source.kind not in _CHANGING_INPUTS]
    return [path for source in named if (path := _place(source, folder)) is not None]


def _place(source: PlanInput, folder: Path) -> Path | None:
    """Path of an input, relative to the working directory or the plan's folder; None if not a regular file."""
    for path in (Path(source.path or ""), folder / (source.path or "")):
        try:
            if stat.S_ISREG(path.stat().st_mode):
                return path
        except (OSError, ValueError):
            continue
    return None


def _digest(source: PlanInput, folder: Path) -> str | None:
    """SHA-256 of an input; None if it cannot be read."""
    path = _place(source, folder)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            # A plan can name any file, even one that never ends.
            return hashlib.sha256(file.read(MAX_BYTES + 1)).hexdigest()
    except OSError:
        return None
