"""plan.yaml: which job gets which part of a machine, the expected gain, and what could not be done.

Each kind of plan is a file whose model is imported here.
"""

from __future__ import annotations

from vani.centre.plan.schema.any_plan import Left, Plan, PlanInput
from vani.centre.plan.schema.forward import (
    Allotment,
    ForwardPlan,
    ForwardSettings,
    Outcome,
    Policy,
    PoolWorth,
)
from vani.centre.plan.schema.job import ExpectedIo, JobLayout, JobPlan, StartedJob
from vani.centre.plan.schema.path import (
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
from vani.centre.plan.schema.place import (
    AllocatorRange,
    Answer,
    OstCosts,
    PlacedExtent,
    PlacedFile,
    PlacePlan,
    PlaceSettings,
    Range,
    TargetUse,
)
from vani.centre.plan.schema.replay import JobPeriod, QueuedJob, QueueOutcome, ReplayPlan
from vani.centre.plan.schema.simulate import (
    Moment,
    SimulatedJob,
    SimulatedStage,
    SimulatedVariant,
    SimulatePlan,
    SimulateSettings,
)

__all__ = [
    "AllocatorRange",
    "Allotment",
    "Answer",
    "Balance",
    "ExpectedIo",
    "Flow",
    "ForwardPlan",
    "ForwardSettings",
    "JobLayout",
    "JobPath",
    "JobPeriod",
    "JobPlan",
    "LayerLoads",
    "Left",
    "MappedNodes",
    "Moment",
    "NodeLoad",
    "OstCosts",
    "Outcome",
    "PathPlan",
    "PathSettings",
    "PlacePlan",
    "PlaceSettings",
    "PlacedExtent",
    "PlacedFile",
    "Plan",
    "PlanInput",
    "Policy",
    "PoolWorth",
    "QueueOutcome",
    "QueuedJob",
    "Range",
    "ReplayPlan",
    "RequestSplit",
    "SimulatePlan",
    "SimulateSettings",
    "SimulatedJob",
    "SimulatedStage",
    "SimulatedVariant",
    "StartedJob",
    "TargetUse",
]
