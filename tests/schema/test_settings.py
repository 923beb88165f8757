"""Settings of commands: limits are declared once, and an error names the option and its limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field

from vani.errors import InputError
from vani.schema.settings import Option, Settings


def even(number: int) -> int:
    if number % 2:
        raise ValueError("is odd; give an even number")
    return number


class Example(Settings):
    """Settings with each kind of field."""

    method: Literal["balanced", "lsa"] = "balanced"
    ceiling: Annotated[float, Field(gt=0, le=1)] = 0.95
    seed: Annotated[int, Field(ge=0)] | None = None
    seeds: Annotated[int, Field(ge=1, le=10_000)] = 50
    pairs: Annotated[int, AfterValidator(even), Option(("-p", "--pairs-of-runs"))] = 2
    collect: bool = True


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"ceiling": 0}, "--ceiling: is 0; give a number above 0, at most 1"),
        ({"ceiling": float("nan")}, "--ceiling: is nan; give a number above 0, at most 1"),
        ({"seed": -1}, "--seed: is -1; give a whole number, 0 or more"),
        ({"seeds": 10_001}, "--seeds: is 10,001; give a whole number, 1 to 10,000"),
        ({"seeds": "many"}, "--seeds: is many; give a whole number, 1 to 10,000"),
        ({"method": "lru"}, "--method: is lru; give one of balanced, lsa"),
        ({"collect": "perhaps"}, "--no-collect: is perhaps; give true or false"),
        ({"pairs": 3}, "--pairs-of-runs: 3 is odd; give an even number"),
        ({"ceilling": 1}, "no setting 'ceilling'; did you mean 'ceiling'?"),
    ],
)
def test_a_wrong_value_names_the_option_and_its_limits(fields: dict[str, Any], line: str):
    with pytest.raises(InputError) as error:
        Example.of(**fields)
    assert str(error.value) == line


def test_fields_replace_those_of_the_given_settings():
    assert Example.of(Example(seeds=7, ceiling=0.5), ceiling=0.6) == Example(seeds=7, ceiling=0.6)


def test_a_text_from_the_command_line_becomes_a_number():
    assert Example.of(ceiling="0.5", seed="3").model_dump() == Example(ceiling=0.5, seed=3).model_dump()
