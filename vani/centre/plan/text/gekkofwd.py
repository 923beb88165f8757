"""The forwarding map that GekkoFWD's clients poll (`LIBGKFS_FORWARDING_MAP_FILE`), with one `HOST ID` per line.

The ID is the position, from 0, of an I/O node's daemon in GekkoFS' hosts file (GekkoFS,
docs/sphinx/users/forwarding.rst).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.plan.text.mapped_hosts import mapped_hosts

if TYPE_CHECKING:
    from vani.centre.plan.schema.plans import PathPlan

def render(plan: PathPlan) -> str:
    """Write the map; a forwarding node's position in the snapshot is its ID.

    Raises
    ------
    InputError
        The hosts of a job are unknown.
    """
    return "".join(f"{host} {node.number}\n" for host, node in mapped_hosts(plan))
