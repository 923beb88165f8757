"""Implements `vani plan forward --replay`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import vani
from vani.api.arguments import PathLike, system_of
from vani.centre.plan.api.forward import Estimate, SharingOptions, forward_inputs
from vani.centre.plan.replay import replay
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.schema import ReplayPlan
    from vani.centre.plan.schema.jobs import Jobs
    from vani.schema.system import System

def plan_replay(
    jobs: PathLike | Jobs,
    io_nodes: int,
    *,
    nodes: int | None = None,
    poll: float = 0.0,
    estimate: Estimate = "near",
    compare: bool = False,
    system: PathLike | System | None = None,
    **sharing: Unpack[SharingOptions],
) -> ReplayPlan:
    """Simulate a first-come, first-served queue of jobs that shares the I/O nodes again at each change.

    All other parameters are those of `plan_forward`.

    Parameters
    ----------
    nodes
        Compute nodes of the machine; None takes the number in `system`.
    poll
        Running jobs see a new mapping at the next multiple of this many seconds; 0: immediately.
    sharing
        As for `plan_forward`.

    Raises
    ------
    InputError
        A document cannot be used, a figure is invalid, a job would never start or end, or the pool cannot serve the
        jobs that run together.
    """
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
    # Written this way round because comparisons with NaN are false.
    if not (poll == 0 or 0.001 <= poll <= 1e9):
        raise InputError(f"is {poll:g}", where="--poll", todo="give seconds, 0 or 0.001 to 1e9")
    given = forward_inputs(jobs, io_nodes, machine, **sharing)
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
