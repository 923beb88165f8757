"""Promises about the texts that are found in a long profile in YAML, and their values."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani.schema.yaml_columns as columns
from vani.errors import DocumentError
from vani.schema.columns_of_files import columns_in_order
from vani.schema.document import dumps, read_tree
from vani.schema.long_profile import file_columns
from vani.schema.profile import Profile

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
LAYOUT = {("stripe_count",), ("stripe_size",), ("components",)}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_all_columns_of_a_real_profile_are_what_reading_all_gives(path):
    text = dumps(Profile.load(path))
    wanted = [one for one in columns_in_order() if one != ("io",) and one not in LAYOUT]
    whole = read_tree(text, Profile, where=str(path))["files"]
    assert file_columns(text.encode(), wanted) == (whole or None)


def test_values_are_the_same_however_many_are_read_at_once(monkeypatch):
    texts = [
        b" 1",
        b" null",
        b' "a b: c"',
        b" {read: 1.5, write: null}",
        b"\n      read: 2\n      write: 3",
        b" x",
    ]
    assert columns.yaml_values(texts) == [
        1, None, "a b: c", {"read": 1.5, "write": None}, {"read": 2, "write": 3}, "x",
    ]  # fmt: skip
    whole = columns.yaml_values(texts)
    monkeypatch.setattr(columns, "_AT_ONCE", 2)
    assert columns.yaml_values(texts) == whole
    with pytest.raises(DocumentError):
        columns.yaml_values([b" 1\nk0: 2", b" x", b" 3"])
