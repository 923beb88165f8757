"""Reports on profiles that list more files than are judged."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest

import vani.cli.report as inputs
from vani.cli.report import report
from vani.render.formats import PROFILE
from vani.render.report.file_tables import file_groups, groups_kept
from vani.schema.profile import Profile
from vani.schema.saved_profile import FileSummary

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "v3-cm1like-16r.yaml"
JUDGED = 3


@pytest.fixture
def long_profiles(tmp_path, monkeypatch):
    """A profile with more files than are judged, in each format."""
    monkeypatch.setattr(inputs, "JUDGED_FILES", JUDGED)
    profile = Profile.load(GOLDEN)
    assert len(profile.files) == 2 * JUDGED
    for kind in PROFILE:
        (tmp_path / f"long.{kind}").write_text(PROFILE.render(kind, profile), encoding="utf-8")
    return [tmp_path / f"long.{kind}" for kind in PROFILE]


@pytest.mark.slow
def test_page_is_equal_for_profiles_in_json_and_yaml(long_profiles):
    pages = [re.sub("[0-9a-f]{64}", "", report(one)) for one in long_profiles]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_no_file_of_a_long_profile_outlives_its_report(long_profiles):
    for one in long_profiles:
        report(one)
        assert not [found for found in gc.get_objects() if type(found) is FileSummary]


def test_groups_of_a_list_are_kept_for_one_report(long_profiles):
    files = Profile.load(long_profiles[0]).files
    with groups_kept():
        first, again = file_groups(files), file_groups(files)
        assert first is not again and all(a is b for a, b in zip(first, again, strict=True))
    assert file_groups(files)[0] is not first[0]
