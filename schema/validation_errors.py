"""One line about the first of pydantic's errors: key, value found, values accepted, and the nearest known key."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vani.errors import DocumentError, nearest

_Path = tuple[int | str, ...]

_ACCEPTED: Final = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "int_parsing_size": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text (put it in quotes)",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "string_too_short": "at least {min_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
}


def explained(
    error: ValidationError,
    model: type[BaseModel],
    tree: dict[str, Any],
    where: str,
    line_of: Callable[[_Path], int],
) -> DocumentError:
    """One line about the first of the errors of `tree`; `line_of` finds the line of a path in its text."""
    errors = error.errors(include_url=False)
    # An unknown key is often a required one misspelt: it shows more than "missing" does.
    rank = {"extra_forbidden": 0, "missing": 2}
    best = min(rank.get(details["type"], 1) for details in errors)
    candidates = [details for details in errors if rank.get(details["type"], 1) == best][:20]
    first = min(candidates, key=lambda details: _position(details["loc"], tree))
    what, todo = _sentence(first, model, tree)
    if len(errors) > 1:
        todo += f" (and {len(errors) - 1} more)"
    return DocumentError(what, where=f"{where}:{line_of(first['loc'])}", todo=todo)


def _position(loc: _Path, tree: object) -> tuple[float, ...]:
    """Position of `loc` in the document: the index of each part among its parent's entries."""
    position: list[float] = []
    for part in loc:
        if isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
            position.append(part)
        elif isinstance(tree, dict) and part in tree:
            position.append(list(tree).index(part))
            tree = tree[part]
    # The alternative of a union with more of its keys present was meant.
    return (*position, math.inf)


def _sentence(details: ErrorDetails, model: type[BaseModel], tree: dict[str, Any]) -> tuple[str, str]:
    """The fault of one value and the accepted values."""
    loc: _Path = details["loc"]
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("extra_forbidden", "missing"):
        parent = _path(loc[:-1], tree)
        inside = f" in {parent}" if parent else " at the top"
        known = sorted(_keys_of(_annotations_at([model], loc[:-1])))
        if kind == "missing":
            return f"key {str(loc[-1])!r} is missing{inside}", "add it"
        todo = nearest(str(loc[-1]), known, f"known keys are {', '.join(known)}")
        return f"unknown key {_shorten(str(loc[-1]))}{inside}", todo
    if kind == "value_error" and not loc:
        # The parts contradict each other, and it is unknown which of them is wrong.
        return details["msg"].removeprefix("Value error, "), "correct it"
    pattern = _ACCEPTED.get(kind)
    accepted = pattern.format(**context) if pattern else details["msg"].removeprefix("Value error, ").lower()
    if types.NoneType in _annotations_at([model], loc) and "null" not in accepted:
        accepted += " or null"
    accepted = accepted.replace("at least 1 entries", "at least 1 entry").removeprefix("input should be ")
    value = "an empty list" if details["input"] == [] else shown(details["input"])
    return f"{_path(loc, tree) or 'the document'} is {value}", f"accepted: {accepted}"


def _path(loc: Iterable[int | str], tree: object) -> str:
    """`files[3].io.bytes` for `("files", 3, "io", "bytes")`, without the labels of unions."""
    path = ""
    for part in loc:
        if isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
            path += f"[{part}]"
        elif isinstance(tree, dict) and part in tree:
            tree = tree[part]
            path += f".{part}" if path else str(part)
    return path


def _annotations_at(annotations: list[Any], loc: Iterable[int | str]) -> list[Any]:
    """Every type allowed at `loc` below one of `annotations`, with unions split."""
    current = [kind for annotation in annotations for kind in _flat(annotation)]
    for part in loc:
        below: list[Any] = []
        for kind in current:
            origin, args = get_origin(kind), get_args(kind)
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                below += [f.annotation for n, f in kind.model_fields.items() if part in (n, f.alias)]
            elif isinstance(origin, type) and issubclass(origin, Mapping):
                below.append(args[1])
            elif origin in (list, tuple, set, frozenset) and isinstance(part, int):
                plain = [arg for arg in args if arg is not Ellipsis]
                below.append(plain[min(part, len(plain) - 1)])
        # A part without a type is the label of a union.
        current = [kind for annotation in below for kind in _flat(annotation)] or current
    return current


def _flat(annotation: object) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _flat(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [kind for arg in get_args(annotation) for kind in _flat(arg)]
    return [annotation]


def _keys_of(annotations: Iterable[Any]) -> set[str]:
    return {
        field.alias or name
        for kind in annotations
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for name, field in kind.model_fields.items()
    }


def shown(value: object) -> str:
    """A value as YAML writes it, in at most 40 characters."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return _shorten(value)


def _shorten(value: object) -> str:
    words = {"None": "null", "True": "true", "False": "false"}
    text = repr(value)
    text = text if isinstance(value, str) else words.get(text, text)
    return text if len(text) <= 40 else f"{text[:30]}...{text[-7:]}"
