"""What `vani baseline save` does, for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.api.figures import figures_of, policy_asked
from vani.api.given import PathLike
from vani.api.run import Run

if TYPE_CHECKING:
    from vani.engine.run import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = ["save_baseline"]


def save_baseline(
    *profiles: PathLike | Profile,
    output: PathLike | None = None,
    add: bool = False,
    keep: int = 10,
    policy: PathLike | None = None,
    search: bool = True,
    system: PathLike | System | None = None,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Path:
    """Make a baseline of profiles or traces, each of them one run; returns where it was written.

    Parameters
    ----------
    output
        Where; by default what the policy names, or .vani/baseline.yaml beside it.
    add, keep
        Behind the runs that are there already, of which the newest stay, `keep` in all.
    store, scheduler, progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        A document that cannot be used, or a file there that is no baseline.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models

    asked = policy_asked(policy, search=search)
    place = saved.place_of(asked) if output is None else Path(output)
    saved.check_place(place)
    runs = []
    if add and place.is_file():
        earlier = saved.read_runs(place, saved.FILE_COLUMNS)
        runs += list(zip(earlier.made, earlier.runs, strict=True))
    with Run(profiles, store=store, scheduler=scheduler, progress=progress) as run:
        for one in profiles:
            runs.append(saved.run_of(figures_of(run, one, (), saved.FILES, system=system)))
    saved.write(saved.baseline_of(runs[-keep:] if add else runs, asked.strip), place)
    return place
