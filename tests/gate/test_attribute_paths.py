"""Paths are parsed by the grammar, written as they are parsed, and refused with the position of the fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.gate.attribute import (
    AnyKey,
    Attribute,
    AttributeSyntaxError,
    Condition,
    Index,
    Key,
    UnknownAttributeError,
    Where,
    parse_attribute,
    resolve,
)
from vani.gate.matching import Names, matches
from vani.gate.tolerance import parse_quantity

names = st.text(max_size=12)
numbers = st.sampled_from(["1e5", "4 MiB", "10 s", "10 %", "0", "-3", "2.5 GB/s"]).map(parse_quantity)
conditions = st.builds(
    Condition,
    st.lists(names, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.one_of(names, numbers),
) | st.builds(
    Condition, st.lists(names, min_size=1, max_size=2).map(tuple), st.sampled_from(["~", "!~"]), names
)
selectors = st.one_of(
    st.just(Where(())),
    st.integers(0, 10**8).map(Index),
    st.lists(conditions, min_size=1, max_size=3).map(lambda some: Where(tuple(some))),
)
keys = st.one_of(names.map(Key), st.just(AnyKey()))
attributes = st.builds(
    lambda first, rest, aggregate: Attribute((first, *rest), aggregate),
    keys,
    st.lists(st.one_of(keys, selectors), max_size=6),
    st.sampled_from([None, "count", "sum", "mean", "min", "max"]),
)


@given(attributes)
def test_written_path_is_parsed_back(attribute):
    assert parse_attribute(str(attribute)) == attribute


@given(st.text(alphabet="ab.*[]()\"'~=<>!0 ,\\", max_size=30))
def test_any_text_is_a_path_or_a_syntax_error_with_a_place(text):
    try:
        attribute = parse_attribute(text)
    except AttributeSyntaxError as error:
        assert 0 <= error.at <= len(text)
        assert "\n" not in str(error)
    else:
        assert parse_attribute(str(attribute)) == attribute


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("workflow.io.ops.metadata", "workflow.io.ops.metadata"),
        (" files [ path ~ '*.h5' ] . size ", 'files[path~"*.h5"].size'),
        ("files[role == output].size", 'files[role="output"].size'),
        ('files[path~"*.h5", role=\'output\'].size', 'files[path~"*.h5", role="output"].size'),
        ('traces[0].functions."open64"', "traces[0].functions.open64"),
        ('apps[*].io.transfer_size.write.histogram."1M-4M"', 'apps[*].io.transfer_size.write.histogram."1M-4M"'),
        ("count( files[size >= 4 MiB] )", "count(files[size>=4 MiB])"),
        ("count", "count"),
    ],
)
def test_forms_of_a_path(text, canonical):
    assert str(parse_attribute(text)) == canonical


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected a key at character 1 of ``, found the end"),
        ("workflow.", "expected a key at character 10 of `workflow.`, found the end"),
        ("files[path~*.h5].size", "expected a text in quotes at character 12 of `files[path~*.h5].size`, found '*.h5].size'"),
        ("files[0", "expected `]` at character 8 of `files[0`, found the end"),
        ("files[-1].size", "expected `*`, a position from 0, or a condition such as `role=\"output\"` at character 7"),
        ('files[path="x].size', "expected a closing quote at character 20"),
        ("median(files[*].size)", "expected one of count, sum, mean, min, max before `(` at character 1"),
        ("files[size>4 furlong].size", "'furlong' is not a unit"),
        ("a b", "expected `.`, `[` or the end at character 3"),
        ("a" + ".a" * 60, "expected no more than 50 steps"),
    ],
)  # fmt: skip
def test_fault_is_reported_with_its_place(text, error):
    with pytest.raises(AttributeSyntaxError) as raised:
        parse_attribute(text)
    assert error in str(raised.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("workflow.io.opz.read", "unknown key 'opz' in workflow.io; did you mean 'ops'?"),
        ("wrokflow.apps", "unknown key 'wrokflow' at the top of a profile; did you mean 'workflow'?"),
        ('files[pth="x"].size', "unknown key 'pth' in files[]; did you mean 'path'?"),
        ("files.size", "files is a list: name one, such as files[*] or files[0], before `.size`"),
        ("workflow[0].apps", "workflow is not a list: leave out [0]"),
        ("workflow.apps.read", "workflow.apps is a single value: leave out `.read`"),
        ("workflow.io.ops", "workflow.io.ops is a group: name one of its attributes (read, write, metadata, sync), or write workflow.io.ops.*"),
        ("files[role=outptu].size", "files[].role is never 'outptu'; did you mean 'output'?"),
        ("files[size>=10 s].size", "files[].size is a size, and 10 s is a time"),
        ('files[size>"1"].size', "files[].size is a number: compare it with a number"),
        ("files[path<x].size", "files[].path is text, which has no order"),
        ("traces[complete=maybe].records", "traces[].complete is true or false"),
        ("sum(files[*].role)", "files.role is text: only numbers have a sum"),
        ("*.nothing", "none of the keys of a profile leads to nothing"),
        ("traces[0].functions", "traces[].functions is a table"),
    ],
)  # fmt: skip
def test_unknown_attribute_is_detected_in_any_profile(text, error):
    with pytest.raises(UnknownAttributeError) as raised:
        resolve(parse_attribute(text))
    assert error in str(raised.value)


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("files[*].access_pattern.random", ["files.io.access_pattern.random"]),
        ("files[ops.read>0].opens", ["files.opens"]),
        ("apps[*].io.bytes.*", ["apps.io.bytes.read", "apps.io.bytes.written", "apps.io.bytes.total"]),
        ("*.io.ops.read", ["workflow.io.ops.read", "dataset.io.ops.read", "excluded.io.ops.read"]),
        ("interfaces[*].bytes.total", ["interfaces.bytes.total"]),
        ("traces[*].functions.*", ["traces.functions.*"]),
        ("count(files)", ["files"]),
    ],
)
def test_patterns_match_the_expected_paths(text, leaves):
    assert [leaf.dotted for leaf in resolve(parse_attribute(text))[1]] == leaves


def test_omitted_io_is_accepted_and_written_with_defaults():
    attribute, _ = resolve(parse_attribute('files[bytes.read>0, path~"*"].access_pattern.random'))
    assert str(attribute) == 'files[io.bytes.read>0, path~"*"].io.access_pattern.random'


@pytest.mark.parametrize(
    ("pattern", "name", "holds"),
    [
        ("*.h5", "/scratch/a/b.h5", True),
        ("/scratch/*/b.h5", "/scratch/a/c/b.h5", True),
        ("*.h5", "x.H5", False),
        ("out_?.dat", "out_12.dat", False),
        ("out_[0-9].dat", "out_7.dat", True),
        ("out_[!0-9].dat", "out_7.dat", False),
        ("[[]x]", "[x]", True),
        ("a.b", "aXb", False),
    ],
)
def test_patterns_of_names(pattern, name, holds):
    _, (leaf,) = resolve(parse_attribute(f'files[path~"{pattern}"].opens'))
    tree = {"files": [{"path": name, "opens": 1}]}
    assert (len(list(matches(leaf, tree, Names(), ""))) == 1) is holds
