"""Jobs and settings for plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vani.centre.plan.forward import ForwardInputs, forward
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import ForwardPlan, ForwardSettings
from vani.models.forwarding import measured

ROOT = Path(__file__).resolve().parents[2]
SIX_JOBS = ROOT / "examples" / "plan" / "six-jobs.yaml"
NO_CURVES = ROOT / "examples" / "plan" / "no-curves.yaml"


def jobs_of(**curves: dict[int, float]) -> Jobs:
    """Jobs of 64 nodes by name, with bandwidths by number of I/O nodes."""
    return Jobs.model_validate(
        {
            "jobs": [
                {
                    "name": name,
                    "nodes": 64,
                    "processes": 64,
                    "curve": [{"io_nodes": n, "bandwidth": rate} for n, rate in curve.items()],
                }
                for name, curve in curves.items()
            ]
        }
    )


def settings_of(io_nodes: int, **more: Any) -> ForwardSettings:
    """Settings with the defaults of the command."""
    return ForwardSettings.model_validate(
        {
            "io_nodes": io_nodes,
            "policy": "mckp",
            "objective": "sum",
            "floor": 0.0,
            "direct": True,
            "rounding": "half-up",
            "nodes_per_io_node": None,
        }
        | more
    )


def planned(jobs: Jobs, io_nodes: int, **more: Any) -> ForwardPlan:
    """A plan with the defaults of the command."""
    asked = settings_of(
        io_nodes, **{key: more.pop(key) for key in list(more) if key in ForwardSettings.model_fields}
    )
    inputs = {key: more.pop(key) for key in ("estimate", "unlike", "where") if key in more}
    return forward(ForwardInputs(jobs, asked, more.pop("scenarios", measured()), **inputs), **more)


def numbers(plan: ForwardPlan) -> dict[str, int | None]:
    """I/O nodes by job."""
    return {one.name: one.io_nodes for one in plan.jobs}
