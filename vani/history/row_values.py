"""Whether rows that come from elsewhere hold what rows can: types, and numbers that databases and rankings take."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Final

from vani.database.runs.run import Run, Source, Verdict

__all__ = ["refuse_impossible_values"]

_MOST: Final = 1 << 63
"""Databases keep integers below."""
_LATEST: Final = 1 << 33
"""Seconds after 1970: the year 2242."""
_SIGNED: Final = ("uid", "changed_ns", "saved_low_s", "saved_s", "saved_high_s")
_KINDS: Final = ("darshan", "profile", "trace")


def refuse_impossible_values(row: Verdict | Run | Source) -> None:
    """Raise ValueError, naming the column, where a value is of another type, not finite or out of range."""
    for field in fields(row):
        value = getattr(row, field.name)
        # As it is written: its module has its annotations as text.
        kinds = str(field.type).split(" | ")
        if not _is_one_of(value, kinds):
            raise ValueError(f"{field.name} is no {kinds[0]}")
        if isinstance(value, str):
            # No database keeps half a letter.
            value.encode()
        if isinstance(value, int | float) and not -_MOST < value < _MOST:
            raise ValueError(f"{field.name} is out of range")
        if isinstance(value, int | float) and value < 0 and field.name not in _SIGNED:
            raise ValueError(f"{field.name} is negative")
    if isinstance(row, Run) and (
        row.kind not in _KINDS or row.processes < 1 or (row.submitted or 0) >= _LATEST
    ):
        raise ValueError("no such run can be")


def _is_one_of(value: object, kinds: list[str]) -> bool:
    if value is None:
        return "None" in kinds
    if isinstance(value, bool):
        return "bool" in kinds
    if isinstance(value, tuple):
        return "tuple[str, ...]" in kinds and all(isinstance(one, str) for one in value)
    if isinstance(value, float):
        return "float" in kinds and math.isfinite(value)
    return (isinstance(value, int) and bool({"int", "float"} & set(kinds))) or (
        isinstance(value, str) and "str" in kinds
    )
