"""Recommended settings as a table for spreadsheets, scripts and any tool that applies them; sizes are in bytes."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.csv import cell
from vani.schema.syntax.json_writer import json_text

if TYPE_CHECKING:
    from vani.schema.advice import Advice, Recommendation

_COLUMNS: Final = (
    "rule", "name", "severity", "confidence", "target", "path", "app", "setting", "current", "recommended", "commands",
)  # fmt: skip


def render(advice: Advice, **_: object) -> str:
    """Write one row per recommended setting; unknown values are empty, and commands are one per line."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(_COLUMNS)
    for some in advice.recommendations:
        # Some recommendations have only commands. The one on whether I/O matters has neither.
        for setting in some.recommended or ([None] if some.apply else []):
            # Every cell is a single line, except the commands.
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
