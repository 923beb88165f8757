"""Implements `vani baseline`: saves runs as a baseline, and shows its key figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.api.gate_inputs import checks_of_policy, figures_of
from vani.api.run import Run
from vani.errors import InputError
from vani.gate import baselines
from vani.gate.key_figures import key_figures

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile
    from vani.schema.system import System

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
    """Save profiles or traces, one per run, as a baseline and return its path.

    Parameters
    ----------
    output
        The baseline's path; by default the one in the policy, or .vani/baseline.yaml next to the policy.
    add, keep
        `add` appends to the existing runs; only the newest `keep` runs remain.
    store, scheduler, progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        A document cannot be used, or `output` exists and is not a baseline.
    """
    checks = checks_of_policy(policy, search=search)
    place = baselines.baseline_path(checks) if output is None else Path(output)
    baselines.refuse_to_overwrite(place)
    runs = []
    if add and place.is_file():
        earlier = baselines.read_runs(place, baselines.FILE_COLUMNS)
        runs += list(zip(earlier.origins, earlier.runs, strict=True))
    with Run(profiles, store=store, scheduler=scheduler, progress=progress) as run:
        for profile in profiles:
            runs.append(baselines.run_of(figures_of(run, profile, (), baselines.FILES, system=system)))
    baselines.write(baselines.baseline_of(runs[-keep:] if add else runs, checks.strip), place)
    return place


def baseline_figures(
    *files: PathLike, policy: PathLike | None = None
) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Return each baseline file with its number of runs, and the key figures of all runs as text.

    Parameters
    ----------
    files
        Baselines or profiles, folders or globs of them; by default the policy's.

    Raises
    ------
    InputError
        A file is not a baseline, or there is none.
    """
    checks = checks_of_policy(policy, search=True)
    places = baselines.files_to_compare(checks, [str(file) for file in files])
    if not places:
        raise InputError(
            "there is no baseline here or in parent folders", todo="make one with `vani baseline save PROFILE`"
        )
    earlier = [baselines.read_runs(place, baselines.FILE_COLUMNS) for place in places]
    sources = [(baseline.source.path, len(baseline.runs)) for baseline in earlier]
    return sources, key_figures([run for baseline in earlier for run in baseline.runs])
