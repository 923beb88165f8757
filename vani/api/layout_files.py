"""Files with Tarazu's buckets (.ini), which jobs name as the layouts of files to come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vani.models.pfl import Layout
    from vani.schema.jobs import Jobs

__all__ = ["layout_files_of", "read_layouts", "with_options"]


def layout_files_of(jobs: Jobs, folder: Path) -> dict[str, Path]:
    """By the name that jobs give them, seen from the folder of the jobs."""
    from vani.plan.creations import is_layout_file  # noqa: PLC0415 - loads the models

    names = (one.layout for job in jobs.jobs for one in job.creations or [])
    return {name: folder / name for name in names if isinstance(name, str) and is_layout_file(name)}


def read_layouts(files: Mapping[str, Path]) -> dict[str, Layout]:
    """Read them.

    Raises
    ------
    InputError
        A file that is none.
    """
    from vani.models.tarazu_layout import parse_buckets  # noqa: PLC0415 - loads the models
    from vani.schema.document import read_text  # noqa: PLC0415

    return {name: parse_buckets(read_text(path), str(path)) for name, path in files.items()}


def with_options(jobs: Jobs, layouts: Mapping[str, Layout]) -> Jobs:
    """Jobs whose layouts are options of `lfs setstripe` where they were files."""
    if not layouts:
        return jobs
    options = {name: layout.to_options() for name, layout in layouts.items()}
    changed = []
    for job in jobs.jobs:
        creations = [
            one.model_copy(update={"layout": options[one.layout]}) if one.layout in options else one
            for one in job.creations or []
        ]
        changed.append(job.model_copy(update={"creations": creations}) if creations else job)
    return jobs.model_copy(update={"jobs": changed})
