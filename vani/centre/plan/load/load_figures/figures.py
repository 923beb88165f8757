"""Figures of OSTs and servers read so far; unknown ones remain None."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_TARGET: Final = re.compile(r"(?P<system>[\w.-]+?)-(?P<kind>OST|MDT)(?P<index>[0-9a-fA-F]{4})(?![0-9a-fA-F])")


@dataclass
class OfTarget:
    """Figures of one OST: its capacity in bytes, bytes that can still be written, its server, and its state."""

    size: int | None = None
    available: int | None = None
    server: str | None = None
    is_degraded: bool = False
    is_offline: bool = False


@dataclass
class OfServer:
    """Figures of one server: load average, processors, bytes of memory; `has_mdt` means that it serves metadata."""

    load: float | None = None
    processors: set[str] = field(default_factory=set)
    memory: float | None = None
    memory_available: float | None = None
    has_mdt: bool = False

    @property
    def cpu_share(self) -> float | None:
        """Load average divided by processors, at most 1."""
        if self.load is None or not self.processors:
            return None
        return min(1.0, self.load / len(self.processors))

    @property
    def memory_share(self) -> float | None:
        """Share of its memory that is in use."""
        if not self.memory or self.memory_available is None:
            return None
        return min(1.0, max(0.0, 1 - self.memory_available / self.memory))


@dataclass
class Figures:
    """All figures read: OSTs by file system and index, servers by name.

    `nameless` are figures of a server that its file does not name.
    """

    targets: dict[tuple[str, int], OfTarget] = field(default_factory=dict)
    servers: dict[str, OfServer] = field(default_factory=dict)
    nameless: OfServer = field(default_factory=OfServer)

    def target(self, system: str, index: int) -> OfTarget:
        """The figures of an OST."""
        return self.targets.setdefault((system, index), OfTarget())

    def server(self, name: str | None) -> OfServer:
        """The figures of a server."""
        return self.nameless if name is None else self.servers.setdefault(name, OfServer())


def target_of(text: str) -> tuple[str, str, int] | None:
    """File system, `OST` or `MDT`, and index of the first target named in a text: scratch-OST001f has index 31."""
    match = _TARGET.search(text)
    return (match["system"], match["kind"], int(match["index"], 16)) if match else None
