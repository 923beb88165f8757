"""No command parses a profile twice: the total parsed length does not exceed that of the given profiles."""

from __future__ import annotations

import pytest

import vani.schema.document as profile_tree
import vani.schema.syntax.yaml_text as yaml_or_json
from tests.long_profile import long_profile
from vani.cli.main import main
from vani.render.formats import PROFILE

FILES = 1200
"""More files than are judged, in more bytes than are read at once."""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    place = tmp_path_factory.mktemp("long")
    long = long_profile(FILES)
    for kind in PROFILE:
        text = PROFILE.render(kind, long)
        assert len(text) > 1_500_000
        (place / f"profile.{kind}").write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def parsed(monkeypatch):
    """Lengths of the parsed texts."""
    lengths = []

    def counted(parse):
        def count(text, where):
            lengths.append(len(text))
            return parse(text, where)

        return count

    for name in ("parse_yaml", "parse_json"):
        monkeypatch.setattr(yaml_or_json, name, counted(getattr(yaml_or_json, name)))
    return lengths


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*PROFILE])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (2, ["diff", "PROFILE", "PROFILE"]),
        (1, ["report", "PROFILE", "--format", "markdown", "-o", "-"]),
        (1, ["check", "PROFILE", "--allow-empty"]),
        (1, ["advise", "PROFILE", "-o", "-"]),
    ],
    ids=["diff", "report", "check", "advise"],
)
def test_a_long_profile_is_parsed_once(profiles, parsed, capfd, given, words, kind):
    place = profiles / f"profile.{kind}"
    with pytest.raises(SystemExit) as end:
        main([str(place) if word == "PROFILE" else word for word in words])
    assert end.value.code == 0, capfd.readouterr().err
    assert parsed and sum(parsed) <= given * place.stat().st_size


@pytest.mark.parametrize("command", ["diff", "check"])
def test_profile_too_long_to_read_is_reported_with_its_cause(
    profiles, capfd, monkeypatch, command
):
    # Was: name a profile or a trace, of what is one.
    monkeypatch.setattr(profile_tree, "MAX_BYTES", 1 << 20)
    place = profiles / "profile.yaml"
    with pytest.raises(SystemExit) as end:
        main([command, str(place), *([str(place)] if command == "diff" else [])])
    out, err = capfd.readouterr()
    assert (end.value.code, out) == (2, "")
    assert err == (
        f"vani: {place}: is longer than 1 MiB; name a profile or a trace; "
        "a profile is shorter with fewer files (`--files N`)\n"
    )
