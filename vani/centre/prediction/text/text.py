"""A prediction as plain text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vani.errors import one_line

if TYPE_CHECKING:
    from vani.centre.prediction.schema import Prediction

def render(prediction: Prediction) -> str:
    """Write the prediction; the first line states whether it is outside its model."""
    first = f"Outside of the model: {'; '.join(prediction.outside)}." if prediction.outside else None
    return "\n".join(
        [
            *([one_line(first), ""] if first else []),
            *import_module(f"vani.centre.prediction.text.kinds.{prediction.kind}").body(prediction),
            *(line for note in prediction.notes for line in ("", f"Note: {one_line(note)}.")),
            "",
        ]
    )
