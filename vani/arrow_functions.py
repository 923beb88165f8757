"""The functions of Arrow that reading a small trace takes, named and called as in `pyarrow.compute`.

Loading `pyarrow.compute` writes the documentation of some 300 functions, a twentieth of what `vani profile` costs on a
small trace; the methods of arrays that do the same load it, too. What takes others loads it where it is needed.
"""

from __future__ import annotations

import pyarrow as pa

try:
    from pyarrow import _compute as arrow
except (
    ImportError
):  # Parts of pyarrow that it does not document may get other names; these have had theirs since 2020.
    import pyarrow.compute as arrow

__all__ = [
    "any_of",
    "cast",
    "dictionary_encode",
    "equal",
    "extract_regex",
    "if_else",
    "is_in",
    "is_valid",
    "list_element",
    "list_value_length",
    "match_substring",
    "match_substring_regex",
    "min_of",
    "replace_substring_regex",
    "split_pattern",
    "starts_with",
    "struct_field",
    "take",
]


def any_of(values: pa.Array) -> pa.Scalar:
    return arrow.call_function("any", [values])


def cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return arrow.call_function("cast", [values], arrow.CastOptions.safe(kind))


def dictionary_encode(values: pa.Array) -> pa.DictionaryArray:
    return arrow.call_function("dictionary_encode", [values])


def equal(values: pa.Array, other: pa.Array | pa.Scalar) -> pa.BooleanArray:
    return arrow.call_function("equal", [values, other])


def extract_regex(values: pa.Array, pattern: str) -> pa.StructArray:
    return arrow.call_function("extract_regex", [values], arrow.ExtractRegexOptions(pattern))


def if_else(which: pa.Array, yes: pa.Array | pa.Scalar, no: pa.Array | pa.Scalar) -> pa.Array:
    return arrow.call_function("if_else", [which, yes, no])


def is_in(values: pa.Array, value_set: pa.Array) -> pa.BooleanArray:
    return arrow.call_function("is_in", [values], arrow.SetLookupOptions(value_set, skip_nulls=False))


def is_valid(values: pa.Array) -> pa.BooleanArray:
    return arrow.call_function("is_valid", [values])


def list_element(values: pa.ListArray, index: pa.Scalar) -> pa.Array:
    return arrow.call_function("list_element", [values, index])


def list_value_length(values: pa.ListArray) -> pa.Array:
    return arrow.call_function("list_value_length", [values])


def match_substring(values: pa.Array, pattern: str) -> pa.BooleanArray:
    return arrow.call_function("match_substring", [values], arrow.MatchSubstringOptions(pattern))


def match_substring_regex(values: pa.Array, pattern: str) -> pa.BooleanArray:
    return arrow.call_function("match_substring_regex", [values], arrow.MatchSubstringOptions(pattern))


def min_of(values: pa.Array) -> pa.Scalar:
    return arrow.call_function("min", [values])


def replace_substring_regex(values: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return arrow.call_function(
        "replace_substring_regex", [values], arrow.ReplaceSubstringOptions(pattern, replacement)
    )


def split_pattern(values: pa.Array, pattern: str) -> pa.ListArray:
    return arrow.call_function("split_pattern", [values], arrow.SplitPatternOptions(pattern))


def starts_with(values: pa.Array, pattern: str) -> pa.BooleanArray:
    return arrow.call_function("starts_with", [values], arrow.MatchSubstringOptions(pattern))


def struct_field(values: pa.StructArray, name: str) -> pa.Array:
    return arrow.call_function("struct_field", [values], arrow.StructFieldOptions([name]))


def take(values: pa.Array, indices: pa.Array) -> pa.Array:
    return arrow.call_function("take", [values, indices])
