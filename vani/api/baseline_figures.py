"""What `vani baseline show` shows, for programs."""

from __future__ import annotations

from vani.api.figures import policy_asked
from vani.api.given import PathLike
from vani.errors import InputError

__all__ = ["baseline_figures"]


def baseline_figures(
    *files: PathLike, policy: PathLike | None = None
) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """What baselines hold: each file with its number of runs, and key figures of all runs as text.

    Parameters
    ----------
    files
        Baselines or profiles, folders or globs of them; by default what the policy names.

    Raises
    ------
    InputError
        A file that is no baseline, or there is none.
    """
    from vani.gate import baselines as saved  # noqa: PLC0415 - loads the models
    from vani.gate.show import key_figures  # noqa: PLC0415

    asked = policy_asked(policy, search=True)
    places = saved.chosen(asked, [str(one) for one in files])
    if not places:
        raise InputError(
            "there is no baseline here or above", todo="make one with `vani baseline save PROFILE`"
        )
    earlier = [saved.read_runs(place, saved.FILE_COLUMNS) for place in places]
    sources = [(one.source.path, len(one.runs)) for one in earlier]
    return sources, key_figures([run for one in earlier for run in one.runs])
