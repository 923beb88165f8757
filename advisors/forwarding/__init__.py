"""Rules about the I/O nodes between compute nodes and the file system."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.system import Forwarding


def settable(layer: Forwarding | None, setting: str, *, what: str, routers: str) -> Forwarding | str:
    """The layer, if the site can set something on its forwarding nodes; otherwise the reason why it cannot."""
    if layer is None or not layer.compute_nodes_per_io_node:
        return "the machine has no forwarding layer with a known ratio"
    if layer.kind == "lnet_routers":
        return f"LNet routers hand requests on and {routers}"
    if setting in layer.site_can_set:
        return layer
    return f"that the site can set how {what} is not in the system description (forwarding.site_can_set)"
