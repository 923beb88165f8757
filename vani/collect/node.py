"""Facts of the node: programs, run without a shell and with a time limit, and small files in /proc and /sys.

These give cores, memory and GPUs of the node, and the limits of the job on it: control groups (versions 1 and 2) and
CPU affinity.

Sources: proc(5) on `meminfo`, `cpuinfo` and `status`; Linux, Documentation/ABI/stable/sysfs-devices-system-cpu
(topology), Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst; the folders that the NVIDIA and amdkfd drivers
create.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from vani.schema.job import Limits

Ask = Callable[[list[str]], str]
"""Runs a command and returns its output; raises `NoAnswer`."""


class NoAnswer(Exception):  # noqa: N818 - a fact about the machine, which goes into `unknown`
    """The program is missing, failed, or took too long, as stated in the text.

    `printed` is the standard output of a program that failed: `lfs df` fails if one target
    does not answer, although it has printed all others.
    """

    def __init__(self, why: str, printed: str = "") -> None:
        super().__init__(why)
        self.printed = printed


def ask(command: list[str], timeout_s: float = 10.0) -> str:
    """Run `command` and return its standard output.

    Raises
    ------
    NoAnswer
        The program is missing, failed, or took too long.
    """
    program = shutil.which(command[0])
    if program is None:
        raise NoAnswer(f"{command[0]} is not installed")
    process = subprocess.Popen(
        command,
        executable=program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        # A process that hangs in the kernel cannot be killed, so do not wait for it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        raise NoAnswer(f"{command[0]} did not answer within {timeout_s:g} s") from None
    if process.returncode:
        said = err.decode(errors="backslashreplace").strip().splitlines()
        raise NoAnswer(
            f"{command[0]} failed: {said[0] if said else f'status {process.returncode}'}",
            out.decode(errors="backslashreplace"),
        )
    return out.decode(errors="backslashreplace")


_MAX_BYTES: Final = 16 << 20


def read(path: Path) -> str | None:
    """Read a small text file; None if it is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="backslashreplace")
    except (OSError, ValueError):
        return None


def entries(folder: Path) -> list[Path]:
    """List a folder, sorted; empty if it is missing or cannot be read."""
    try:
        return sorted(folder.iterdir())
    except (OSError, ValueError):
        return []


_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
_GPU_VENDORS: Final = {"0x10de", "0x1002"}
"""NVIDIA and AMD. Intel is excluded, because it would count a CPU's graphics unit; so is a BMC's graphics chip."""


def memory_bytes(root: Path = Path("/")) -> int | None:
    """Memory of the node in bytes, without the kernel's reserved memory."""
    match = re.search(r"^MemTotal:\s+(\d+) kB$", read(root / "proc/meminfo") or "", re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def memory_used(root: Path = Path("/")) -> int | None:
    """Bytes of the node's memory that are in use: neither free nor caches that the kernel can drop."""
    text = read(root / "proc/meminfo") or ""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    whole = memory_bytes(root)
    return None if match is None or whole is None else max(0, whole - int(match[1]) * 1024)


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
            valid = [re.fullmatch(r"\d+(?:\.\d+)?|(?:GPU|MIG)-[\w/-]+", device) is not None for device in devices]
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


_NO_LIMIT: Final = 1 << 60
"""Version 1 represents "no limit" as the largest multiple of a page."""


def read_limits(root: Path = Path("/")) -> Limits:
    """Read the limits of this process; null without a limit or control group."""
    groups = _groups(root)
    version: Literal[1, 2] | None = None
    memory: list[int] = []
    cpus: list[float] = []
    for controller in ("memory", "cpu"):
        if controller in groups:
            version = 1
            for folder in _upwards(root, f"sys/fs/cgroup/{controller}", groups[controller]):
                memory += _numbers(read(folder / "memory.limit_in_bytes"))[:1]
                quota = _numbers(read(folder / "cpu.cfs_quota_us"))
                period = _numbers(read(folder / "cpu.cfs_period_us"))
                cpus += [quota[0] / period[0]] if quota and period and quota[0] > 0 and period[0] > 0 else []
    if "" in groups and version is None:
        version = 2
        for folder in _upwards(root, "sys/fs/cgroup", groups[""]):
            memory += _numbers(read(folder / "memory.max"))[:1]
            both = _numbers(read(folder / "cpu.max"))
            cpus += [both[0] / both[1]] if len(both) == 2 and both[0] > 0 and both[1] > 0 else []
    allowed = allowed_cpus(root)
    return Limits(
        cpus=min(cpus, default=None),
        affinity_cpus=len(allowed) if allowed else None,
        memory=min((limit for limit in memory if limit < _NO_LIMIT), default=None),
        cgroup=version,
    )


def allowed_cpus(root: Path = Path("/")) -> set[int]:
    """Logical CPUs on which this process may run; empty if unknown."""
    for line in (read(root / "proc/self/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return parse_cpu_list(value)
    return set()


def parse_cpu_list(text: str) -> set[int]:
    """Parse a list of CPUs: `0-3,8` is 0, 1, 2, 3, 8."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.strip().partition("-")
        if low.isdecimal() and (high or low).isdecimal() and int(high or low) < 1 << 16:
            cpus.update(range(int(low), int(high or low) + 1))
    return cpus


def _groups(root: Path) -> dict[str, str]:
    """Path of this process's group by controller; version 2 has one for all controllers, under the empty name."""
    groups = {}
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _upwards(root: Path, mount: str, group: str) -> Iterator[Path]:
    """The group's folder and its ancestors, of which the tightest limit counts. In a container, only some exist."""
    path = PurePosixPath("/", *(part for part in group.split("/") if part not in ("", ".", "..")))
    for folder in (path, *path.parents):
        yield root / mount / str(folder).lstrip("/")


def _numbers(text: str | None) -> list[int]:
    """The numbers in a line, up to `max` or anything else."""
    numbers: list[int] = []
    for word in (text or "").split():
        if not word.lstrip("-").isdecimal():
            break
        numbers.append(int(word))
    return numbers
