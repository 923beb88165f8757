"""How a long profile is laid out as text, which one module searches by."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani.schema.long_profile import excerpt, file_columns
from vani.schema.yaml import any_form, layout

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for folder in ("schema", "analyzers", "advisors", "vani") for path in (ROOT / folder).rglob("*.py")
]


@pytest.mark.parametrize("mark", ["- path: ", "excluded:", "time_s: "])
def test_one_module_knows_where_the_files_of_a_profile_stand_in_its_text(mark):
    # Was: two rooms, each with marks of its own.
    escaped = {
        path.name for path in SOURCES for line in path.read_text().splitlines() if f"\\n{mark}" in line
    }
    assert len(escaped) <= 1 and escaped <= {"long_profile.py", "yaml_columns.py"}


def test_a_package_named_as_pyyaml_does_not_hide_it():
    assert any_form.yaml.__name__ == "yaml"
    assert any_form.yaml.safe_load("a: 1") == {"a": 1}


def test_what_is_searched_for_is_what_the_writer_lays_out():
    assert layout.STEP == len(layout.INDENT) == len(layout.DASH)
    golden = sorted((ROOT / "tests/golden").glob("v3-*.yaml"))
    assert golden
    for path in golden:
        content = path.read_bytes()
        files = file_columns(content, {("io", "time_s"), ("size",)})
        assert files is not None
        found = excerpt(content, 1)
        assert (found is None) == (len(files) <= 1)
