"""Recommended settings as a table for spreadsheets and scripts, for any tool that sets them: sizes in bytes."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from vani.render.history.csv import cell
from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.advice import Advice, Recommendation

__all__ = ["render"]

_COLUMNS: Final = (
    "rule", "name", "severity", "confidence", "target", "path", "app", "setting", "current", "recommended", "commands",
)  # fmt: skip


def render(advice: Advice, **_: object) -> str:
    """Write one row for each setting that is recommended; unknown values are empty, and commands a line each."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(_COLUMNS)
    for some in advice.recommendations:
        # Some have commands alone, and whether I/O matters is no setting.
        for setting in some.recommended or ([None] if some.apply else []):
            # A cell has one line, but for the commands.
            commands = "\n".join(str(cell(line)) for line in some.apply)
            out.writerow([*map(cell, _row(some, setting)), commands])
    return text.getvalue()


def _row(some: Recommendation, setting: str | None) -> list[object]:
    current, recommended = ((of.get(setting) if setting else None) for of in (some.current, some.recommended))
    target = some.target
    return [
        some.rule, some.name, some.severity, some.confidence, target.kind, target.path, target.app, setting,
        _plain(current), _plain(recommended),
    ]  # fmt: skip


def _plain(value: object) -> object:
    return json_text(value, indent=None).rstrip("\n") if isinstance(value, list | dict | bool) else value
