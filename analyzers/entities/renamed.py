"""Renamed files: which names are one file depends on the order of calls, which a source may not know.

A name may denote several files in sequence (`workload/renamed_files.py`), so neither their number nor
anything about a single one is reported. All other attributes count their calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.workload.workload import Workload
from vani.schema.profile import FileCounts, Profile


def of_several_names(workload: Workload) -> NDArray[np.bool_]:
    """Names among which files were renamed, shape (files,)."""
    names = np.bincount(workload.final_name, minlength=workload.files)
    several: NDArray[np.bool_] = names[workload.final_name] > 1
    return several


def without_names(profile: Profile, why: str) -> Profile:
    """The profile without attributes that depend on which names are one file, and with the reason."""
    counts = FileCounts(total=None, shared=None, file_per_process=None)
    unknown = dict.fromkeys(("files", "format", "size", "roles", "size_distribution"))
    notes = dict.fromkeys(
        ("workflow.files", "apps.files", "interfaces.files", *(f"dataset.{n}" for n in unknown), "folders", "patterns"),
        why,
    )
    notes["files"] = f"without renamed files: {why}"
    return profile.model_copy(
        update={
            "workflow": profile.workflow.model_copy(update={"files": counts}),
            "apps": [app.model_copy(update={"files": counts}) for app in profile.apps],
            "interfaces": None
            if profile.interfaces is None
            else [row.model_copy(update={"files": None}) for row in profile.interfaces],
            "dataset": profile.dataset.model_copy(update=unknown),
            "folders": None,
            "patterns": None,
            "provenance": profile.provenance | notes,
        }
    )
