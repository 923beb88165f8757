"""The forwarding node of each compute node by name, with one `HOST FORWARDING_NODE` per line.

For programs that remap nodes, such as AIOT's tuning server, whose own format is not published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.plan.text.mapped_hosts import mapped_hosts

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PathPlan

def render(plan: PathPlan) -> str:
    """Write the map.

    Raises
    ------
    InputError
        The hosts of a job are unknown.
    """
    return "".join(f"{host} {node.forwarding}\n" for host, node in mapped_hosts(plan))
