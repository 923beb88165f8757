"""Limits of the job on a node: control groups (versions 1 and 2) and CPU affinity.

Sources: Linux, Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst; proc(5) on `status`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from vani.collect.probe import read
from vani.schema.job import Limits

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
