"""Implements `vani history phases`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.centre.prediction.behaviour.phases import phase_ids, phases
from vani.centre.prediction.behaviour.results import PhaseOfRun, RunPhases
from vani.centre.prediction.behaviour.time_series import Series, darshan_series
from vani.cli.plot import heat_map
from vani.cli.profile import profile
from vani.errors import InputError
from vani.readers.darshan import is_darshan
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.prediction.behaviour.time_series import Series

def history_phases(*paths: PathLike) -> list[RunPhases]:
    """Find the phases of runs of one category, and which runs behave alike.

    Parameters
    ----------
    paths
        Traces, or Darshan logs with DXT or a heat map.

    Returns
    -------
    list of RunPhases
        The oldest run first; runs with an unknown start come last.

    Raises
    ------
    InputError
        A path cannot be read or has no times, or PyWavelets is missing.
    """
    read = [(path, series_of(path)) for path in paths]
    read.sort(key=lambda entry: entry[1].submitted if entry[1].submitted is not None else float("inf"))
    phases_of_runs = [phases(series.moved) for _, series in read]
    ids, behaviours = phase_ids(phases_of_runs, [series.step_s for _, series in read])
    return [
        RunPhases(
            str(path),
            series.source,
            behaviour,
            series.step_s,
            tuple(
                PhaseOfRun(
                    phase_id,
                    phase.begin * series.step_s,
                    (phase.end - phase.begin) * series.step_s,
                    phase.means[0] / series.step_s,
                    phase.means[1] / series.step_s,
                )
                for phase, phase_id in zip(own_phases, of_phases, strict=True)
            ),
        )
        for (path, series), own_phases, of_phases, behaviour in zip(
            read, phases_of_runs, ids, behaviours, strict=True
        )
    ]


def series_of(path: PathLike) -> Series:
    """Bytes moved over time, from a trace, or from a Darshan log with DXT or a heat map.

    Raises
    ------
    InputError
        The file cannot be read, or has no times.
    """
    import numpy as np  # noqa: PLC0415

    if Path(path).is_file() and is_darshan(Path(path)):
        return darshan_series(Path(path))
    run_profile = profile(path, files=1)
    laid_out = heat_map(run_profile)
    if isinstance(laid_out, str):
        raise InputError(laid_out, where=path)
    moved = np.stack([np.sum(laid_out.read, axis=0), np.sum(laid_out.written, axis=0)], axis=1)
    starts = [trace.start_unix_s for trace in run_profile.traces if trace.start_unix_s is not None]
    return Series(laid_out.bin_s, moved.astype(np.float64), min(starts, default=None), "calls")
