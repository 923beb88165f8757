"""The individual hosts of a path plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vani.errors import InputError
from vani.schema.host_list import HostList

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import MappedNodes, PathPlan

def mapped_hosts(plan: PathPlan) -> Iterator[tuple[str, MappedNodes]]:
    """Yield each host with its nodes.

    Raises
    ------
    InputError
        The hosts of a job are unknown.
    """
    for job in plan.jobs:
        for part in job.map:
            if part.hosts is None:
                raise InputError(
                    "its hosts are not known, and a map lists each host",
                    where=f"job {job.name}",
                    todo="add `hosts` in jobs.yaml, or write the plan with --format yaml",
                )
            yield from ((host, part) for host in HostList.parse(part.hosts).names())
