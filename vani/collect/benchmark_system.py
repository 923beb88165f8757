"""A machine's description with figures that IO500 measured on it."""

from __future__ import annotations

import posixpath

from vani.schema.benchmark import Benchmark
from vani.schema.system import FileSystem, Rates, System
from vani.units import counted


def measured_system(result: Benchmark, system: System | None = None) -> System:
    """Describe the machine with measured rates of the file system that the benchmark used.

    Rates of ior-easy are the whole file system's, and with one node also the client's; creations of mdtest-easy are its
    metadata operations. They are lower bounds, because more nodes may reach more. Higher rates in `system`
    are kept. `sources` names the phase of every figure.
    """
    known = system
    if known is None or known.generic:
        known = System.model_validate({"schema": "vani.system/2", "name": "measured"})
    disks = list(known.file_systems)
    disk = known.file_system_for(result.folder) if result.folder else None
    at = disks.index(disk) if disk is not None else len(disks)
    if disk is None:
        mounts = [result.folder] if result.folder and posixpath.isabs(result.folder) else []
        disk = FileSystem(name="benchmarked", type="unknown", mounts=mounts)
        disks.append(disk)
    rates = {phase.name: phase.rate for phase in result.phases}
    scale = f"{_counted(result.nodes, 'node')}, {_counted(result.processes, 'process')}"
    tool = f"{result.tool.upper() if result.tool != 'mdtest' else 'mdtest'} {result.version or ''}".strip()
    place, sources = f"file_systems[{at}]", dict(known.sources)
    bandwidth: dict[str, float | None] = {}
    for direction in ("read", "write"):
        rate, phase = _best(rates, direction)
        described = getattr(disk.max_bandwidth, direction)
        bandwidth[direction] = described if rate is None or (described or 0.0) > rate else rate
        if rate is not None and bandwidth[direction] == rate:
            sources[f"{place}.max_bandwidth.{direction}"] = f"{tool}, {phase}, {scale}: at least"
    update: dict[str, object] = {"max_bandwidth": Rates(**bandwidth)}
    if result.nodes == 1:
        own = {direction: _best(rates, direction)[0] for direction in ("read", "write")}
        update["bandwidth_per_client"] = Rates(**own)
        sources[f"{place}.bandwidth_per_client"] = f"{tool}, one node: at least"
    created, phase = _created(rates)
    if created is not None and created > (disk.metadata_ops_per_s or 0.0):
        update["metadata_ops_per_s"] = created
        sources[f"{place}.metadata_ops_per_s"] = f"{tool}, {phase}, {scale}: files created per second, at least"
    if disk.type == "unknown":
        sources[f"{place}.type"] = "not known: fill it in (lustre, gpfs, beegfs, nfs, ...)"
        if not disk.mounts:
            sources[f"{place}.mounts"] = "not known: fill it in, because the benchmark names no absolute path"
    disks[at] = disk.model_copy(update=update)
    return known.model_copy(update={"file_systems": disks, "sources": sources})


def _best(rates: dict[str, float], direction: str) -> tuple[float | None, str]:
    """The rate of ior-easy; without IO500, the rate of the fastest IOR run."""
    name = f"ior-easy-{direction}"
    if name not in rates:
        name = max((key for key in rates if key.endswith(f" {direction}")), key=lambda key: rates[key], default="")
    return rates.get(name), name


def _created(rates: dict[str, float]) -> tuple[float | None, str]:
    name = "mdtest-easy-write"
    if name not in rates:
        name = max((key for key in rates if key.endswith(" file creation")), key=lambda key: rates[key], default="")
    return rates.get(name), name


def _counted(count: int | None, noun: str) -> str:
    return f"unknown ({noun})" if count is None else counted(count, noun)
