"""/proc/loadavg, /proc/meminfo, /proc/cpuinfo and /proc/stat of a server, one behind the other or alone."""

from __future__ import annotations

import re
from typing import Final

from vani.collect.load_figures.figures import Figures
from vani.units import KiB

__all__ = ["read_proc_files"]

_LOAD: Final = re.compile(r"^(\d+\.\d+) \d+\.\d+ \d+\.\d+ \d+/\d+ \d+\s*$", re.MULTILINE)
_MEMORY: Final = re.compile(r"^Mem(Total|Available):\s+(\d+) kB\s*$", re.MULTILINE)
_PROCESSOR: Final = re.compile(r"^(?:processor\s*:\s*|cpu(?=\d+ \d+ \d+ ))(\d+)", re.MULTILINE)


def read_proc_files(text: str, figures: Figures, server: str | None) -> bool:
    """Whether the text holds some of them; what they tell goes into `figures`."""
    load, memory, processors = _LOAD.search(text), _MEMORY.findall(text), _PROCESSOR.findall(text)
    if not (load or memory or processors):
        return False
    found = figures.server(server)
    if load is not None:
        found.load = float(load[1])
    for name, size in memory:
        if name == "Total":
            found.memory = int(size) * KiB
        else:
            found.memory_available = int(size) * KiB
    found.processors.update(processors)
    return True
