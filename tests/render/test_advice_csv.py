"""Recommended settings as a table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import vani
from vani.render.advice import to_csv

ROOT = Path(__file__).resolve().parents[2]


def test_setting_is_a_row_with_commands_to_paste():
    advice = vani.advise(ROOT / "tests" / "golden" / "v2-cm1like-8r.yaml", system="generic-lustre")
    rows = list(csv.DictReader(io.StringIO(to_csv(advice))))
    wanted = [
        (item.rule, name, item.apply)
        for item in advice.recommendations
        for name in item.recommended or ([""] if item.apply else [])
    ]
    assert wanted
    assert [(row["rule"], row["setting"], row["commands"].splitlines()) for row in rows] == wanted
    # Whether I/O matters is a verdict, not a setting.
    assert "MAT001" not in {row["rule"] for row in rows}


def test_sizes_are_bytes_and_a_path_cannot_be_a_formula():
    advice = vani.advise(ROOT / "vani" / "demo" / "ior-shared-file-8r", system="generic-lustre")
    first = next(item for item in advice.recommendations if "stripe_size" in item.recommended)
    named = first.model_copy(update={"target": first.target.model_copy(update={"path": "=1+1"})})
    text = to_csv(advice.model_copy(update={"recommendations": [named]}))
    row = next(row for row in csv.DictReader(io.StringIO(text)) if row["setting"] == "stripe_size")
    assert int(row["recommended"]) == first.recommended["stripe_size"] > 1000
    assert row["path"] == "'=1+1"
