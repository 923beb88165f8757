"""JSON for a terminal: characters it would interpret are escaped, and a parser sees no difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vani.cli.main import main
from vani.schema.syntax.json_text import json_text
from vani.schema.syntax.yaml_text import parse, yaml_text

OBEYED = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]

texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from([chr(code) for code in OBEYED])))


@given(st.dictionaries(texts, st.one_of(texts, st.lists(texts), st.integers(), st.none())))
def test_written_text_is_parsed_back_and_safe_on_a_terminal(tree):
    text = json_text(tree)
    assert json.loads(text) == tree
    assert not {ord(c) for c in text} & ({*OBEYED} - {ord("\n")})
    text.encode()


def test_letters_of_all_languages_stay():
    assert json_text({"für": "日本 العربية"}) == '{\n  "für": "日本 العربية"\n}\n'


def test_non_utf_8_bytes_are_equal_to_yamls():
    tree = {"path": "a\udcff"}
    text = json_text(tree)
    assert text.encode().decode() == text
    assert json.loads(text) == parse(yaml_text(tree), "") == {"path": "a\\udcff"}


def test_values_that_json_cannot_represent_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        json_text({"a": float("nan")})


NAME = "/scratch/\x9b31m\u202egpj.\u2066x\u200f"


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A profile whose app and files have names with characters that a terminal interprets."""
    monkeypatch.chdir(tmp_path)
    golden = Path(__file__).parents[1] / "golden" / "v3-posix-mix-4r.yaml"
    tree = yaml.load(golden.read_text(), yaml.CSafeLoader)
    for app in tree["apps"]:
        app["name"] = NAME
    for file in tree["files"]:
        file["path"] = NAME + file["path"]
    return tree


@pytest.mark.parametrize(
    "command",
    [
        "advise p.yaml --format json",
        "check p.yaml --baseline q.yaml --format json",
        "diff p.yaml q.yaml --all --format json",
        "plot files p.yaml -o out.json",
        "explain --format json",
    ],
)
@pytest.mark.slow
def test_no_command_hands_them_on_to_a_terminal(hostile, tmp_path, capfd, command):
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(hostile))
    hostile["workflow"]["io"]["bytes"]["written"] += 1 << 40
    for file in hostile["files"]:
        file["io"]["bytes"]["written"] += 1 << 40
        file["io"]["time_s"]["total"] += 1000.0
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(hostile))
    with pytest.raises(SystemExit) as done:
        main([*command.split()])
    assert done.value.code in (0, 1)
    out = (tmp_path / "out.json").read_text() if "out.json" in command else capfd.readouterr().out
    assert not {ord(c) for c in out} & ({*OBEYED} - {ord("\n")})
    shown = json.dumps(json.loads(out), ensure_ascii=False)
    # Others show no such name, or show a replacement character.
    if command.startswith(("advise", "diff")):
        assert "\u202e" in shown
