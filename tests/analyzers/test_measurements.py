"""What every source of measurements keeps to."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml

from vani.analyzers import passes
from vani.analyzers.assemble import assemble
from vani.analyzers.entities.view import View
from vani.analyzers.measurements import Measurements
from vani.analyzers.quick import profile as quick
from vani.api import characterise

TRACE = Path(__file__).resolve().parent.parent / "data" / "traces" / "v3-posix-mix-4r"
OPTIONAL = [field.name for field in fields(Measurements) if field.default is None]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return characterise(TRACE, store=tmp_path_factory.mktemp("store"), scheduler="synchronous").view.measured


def test_every_measure_has_a_field_of_its_name(measured):
    names = {field.name for field in fields(Measurements)}
    assert {measure.name for measure in passes.measures()} <= names


def test_no_two_measures_have_one_name():
    names = [measure.name for measure in passes.measures()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", OPTIONAL)
def test_nothing_is_unknown_without_a_reason(measured, name):
    values = {field.name: getattr(measured, field.name) for field in fields(Measurements)}
    with pytest.raises(ValueError, match=f"{name} is None, and no reason is given"):
        Measurements(**values | {name: None, "unknown": dict.fromkeys(set(OPTIONAL) - {name}, "why")})


def test_a_field_that_is_added_needs_no_change_for_quick():
    assert set(OPTIONAL) <= set(quick._UNKNOWN)


@pytest.mark.parametrize(
    "name", sorted(set(OPTIONAL) - {"possible_exchanges", "exchanges", "extents", "lengths"})
)
def test_entities_are_null_where_a_measure_is_missing(measured, name, tmp_path):
    """A source that cannot tell one thing needs no entity changed."""
    less = replace(measured, **{name: None}, unknown={**measured.unknown, name: "not told"})
    assemble(View(less, None, None), version="0").save(tmp_path / "profile.yaml")
    assert yaml.safe_load((tmp_path / "profile.yaml").read_text())["schema"] == "vani.profile/2"


def test_entities_change_nothing(measured):
    """Made twice of the same measurements, a profile is the same."""
    view = View(measured, None, None)
    assert (
        assemble(view, version="0")
        == assemble(view, version="0")
        == assemble(View(measured, None, None), version="0")
    )
