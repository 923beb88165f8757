"""The access pattern of a run, as measured curves of I/O nodes are compared by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.models.forwarding import Pattern

if TYPE_CHECKING:
    from vani.schema.profile import Profile

__all__ = ["STRIDED", "Traffic", "pattern_of", "traffic_of"]

STRIDED: Final = 0.5
"""Where the processes' accesses have a constant stride more often than not, they are strided."""


@dataclass(frozen=True)
class Traffic:
    """The direction in which a job moves most of its bytes."""

    operation: Literal["read", "write"]
    bytes: int
    rate: float | None

    @property
    def verb(self) -> str:
        return "write" if self.operation == "write" else "read"

    @property
    def attribute(self) -> str:
        return "written" if self.operation == "write" else "read"


def traffic_of(profile: Profile) -> Traffic | None:
    """None where the profile does not tell bytes."""
    io = profile.dataset.io
    if io.bytes.written is None or io.bytes.read is None:
        return None
    if io.bytes.written >= io.bytes.read:
        return Traffic("write", io.bytes.written, io.bandwidth.write)
    return Traffic("read", io.bytes.read, io.bandwidth.read)


def pattern_of(traffic: Traffic, profile: Profile, *, strided: float = STRIDED) -> Pattern | str:
    """The pattern of a run's traffic, or in words for a sentence why it cannot be told."""
    io, nodes, writes = profile.dataset.io, profile.job.nodes or 1, traffic.operation == "write"
    sizes = io.transfer_size.write if writes else io.transfer_size.read
    if sizes is None or not sizes.p50:
        return f"dataset.io.transfer_size.{traffic.verb} is not known; supply a trace that holds sizes"
    moved = [(file, (file.io.bytes.written if writes else file.io.bytes.read) or 0) for file in profile.files]
    whole = sum(size for _, size in moved)
    shared = [(file, size) for file, size in moved if size and file.access == "shared"]
    is_shared = sum(size for _, size in shared) > whole / 2 if whole else profile.dataset.files == 1
    # Of a file that all share only some may write: the aggregators of collective calls.
    users = max((file.writers if writes else file.readers for file, _ in shared), default=0)
    everyone = max(1, profile.workflow.processes)
    order = io.access_pattern
    is_strided = is_shared and order is not None and order.strided >= strided
    return Pattern(
        nodes=nodes,
        processes=users if is_shared and users else max(nodes, everyone),
        layout="shared" if is_shared else "fpp",
        order="strided" if is_strided else "contiguous",
        request=sizes.p50,
        operation=traffic.operation,
    )
