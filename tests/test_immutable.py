"""Classes whose fields never change."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import field, fields, replace

import pytest

import vani.immutable
from vani.immutable import immutable


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
    with pytest.raises(TypeError):
        Extent()


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
