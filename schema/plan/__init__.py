"""plan.yaml: who gets which part of a machine, what that is worth, and what could not be done.

Each kind of plan is a file whose model is imported here.
"""

from __future__ import annotations

from vani.schema.plan.any_plan import Left, Plan, PlanInput
from vani.schema.plan.forward import Allotment, ForwardPlan, ForwardSettings, Outcome, Policy, PoolWorth
from vani.schema.plan.path import (
    Balance,
    Flow,
    JobPath,
    LayerLoads,
    MappedNodes,
    NodeLoad,
    PathPlan,
    PathSettings,
    RequestSplit,
)
from vani.schema.plan.replay import JobPeriod, QueuedJob, QueueOutcome, ReplayPlan

__all__ = [
    "Allotment",
    "Balance",
    "Flow",
    "ForwardPlan",
    "ForwardSettings",
    "JobPath",
    "JobPeriod",
    "LayerLoads",
    "Left",
    "MappedNodes",
    "NodeLoad",
    "Outcome",
    "PathPlan",
    "PathSettings",
    "Plan",
    "PlanInput",
    "Policy",
    "PoolWorth",
    "QueueOutcome",
    "QueuedJob",
    "ReplayPlan",
    "RequestSplit",
]
