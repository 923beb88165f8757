"""What `vani history creations` writes for plans, beside its document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.schema.prediction import CreationsPrediction

__all__ = ["planned_files"]


def planned_files(
    prediction: CreationsPrediction, layout: str | None, *, table: Path | None, jobs: Path | None
) -> list[tuple[str, Path]]:
    """The rows of Tarazu's database as CSV and the jobs as YAML, each with its place, as far as they are wanted."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.database.interactions import write_csv  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    made = []
    if table is not None:
        made.append((write_csv(api.creations_rows(prediction, layout)), table))
    if jobs is not None:
        made.append((dumps(api.creations_jobs(prediction, layout)), jobs))
    return made
