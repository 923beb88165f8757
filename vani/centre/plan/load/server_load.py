"""The current load of a storage server, from /proc and `lctl get_param`: processors, memory, and its targets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from vani.centre.plan.load.load_figures.figures import Figures
from vani.centre.plan.load.load_figures.lctl_parameters import read_lctl_parameters
from vani.centre.plan.schema.snapshot import Target
from vani.collect.probe import Ask, NoAnswer

TARGETS: Final = [
    "lctl", "get_param", "obdfilter.*.kbytestotal", "obdfilter.*.kbytesavail", "obdfilter.*.degraded",
]  # fmt: skip
"""Queries an object storage server for its targets."""

_LONGEST: Final = 1 << 22
_NO_FIGURE: Final = re.compile(r"[0-9]{16,}")
"""Maximum digits of kilobytes: no target is larger, and Python refuses to read some thousands of digits."""


@dataclass(frozen=True)
class BusyTime:
    """Ticks of all processors since the machine started."""

    busy: int
    total: int


def read_busy_time(root: Path = Path("/")) -> BusyTime | None:
    """The current ticks from /proc/stat, not counting disk waits as busy; None if it has none."""
    try:
        words = (root / "proc/stat").read_text(errors="backslashreplace").split("\n", 1)[0].split()
    except OSError:
        return None
    # Guest time is included in user time.
    ticks = [int(word) for word in words[1:9] if word.isdecimal()]
    if words[:1] != ["cpu"] or len(ticks) < 5:
        return None
    return BusyTime(sum(ticks) - ticks[3] - ticks[4], sum(ticks))


def busy_share(before: BusyTime | None, now: BusyTime | None) -> float | None:
    """Share of the processors that was in use between two readings; None if unknown."""
    if before is None or now is None or now.total <= before.total:
        return None
    return min(1.0, max(0.0, (now.busy - before.busy) / (now.total - before.total)))


def memory_share(root: Path = Path("/")) -> float | None:
    """Share of the memory that programs cannot obtain; they can obtain cache memory."""
    try:
        text = (root / "proc/meminfo").read_text(errors="backslashreplace")
    except OSError:
        return None
    sizes = dict(re.findall(r"^(MemTotal|MemAvailable):\s+([0-9]{1,18}) kB$", text, re.MULTILINE))
    whole, free = int(sizes.get("MemTotal", 0)), sizes.get("MemAvailable")
    if not whole or free is None:
        return None
    return min(1.0, max(0.0, 1 - int(free) / whole))


def read_targets(server: str, ask: Ask | None, dump: Path | None) -> tuple[list[Target], str | None]:
    """The targets of a server, from `lctl` or from a file with its output; and the reason if there are none."""
    if dump is not None:
        try:
            with dump.open("rb") as file:
                text = file.read(_LONGEST).decode(errors="backslashreplace")
        except OSError as error:
            return [], f"{dump}: cannot be read ({error.strerror})"
    elif ask is not None:
        try:
            text = ask(TARGETS)
        except NoAnswer as error:
            text = error.printed
            if not targets_of(text, server):
                return [], str(error)
    else:
        return [], "no program was run"
    targets = targets_of(text, server)
    return (
        targets,
        None if targets else f"{dump or 'lctl'} shows no target (obdfilter.*.kbytestotal, .kbytesavail)",
    )


def targets_of(text: str, server: str) -> list[Target]:
    """Targets in the output of `lctl get_param`, by index; those without size or free space are omitted."""
    figures = Figures()
    read_lctl_parameters(_NO_FIGURE.sub("", text), figures, server)
    return [
        Target(
            index=index,
            oss=server,
            size=target.size,
            used=max(0, target.size - target.available),
            state="degraded" if target.is_degraded else "ok",
        )
        for (_, index), target in sorted(figures.targets.items(), key=lambda item: item[0][1])
        if target.size and target.available is not None
    ]
