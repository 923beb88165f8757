"""The lock of the planner: one process plans for all registered jobs while the others wait for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from vani.errors import InputError
from vani.prolog.budget import Deadline
from vani.prolog.state import State

__all__ = ["plan_for_ended", "plan_for_new"]

_TO_PLAN_S: Final = 0.15
"""Seconds without which planning is not begun: it takes more, and would keep the lock from those that have time."""


def plan_for_new(
    state: State, environment: Mapping[str, str], deadline: Deadline, plan: Callable[[], str]
) -> str:
    """Register the job of this environment, and plan unless another process does; returns the outcome in one line.

    Parameters
    ----------
    plan
        Plans for all running jobs; it is called under the lock, and returns its result.

    Raises
    ------
    InputError
        There is no plan: another process has the lock, or as `plan` says.
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
    """Forget a job, and share what it had among those that run; see `plan_for_new`."""
    state.forget(number)
    with state.locked(lambda: deadline.left_s < _TO_PLAN_S) as is_ours:
        if not is_ours or deadline.left_s < _TO_PLAN_S:
            return " its I/O nodes are shared when the next job starts"
        return plan()
