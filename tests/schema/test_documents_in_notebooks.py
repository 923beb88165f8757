"""Documents as objects: a short repr, the first screen, and the commands as methods."""

from __future__ import annotations

import warnings

import pytest
from pydantic import BaseModel

import vani
from vani.errors import InputError
from vani.schema.profile import Profile

CM1 = "tests/golden/v3-cm1like-16r.yaml"


@pytest.fixture(scope="module")
def profile(request) -> Profile:
    return Profile.load(request.config.rootpath / CM1)


def test_advice_prints_one_line(profile):
    advice = profile.advise(system="generic-lustre")
    assert advice == vani.advise(profile, system="generic-lustre")
    assert repr(advice).startswith("<Advice for generic-lustre: ")
    assert len(repr(advice)) < 120
    assert "\n" not in str(advice)
    summary = advice.summary()
    assert all(line == line.rstrip() for line in summary.splitlines())
    assert "storage is not what" in summary
    assert "vani explain RULE" in summary
    assert advice._repr_html_().startswith("<pre><b>")


def test_a_profile_draws_itself(profile):
    assert profile.plot().kind == "layers"
    drawing = profile.plot("phases")
    assert drawing.kind == "phases"
    assert "application/vnd.vegalite.v6+json" in drawing._repr_mimebundle_()
    with pytest.raises(InputError, match="phases"):
        profile.plot("phase")


def test_names_for_completion_have_no_deprecated_methods(profile):
    names = dir(profile)
    assert {"advise", "plot", "frame", "model_dump", "summary"} <= set(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        members = {name: getattr(BaseModel, name, None) for name in names if not name.startswith("_")}
    assert not [name for name, member in members.items() if hasattr(member, "__deprecated__")]
