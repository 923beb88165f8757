"""Prometheus text format: metrics of Lustre exporters and of the node exporter.

Names are those of HPE's and Whamcloud's exporters (kilobytes) and of later ones (kibibytes), which all mean KiB, and
of Prometheus' node exporter. The label `instance` identifies a server in federated pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from vani.centre.plan.load.load_figures.figures import Figures, target_of
from vani.units import KiB

_LINE: Final = re.compile(
    r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$"
)
_LABEL: Final = re.compile(r"(\w+)=\"((?:[^\"\\]|\\.)*)\"")
_LUSTRE: Final = re.compile(r"lustre_(capacity|available|free)_ki(?:lo|bi)bytes")
_NODE: Final = frozenset(
    {"node_load1", "node_cpu_seconds_total", "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"}
)


def read_prometheus_text(text: str, figures: Figures, server: str | None) -> bool:
    """Read such metrics into `figures`; False if the text has none. `server` applies to those without `instance`."""
    known = False
    sizes: dict[tuple[str, int], dict[str, int]] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _LINE.match(line)
        if match is None:
            continue
        name, labels = match["name"], dict(_LABEL.findall(match["labels"] or ""))
        value = _number(match["value"])
        host = labels.get("instance", "").rpartition(":")[0] or labels.get("instance") or server
        if name in _NODE:
            known = True
            if value is not None:
                _read_node(name, labels, value, figures, host)
        elif name.startswith("lustre_"):
            named = target_of(labels.get("target", ""))
            known |= named is not None
            if named is None:
                continue
            system, kind, index = named
            if kind == "MDT":
                figures.server(host).has_mdt = True
                continue
            target = figures.target(system, index)
            if host is not None:
                target.server = host
            if value is None:
                continue
            if (size := _LUSTRE.fullmatch(name)) is not None:
                sizes.setdefault((system, index), {})[size[1]] = round(value) * KiB
            elif name == "lustre_degraded":
                target.is_degraded |= value == 1
    for place, by_kind in sizes.items():
        target = figures.target(*place)
        if target.size is None and "capacity" in by_kind:
            target.size, target.available = by_kind["capacity"], by_kind.get("available", by_kind.get("free"))
    return known


def _number(text: str) -> float | None:
    """A finite, nonnegative number; None for anything else, which was not measured."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number < 1 << 62 else None


def _read_node(
    name: str, labels: Mapping[str, str], value: float, figures: Figures, host: str | None
) -> None:
    server = figures.server(host)
    if name == "node_load1":
        server.load = value
    elif name == "node_cpu_seconds_total":
        if "cpu" in labels:
            server.processors.add(labels["cpu"])
    elif name == "node_memory_MemTotal_bytes":
        server.memory = value
    else:
        server.memory_available = value
