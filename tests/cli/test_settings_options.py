"""Options that derive from a model of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner
from pydantic import Field

from vani.cli.options import settings_options
from vani.errors import InputError
from vani.schema.settings import Option, Settings


class Example(Settings):
    """Settings with each kind of field."""

    method: Literal["balanced", "lsa"] = Field(default="balanced", description="How OSTs are chosen.")
    ceiling: Annotated[float, Field(gt=0, le=1)] = Field(default=0.95, description="Fill OSTs up to this share.")
    seed: Annotated[int, Field(ge=0)] | None = Field(default=None, description="Seed of the draws.")
    exact: bool = Field(default=False, description="Compute a maximum flow.")
    collect: bool = Field(default=True, description="Do not write job.yaml.")
    select: tuple[str, ...] | None = Field(default=None, description="Use only these rules.")
    job: Annotated[Path | None, Option(("-j", "--job"), "FILE")] = Field(default=None, description="A job.yaml.")
    system: Annotated[Any, Option(metavar="NAME", default=lambda: "of-site")] = Field(default=None, description="The machine.")


@click.command()
@settings_options(Example)
@click.option("-q", "--quiet", is_flag=True)
def command(settings: Example, quiet: bool) -> None:
    click.echo(f"{settings!r} {quiet}")


def parsed(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_help_shows_names_defaults_limits_and_choices():
    assert " ".join(parsed("--help").split()).partition("Options: ")[2].partition(" -q, ")[0] == (
        "--method [balanced|lsa] How OSTs are chosen. [default: balanced] "
        "--ceiling NUMBER Fill OSTs up to this share. [default: 0.95; above 0, at most 1] "
        "--seed N Seed of the draws. [0 or more] "
        "--exact Compute a maximum flow. "
        "--no-collect Do not write job.yaml. "
        "--select TEXT Use only these rules. "
        "-j, --job FILE A job.yaml. "
        "--system NAME The machine."
    )


def test_options_become_the_fields_of_the_model():
    typed = parsed(
        "--method", "lsa", "--ceiling", "0.5", "--seed", "3", "--exact", "--no-collect", "--select", "LUS001",
        "--select", "MET", "-j", "job.yaml", "--system", "lassen", "-q",
    )  # fmt: skip
    expected = Example(
        method="lsa", ceiling=0.5, seed=3, exact=True, collect=False, select=("LUS001", "MET"), job=Path("job.yaml"),
        system="lassen",
    )  # fmt: skip
    assert typed == f"{expected!r} True"


def test_without_options_the_defaults_are_those_of_the_model_and_of_the_site():
    assert parsed() == f"{Example(system='of-site')!r} False"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--ceiling", "2"], "--ceiling: is 2; give a number above 0, at most 1"),
        (["--method", "lru"], "--method: is lru; give one of balanced, lsa"),
        (["--seed", "one"], "--seed: is one; give a whole number, 0 or more"),
    ],
)
def test_a_wrong_value_is_refused_as_in_python(arguments: list[str], line: str):
    with pytest.raises(InputError) as error:
        parsed(*arguments)
    assert str(error.value) == line
