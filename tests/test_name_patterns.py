"""Patterns of names: every path is in exactly one, and the text describes its paths."""

from __future__ import annotations

import random
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.columns import texts
from vani.name_patterns import FOLDER_LEAST, NamePatterns


def counts(paths):
    patterns = NamePatterns(texts(paths))
    sizes = np.bincount(patterns.codes, minlength=patterns.count).tolist()
    return {patterns.name(code): sizes[code] for code in range(patterns.count)}


def hexadecimal(digits, seed=1):
    return random.Random(seed).randbytes(digits // 2).hex()


@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=20, unique=True), st.integers(1, 9))
def test_pattern_describes_its_paths(numbers, width):
    paths = {f"/s/x_{n:0{width}d}.h5" for n in numbers}
    (name,) = counts(sorted(paths))
    assert {name % number for number in numbers} == paths


def test_a_number_that_no_printf_writes_is_a_star():
    assert counts(["/s/a1", "/s/a01", "/s/a22"]) == {"/s/a*": 3}


def test_numbers_at_the_edges_of_neighbouring_paths_are_not_joined():
    assert counts(["1a1", "2a2", "3a40"]) == {"%da%d": 3}


def test_letters_beyond_ascii_and_line_ends_are_part_of_names():
    assert counts([f"/s/räume\n{i}" for i in range(10, 13)]) == {"/s/räume\n%d": 3}


@pytest.mark.parametrize("digits", [8, 16, 32, 64])
def test_digests_are_one_pattern(digits):
    assert counts([f"/s/{hexadecimal(digits, i)}.bin" for i in range(500)]) == {"/s/*.bin": 500}


def test_uuids_are_one_pattern():
    paths = [f"/s/part-{uuid.UUID(hex=hexadecimal(32, i))}.parquet" for i in range(500)]
    assert counts(paths) == {"/s/part-*.parquet": 500}


def test_folders_that_a_store_of_digests_makes_are_part_of_the_digest():
    names = [hexadecimal(40, i) for i in range(500)]
    assert counts([f"/s/objects/{name[:2]}/{name[2:]}" for name in names]) == {"/s/objects/*": 500}


def test_numbers_after_letters_are_not_digests():
    assert counts([f"/s/fed{i:08d}" for i in range(30)]) == {"/s/fed%08d": 30}
    assert counts([f"/s/{20240101 + i}.dat" for i in range(30)]) == {"/s/%d.dat": 30}


def test_an_installed_environment_is_one_pattern():
    paths = [f"/env/lib/python3.11/site-packages/p{i}/m{c}.py" for i in range(3) for c in "abc"]
    assert counts([*paths, "/env/data.csv"]) == {"/env/lib/python3.11/**": 9, "/env/data.csv": 1}


def test_separate_groups_have_separate_patterns():
    paths = texts([f"/s/a{i}" for i in range(6)])
    patterns = NamePatterns(paths, np.array([0, 1, 0, 1, 0, 1]))
    assert patterns.count == 2 and patterns.members(0).tolist() in ([0, 2, 4], [1, 3, 5])


def test_no_paths_have_no_patterns():
    assert NamePatterns(texts([])).count == 0


paths_of_any_kind = st.lists(st.text("ab01/._-é", min_size=1, max_size=12), unique=True, max_size=3 * FOLDER_LEAST)


@given(paths_of_any_kind)
def test_every_path_is_in_exactly_one_pattern(paths):
    patterns = NamePatterns(texts(paths))
    members = [place for code in range(patterns.count) for place in patterns.members(code).tolist()]
    assert sorted(members) == list(range(len(paths)))
    assert all(patterns.name(code) for code in range(patterns.count))
    assert all(len(patterns.members(code)) != 2 for code in range(patterns.count))
