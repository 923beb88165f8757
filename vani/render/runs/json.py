"""The document of the table of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.run_table import RunTable

def render(document: RunTable, **_: object) -> bytes:
    """Write the document as JSON."""
    return json_text(document.model_dump(by_alias=True)).encode()
