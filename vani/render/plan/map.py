"""The forwarding node of each compute node, by name: `HOST FORWARDING_NODE`, a line each.

For programs that remap nodes, such as AIOT's tuning server, whose format is not published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.render.plan.mapped_hosts import mapped_hosts

if TYPE_CHECKING:
    from vani.schema.plan import PathPlan

__all__ = ["render"]


def render(plan: PathPlan) -> str:
    """Write the map.

    Raises
    ------
    InputError
        A job whose hosts are not known.
    """
    return "".join(f"{host} {node.forwarding}\n" for host, node in mapped_hosts(plan))
