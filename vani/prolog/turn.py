"""Whose turn it is to plan: one process plans for all jobs that were registered by then, the others wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vani.prolog.budget import Deadline
from vani.prolog.job_facts import JobFacts
from vani.prolog.state import State

__all__ = ["begin", "end"]

_LAST_S: Final = 0.1
"""Seconds before the deadline when waiting ends, so that there is time to say so."""


def begin(state: State, job: JobFacts, deadline: Deadline, plan: Callable[[], str]) -> str:
    """Register a job, and plan unless another process does; what became of it, in one line.

    Parameters
    ----------
    plan
        Plans for all running jobs; it is called with the lock held, and says what it did.

    Raises
    ------
    InputError
        There is no plan: somebody else holds the lock, or as `plan` says.
    """
    state.register(job)

    def is_over() -> bool:
        return state.is_planned(job.job) or deadline.left_s < _LAST_S

    with state.locked(is_over) as is_ours:
        if state.is_planned(job.job):
            return "planned together with others"
        if not is_ours:
            return "registered, but without a plan: others were planning all the time"
        return plan()


def end(state: State, number: str, deadline: Deadline, plan: Callable[[], str]) -> str:
    """Forget a job, and share what it had among those that run; see `begin`."""
    state.forget(number)
    with state.locked(lambda: deadline.left_s < _LAST_S) as is_ours:
        if not is_ours:
            return "ended; what it had is shared when the next job begins"
        return plan()
