"""What every plan has: what it rests on, what it is worth, and what could not be done.

The same inputs give the same bytes: a plan holds no time and no names of machines but those it was given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from vani.schema.advice import Expected
from vani.schema.model import Model

__all__ = ["Amount", "Count", "Left", "Plan", "PlanInput", "Share"]

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PlanInput(Model):
    """A document that the plan rests on."""

    kind: Literal["jobs", "plan", "profile", "snapshot", "system", "scenario", "layout", "trace"] = Field(
        description="what it is: jobs, the plan that is in force, a profile of a job, the machine's state, its "
        "description, a scenario, the layout of a file, a trace or a store"
    )
    path: str | None = Field(description="as it was named; null where it was given in memory")
    sha256: str = Field(description="of the file; of what is in memory, of its YAML")


class Left(Model):
    """Something that the plan could not do."""

    name: str = Field(description="what it concerns: a job, a file, a node, or `pool`")
    reason: str = Field(description="why")


class Plan(Model):
    """A plan of any kind; each kind adds what it decides."""

    schema_: Literal["vani.plan/1"] = Field(
        alias="schema", default="vani.plan/1", description="name and version of this schema"
    )
    version: str = Field(description="of Vani")
    kind: str = Field(description="what is planned")
    inputs: list[PlanInput] = Field(description="what it rests on")
    expected: Expected | None = Field(
        description="what the plan changes; null where before and after cannot be compared"
    )
    unplaced: list[Left] = Field(description="what got nothing, and why")
    over_capacity: list[Left] = Field(description="what exceeds what there is")
    no_data: list[Left] = Field(description="figures that were missing, and what was done without them")
    notes: list[str] = Field(description="what a reader of the figures has to know")

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return not (self.unplaced or self.over_capacity or self.no_data)

    def to_yaml(self) -> str:
        """Write the plan as YAML."""
        from vani.schema.document import dumps  # noqa: PLC0415

        return dumps(self)

    @classmethod
    def variants(cls) -> tuple[type[Plan], ...]:
        """The kinds of plan that this model stands for."""
        return tuple(cls.__subclasses__()) or (cls,)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan of this kind, or, where called on `Plan` itself, of any, from YAML or JSON.

        Raises
        ------
        DocumentError
            The file is no valid plan, or one of another kind.
        """
        from vani.errors import DocumentError  # noqa: PLC0415 - YAML is not needed to build plans
        from vani.schema.document import read_text, read_tree, validate  # noqa: PLC0415
        from vani.schema.yaml.read import line_of  # noqa: PLC0415

        text = read_text(path)
        tree = read_tree(text, Plan, where=str(path))
        known = {model.model_fields["kind"].default: model for model in cls.variants()}
        found = tree.get("kind")
        model = known.get(found) if isinstance(found, str) else None
        if model is None:
            what = (
                "key 'kind' is missing at the top" if "kind" not in tree else f"kind is {str(found)[:40]!r}"
            )
            place = f"{path}:{line_of(text, ('kind',)) if 'kind' in tree else 1}"
            raise DocumentError(what, where=place, todo=f"this takes a plan of kind {' or '.join(known)}")
        checked = validate(tree, model, text=text, where=str(path))
        assert isinstance(checked, cls)
        return checked
