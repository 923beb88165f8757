"""The machine and versions of a measurement, without anything that identifies the machine or its user."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import vani
from vani.engine.executor import available_processors

_PACKAGES = ("numpy", "pyarrow", "dask", "isal", "pydantic", "pyyaml")


def machine() -> dict[str, Any]:
    """Processor, cores, memory in bytes and system; null if the system does not report it."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_usable": available_processors(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "load_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str | None]:
    """Versions of Vani, Python and the libraries that do the work; null for those that are not installed."""
    found: dict[str, str | None] = {"vani": vani.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _processor() -> str | None:
    try:
        model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        model = None
    return model[1].strip() if model else platform.processor() or None


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
