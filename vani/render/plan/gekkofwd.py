"""The forwarding map that GekkoFWD's clients poll (`LIBGKFS_FORWARDING_MAP_FILE`): `HOST ID`, a line each.

The ID is the place of an I/O node's daemon in GekkoFS' hosts file, from 0 (GekkoFS, docs/sphinx/users/forwarding.rst).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.render.plan.mapped_hosts import mapped_hosts

if TYPE_CHECKING:
    from vani.schema.plan import PathPlan

__all__ = ["render"]


def render(plan: PathPlan) -> str:
    """Write the map, with the places of forwarding nodes in the snapshot as IDs.

    Raises
    ------
    InputError
        A job whose hosts are not known.
    """
    return "".join(f"{host} {node.number}\n" for host, node in mapped_hosts(plan))
