"""Installed plug-ins are discovered once, and again if Python's search path changes."""

from __future__ import annotations

import importlib.metadata
import sys

from tests.distribution import declared
from vani import plug_ins as module
from vani.plug_ins import plug_ins


def test_places_are_looked_through_once(tmp_path, monkeypatch):
    declared(tmp_path, {"vani.readers": {"csv": "csv_reader:CSV"}, "vani.advisors": {"mine": "rules:Mine"}})
    looked = []
    monkeypatch.setattr(
        module, "entry_points", lambda: looked.append(1) or importlib.metadata.entry_points()
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert [point.value for point in plug_ins("vani.readers")] == ["csv_reader:CSV"]
    assert [point.value for point in plug_ins("vani.advisors")] == ["rules:Mine"]
    assert not plug_ins("vani.analyzers")
    assert len(looked) == 1


def test_other_places_are_searched_again(tmp_path, monkeypatch):
    assert not plug_ins("vani.readers")
    declared(tmp_path, {"vani.readers": {"csv": "csv_reader:CSV"}})
    with monkeypatch.context() as patch:
        patch.setattr(sys, "path", [str(tmp_path), *sys.path])
        assert [point.name for point in plug_ins("vani.readers")] == ["csv"]
    assert not plug_ins("vani.readers")
