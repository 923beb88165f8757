"""A document as plain values for JSON, with its floats rounded as YAML has them; column by column.

A long profile has tens of thousands of entries of the same model: what a field of all of them holds is looked at
together, so that hundreds of thousands of floats are rounded at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from itertools import chain, islice
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import to_json

from vani.schema.yaml.write import rounded

__all__ = ["plain_trees"]

_FEW: Final = 64
"""Floats of which Python rounds each sooner than numpy all."""
_POWERS: Final = tuple(float(10**digits) for digits in range(23))
"""Those of ten that are exact floats: dividing by one gives the float that is nearest to a decimal number."""
_Floats: TypeAlias = list[tuple[str, list[dict[str, Any]]]]
"""Where floats are that are still to be rounded: a key, and trees that have it."""
_AS_IT_IS: Final = (int, str, bool)


def plain_trees(column: Sequence[Any]) -> Sequence[Any]:
    """Keys and values of documents, or of their parts, to be written and not to be changed: some are their own.

    Raises
    ------
    ValueError
        A number is not finite, which JSON has not.
    TypeError
        There is what no document can hold, by a measure of a plug-in.
    """
    floats: _Floats = []
    found = _plain(column, floats)
    values = iter(_rounded([tree[name] for name, trees in floats for tree in trees]))
    for name, trees in floats:
        for tree, value in zip(trees, values):  # noqa: B905 - there are more values than trees
            tree[name] = value
    return found


def _plain(column: Sequence[Any], floats: _Floats) -> Sequence[Any]:
    """The same for what one field of several entries holds, in their order."""
    kinds = set(map(type, column))
    if NoneType in kinds and len(kinds) > 1:
        known = iter(_plain([value for value in column if value is not None], floats))
        return [None if value is None else next(known) for value in column]
    if len(kinds) > 1:
        return [_plain([value], floats)[0] for value in column]
    kind = kinds.pop() if kinds else NoneType
    if kind is NoneType or issubclass(kind, _AS_IT_IS):
        return column
    if issubclass(kind, float):
        return _rounded(column)
    if issubclass(kind, BaseModel):
        return _models(kind, column, floats)
    if issubclass(kind, Mapping):
        values = iter(_plain(list(chain.from_iterable(one.values() for one in column)), floats))
        return [{_key(key): next(values) for key in one} for one in column]
    if issubclass(kind, (list, tuple, set, frozenset)):
        values = iter(_plain(list(chain.from_iterable(column)), floats))
        return [list(islice(values, len(one))) for one in column]
    return [_scalar(value) for value in column]


def _models(kind: type[BaseModel], column: Sequence[BaseModel], floats: _Floats) -> Sequence[dict[str, Any]]:
    of_floats, others = _fields_to_change(kind)
    leave_out = [one.func for one in kind.__pydantic_decorators__.model_serializers.values()]
    if not (of_floats or others or leave_out):
        return [model.__dict__ for model in column]
    trees = [model.__dict__.copy() for model in column]
    for name in of_floats:
        floats.append((name, [tree for tree in trees if tree[name] is not None]))
    for name in others:
        for tree, value in zip(trees, _plain([tree[name] for tree in trees], floats), strict=True):
            tree[name] = value
    for serializer in leave_out:
        pairs = zip(column, trees, strict=True)
        trees = [serializer(model, lambda _, tree=tree: tree) for model, tree in pairs]
    return trees


@cache
def _fields_to_change(kind: type[BaseModel]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fields of a model that hold floats (or null), and others that can hold some, or models."""
    of = {name: field.annotation for name, field in kind.model_fields.items()}
    floats = tuple(name for name, annotation in of.items() if {*_flat(annotation)} <= {float, NoneType})
    return floats, tuple(
        name for name, annotation in of.items() if name not in floats and _changes(annotation)
    )


def _flat(annotation: object) -> Iterator[object]:
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType, Annotated) else ()
    if not parts:
        yield annotation
    for part in parts[:1] if get_origin(annotation) is Annotated else parts:
        yield from _flat(part)


def _changes(annotation: object) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return annotation in (float, Any) or any(map(_changes, get_args(annotation)))


def _rounded(column: Sequence[float]) -> list[float]:
    """Nine significant digits of each, of 1e8 and more all before the point; those of `rounded`, by numpy."""
    if len(column) < _FEW:
        if not all(map(math.isfinite, column)):
            raise ValueError("a number is not finite")
        return list(map(rounded, column))
    import numpy as np  # noqa: PLC0415 - a profile that is written as JSON was made with it

    values = np.array(column, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a number is not finite")
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        digits = np.where(size > 0, 8 - np.floor(np.log10(size)), 0).astype(np.int64)
    power = np.array(_POWERS)[np.clip(digits, 0, len(_POWERS) - 1)]
    scaled = values * power
    found: list[float] = (np.rint(scaled) / power).tolist()
    # What lies between two numbers of nine digits is told by all digits of its own.
    between = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-5
    for i in np.flatnonzero(between | (digits >= len(_POWERS))).tolist():
        found[i] = rounded(column[i])
    return found


def _key(key: object) -> str:
    """A key as the `json` of Python writes it."""
    if isinstance(key, str):
        return key
    found = _scalar(key)
    return found if isinstance(found, str) else to_json(found).decode()


def _scalar(value: object) -> Any:
    """What measures of plug-ins may return besides plain values, as in YAML."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, (int, float)):
        return value
    raise TypeError(f"a document cannot hold {type(value).__name__}")
