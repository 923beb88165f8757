"""Classes whose fields never change."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import TYPE_CHECKING

import pytest

import vani.immutable
from vani.immutable import immutable

if TYPE_CHECKING:
    from pathlib import Path


@immutable
class Extent:
    start: int
    length: int = 1
    notes: list[str] = field(default_factory=list, repr=False)


@immutable
class Named(Extent):
    name: str = ""

    def __repr__(self) -> str:
        return self.name


def test_it_is_a_dataclass():
    one = Extent(3, length=4)
    assert [of.name for of in fields(one)] == ["start", "length", "notes"]
    assert replace(one, start=5).start == 5
    assert pickle.loads(pickle.dumps(one)).length == 4
    match one:
        case Extent(start, length):
            assert (start, length) == (3, 4)


def test_fields_are_given_in_order_or_by_name():
    for one in (
        Extent(3, 4, ["a"]),
        Extent(3, notes=["a"], length=4),
        Extent(notes=["a"], length=4, start=3),
    ):
        assert vars(one) == {"start": 3, "length": 4, "notes": ["a"]}


def test_what_is_not_given_is_the_default():
    one, other = Extent(3), Extent(start=3)
    assert vars(one) == vars(other) == {"start": 3, "length": 1, "notes": []}
    assert one.notes is not other.notes


@pytest.mark.parametrize(
    ("values", "named", "told"),
    [
        ((), {}, "'start'"),
        ((), {"length": 1, "notes": []}, "'start'"),
        ((1, 2, [], 4), {}, "3 fields, 4 values"),
        ((1, 2), {"start": 3}, "'start' twice"),
        ((1,), {"start": 3, "notes": []}, "'start' twice"),
        ((1,), {"stop": 3}, "no field 'stop'"),
        ((1, 2), {"stop": 3}, "no field 'stop'"),
    ],
)
def test_other_values_than_fields_are_refused(values, named, told):
    with pytest.raises(TypeError, match=told):
        Extent(*values, **named)


def test_no_field_is_assigned_to_or_deleted():
    one = Extent(3)
    with pytest.raises(FrozenInstanceError, match="'start'"):
        one.start = 4
    with pytest.raises(FrozenInstanceError, match="'length'"):
        del one.length
    assert vars(one) == {"start": 3, "length": 1, "notes": []}


@immutable
class Checked:
    """One that is checked, and derives a field."""

    ranks: int
    nodes: int = 2
    per_node: int = field(init=False)

    def __post_init__(self) -> None:
        if self.ranks % self.nodes:
            raise ValueError("ranks differ")
        object.__setattr__(self, "per_node", self.ranks // self.nodes)


def test_what_is_given_is_checked_and_fields_are_derived():
    assert Checked(8).per_node == 4
    with pytest.raises(ValueError, match="differ"):
        Checked(ranks=9, nodes=2)
    with pytest.raises(TypeError, match="per_node"):
        Checked(8, 2, per_node=4)


@immutable
class Located:
    place: Path
    rank: int = 0


class Other(Extent):
    def __init__(self, text: str) -> None:
        super().__init__(*map(int, text.split("+")))


def test_its_signature_is_that_of_its_fields():
    assert str(inspect.signature(Checked)) == "(ranks: int, nodes: int = 2)"
    assert (
        str(inspect.signature(Named))
        == "(start: int, length: int = 1, notes: list[str] = Ellipsis, name: str = '')"
    )
    assert [*inspect.signature(Other).parameters] == ["text"]
    assert Other("3+4").length == 4


def test_its_signature_has_the_text_of_types_that_only_type_checkers_know():
    assert str(inspect.signature(Located)) == "(place: 'Path', rank: 'int' = 0)"


def test_it_shows_its_fields():
    assert repr(Extent(3)) == "Extent(start=3, length=1)"
    assert repr(Named(3, name="header")) == "header"


def test_each_equals_itself_alone():
    one = Extent(3)
    assert one == one
    assert one != Extent(3)
    assert len({one, Extent(3)}) == 2


def test_a_type_checker_refuses_to_assign_to_a_field(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    # Alone: of the package's other modules the type checker would read all.
    (tmp_path / "immutable.py").write_text(inspect.getsource(vani.immutable))
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    program = tmp_path / "program.py"
    program.write_text(
        "from immutable import immutable\n"
        "@immutable\n"
        "class Extent:\n"
        "    start: int\n"
        "one = Extent(3)\n"
        "one.start = 4\n"
        "Extent('here')\n"
    )
    said, _, _ = mypy.run(
        ["--cache-dir", str(tmp_path), "--config-file", str(tmp_path / "mypy.ini"), str(program)]
    )
    assigned, made, *_ = (line.partition("program.py:")[2] for line in said.splitlines())
    assert assigned.startswith("6: error:") and "read-only" in assigned
    assert made.startswith("7: error:") and "incompatible type" in made
