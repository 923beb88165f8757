"""Classes whose fields never change, at less than a tenth of what `dataclass(frozen=True)` takes to make one.

That compiles six methods for every class, and a command that loads a hundred classes spends a fifth of its start on
them. Here none is compiled: all classes share what fills an object and what refuses to change it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from inspect import Signature

__all__ = ["immutable"]

_T = TypeVar("_T")


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass of fields that never change; each object equals itself alone, as do arrays it holds.

    Fields are given in their order or by name. What is compared field by field, or a key of a mapping, is a
    `dataclass(frozen=True)`.
    """
    # Otherwise `dataclass` writes down a signature, which takes longer than all else.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made: Any = dataclass(init=False, eq=False, repr=False)(cls)
    if made.__repr__ is object.__repr__:
        made.__repr__ = _shown
    made.__init__ = _filled_by(made)
    made.__setattr__ = _not_assigned
    made.__delattr__ = _not_deleted
    made.__signature__ = _SIGNATURE
    return cls


def _filled_by(cls: Any) -> Callable[..., None]:
    """The `__init__` of a class."""
    given = [of for of in fields(cls) if of.init]
    names = tuple(of.name for of in given)
    known = frozenset(names)
    by_name = {of.name: of for of in given}
    then = getattr(cls, "__post_init__", None)

    def fill(self: Any, /, *values: Any, **named: Any) -> None:
        held = dict(zip(names, values, strict=False), **named)
        if len(values) + len(named) != len(known) or held.keys() != known:
            held = _completed(cls.__name__, by_name, values, named)
        self.__dict__.update(held)
        if then is not None:
            then(self)

    return fill


def _completed(
    name: str, by_name: Mapping[str, Field[Any]], values: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """A value for each field, defaults among them.

    Raises
    ------
    TypeError
        As of any function: too many values, one given twice or of no field, or none where there is no default.
    """
    if len(values) > len(by_name):
        raise TypeError(f"{name} has {len(by_name)} fields, {len(values)} values were given")
    in_order = dict(zip(by_name, values, strict=False))
    for other in named:
        if other not in by_name:
            raise TypeError(f"{name} has no field {other!r}")
        if other in in_order:
            raise TypeError(f"{name} was given {other!r} twice")
    held = {**in_order, **named}
    for of in by_name.values():
        if of.name in held:
            continue
        if of.default is not MISSING:
            held[of.name] = of.default
        elif of.default_factory is not MISSING:
            held[of.name] = of.default_factory()
        else:
            raise TypeError(f"{name} was given no {of.name!r}")
    return held


def _not_assigned(_one: Any, name: str, _value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _not_deleted(_one: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _shown(one: Any) -> str:
    values = ", ".join(f"{of.name}={getattr(one, of.name)!r}" for of in fields(one) if of.repr)
    return f"{type(one).__qualname__}({values})"


class _OfFields:
    """What `help` and `inspect.signature` say that a class takes; made when asked for."""

    def __get__(self, _one: object, cls: type[Any]) -> Signature:
        # A class below may take something else.
        if "__signature__" not in cls.__dict__:
            raise AttributeError("__signature__")
        # They take longer to load than it takes to make all classes.
        from inspect import Parameter, Signature  # noqa: PLC0415
        from typing import get_type_hints  # noqa: PLC0415

        try:
            types = get_type_hints(cls, include_extras=True)
        except NameError:
            # Some are imported for type checkers alone: the text of the annotations must do.
            types = {}
        return Signature(
            [
                Parameter(
                    of.name,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=_default_shown(of, Parameter.empty),
                    annotation=types.get(of.name, of.type),
                )
                for of in fields(cls)
                if of.init
            ]
        )


def _default_shown(of: Field[Any], required: object) -> object:
    if of.default is not MISSING:
        return of.default
    return required if of.default_factory is MISSING else ...


_SIGNATURE = _OfFields()
