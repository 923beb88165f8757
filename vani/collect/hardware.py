"""Cores, memory and GPUs of the node on which this process runs.

Sources: proc(5) on `meminfo` and `cpuinfo`; Linux, Documentation/ABI/stable/sysfs-devices-system-cpu
(topology); the folders that the NVIDIA and amdkfd drivers create.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vani.collect.probe import entries, read

_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
_GPU_VENDORS: Final = {"0x10de", "0x1002"}
"""NVIDIA and AMD. Intel is excluded, because it would count a CPU's graphics unit; so is a BMC's graphics chip."""


def memory_bytes(root: Path = Path("/")) -> int | None:
    """Memory of the node in bytes, without the kernel's reserved memory."""
    match = re.search(r"^MemTotal:\s+(\d+) kB$", read(root / "proc/meminfo") or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def count_cores(root: Path = Path("/"), allowed: set[int] | None = None) -> int | None:
    """Cores (not hardware threads) of the node with at least one of the logical CPUs `allowed`."""
    cores = _cores_of_cpuinfo(root) or _cores_of_topology(root)
    return len({core for cpu, core in cores.items() if not allowed or cpu in allowed}) or None


def _cores_of_cpuinfo(root: Path) -> dict[int, str]:
    """Core of each logical CPU; empty on architectures whose cpuinfo lacks cores (POWER, Arm)."""
    cores: dict[int, str] = {}
    for block in (read(root / "proc/cpuinfo") or "").split("\n\n"):
        values = dict(re.findall(r"^(processor|physical id|core id)\s*: (\d+)$", block, re.MULTILINE))
        if "processor" in values and "core id" in values:
            cores[int(values["processor"])] = f"{values.get('physical id', 0)}:{values['core id']}"
    return cores


def _cores_of_topology(root: Path) -> dict[int, str]:
    cores: dict[int, str] = {}
    for folder in entries(root / "sys/devices/system/cpu"):
        if match := re.fullmatch(r"cpu(\d+)", folder.name):
            topology = folder / "topology"
            siblings = read(topology / "core_cpus_list") or read(topology / "thread_siblings_list")
            if siblings:
                cores[int(match[1])] = siblings.strip()
    return cores


def visible_gpus(environment: Mapping[str, str]) -> int | None:
    """Number of GPUs that a `*_VISIBLE_DEVICES` variable leaves to the process; None if none is set."""
    for name in _VISIBLE:
        if name in environment:
            # An invalid entry ends the list: `NoDevFiles` and `-1` are common ways to write "none".
            devices = [part.strip() for part in environment[name].split(",")]
            valid = [
                re.fullmatch(r"\d+(?:\.\d+)?|(?:GPU|MIG)-[\w/-]+", device) is not None for device in devices
            ]
            return valid.index(False) if False in valid else len(valid)
    return None


def count_gpus(root: Path = Path("/")) -> int | None:
    """Number of GPUs that drivers show; None if neither /proc nor /sys can be examined."""
    nvidia = len(entries(root / "proc/driver/nvidia/gpus"))
    nodes = entries(root / "sys/class/kfd/kfd/topology/nodes")
    amd = sum((read(node / "gpu_id") or "0").strip() != "0" for node in nodes)
    if nvidia or amd:
        return nvidia + amd
    cards = [card for card in entries(root / "sys/class/drm") if re.fullmatch(r"card\d+", card.name)]
    gpus = sum((read(card / "device/vendor") or "").strip() in _GPU_VENDORS for card in cards)
    return gpus if gpus or entries(root / "sys/class") else None
