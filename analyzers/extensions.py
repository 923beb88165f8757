"""Results of measures without a field in the schema: numbers, texts, lists and mappings that a profile can contain."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np

from vani.errors import InputError

_DEEPEST = 16

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def plain(result: object, name: str) -> Plain:
    """A measure's result as plain values; numpy numbers become Python numbers.

    Raises
    ------
    InputError
        The result is, or contains, anything else.
    """
    return _plain(result, name, f"extensions.{name}", 0)


def _plain(value: object, name: str, where: str, depth: int) -> Plain:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(element, name, f"{where}.{key}", depth + 1) for key, element in value.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [_plain(element, name, f"{where}[{i}]", depth + 1) for i, element in enumerate(value)]
    what = f"{value}" if isinstance(value, float) else f"a {type(value).__name__}"
    raise InputError(
        f"its `aggregate` gives {what} for {where}, which a profile cannot contain",
        where=f"measure {name!r}",
        todo="give numbers, texts, lists and mappings by text",
    )
