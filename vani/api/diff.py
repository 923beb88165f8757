"""Implements `vani diff`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.arguments import PathLike
from vani.api.gate_inputs import checks_of_policy, figures_of, lists_all_files
from vani.api.run import Run
from vani.api.source import is_trace
from vani.gate.baselines import read_runs
from vani.gate.difference import FILE_COLUMNS, Side, compare
from vani.schema.check import Source

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.diff import Diff
    from vani.schema.profile import Profile

def diff(
    a: PathLike | Profile,
    b: PathLike | Profile,
    *,
    strip: Sequence[str] | None = None,
    store: PathLike | None = None,
    scheduler: SchedulerLike = None,
    progress: Progress | None = None,
) -> Diff:
    """Compare two profiles, traces or baselines, attribute by attribute.

    Parameters
    ----------
    strip
        Path prefixes that differ from run to run; None takes those of the nearest policy.
    store, scheduler, progress
        As in `profile`, for traces.

    Raises
    ------
    InputError
        A document or a trace cannot be used.
    """

    def side(run: Run, path_or_profile: PathLike | Profile) -> Side:
        if isinstance(path_or_profile, (str, Path)) and not is_trace(path_or_profile):
            earlier = read_runs(Path(path_or_profile), FILE_COLUMNS, todo="name a profile or a trace")
            return Side(
                earlier.source, earlier.runs, all(map(lists_all_files, earlier.runs)), earlier.is_saved
            )
        figures = figures_of(run, path_or_profile, FILE_COLUMNS, 1)
        source = Source(path=figures.path, sha256=figures.sha256)
        return Side(source, (figures.tree,), lists_all_files(figures.tree))

    ignored_prefixes = checks_of_policy(None, search=True).strip if strip is None else strip
    with Run([a, b], store=store, scheduler=scheduler, progress=progress) as run:
        return compare(side(run, a), side(run, b), strip=ignored_prefixes, version=vani.__version__)
