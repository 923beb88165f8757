"""What every document model shares: unknown keys are errors, and a document never changes.

Modules of `profile.yaml` do without `from __future__ import annotations`: pydantic would parse each annotation again.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Model"]


class Model(BaseModel):
    """A part of a document. Sizes are bytes, times seconds, shares 0..1, rates bytes per second."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)
