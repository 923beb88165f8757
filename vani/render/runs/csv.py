"""Runs as a table for spreadsheets; figures are exact, and unknown ones are empty."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.schema.run_table import COLUMNS

if TYPE_CHECKING:
    from vani.schema.run_table import RunTable

def render(document: RunTable, **_: object) -> bytes:
    """Write a row for each run below the names of all columns."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    out.writerows([_cell(getattr(row, name)) for name in COLUMNS] for row in document.rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = one_line(str(value))
    # Otherwise a spreadsheet would take it for a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
