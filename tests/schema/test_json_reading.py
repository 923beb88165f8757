"""Profiles in JSON read the same as in YAML, and are refused for the same reasons, with line and column."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path, PurePath

import numpy as np
import pytest

from vani.errors import DocumentError, InputError
from vani.render.formats import PROFILE
from vani.schema.profile import Profile
from vani.schema.syntax.yaml_text import MAX_KEYS, line_of, parse, parse_json

ROOT = Path(__file__).parents[2]
GOLDEN = sorted((ROOT / "tests/golden").glob("v3-*.yaml"))
DEEP = "[" * 101 + "]" * 101


@pytest.fixture(scope="module")
def profile():
    return Profile.load(ROOT / "tests/golden/v3-cm1like-16r.yaml")


def refused(text, where="p.json"):
    with pytest.raises(DocumentError) as error:
        parse(text, where)
    return str(error.value)


@pytest.mark.parametrize("path", GOLDEN[::6], ids=lambda path: path.stem)
def test_json_profile_has_the_same_content_as_yaml(path, tmp_path):
    profile = Profile.load(path)
    place = tmp_path / "profile.json"
    place.write_text(PROFILE.render("json", profile), encoding="utf-8")
    assert Profile.load(place) == profile
    assert json.loads(place.read_text()) == json.loads(json.dumps(parse(path.read_text(), "x")))


def test_numbers_of_a_computed_profile_are_equal_in_json_and_yaml(profile):
    odd = [1 / 3, 1.7e9 + 0.123456789, 1e-7 / 3, 0.1 + 0.2]
    computed = profile.model_copy(update={"extensions": {"own": {"values": odd, "pair": (2 / 3, [1 / 7])}}})
    assert json.loads(PROFILE.render("json", computed)) == parse(PROFILE.render("yaml", computed), "x")


@pytest.mark.slow
def test_numbers_of_many_files_are_rounded_as_in_yaml(profile):
    chance = random.Random(1)
    numbers = [10.0**power * sign for power in range(-30, 31) for sign in (1, -1)] + [0.0, -0.0]
    numbers += [chance.uniform(0, 1) * 10.0 ** chance.randint(-30, 20) for _ in range(400)]
    # Halves of the last digit kept, of which some are exact floats and others their neighbours.
    numbers += [(chance.randrange(10**9) + 0.5) / 10.0 ** chance.randint(0, 20) for _ in range(400)]
    numbers += [math.nextafter(number, math.inf) for number in numbers] + [1e8 - 0.1, 1e8 + 0.5, 1e8 + 1.5]
    first = profile.files[0]
    files = [first.model_copy(update={"first_s": number, "stride": None}) for number in numbers]
    many = profile.model_copy(update={"files": files})
    found = [file["first_s"] for file in json.loads(PROFILE.render("json", many))["files"]]
    assert found == [file["first_s"] for file in parse(PROFILE.render("yaml", many), "x")["files"]]


def test_plug_in_results_are_equal_in_json_and_yaml(profile):
    class Colour(Enum):
        RED = "red"

    own = {"path": PurePath("/a"), "kind": Colour.RED, "when": datetime(2026, 1, 2, tzinfo=UTC), "none": None,
           "set": {1}, "mixed": [1, 2 / 3, "a", None, {"b": 1 / 3}], "float": np.float64(1 / 3), "keys": {2: 2, True: 3, 0.5: 4}, "empty": [{}, []]}  # fmt: skip
    given = profile.model_copy(update={"extensions": {"own": own}})
    wanted = parse(PROFILE.render("yaml", given), "x")
    wanted["extensions"]["own"]["keys"] = {"2": 2, "true": 3, "0.5": 4}
    assert json.loads(PROFILE.render("json", given)) == wanted


def test_writing_does_not_change_the_profile(profile):
    odd = profile.model_copy(update={"files": [profile.files[0].model_copy(update={"last_s": 1 / 3})]})
    before = odd.model_dump()
    PROFILE.render("json", odd)
    assert odd.model_dump() == before and odd.files[0].last_s == 1 / 3


def test_profile_is_saved_in_the_format_of_its_name(profile, tmp_path):
    for name in ("p.json", "p.JSON", "p.yaml", "p"):
        profile.save(tmp_path / name)
        text = (tmp_path / name).read_text()
        assert text == PROFILE.render("json" if "." in name and name[2] in "jJ" else "yaml", profile)
        assert Profile.load(tmp_path / name) == profile


def test_non_utf_8_path_is_equal_in_json_and_yaml(profile):
    first = profile.files[0].model_copy(update={"path": "/scratch/\udcff\x1b\u202e\U0001f600\\ud800"})
    odd = profile.model_copy(update={"files": [first, *profile.files[1:]]})
    by_json = parse(PROFILE.render("json", odd), "p.json")
    by_yaml = parse(PROFILE.render("yaml", odd), "p.yaml")
    assert by_json["files"][0]["path"] == by_yaml["files"][0]["path"]


def test_number_that_is_not_finite_is_not_written(profile):
    with pytest.raises(InputError, match="not finite; JSON has none"):
        PROFILE.render("json", profile.model_copy(update={"extensions": {"own": float("nan")}}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b" 2}', "p.json:2:6: not JSON: expected `:`"),
        ('{"a": [1, 2', "p.json:1:11: not JSON: EOF while parsing a list"),
        ('{"a": 1} x', "p.json:1:10: not JSON: trailing characters"),
        ('{"a": "NaN",\n  "b": NaN}', "p.json:2:8: not JSON: expected value"),
        ('{"a": [-Infinity]}', "p.json:1:9: not JSON: invalid number"),
        ('{"a": {"b": 1}, "c": "b",\n "a": 2}', "p.json:2: key 'a' appears twice"),
        ('{"a": ' + DEEP + "}", "p.json: is nested too deeply"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "p.json: is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "p.json:1:4308: not JSON: number out of range"),
        ('{"a": 1,\n "b": "\\ud800"}', "p.json:2:14: not JSON: unexpected end of hex escape"),
    ],
    ids=["no colon", "cut", "more", "NaN", "infinity", "twice", "deep", "very deep", "digits", "half"],
)
def test_invalid_json_is_refused_in_one_line_with_its_place(text, message):
    said = refused(text)
    assert said.startswith(message) and "\n" not in said


@pytest.mark.slow
def test_too_many_keys_are_refused_early():
    many = json.dumps({"a": {str(i): i for i in range(MAX_KEYS + 1)}})
    assert "a mapping has more than 100,000 keys" in refused(many)
    assert "has more than 12,000,000 commas and brackets" in refused('{"a": [' + "1," * 12_000_001 + "1]}")


@pytest.mark.parametrize("word", ["NaN", "-Infinity", DEEP, "9" * 5000, '"\\ud800"', "1 2"])
def test_long_and_short_texts_are_refused_alike(word):
    short = f'{{"a": {word}, "b": "%s"}}'
    assert refused(short % ("x" * (1 << 20))) == refused(short % "x")


def test_characters_beyond_16_bits_are_not_halved():
    assert parse_json('{"a": "\\ud83d\\ude00", "b": "\\\\ud800"}', "x") == {"a": "\U0001f600", "b": "\\ud800"}


@pytest.mark.parametrize(
    "text", ['{"schema": vani.policy/1, "a": 1}', '{"a": 1,}', '{"a": 1} # so', "{a: 1}"]
)
def test_a_mapping_of_yaml_in_braces_is_still_read(text):
    assert parse(text, "policy.yaml")["a"] == 1


def test_file_named_json_is_not_read_as_yaml():
    assert refused('{"a": 1 b: 2}').startswith("p.json:1:9: not JSON")


def test_line_of_a_value_is_the_line_of_its_key():
    text = '{\n "a": [\n  1,\n  {"b":\n 2}],\n "c": {}\n}\n'
    for path, line in [(("a",), 2), (("a", 1), 4), (("a", 1, "b"), 4), (("c", "d"), 6), (("c",), 6), ((), 1)]:
        assert line_of(text, path) == line


def test_wrong_value_is_reported_with_its_line(profile, tmp_path):
    tree = json.loads(PROFILE.render("json", profile))
    tree["files"][0]["size"] = "much"
    place = tmp_path / "p.json"
    place.write_text(json.dumps(tree, indent=1))
    line = 1 + next(i for i, one in enumerate(place.read_text().splitlines()) if '"size": "much"' in one)
    with pytest.raises(DocumentError, match=rf"p.json:{line}: files\[0\].size is 'much'"):
        Profile.load(place)
