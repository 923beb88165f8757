"""Commands that measure bandwidth by number of I/O nodes with IOR, and where to enter the curve."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.advisors.launchers import Launcher
from vani.units import GiB, KiB, MiB

if TYPE_CHECKING:
    from vani.models.forwarding import Pattern

_REPETITIONS = 5
"""Number of repetitions, as in the bundled curves."""


def measure_it(
    pattern: Pattern,
    bytes_moved: int,
    folder: str,
    numbers: Sequence[int],
    launcher: Launcher,
    kind: str | None,
) -> str:
    """A sentence with the runs to make, one for each of `numbers` of I/O nodes, and the values to enter."""
    run = ior(pattern, bytes_moved, folder, launcher)
    io_nodes = [n for n in numbers if n]
    ways = []
    if io_nodes and kind == "gekkofwd":
        ways.append(f"`{forwarded(run, pattern.nodes, io_nodes, launcher)}`")
    elif io_nodes:
        ways.append(f"with each of {', '.join(map(str, io_nodes))} I/O nodes `{' '.join(run)}`")
    if 0 in numbers:
        ways.append(f"for direct access `{' '.join(run)}`")
    return (
        f"measure it in a job of {pattern.nodes} nodes: {', and '.join(ways)}; then give the system description "
        f"what IOR prints as mean and deviation, in bytes per second: forwarding.curves: [{_entry(pattern, numbers)}]"
    )


def ior(pattern: Pattern, bytes_moved: int, folder: str, launcher: Launcher) -> list[str]:
    """Words of a command that imitates the job's I/O: the launcher, then IOR."""
    per_process = max(1, round(bytes_moved / pattern.processes / pattern.request))
    is_strided = pattern.layout == "shared" and pattern.order == "strided"
    request = pattern.request
    block, segments = (request, per_process) if is_strided else (request * per_process, 1)
    return [
        launcher.on_each(max(1, round(pattern.processes / pattern.nodes))),
        "ior -a POSIX",
        # 60 s as in the bundled measurements. -C reads data on another node than the writer's, so not from its memory.
        "-w -e -D 60" if pattern.operation == "write" else "-w -r -C -e",
        *(["-F"] if pattern.layout == "fpp" else []),
        f"-t {_size(request)} -b {_size(block)} -s {segments} -i {_REPETITIONS}",
        # If the folder cannot be printed, use the one in which the command starts.
        f"-o {quoted_path(posixpath.join(folder, 'ior.curve')) or 'ior.curve'}",
    ]


def forwarded(run: Sequence[str], nodes: int, numbers: Sequence[int], launcher: Launcher) -> str:
    """A line of sh that runs the command `run` through GekkoFWD with each of `numbers` of I/O nodes."""
    start, *program = run
    return (
        f"for n in {' '.join(map(str, numbers))}; do {launcher.hosts} | "
        f"awk -v per=$(({nodes} / n)) '{{ print $1, int((NR - 1) / per) }}' > gkfs_forwarding.map; "
        f'{start} env LIBGKFS_FORWARDING_MAP_FILE="$PWD"/gkfs_forwarding.map LD_PRELOAD=libgkfs_intercept.so '
        f"{' '.join(program)}; done"
    )


def _entry(pattern: Pattern, numbers: Sequence[int]) -> str:
    layout = "shared" if pattern.layout == "shared" else "file_per_process"
    points = ", ".join(f"{{io_nodes: {n}, bandwidth: ..., deviation: ...}}" for n in numbers)
    return (
        f"{{operation: {pattern.operation}, layout: {layout}, order: {pattern.order}, request: {pattern.request}, "
        f"nodes: {pattern.nodes}, processes_per_node: {max(1, round(pattern.processes / pattern.nodes))}, "
        f"points: [{points}]}}"
    )


def _size(size: int) -> str:
    """A size for IOR: a number, with a suffix if it is a multiple of a power of 1024."""
    for suffix, unit in (("g", GiB), ("m", MiB), ("k", KiB)):
        if size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)
