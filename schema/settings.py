"""Settings of commands: one declaration of each option, for the command line, Python callers and documents.

    class PlaceSettings(Settings):
        ceiling: Annotated[float, Field(gt=0, le=1)] = Field(default=0.95, description="Fill OSTs up to this share.")

`vani.cli.options.settings_options` derives the option `--ceiling` from this. A Python caller passes
`PlaceSettings(ceiling=0.9)`, or `ceiling=0.9` to a function that calls `PlaceSettings.of`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from pydantic import ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from vani.errors import InputError, nearest
from vani.schema.model import Model

PathLike = str | Path
"""A path as Python callers pass it."""


_NOUNS: Final = {
    int: "a whole number", float: "a number", bool: "true or false", date: "a day such as 2026-12-31",
}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """How the command line shows a field, where this does not follow from the field's name and type.

    Attributes
    ----------
    names
        Names such as `-o` and `--output`; by default the field's name with dashes.
    metavar
        Placeholder of the value in the help.
    default
        Determines the value that the command line uses if the option is not given, such as a site's own.
    envvar
        Environment variable that replaces the option.
    """

    names: tuple[str, ...] = ()
    metavar: str | None = None
    default: Callable[[], Any] | None = None
    envvar: str | None = None


class Settings(Model):
    """Settings of a command. Each field declares an option's type, limits, default and help.

    A validator that compares fields raises InputError itself.
    """

    model_config = ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True)

    @classmethod
    def of(cls, settings: Self | None = None, /, **fields: Any) -> Self:
        """Validate `fields`; the others keep their values in `settings`, or the defaults.

        Raises
        ------
        InputError
            There is no such field, or a value is outside its limits. The error names the option and the limits.
        """
        if settings is not None and not fields:
            return settings
        given = {} if settings is None else {name: getattr(settings, name) for name in settings.model_fields_set}
        try:
            return cls(**{**given, **fields})
        except ValidationError as error:
            raise cls._refusal(error.errors(include_url=False)[0]) from None

    @classmethod
    def _refusal(cls, error: Mapping[str, Any]) -> InputError:
        name = str(error["loc"][0]) if error["loc"] else ""
        field = cls.model_fields.get(name)
        if field is None:
            return InputError(f"no setting {name!r}", todo=nearest(name, cls.model_fields))
        where = option_names(name, field)[-1]
        if error["type"] == "missing":
            return InputError("is missing", where=where, todo="give it")
        value = error["input"]
        shown = f"{value:,}" if isinstance(value, (int, float)) else str(value)[:100] or "empty"
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, ValueError):
            return InputError(f"{shown} {cause}", where=where)
        return InputError(f"is {shown}", where=where, todo=f"give {_accepted(field)}")


def option_of(field: FieldInfo) -> Option:
    """How the command line shows the field."""
    return next((part for part in _metadata(field) if isinstance(part, Option)), Option())


def option_names(name: str, field: FieldInfo) -> tuple[str, ...]:
    """The option's names; a flag that is set by default is switched off by `--no-NAME`."""
    prefix = "--no-" if value_type(field.annotation)[0] is bool and field.default is True else "--"
    return option_of(field).names or (prefix + name.replace("_", "-"),)


def value_type(annotation: Any) -> tuple[Any, bool]:
    """The type of a value as it is entered, without None and limits, and whether there may be several values."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is None or origin is Literal:
        return annotation, False
    if origin is Annotated:
        return value_type(inner[0])
    if origin in (tuple, list):
        return value_type(inner[0])[0], True
    return value_type(next(kind for kind in inner if kind is not type(None)))


def limits(field: FieldInfo) -> str:
    """Limits of a number, such as `1 to 10,000`; empty if there are none."""
    bounds = {
        key: value
        for part in _metadata(field)
        for key in ("gt", "ge", "lt", "le")
        if (value := getattr(part, key, None)) is not None
    }
    text = {key: f"{value:,}" if isinstance(value, int) else f"{value:g}" for key, value in bounds.items()}
    low = text.get("ge") or (f"above {text['gt']}" if "gt" in text else "")
    high = text.get("le") or (f"below {text['lt']}" if "lt" in text else "")
    if low and high:
        return f"{low} to {high}" if bounds.keys() == {"ge", "le"} else f"{low}{_or_more(low)}, {_at_most(high)}"
    return f"{low}{_or_more(low)}" if low else high and _at_most(high)


def _or_more(low: str) -> str:
    return "" if low.startswith("above") else " or more"


def _at_most(high: str) -> str:
    return high if high.startswith("below") else f"at most {high}"


def _accepted(field: FieldInfo) -> str:
    """The values that a field accepts, as the object of `give`."""
    kind = value_type(field.annotation)[0]
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    noun = _NOUNS.get(kind, "a valid value")
    return f"{noun}{', ' if limits(field)[:1].isdigit() else ' '}{limits(field)}".strip()


def _metadata(field: FieldInfo) -> Iterator[Any]:
    yield from field.metadata
    yield from _within(field.annotation)


def _within(annotation: Any) -> Iterator[Any]:
    for part in getattr(annotation, "__metadata__", ()):
        yield from getattr(part, "metadata", (part,))
    for inner in get_args(annotation):
        yield from _within(inner)
