"""`vani plan forward --replay` for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike, system_of
from vani.api.plan.forward import Estimate, Objective, Policy, Rounding, forward_inputs
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.schema.jobs import Jobs
    from vani.schema.plan import ReplayPlan
    from vani.schema.system import System

__all__ = ["plan_replay"]


def plan_replay(
    jobs: PathLike | Jobs,
    io_nodes: int,
    *,
    nodes: int | None = None,
    poll: float = 0.0,
    policy: Policy = "mckp",
    objective: Objective = "sum",
    floor: float = 0.0,
    direct: bool | None = None,
    rounding: Rounding = "half-up",
    nodes_per_io_node: float | None = None,
    estimate: Estimate = "near",
    change_cost: float = 0.0,
    compare: bool = False,
    system: PathLike | System | None = None,
) -> ReplayPlan:
    """Run jobs as a queue, first come, first served, whose I/O nodes are shared anew at each change.

    What is not told here is as for `plan_forward`.

    Parameters
    ----------
    nodes
        Compute nodes of the machine; None: those that `system` knows.
    poll
        Running jobs see a new mapping at the next multiple of so many seconds; 0: at once.
    change_cost
        Seconds without I/O that a running job pays for another number of I/O nodes.

    Raises
    ------
    InputError
        A document that cannot be used, figures that are none, a job that would never begin or end, or a pool that
        cannot serve the jobs that run together.
    """
    from vani.plan.replay import replay  # noqa: PLC0415 - loads the models

    machine = system_of(system)
    if nodes is None:
        nodes = None if machine is None else machine.compute.nodes
    if nodes is None:
        raise InputError(
            "is needed to replay a queue" if machine is None else f"is not known of {machine.name}",
            where="--nodes",
            todo="give the number of compute nodes of the machine",
        )
    if not 1 <= nodes <= 10_000_000:
        raise InputError(f"is {nodes:,}", where="--nodes", todo="give 1 to 10,000,000")
    # Comparisons with what is no number are false.
    if not (poll == 0 or 0.001 <= poll <= 1e9):
        raise InputError(f"is {poll:g}", where="--poll", todo="give seconds, 0 or 0.001 to 1e9")
    given = forward_inputs(
        jobs,
        io_nodes,
        policy=policy,
        objective=objective,
        floor=floor,
        direct=direct,
        rounding=rounding,
        nodes_per_io_node=nodes_per_io_node,
        change_cost=change_cost,
        machine=machine,
    )
    return replay(
        given.jobs,
        given.settings,
        nodes=nodes,
        poll_s=poll,
        scenarios=given.scenarios,
        estimate=estimate,
        compare=compare,
        inputs=given.inputs,
        where=given.where,
        unlike=given.unlike,
        version=vani.__version__,
    )
