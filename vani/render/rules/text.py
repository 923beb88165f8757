"""The rules of the catalogue, one per line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def render(rules: Sequence[Mapping[str, Any]], **_: object) -> str:
    """Write the finding of each rule; thresholds are left to the JSON format."""
    wide = {key: max((len(rule[key]) for rule in rules), default=0) for key in ("name", "family")}
    lines = (
        f"{rule['id']}  {rule['name'].ljust(wide['name'])}  {rule['family'].ljust(wide['family'])}  {rule['finding']}\n"
        for rule in rules
    )
    return "".join(lines)
