"""Documents that are short and cost much, or have no end: refused in time, with the limit in the error."""

from __future__ import annotations

import random
import time

import pytest

from vani.errors import DocumentError
from vani.schema import toml_text
from vani.schema.document import load, loads
from vani.schema.profile import Profile
from vani.schema.reading import Reading
from vani.schema.yaml import any_form, read
from vani.schema.yaml.read import line_of, parse
from vani.schema.yaml.write import yaml_text

HEAD = "schema: vani.profile/2\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "x: [" + "a," * 1_200_000 + "a]\n", "has more than 1,000,000 keys and values"),
        (HEAD + "- [\n" * 99 + "- 1\n" * 12_000_000, "has more than 12,000,000 lines and commas"),
        ("".join(f"k{i}: 1\n" for i in range(100_001)), "a mapping has more than 100,000 keys"),
    ],
    ids=["list", "lines", "keys"],
)
def test_a_document_of_many_nodes_is_refused_by_their_number(peak_memory, text, said):
    # Was: 20 MB of them took 90 s and 2.6 GiB.
    began = time.process_time()
    with peak_memory(below=600 << 20), pytest.raises(DocumentError, match=said):
        parse(text, "x.yaml")
    assert time.process_time() - began < 20


def test_a_list_of_entries_that_are_wrong_tells_the_first(peak_memory):
    # Was: twenty errors for each of them; 2,000,000 took 23 GiB.
    text = HEAD + "files:\n" + "- {a: 1}\n" * 200_000
    with peak_memory(below=300 << 20), pytest.raises(DocumentError, match="unknown key 'a' in files"):
        loads(text, Profile)


ODD = (
    "\U000e0001", "\U0001f600", "a\udcff", "\\udcff", "\\U000e0001", "\\\\U000e0001", "\\", '"q"', "\x07", "\x85",
    "\u202e", "a: b", "- c", "e\u0301", "\ud83d\ude00", "k\n2",
)  # fmt: skip


def test_whatever_vani_writes_it_reads_without_libyaml(monkeypatch):
    # Was: one file name of odd characters made a profile of 60 MB take 95 s and 3.5 GiB.
    chosen = random.Random(4)
    trees = []
    for _ in range(300):
        values = [
            chosen.choice(ODD),
            [chosen.choice(ODD)] * 9,
            {chosen.choice(ODD): {"z": chosen.choice(ODD) * 9}},
        ]
        trees.append({f"{chosen.choice(ODD)}{i}": chosen.choice(values) for i in range(5)})
    texts = [yaml_text(tree) for tree in trees]
    by_libyaml = [any_form._build(any_form.compose(text, ""), "") for text in texts]
    monkeypatch.setattr(any_form, "compose", None)
    assert [parse(text, "") for text in texts] == by_libyaml


def test_the_line_in_a_long_document_is_that_in_a_short_one(monkeypatch):
    tree = {
        "generator": {"name": "vani", "notes": ["x" * 90, "y" * 90, {"deep": "z" * 130, "deeper": 1}]},
        "files": [
            {"path": f"/d/{i}" * 9, "io": {"calls": [{"name": "n" * 70, "b": i}] * 2}} for i in range(5)
        ],
        'a "key" \\': {"k": "v" * 130, "l": []},
    }
    text = yaml_text(tree)

    def paths(node, path=()):
        yield from (path, (*path, "nothing"), (*path[:1], "label", *path[1:]), (*path, 99))
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            yield from paths(value, (*path, key))

    every = list(paths(tree))
    short = [line_of(text, path) for path in every]
    monkeypatch.setattr(read, "_SHORT", 0)
    monkeypatch.setattr(any_form, "compose", None)
    assert [line_of(text, path) for path in every] == short
    assert len(set(short)) > 20


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 500_000) + " = 1\n",
        "[" + ".".join(['"a"'] * 250_000) + "]\n",
        "x = 1\n" + "a.\tb " * 33 + "= 1",
    ],
)
def test_a_toml_key_of_many_parts_is_refused(text):
    # Was: seconds for 40 KB, and the square of that for more.
    began = time.process_time()
    with pytest.raises(DocumentError, match=r"x.toml:\d: (a key has more than 32 parts|not TOML)"):
        toml_text.parse(text, "x.toml")
    assert time.process_time() - began < 2


def test_a_toml_key_behind_many_spaces_is_found_at_once():
    text = "a" + " " * 500_000 + ".b = 1\n"
    began = time.process_time()
    assert toml_text.line_of("\n" + text, ("a", "b")) == 2
    assert time.process_time() - began < 2


def test_what_has_no_end_is_no_document(peak_memory):
    # Was: read until the memory was full.
    with peak_memory(below=800 << 20):
        with pytest.raises(DocumentError, match="is longer than 512 MiB"):
            Reading("/dev/zero").content()
        with pytest.raises(DocumentError, match="is longer than 512 MiB"):
            load("/dev/zero", Profile)
    # Was: write fewer files, also of jobs and snapshots, which have none.
    with pytest.raises(DocumentError, match="512 MiB; name a document of Vani"):
        load("/dev/zero", Profile)
