"""The functions of Arrow that reading a small trace takes, named and called as in `pyarrow.compute`.

Loading `pyarrow.compute` writes the documentation of some 300 functions, a twentieth of what `vani profile` costs on a
small trace; the methods of arrays that do the same load it, too. What takes others loads it where it is needed.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow._compute import (
    CastOptions,
    ExtractRegexOptions,
    MatchSubstringOptions,
    ReplaceSubstringOptions,
    SetLookupOptions,
    SplitPatternOptions,
    StructFieldOptions,
    call_function,
)

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
    return call_function("any", [values])


def cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return call_function("cast", [values], CastOptions.safe(kind))


def dictionary_encode(values: pa.Array) -> pa.DictionaryArray:
    return call_function("dictionary_encode", [values])


def equal(values: pa.Array, other: pa.Array | pa.Scalar) -> pa.BooleanArray:
    return call_function("equal", [values, other])


def extract_regex(values: pa.Array, pattern: str) -> pa.StructArray:
    return call_function("extract_regex", [values], ExtractRegexOptions(pattern))


def if_else(which: pa.Array, yes: pa.Array | pa.Scalar, no: pa.Array | pa.Scalar) -> pa.Array:
    return call_function("if_else", [which, yes, no])


def is_in(values: pa.Array, value_set: pa.Array) -> pa.BooleanArray:
    return call_function("is_in", [values], SetLookupOptions(value_set, skip_nulls=False))


def is_valid(values: pa.Array) -> pa.BooleanArray:
    return call_function("is_valid", [values])


def list_element(values: pa.ListArray, index: pa.Scalar) -> pa.Array:
    return call_function("list_element", [values, index])


def list_value_length(values: pa.ListArray) -> pa.Array:
    return call_function("list_value_length", [values])


def match_substring(values: pa.Array, pattern: str) -> pa.BooleanArray:
    return call_function("match_substring", [values], MatchSubstringOptions(pattern))


def match_substring_regex(values: pa.Array, pattern: str) -> pa.BooleanArray:
    return call_function("match_substring_regex", [values], MatchSubstringOptions(pattern))


def min_of(values: pa.Array) -> pa.Scalar:
    return call_function("min", [values])


def replace_substring_regex(values: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return call_function("replace_substring_regex", [values], ReplaceSubstringOptions(pattern, replacement))


def split_pattern(values: pa.Array, pattern: str) -> pa.ListArray:
    return call_function("split_pattern", [values], SplitPatternOptions(pattern))


def starts_with(values: pa.Array, pattern: str) -> pa.BooleanArray:
    return call_function("starts_with", [values], MatchSubstringOptions(pattern))


def struct_field(values: pa.StructArray, name: str) -> pa.Array:
    return call_function("struct_field", [values], StructFieldOptions([name]))


def take(values: pa.Array, indices: pa.Array) -> pa.Array:
    return call_function("take", [values, indices])
