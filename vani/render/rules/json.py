"""The rules of the catalogue as JSON, with their thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vani.schema.syntax.json_writer import json_text


def render(rules: Sequence[Mapping[str, Any]], **_: object) -> str:
    """Write everything that is known about them."""
    return json_text(rules)
