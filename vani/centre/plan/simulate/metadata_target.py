"""Small files that start on the metadata target, and move to OSTs when unused, or when others need the room (AIOT).

Times are those known before the simulation: the starts of jobs, and the seconds that they compute. So a file expires
late where the I/O between two uses takes long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from vani.advisors.commands import quoted_path
from vani.centre.plan.schema.scenario import DataOnMdt, ScenarioPhase
from vani.errors import InputError
from vani.models.striping import STRIPE_UNIT
from vani.units import format_bytes, format_seconds, lfs_size

if TYPE_CHECKING:
    from vani.centre.plan.simulate.jobs import Job

MOVES = "moves to OSTs"
"""Name of the simulated job that moves files away from the metadata target."""
_DAY_S = 86_400


@dataclass(frozen=True)
class OnMetadataTarget:
    """Jobs whose small files start on the metadata target.

    Attributes
    ----------
    peak, expired, pressed, refused
        Bytes there at most; moved because they were unused; moved to make room; and of files that found no room.
    """

    jobs: list[Job]
    peak: float
    expired: float
    pressed: float
    refused: float

    def notes(self, policy: DataOnMdt) -> list[str]:
        """The outcome, and the line that moves such files on a real machine."""
        return [
            f"on the metadata target: {format_bytes(self.peak)} at most; {format_bytes(self.expired)} expired after "
            f"{format_seconds(policy.expires_s)}, {format_bytes(self.pressed)} moved to make room, "
            f"{format_bytes(self.refused)} found no room",
            f"a line of a crontab moves expired files: `{cron_line(policy.folder, policy.expires_s)}`",
        ]


def cron_line(folder: str, expires_s: float) -> str:
    """A line of a crontab that moves expired files from the metadata target to OSTs every night; days are rounded up.

    `lfs find` reads the time of the last access, which Lustre keeps.
    """
    days = max(1, -(-int(expires_s) // _DAY_S))
    path = (quoted_path(folder) or "DIR").replace("%", "\\%")
    return f"17 3 * * * lfs find {path} -type f -L mdt -A +{days} --print0 | xargs -0 -r -n 1 lfs migrate -c 1"


def on_metadata_target(jobs: Sequence[Job], policy: DataOnMdt, free: float | None, where: str) -> OnMetadataTarget:
    """Start small files on the metadata target. Moves before the last use become a job that writes to OSTs.

    Parameters
    ----------
    free
        Free bytes of the metadata target.

    Raises
    ------
    InputError
        The free space is unknown: when the metadata target is full, no user can create files.
    """
    if free is None:
        raise InputError(
            "the free space of the metadata target is not known, so no file may start there", where=where,
            todo="give machine.metadata_free, or metadata_free in system.yaml (`lfs df` prints it)",
        )  # fmt: skip
    room, unit = policy.pressure * free, max(1, -(-policy.below // STRIPE_UNIT)) * STRIPE_UNIT
    there: dict[tuple[int, str], tuple[float, float]] = {}
    known: set[tuple[int, str]] = set()
    moves: list[tuple[float, float]] = []
    chosen: set[tuple[int, int]] = set()
    peak = expired = pressed = refused = 0.0
    for now, number, phase, name, size in sorted(use for n, job in enumerate(jobs) for use in _uses(n, job, policy)):
        files = number, name
        for old, (last, amount) in list(there.items()):
            if now - last > policy.expires_s:
                expired += amount
                moves.append((last + policy.expires_s, there.pop(old)[1]))
        if files not in known:
            idle = sorted((last, old) for old, (last, _) in there.items() if last < now)
            while sum(amount for _, amount in there.values()) + size > room and idle:
                amount = there.pop(idle.pop(0)[1])[1]
                pressed += amount
                moves.append((now, amount))
            if sum(amount for _, amount in there.values()) + size <= room:
                there[files] = now, size
            else:
                refused += size
        known.add(files)
        if files in there:
            there[files] = now, there[files][1]
            chosen.add((number, phase))
            peak = max(peak, sum(amount for _, amount in there.values()))
    expired += sum(amount for _, amount in there.values())
    laid_out = [_laid_out(number, job, chosen, policy.below, unit) for number, job in enumerate(jobs)]
    if moves:
        laid_out.append(_move_job(laid_out[0], moves))
    return OnMetadataTarget(laid_out, peak, expired, pressed, refused)


def _uses(number: int, job: Job, policy: DataOnMdt) -> Iterator[tuple[float, int, int, str, float]]:
    """Time, job, phase, name and bytes of each use of small files of the file system."""
    now = job.start_s
    for at, phase in enumerate(job.phases):
        now += phase.compute_s
        size, many = phase.bytes, phase.files or job.processes
        if job.files:
            size = sum(file.size for file in job.files if _is_small(file.size, file.layout, policy.below))
        elif not _is_small(size / many, phase.layout, policy.below):
            size = 0.0
        for again in range(phase.repeat if size and _is_plain(phase) else 0):
            yield now + again * phase.compute_s, number, at, phase.file_set, size
        now += phase.compute_s * (phase.repeat - 1)


def _is_small(size: float, layout: int | str | None, below: float) -> bool:
    return 0 < size <= below and not isinstance(layout, str)


def _is_plain(phase: ScenarioPhase) -> bool:
    return phase.storage == "file_system" and phase.operation in ("read", "write")


def _laid_out(number: int, job: Job, chosen: set[tuple[int, int]], below: int, unit: int) -> Job:
    def options(layout: int | str | None) -> str:
        return f"-E {lfs_size(unit)} -L mdt -E -1 -c {layout or 1}"

    if job.files:
        small = (number, 0) in chosen
        files = [
            replace(file, layout=options(file.layout)) if small and _is_small(file.size, file.layout, below) else file
            for file in job.files
        ]
        return replace(job, files=files)
    phases = [
        phase.model_copy(update={"layout": options(phase.layout)}) if (number, at) in chosen else phase
        for at, phase in enumerate(job.phases)
    ]
    return replace(job, phases=phases)


def _move_job(like: Job, moves: Sequence[tuple[float, float]]) -> Job:
    """One process that writes what has moved, in the order of time."""
    numbers, before, phases = count(), 0.0, []
    for when, amount in sorted(moves):
        pause, before = when - before, when
        phases.append(
            ScenarioPhase(
                operation="write", bytes=amount, files=1, compute_s=pause, file_set=f"moved {next(numbers)}"
            )
        )
    return replace(like, name=MOVES, nodes=1, processes=1, start_s=0.0, phases=phases, rate=None, files=[])
