""".vani/baseline.yaml: the figures of earlier runs that `vani check` compares with, small enough for git.

All runs share one tree of figures: a single value if the runs agree, otherwise a list with a value per run. It contains
no dates and no paths except those of files, so that the same runs give the same bytes.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from vani.schema.document import Document
from vani.schema.model import Model


class BaselineRun(Model):
    """One run in the baseline."""

    version: str = Field(description="version of Vani that wrote the profile")
    sha256: str = Field(description="SHA-256 of the profile")


class Baseline(Document):
    """Figures of several runs."""

    schema_: Literal["vani.baseline/1"] = Field(
        alias="schema", default="vani.baseline/1", description="name and version of this schema"
    )
    runs: list[BaselineRun] = Field(
        min_length=1, max_length=100, description="runs of the baseline, in the order in which they were added"
    )
    figures: dict[str, Any] = Field(
        description="numbers and names from the profiles, without histograms and provenance, for the most important "
        "files only; a list has one value per run, and `in_runs` lists the indices of the runs that contain the entity"
    )
