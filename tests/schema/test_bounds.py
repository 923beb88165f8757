"""Short documents that cost much, and endless ones, are refused in time, with the limit in the error."""

from __future__ import annotations

import time

import pytest

from vani.errors import DocumentError
from vani.schema.document import load, loads
from vani.schema.profile import Profile
from vani.schema.saved_profile import SavedProfile
from vani.schema.syntax import toml_reader
from vani.schema.syntax.yaml_text import parse

HEAD = "schema: vani.profile/4\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "- [\n" * 99 + "- 1\n" * 12_000_000, "has more than 12,000,000 lines and commas"),
        ("".join(f"k{i}: 1\n" for i in range(100_001)), "a mapping has more than 100,000 keys"),
    ],
    ids=["lines", "keys"],
)
def test_a_document_of_many_nodes_is_refused_by_their_number(peak_memory, text, said):
    # Formerly 20 MB of them took 90 s and 2.6 GiB.
    began = time.process_time()
    with peak_memory(below=600 << 20), pytest.raises(DocumentError, match=said):
        parse(text, "x.yaml")
    assert time.process_time() - began < 20


@pytest.mark.slow
def test_list_of_wrong_entries_reports_the_first(peak_memory):
    # Formerly twenty errors for each of them; 2,000,000 took 23 GiB.
    text = HEAD + "files:\n" + "- {a: 1}\n" * 200_000
    with peak_memory(below=300 << 20), pytest.raises(DocumentError, match="unknown key 'a' in files"):
        loads(text, Profile)


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 500_000) + " = 1\n",
        "[" + ".".join(['"a"'] * 250_000) + "]\n",
        "x = 1\n" + "a.\tb " * 33 + "= 1",
    ],
)
def test_a_toml_key_of_many_parts_is_refused(text):
    # Formerly seconds for 40 KB, and quadratic beyond.
    began = time.process_time()
    with pytest.raises(DocumentError, match=r"x.toml:\d: (a key has more than 32 parts|not TOML)"):
        toml_reader.parse(text, "x.toml")
    assert time.process_time() - began < 2


def test_toml_key_after_many_spaces_is_found_quickly():
    text = "a" + " " * 500_000 + ".b = 1\n"
    began = time.process_time()
    assert toml_reader.line_of("\n" + text, ("a", "b")) == 2
    assert time.process_time() - began < 2


@pytest.mark.slow
def test_endless_input_is_not_a_document(peak_memory):
    # Formerly read until the memory was full.
    with peak_memory(below=800 << 20):
        with pytest.raises(DocumentError, match="is longer than 512 MiB"):
            SavedProfile.read("/dev/zero")
        with pytest.raises(DocumentError, match="is longer than 512 MiB"):
            load("/dev/zero", Profile)
    # Formerly advised to write fewer files, even for jobs and snapshots, which have none.
    with pytest.raises(DocumentError, match="512 MiB; name a document of Vani"):
        load("/dev/zero", Profile)
