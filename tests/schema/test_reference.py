"""The page generated from the profile's models."""

from __future__ import annotations

import re
from typing import Annotated

import pytest
from generators.profile import reference
from pydantic import Field, create_model

from vani.schema.model import Model


def test_types_are_plain_words_and_not_python_names():
    rows = [line.split(" | ") for line in reference().splitlines() if line.startswith("| `")]
    assert rows
    assert [
        row
        for row in rows
        if re.search(
            r"\w\.\w|\w\(|Annotated|\bint\b|\bfloat\b|\bstr\b|\bdict\b|Any",
            re.sub(r"`[^`]*`", "", row[1]).split("](")[0],
        )
    ] == []


def test_a_number_of_repetitions_is_a_count():
    assert "| `count` | count, at least 1 | number of phases in this row |" in reference().splitlines()


def test_a_type_without_a_word_is_refused():
    odd = create_model("Odd", __base__=Model, odd=(Annotated[int, Field(ge=7)], ...))
    with pytest.raises(TypeError, match=r"no word for .*: add it to _UNITS"):
        reference(odd)
