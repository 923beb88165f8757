"""Documents are read back unchanged, and a fault gives one line that says where."""

from __future__ import annotations

import enum
import gc
import json
import math
import os
from pathlib import Path, PurePosixPath
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from vani.errors import DocumentError, InputError
from vani.schema import document
from vani.schema.document import (
    document_model,
    document_modules,
    dump,
    dumps,
    json_schema,
    load,
    loads,
    schema_name,
)
from vani.schema.model import Model
from vani.schema.syntax.yaml_text import WIDTH, parse, yaml_text


class Layout(Model):
    stripe_count: int | None = Field(None, ge=1)
    stripe_size: int | None = Field(None, ge=0)


class Storage(Model):
    shared: Layout = Layout()
    kind: Literal["lustre", "gpfs"] = "lustre"
    dirs: tuple[str, ...] = ()
    figures: dict[str, float | None] = Field(default_factory=dict)
    either: Layout | str | None = None


class Paper(Model):
    schema_: Literal["vani.profile/1"] = Field("vani.profile/1", alias="schema")
    storage: Storage = Storage()
    files: list[Layout] = Field(default_factory=list)
    note: str | None = None
    is_shared: bool = False
    extra: dict[str, object] = Field(default_factory=dict)


def wrong(text: str) -> str:
    with pytest.raises(DocumentError) as raised:
        loads(text, Paper, where="profile.yaml")
    assert "\n" not in str(raised.value)
    return str(raised.value)


HEAD = "schema: vani.profile/1\n"

# Text that parsers of YAML 1.1 or 1.2 tend to interpret as another type.
TRAPS = [
    "", " ", "~", "null", "Null", "yes", "No", "on", "y", "n", "true", "TRUE", "2024-01-01", "12:30:00",
    "1e3", "1_000", "0x1f", "0o17", "017", ".5", "1.", ".inf", "-.inf", ".nan", "=", "<<", "-", "- a",
    "? a", "a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'a'", "\"a\"", "a,b",
    "[a", "{a", "a]", "a}", " a", "a ", "a\nb", "a\tb", "a\r", "\0", "\u007f", "\u0085", "\u2028",
    "\ufeff", "\ufffe", "\U0001f600", "\u00e9", "---", "...", "--- a", "\\", "\\n", "\\u0041", "e-05",
    "1M-4M", "a" * 3000, "a:", ":a", "a :b", "a  b", "inf", "nan", "NaN", "Infinity",
]  # fmt: skip

text = st.one_of(
    st.sampled_from(TRAPS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text("ab:-#,[]{} '\"\\\n1.e/", max_size=8),
)
floats = st.floats().map(
    lambda x: float(f"{x:.9g}") if abs(x) < 1e8 or not math.isfinite(x) else float(round(x))
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), floats, text)
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(text, inner, max_size=5)),
    max_leaves=30,
)
mappings = st.dictionaries(text, trees, max_size=6)


def same(one: object, two: object) -> bool:
    """Equal in value and type at every level; NaN equals itself."""
    if isinstance(one, dict) and isinstance(two, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return type(one) is type(two) and one == two


@given(mappings)
def test_tree_survives_vani_and_yaml(tree):
    written = yaml_text(tree)
    assert same(parse(written, "x"), tree)
    assert same(yaml.load(written, yaml.CSafeLoader), tree)
    assert yaml_text(tree) == written


papers = st.builds(
    Paper,
    storage=st.builds(
        Storage,
        shared=st.builds(
            Layout, stripe_count=st.none() | st.integers(1, 1 << 62), stripe_size=st.none() | st.integers(0)
        ),
        dirs=st.lists(text, max_size=4).map(tuple),
        figures=st.dictionaries(text, st.none() | floats.filter(math.isfinite), max_size=4),
        either=st.none() | text | st.builds(Layout),
    ),
    files=st.lists(st.builds(Layout), max_size=3),
    note=st.none() | text,
    is_shared=st.booleans(),
    extra=st.dictionaries(text, trees.filter(lambda tree: "nan" not in repr(tree)), max_size=3),
)


@given(papers)
def test_every_document_is_read_back_the_same(paper):
    assert loads(dumps(paper), Paper) == paper
    assert yaml.load(dumps(paper), yaml.CSafeLoader) == json.loads(json.dumps(paper.model_dump(by_alias=True)))


@given(st.floats(allow_nan=False))
def test_written_float_is_stable_when_rewritten(value):
    once = dumps(Paper(extra={"x": value}))
    assert dumps(loads(once, Paper)) == once


def test_floats_keep_nine_digits_and_all_of_their_whole_part():
    tree = {"a": 1 / 3, "b": 2.0, "c": 1e-7, "d": 1e22, "e": 12, "f": 1700000123456.75}
    assert yaml_text(tree) == "a: 0.333333333\nb: 2.0\nc: 1.0e-07\nd: 1.0e+22\ne: 12\nf: 1700000123457.0\n"


def test_only_small_collections_are_on_one_line():
    tree = {
        "bytes": {"read": 0, "written": 134217728, "total": 134217728},
        "empty": {},
        "none": [],
        "long": {f"key_{i}": i for i in range(30)},
        "list": [{"a": 1}, {"b": ["x" * 130]}],
    }
    lines = yaml_text(tree).splitlines()
    assert lines[0] == "bytes: {read: 0, written: 134217728, total: 134217728}"
    assert lines[1:5] == ["empty: {}", "none: []", "long:", "  key_0: 0"]
    assert lines[-4:] == ["list:", "- {a: 1}", "- b:", f"  - {'x' * 130}"]
    assert max(map(len, lines)) <= 134


@given(st.integers(60, 140))
def test_no_line_of_small_values_is_longer_than_the_width(length):
    for tree in (
        {"k": {"a": "x" * length}},
        {"k": ["x" * (length - 50), 1.5, [None] * 10]},
        {"k": [{"a": "x" * length}]},
    ):
        flow = [line for line in yaml_text(tree).splitlines() if line.endswith(("]", "}"))]
        assert all(len(line) <= WIDTH for line in flow)


def test_non_unicode_text_is_written_as_escapes():
    written = dumps(Paper(note="/p/caf\udce9"))
    assert loads(written, Paper).note == "/p/caf\\udce9"


def test_enumerations_tuples_and_paths_are_written_as_plain_values():
    class Kind(enum.StrEnum):
        READ = "read"

    tree = {"kind": Kind.READ, "path": PurePosixPath("/a"), "pair": (1, 2), Kind.READ: True}
    assert yaml_text(tree) == "kind: read\npath: /a\npair: [1, 2]\nread: true\n"


def test_values_that_no_document_can_contain_are_refused():
    with pytest.raises(TypeError, match="cannot contain complex"):
        yaml_text({"a": 1j})


def test_file_is_written_completely_and_read_back(tmp_path):
    path = tmp_path / "profile.yaml"
    dump(Paper(note="one"), path)
    dump(Paper(note="two"), path)
    assert load(path, Paper) == Paper(note="two")
    assert [p.name for p in tmp_path.iterdir()] == ["profile.yaml"]
    with pytest.raises(InputError):
        dump(Paper(), tmp_path / "missing" / "x.yaml")


def test_misspelt_key_is_named_with_its_line_and_correction():
    found = wrong(HEAD + "\n" * 9 + "storage:\n  shared: {stripe_cuont: 4}\n")
    assert (
        found == "profile.yaml:12: unknown key 'stripe_cuont' in storage.shared; did you mean 'stripe_count'?"
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("storag: {}\n", "profile.yaml:2: unknown key 'storag' at the top; did you mean 'storage'?"),
        (
            "zzz: 1\n",
            "profile.yaml:2: unknown key 'zzz' at the top; "
            "known keys are extra, files, is_shared, note, schema, storage",
        ),
        (
            "files:\n- stripe_count: 1\n- stripe_count: 0\n",
            "profile.yaml:4: files[1].stripe_count is 0; accepted: 1 or more or null",
        ),
        (
            "files:\n- {stripe_size: many}\n",
            "profile.yaml:3: files[0].stripe_size is 'many'; accepted: an integer or null",
        ),
        ("files: {a: 1}\n", "profile.yaml:2: files is a mapping; accepted: a list"),
        ("files: [7]\n", "profile.yaml:2: files[0] is 7; accepted: a mapping"),
        ("note: 2.5\n", "profile.yaml:2: note is 2.5; accepted: text (put it in quotes) or null"),
        ("storage:\n  kind: zfs\n", "profile.yaml:3: storage.kind is 'zfs'; accepted: 'lustre' or 'gpfs'"),
        (
            "storage:\n  figures:\n    a: 1\n    b: fast\n",
            "profile.yaml:5: storage.figures.b is 'fast'; accepted: a number or null",
        ),
        ("storage: null\n", "profile.yaml:2: storage is null; accepted: a mapping"),
        ("is_shared: 12\n", "profile.yaml:2: is_shared is 12; accepted: true or false"),
        (
            "note: [1]\nfilez: 1\n",
            "profile.yaml:3: unknown key 'filez' at the top; did you mean 'files'? (and 1 more)",
        ),
        (
            "storage: {either: {stripe_count: x}}\n",
            "profile.yaml:2: storage.either.stripe_count is 'x'; accepted: an integer or null (and 1 more)",
        ),
        (
            f"is_shared: {'x' * 100}\n",
            f"profile.yaml:2: is_shared is '{'x' * 29}...{'x' * 6}'; accepted: true or false",
        ),
        ("note: a\nnote: b\n", "profile.yaml:3: key 'note' appears twice; keep one of them"),
        (
            "storage: {kind: gpfs, kind: gpfs}\n",
            "profile.yaml:2: key 'kind' appears twice; keep one of them",
        ),
        ("note: &x a\nextra: {b: *x}\n", "profile.yaml:3: alias *x is not accepted; write the value out"),
        ("extra: {1: 2, [3]: 4}\n", "profile.yaml:2: a key must be text"),
        (
            "note: !!python/name:os.system x\n",
            "profile.yaml:2: tag 'tag:yaml.org,2002:python/name:os.system' is not accepted; "
            "write the value without it",
        ),
        (
            "<<: {note: a}\n",
            "profile.yaml:2: unknown key '<<' at the top; "
            "known keys are extra, files, is_shared, note, schema, storage",
        ),
        ("note: 'a\n", "profile.yaml:3: not YAML: found unexpected end of stream"),
        ("---\na: 1\n", "profile.yaml:2: not YAML: but found another document"),
        ("note:\n\tx: 1\n", "profile.yaml:3: not YAML: found character that cannot start any token"),
    ],
)
def test_fault_is_named_with_its_line_and_the_accepted_values(body, expected):
    assert wrong(HEAD + body) == expected


def test_a_missing_key_is_named():
    class Needs(Model):
        schema_: Literal["vani.job/1"] = Field("vani.job/1", alias="schema")
        files: list[dict[str, Layout]] = Field(default_factory=list)
        nodes: int

    with pytest.raises(DocumentError, match=r"^document:1: key 'nodes' is missing at the top; add it$"):
        loads("schema: vani.job/1\n", Needs)
    with pytest.raises(
        DocumentError, match=r"unknown key 'node' at the top; did you mean 'nodes'\? \(and 1 more\)"
    ):
        loads("schema: vani.job/1\nnode: 1\n", Needs)
    with pytest.raises(
        DocumentError, match=r":2: unknown key 'stripe_siez' in files\[0\]\.a; did you mean 'stripe_size'"
    ):
        loads("schema: vani.job/1\nfiles: [{a: {stripe_siez: 1}}]\nnodes: 1", Needs)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "profile.yaml: is empty; start it with `schema: vani.profile/1`"),
        ("# only words\n", "profile.yaml: is empty; start it with `schema: vani.profile/1`"),
        (
            "[1, 2]",
            "profile.yaml: contains a list, not a mapping of keys; start it with `schema: vani.profile/1`",
        ),
        (
            "words",
            "profile.yaml: contains only 'words', not a mapping of keys; start it with `schema: vani.profile/1`",
        ),
        ("note: a\n", "profile.yaml: has no `schema:`; start it with `schema: vani.profile/1`"),
        (
            "note: a\nschema: vani.advice/1\n",
            "profile.yaml:2: schema is 'vani.advice/1', advice, for `vani apply ADVICE` and `vani report PROFILE --advice ADVICE`; known here is vani.profile/1",
        ),
        ("schema: 1\n", "profile.yaml:1: schema is 1; known here is vani.profile/1"),
        (
            "schema: vani.profile/2\n",
            "profile.yaml:1: schema vani.profile/2 is newer than this Vani; known: vani.profile/1; "
            "update Vani",
        ),
    ],
)
def test_a_document_of_another_kind_is_refused(content, expected):
    assert wrong(content) == expected


def test_deep_nesting_and_alias_bombs_are_refused_quickly():
    assert "nested too deeply" in wrong(HEAD + "extra: " + "[" * 900 + "]" * 900)
    assert "nested too deeply" in wrong(HEAD + "extra: " + "[" * 100_000)
    for depth in 200, 1200:
        levels = "".join(" " * i + "a:\n" for i in range(1, depth))
        assert "nested too deeply" in wrong(HEAD + "extra:\n" + levels)
    bomb = (
        HEAD
        + "a0: &a0 x\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    )
    assert "alias *a0 is not accepted" in wrong(bomb)
    assert "alias" in wrong(HEAD + "extra: &x {y: *x}\n")


def test_stars_and_ampersands_in_text_are_not_aliases():
    assert loads(HEAD + "note: 'a *b &c'\n", Paper).note == "a *b &c"


def test_non_documents_are_refused(tmp_path):
    cases = {
        "latin.yaml": (
            HEAD.encode() + b"note: caf\xe9\n",
            ":2: is not UTF-8 text (byte 0xe9); save it as UTF-8",
        ),
        "utf16.yaml": (HEAD.encode("utf-16"), ": is binary, not text"),
        "elf.yaml": (b"\x7fELF\0\0", ": is binary, not text"),
        "control.yaml": (b"note: \x01\n", ": not YAML: control characters are not allowed"),
        "empty.yaml": (b"", ": is empty; start it with `schema: vani.profile/1`"),
    }
    for name, (content, expected) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DocumentError) as raised:
            load(path, Paper)
        assert str(raised.value) == f"{path}{expected}"
    for path, expected in (
        (tmp_path, "is a directory"),
        (tmp_path / "no.yaml", "no such file"),
        (tmp_path / "elf.yaml" / "x", "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ):
        with pytest.raises(DocumentError, match=expected):
            load(path, Paper)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text(HEAD)
    path.chmod(0)
    with pytest.raises(DocumentError, match="cannot be read"):
        load(path, Paper)


def test_windows_text_is_read(tmp_path):
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfschema: vani.profile/1\r\nnote: a\r\n")
    assert load(path, Paper).note == "a"


def test_too_long_document_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "MAX_BYTES", 10)
    path = tmp_path / "long.yaml"
    path.write_text(HEAD)
    with pytest.raises(DocumentError, match="is longer than"):
        load(path, Paper)


@pytest.mark.parametrize("value", ["yes", "2024-01-01", "12:30", "1_000"])
def test_words_and_dates_without_quotes_stay_text(value):
    assert loads(HEAD + f"note: {value}\n", Paper).note == value


def test_numbers_are_read_as_yaml_1_2_has_them():
    tree = parse("a: 0x10\nb: 0o10\nc: 1e3\nd: -.5\ne: +7\nf: 010\ng: .INF\nh: '7'\n", "x")
    assert tree == {"a": 16, "b": 8, "c": 1000.0, "d": -0.5, "e": 7, "f": 10, "g": math.inf, "h": "7"}


def test_garbage_collector_state_is_restored():
    assert gc.isenabled()
    loads(HEAD, Paper)
    assert gc.isenabled()
    wrong("[")
    assert gc.isenabled()


@pytest.mark.parametrize("name", document_modules())
def test_committed_json_schema_matches_the_model(name):
    model = document_model(name)
    version = schema_name(model).rpartition("/")[2]
    path = Path(document.__file__).parent / "json" / f"{name}-{version}.json"
    assert json.loads(path.read_text()) == json_schema(model), "run `python -m vani.schema.document`"


@pytest.mark.parametrize("name", ["system", "job"])
def test_every_field_of_a_document_is_described(name):
    described = json_schema(document_model(name))
    bare = [
        f"{owner}.{field}"
        for owner, part in [(name, described), *described.get("$defs", {}).items()]
        for field, about in part.get("properties", {}).items()
        if not about.get("description") and field != "schema"
    ]
    assert not bare
