"""By which documents a plan was made."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vani.api.given import PathLike

if TYPE_CHECKING:
    from pydantic import BaseModel

    from vani.schema.plan import PlanInput

__all__ = ["InputKind", "plan_input"]

InputKind = Literal["jobs", "plan", "profile", "snapshot", "system", "scenario", "layout", "trace"]


def plan_input(kind: InputKind, given: PathLike | BaseModel) -> PlanInput:
    """Name a document by the SHA-256 of its file, or, of one in memory, of its YAML.

    Raises
    ------
    InputError
        The file is not there or no text.
    """
    from vani.schema.document import dumps, read_text  # noqa: PLC0415 - loads the models
    from vani.schema.plan import PlanInput as Model  # noqa: PLC0415

    if isinstance(given, (str, Path)):
        read_text(given)  # What is no text is refused in words.
        return Model(kind=kind, path=str(given), sha256=hashlib.sha256(Path(given).read_bytes()).hexdigest())
    return Model(kind=kind, path=None, sha256=hashlib.sha256(dumps(given).encode()).hexdigest())
