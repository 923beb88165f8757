"""docs/darshan.md agrees with the code on which counter gives which attribute, and how exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from darshan_records import components, log, profiled

import vani
from vani.schema.profile import Profile

REPOSITORY = Path(__file__).parents[1]
LOGS = REPOSITORY / "tests" / "data" / "darshan"
_ROW = re.compile(r"^\| (`.+?) \| (.*?) ?\| (exact|bounded|null) \|$", re.MULTILINE)
_COUNTER = re.compile(r"\b(?:POSIX|STDIO|LUSTRE_COMP)_[A-Z0-9_]+\b")
ROWS = [
    (attribute, counters, kind)
    for attributes, counters, kind in _ROW.findall((REPOSITORY / "docs" / "darshan.md").read_text())
    for attribute in re.findall(r"`([^`]+)`", attributes)
]



@pytest.fixture(scope="module")
def profiles() -> list[Profile]:
    found = [vani.profile(path, files=None) for path in sorted(LOGS.glob("*.darshan"))]
    # None of the logs next to the tests was on Lustre.
    layout = components((4, 1 << 20, 0, -1))
    return [*found, profiled(log(layouts=layout, mounts=[("/lustre", "lustre")]))]


def values(profile: Profile, attribute: str) -> Iterator[Any]:
    """All values of an attribute, in each row of a table; `io` is the workflow's."""
    tree: list[Any] = [profile.workflow if attribute.startswith("io.") else profile]
    for step in attribute.split("."):
        tree = [
            getattr(one, step)
            for node in tree
            if node is not None
            for one in (node if isinstance(node, list) else [node])
        ]
    yield from tree


def test_the_page_has_a_table():
    assert len(ROWS) > 50


@pytest.mark.parametrize(("attribute", "counters", "kind"), ROWS, ids=[row[0] for row in ROWS])
def test_exactness_of_attributes_matches_the_page(profiles, attribute, counters, kind):
    above = attribute.rpartition(".")[0]
    why = [p.provenance.get(attribute) or p.provenance.get(above, "") for p in profiles]
    found = [value for p in profiles for value in values(p, attribute)]
    assert found, "no log has it"
    if kind == "null":
        assert None in found and any(why)
    elif kind == "bounded":
        assert any(value is not None for value in found)
        assert any(why)
    else:
        assert all(value is not None for value in found)
        assert not any("bound" in one for one in why)


def test_every_counter_on_the_page_exists_in_darshan():
    from darshan.backend import cffi_backend  # noqa: PLC0415

    known = {
        name
        for of in ("POSIX", "STDIO")
        for name in (*cffi_backend.counter_names(of), *cffi_backend.fcounter_names(of))
    } | set(cffi_backend.counter_names("LUSTRE_COMP"))
    assert {name for _, counters, _ in ROWS for name in _COUNTER.findall(counters)} <= known
