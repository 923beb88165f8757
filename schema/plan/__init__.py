"""plan.yaml: who gets which part of a machine, what that is worth, and what could not be done.

Each kind of plan is a file whose model is imported here.
"""

from __future__ import annotations

from vani.schema.plan.any_plan import Left, Plan, PlanInput
from vani.schema.plan.forward import Allotment, ForwardPlan, ForwardSettings, Outcome, Policy, PoolWorth
from vani.schema.plan.place import (
    AllocatorRange,
    OstCosts,
    PlacedExtent,
    PlacedFile,
    PlacePlan,
    PlaceSettings,
    Range,
    TargetUse,
)

__all__ = [
    "AllocatorRange",
    "Allotment",
    "ForwardPlan",
    "ForwardSettings",
    "Left",
    "OstCosts",
    "Outcome",
    "PlacePlan",
    "PlaceSettings",
    "PlacedExtent",
    "PlacedFile",
    "Plan",
    "PlanInput",
    "Policy",
    "PoolWorth",
    "Range",
    "TargetUse",
]
