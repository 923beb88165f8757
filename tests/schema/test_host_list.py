"""Lists of hosts as Slurm writes them."""

import pytest

from vani.errors import InputError
from vani.schema.host_list import expand


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[01-03,7],login1", ["n01", "n02", "n03", "n7", "login1"]),
        ("r[0-1]n[1-2]", ["r0n1", "r0n2", "r1n1", "r1n2"]),
        ("n[1-2]-ib.x_y,m", ["n1-ib.x_y", "n2-ib.x_y", "m"]),
        ("n[099-101]", ["n099", "n100", "n101"]),
    ],
)
def test_a_list_is_written_out_in_its_order(text, hosts):
    assert expand(text) == hosts


@pytest.mark.parametrize(
    "text",
    ["", "n[", "n[]", "n[1-]", "n[3-1]", "n1,", ",n1", "n1,,n2", "n 1", "n1\n", "n[1;2]", "$(x)", "n]1["],
)
def test_what_is_no_list_is_refused(text):
    with pytest.raises(InputError, match="is no list of hosts"):
        expand(text)


@pytest.mark.parametrize(
    "text", ["n[1-1000001]", "n[1-9999999999]", "r[1-2000]n[1-2000]", "a[1-600000],b[1-600000]"]
)
def test_more_than_a_million_hosts_are_refused(text):
    with pytest.raises(InputError, match="more than 1,000,000"):
        expand(text)


def test_a_million_hosts_are_written_out():
    assert len(expand("n[1-1000000]")) == 1_000_000
