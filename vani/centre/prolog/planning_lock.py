"""The planner's lock: one process plans for all registered jobs while the others wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from vani.centre.prolog.budget import Deadline
from vani.centre.prolog.state import State
from vani.errors import InputError

_TO_PLAN_S: Final = 0.15
"""Minimum time for planning. A process with less would not finish, and would block others that have time."""


def plan_for_new(
    state: State, environment: Mapping[str, str], deadline: Deadline, plan: Callable[[], str]
) -> str:
    """Register the job of this environment, and plan unless another process does; return the outcome as one line.

    Parameters
    ----------
    plan
        Plans for all running jobs and returns a line; called under the lock.

    Raises
    ------
    InputError
        There is no plan because another process has the lock, or because `plan` failed.
    """
    number = state.register(environment).job

    def is_over() -> bool:
        return state.is_planned(number) or deadline.left_s < _TO_PLAN_S

    with state.locked(is_over) as is_ours:
        if state.is_planned(number):
            return "planned together with other jobs"
        if not is_ours or deadline.left_s < _TO_PLAN_S:
            raise InputError("registered, but there was no time to plan; the next job's planning includes it")
        return plan()


def plan_for_ended(state: State, number: str, deadline: Deadline, plan: Callable[[], str]) -> str:
    """Remove a job, and share what it had among the running jobs; see `plan_for_new`."""
    state.forget(number)
    with state.locked(lambda: deadline.left_s < _TO_PLAN_S) as is_ours:
        if not is_ours or deadline.left_s < _TO_PLAN_S:
            return " its I/O nodes are shared when the next job starts"
        return plan()
