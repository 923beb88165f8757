"""What `vani diff` does, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import vani
from vani.api.figures import figures_of, lists_all_files, policy_asked
from vani.api.given import PathLike

if TYPE_CHECKING:
    from vani.engine.run import Progress
    from vani.schema.diff import Diff
    from vani.schema.profile import Profile

__all__ = ["diff"]


def diff(
    a: PathLike | Profile,
    b: PathLike | Profile,
    *,
    strip: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Diff:
    """Compare two profiles, traces or baselines, attribute by attribute.

    Parameters
    ----------
    strip
        Beginnings of paths that differ from run to run; None: those of the nearest policy.

    Raises
    ------
    InputError
        A document that cannot be used.
    """
    from vani.gate.baselines import read_runs  # noqa: PLC0415 - loads the models
    from vani.gate.difference import FILE_COLUMNS, Side, compare  # noqa: PLC0415
    from vani.schema.check import Source  # noqa: PLC0415

    def side(one: PathLike | Profile) -> Side:
        if isinstance(one, (str, Path)) and Path(one).is_file():
            earlier = read_runs(Path(one), FILE_COLUMNS)
            return Side(
                earlier.source, earlier.runs, all(map(lists_all_files, earlier.runs)), earlier.is_saved
            )
        figures = figures_of(one, FILE_COLUMNS, 1, progress=progress)
        source = Source(path=figures.path, sha256=figures.sha256)
        return Side(source, (figures.tree,), lists_all_files(figures.tree))

    found = policy_asked(None, search=True).strip if strip is None else strip
    return compare(side(a), side(b), strip=found, version=vani.__version__)
