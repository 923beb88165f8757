"""Recommended settings as a table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from vani import api
from vani.render.advice.csv import render

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def test_each_setting_is_a_row_and_its_commands_can_be_pasted():
    advice = api.advise(GOLDEN / "v2-cm1like-8r.yaml", system="generic-lustre")
    rows = list(csv.DictReader(io.StringIO(render(advice))))
    wanted = [
        (item.rule, name, item.apply)
        for item in advice.recommendations
        for name in item.recommended or ([""] if item.apply else [])
    ]
    assert wanted
    assert [(row["rule"], row["setting"], row["commands"].splitlines()) for row in rows] == wanted
    # Whether I/O matters is a verdict, no setting.
    assert "MAT001" not in {row["rule"] for row in rows}
