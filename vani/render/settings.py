"""The settings of the user and the centre, each with its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vani.errors import one_line
from vani.render.table import table
from vani.schema.syntax.json_writer import json_text
from vani.site import KEYS, Setting


def render(
    settings: Sequence[Setting],
    thresholds: Mapping[str, Mapping[str, Any]],
    origins: Mapping[tuple[str, str], str],
    *,
    kind: str = "text",
) -> str:
    """Write all settings as columns of text, or as JSON."""
    rows = [(setting.key, setting.value, setting.origin) for setting in settings]
    rows += [
        (f"thresholds.{rule}.{name}", str(value), origins[rule, name])
        for rule, values in sorted(thresholds.items())
        for name, value in values.items()
    ]
    if kind == "json":
        return json_text([{"setting": key, "value": value, "set_by": origin} for key, value, origin in rows])
    lines = table(
        ("setting", "value", "set by"),
        [(one_line(key), one_line(value or "-"), one_line(origin)) for key, value, origin in rows],
        left=3,
        all_rows=True,
    )
    about = [f"  {key:<14} {what}" for key, what in KEYS.items()]
    more = ["", "In a file of settings (TOML):", *about, "  [thresholds.RULE]  as in vani.toml"]
    return "\n".join([*lines, *more]) + "\n"
