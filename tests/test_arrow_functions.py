"""Functions of Arrow, called without `pyarrow.compute`: what they give is what it gives."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import vani.arrow_functions as own

TEXTS = pa.array(["/a/b", "12", None, "3*r+4", "", "??? x", "/a/b"])
LISTS = pa.array([["a", "b"], ["c", "d", "e"], ["f", "g"]])
TRUTHS = pa.array([True, None, False])
NUMBERS = pa.array([3, None, 1], pa.int64())
REGEX = r"^(?P<a>-?\d{1,18})\*r\+(?P<b>-?\d{1,18})$"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cast", (pa.array(["1", None, "-3"]), pa.int64())),
        ("cast", (TEXTS, pa.large_string())),
        ("dictionary_encode", (TEXTS,)),
        ("equal", (TEXTS, pa.scalar("12"))),
        ("extract_regex", (TEXTS, REGEX)),
        ("if_else", (TRUTHS, NUMBERS, pa.scalar(7, pa.int64()))),
        ("is_in", (TEXTS, pa.array(["", "12"]))),
        ("is_valid", (TEXTS,)),
        ("list_element", (LISTS, pa.scalar(1))),
        ("list_value_length", (LISTS,)),
        ("match_substring", (TEXTS, "/")),
        ("match_substring_regex", (TEXTS, r"^-?\d{1,18}$")),
        ("replace_substring_regex", (TEXTS, "/+[^/]*$", "")),
        ("split_pattern", (TEXTS, "/")),
        ("starts_with", (TEXTS, "/")),
        ("struct_field", (pc.extract_regex(TEXTS, REGEX), "b")),
        ("take", (TEXTS, pa.array([3, 0, None]))),
    ],
)
def test_a_function_gives_what_that_of_pyarrow_gives(name, arguments):
    found, wanted = getattr(own, name)(*arguments), getattr(pc, name)(*arguments)
    assert found.type == wanted.type and found.equals(wanted)


@pytest.mark.parametrize("values", [TRUTHS, TRUTHS.slice(1), TRUTHS.slice(3)])
def test_any_of_takes_nulls_as_pyarrow_does(values):
    assert own.any_of(values) == pc.any(values)


@pytest.mark.parametrize("values", [NUMBERS, NUMBERS.slice(1, 1), NUMBERS.slice(3)])
def test_the_least_of_no_number_is_null_as_in_pyarrow(values):
    assert own.min_of(values) == pc.min(values)


def test_a_number_that_does_not_fit_is_refused_as_in_pyarrow():
    for cast in (own.cast, pc.cast):
        with pytest.raises(pa.ArrowInvalid):
            cast(pa.array(["x"]), pa.int64())
