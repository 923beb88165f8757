"""Host lists in Slurm's notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.schema.host_list import HostList, first_twin


@pytest.mark.parametrize(
    ("text", "names", "short"),
    [
        ("n1", ["n1"], "n1"),
        ("login", ["login"], "login"),
        ("n[08-10],m", ["n08", "n09", "n10", "m"], "n[08-10],m"),
        ("n[8-10]", ["n8", "n9", "n10"], "n[8-10]"),
        ("n1,n2,n3", ["n1", "n2", "n3"], "n[1-3]"),
        ("r[1-2]n[01,03]", ["r1n01", "r1n03", "r2n01", "r2n03"], "r1n[01,03],r2n[01,03]"),
        ("r[1-2]c3", ["r1c3", "r2c3"], "r1c3,r2c3"),
        ("n1[2-3],n14", ["n12", "n13", "n14"], "n[12-14]"),
        ("n[099-101].x", ["n099.x", "n100.x", "n101.x"], "n[099-101].x"),
        ("n[5,1-2]-ib", ["n5-ib", "n1-ib", "n2-ib"], "n[5,1-2]-ib"),
    ],
)
def test_host_list_keeps_its_order_and_slurms_short_form(text, names, short):
    found = HostList.parse(text)
    assert list(found.names()) == names
    assert (len(found), str(found)) == (len(names), short)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "as Slurm writes it"),
        ("[", "as Slurm writes it"),
        ("n1,,n2", "as Slurm writes it"),
        ("n1,", "as Slurm writes it"),
        ("n[1-3", "as Slurm writes it"),
        ("n[3-1]", "ascend"),
        ("n[]", "letters, digits"),
        ("n[a-b]", "letters, digits"),
        ("n 1", "letters, digits"),
        ("n1\nn2", "letters, digits"),
        ("n'1", "letters, digits"),
        ("n[1-3],n2", "'n2' again"),
        ("n[08-12],n10", "'n10' again"),
        ("n[1-2]3,n13", "'n13' again"),
        ("n[1-99999999999]", "at most 10,000,000 hosts"),
        ("r[1-999]n[1-99999]", "at most 10,000,000 hosts"),
        ("r[1-99999]x[1-99999]y[1-2]", "at most 100,000 ranges"),
        ("n" + "9" * 30, "18 digits"),
    ],
)
def test_invalid_host_list_is_refused_with_a_reason(text, said):
    with pytest.raises(ValueError, match=said):
        HostList.parse(text)


@given(
    st.lists(st.tuples(st.sampled_from(["n", "r1n", "x"]), st.integers(0, 30), st.integers(1, 3)), min_size=1)
)
def test_shortened_host_list_expands_to_the_same_hosts(hosts):
    names = list(dict.fromkeys(f"{prefix}{n:0{width}d}" for prefix, n, width in hosts))
    found = HostList.parse(",".join(names))
    assert list(found.names()) == names
    assert list(HostList.parse(str(found)).names()) == names


@given(st.integers(0, 40), st.integers(0, 40))
def test_slice_of_a_list_is_a_slice_of_names(one, other):
    begin, end = sorted((one, other))
    found = HostList.parse("n[08-12],m,r[1-2]n[1-9],z[998-1010]")
    names = list(found.names())
    assert list(found.part(begin, end).names()) == names[begin:end]


def test_common_host_of_long_lists_is_found():
    lists = [HostList.parse("n[1-4000000]"), HostList.parse("n[5000000-6000000]"), HostList.parse("n[0-9]")]
    marked = [(one, number) for number, some in enumerate(lists) for one in some.ranges]
    assert first_twin(marked[:8]) is None
    assert first_twin(marked) == ("n1", 0, 2)
