"""JSON that any reader takes and any screen shows as it stands."""

from __future__ import annotations

import json

import pytest

from vani.schema.json_text import emit
from vani.schema.yaml_text import emit as emit_yaml
from vani.schema.yaml_text import parse


def test_what_a_screen_would_obey_is_escaped_and_letters_are_not():
    tree = {"a\x9bb": "right\u202eleft \U000e0001 \x7f", "é": ["日本", "\n"]}
    text = emit(tree)
    assert text.replace("\n", "").isprintable()
    assert "é" in text and "日本" in text
    assert json.loads(text) == tree


def test_bytes_that_are_no_utf_8_are_the_same_text_as_in_yaml():
    tree = {"path": "a\udcff"}
    text = emit(tree)
    assert text.encode().decode() == text
    assert json.loads(text) == parse(emit_yaml(tree), "") == {"path": "a\\udcff"}


def test_what_json_has_no_number_for_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        emit({"a": float("nan")})
