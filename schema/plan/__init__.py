"""plan.yaml: who gets which part of a machine, what that is worth, and what could not be done.

Each kind of plan is a file whose model is imported here.
"""

from __future__ import annotations

from vani.schema.plan.any_plan import Left, Plan, PlanInput
from vani.schema.plan.forward import Allotment, ForwardPlan, ForwardSettings, Outcome, Policy, PoolWorth
from vani.schema.plan.simulate import (
    Moment,
    SimulatedJob,
    SimulatedStage,
    SimulatedVariant,
    SimulatePlan,
    SimulateSettings,
    SimulationCheck,
)

__all__ = [
    "Allotment",
    "ForwardPlan",
    "ForwardSettings",
    "Left",
    "Moment",
    "Outcome",
    "Plan",
    "PlanInput",
    "Policy",
    "PoolWorth",
    "SimulatePlan",
    "SimulateSettings",
    "SimulatedJob",
    "SimulatedStage",
    "SimulatedVariant",
    "SimulationCheck",
]
