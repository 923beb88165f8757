"""Types of file systems that store files in memory."""

from __future__ import annotations

from typing import Final

IN_MEMORY: Final = ("tmpfs", "ramfs", "rootfs")
"""Types of file systems whose files are in the node's memory; the root of a node without disks may be `rootfs`."""
