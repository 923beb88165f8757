"""Options and arguments shared by several commands."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from vani.schema.settings import Settings

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Place(click.Path):
    """A non-empty path: an unset shell variable gives an empty one, which would mean the current folder."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("is empty: is a variable not set?", parameter, context)
        return super().convert(value, parameter, context)


FILE: Final = _Place(path_type=Path)

_METAVARS: Final = {int: "N", float: "NUMBER", str: "TEXT", date: "DATE"}


class _Choice(click.Choice[str]):
    """Choices for the help and for completion; the model of the settings checks the value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        del param, ctx
        return value


class _LimitedOption(click.Option):
    """An option whose help shows the limits of its field."""

    def __init__(self, *names: Any, limits: str, **more: Any) -> None:
        super().__init__(*names, **more)
        self.limits = limits

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        return {**extra, "range": self.limits} if self.limits else extra


def settings_options(model: type[Settings]) -> Decorator:
    """Add an option for each field of `model` that the command does not declare itself; it receives `settings`."""
    from vani.schema.settings import option_of  # noqa: PLC0415 - a command without settings loads no pydantic

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        declared = {parameter.name for parameter in getattr(command, "__click_params__", ())}
        own = {name: field for name, field in model.model_fields.items() if name not in declared}

        @functools.wraps(command)
        def with_settings(*args: Any, **given: Any) -> Any:
            source = click.get_current_context().get_parameter_source
            values = {name: given.pop(name) for name in own}
            fields = {name: value for name, value in values.items() if source(name) is not ParameterSource.DEFAULT}
            for name, field in own.items():
                of_site = option_of(field).default
                if of_site is not None and name not in fields:
                    fields[name] = of_site()
            return command(*args, settings=model.of(**fields), **given)

        for name, field in reversed(own.items()):
            _parameter(name, field)(with_settings)
        return with_settings

    return decorated


def _parameter(name: str, field: FieldInfo) -> Decorator:
    """The click option of a field."""
    from vani.schema.settings import limits, option_names, option_of, value_type  # noqa: PLC0415 - as above

    shown, (kind, is_several) = option_of(field), value_type(field.annotation)
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    more: dict[str, Any] = {"metavar": shown.metavar or _METAVARS.get(kind), "required": field.is_required()}
    # A field of another type, such as a number, is parsed by the model.
    more["type"] = FILE if kind is Path else click.UNPROCESSED
    if get_origin(kind) is Literal:
        more |= {"type": _Choice(get_args(kind)), "metavar": shown.metavar}
    if kind is bool:
        more = {"is_flag": True, "flag_value": default is not True}
    elif is_several:
        more |= {"multiple": True}
    else:
        more |= {} if default in (None, "") else {"default": default, "show_default": True}
    more |= {"help": field.description, "envvar": shown.envvar, "cls": _LimitedOption, "limits": limits(field)}
    return click.option(*option_names(name, field), name, **more)


quiet_option = click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr.")


def source_argument(name: str = "profile", **more: Any) -> Decorator:
    """A run, given as a profile or a trace; see `vani.cli.sources.is_trace`."""
    return click.argument(name, type=FILE, **{"metavar": "PROFILE|TRACE", **more})


def output_option(help: str = "Write here, not to stdout.", **more: Any) -> Decorator:
    return click.option("-o", "--output", type=FILE, help=help, **{"metavar": "FILE", **more})


def system_option(
    help: str = "The machine: a bundled name or a system.yaml; by default from `vani config`.",
    *,
    of_site: bool = True,
) -> Decorator:
    """The machine; with `of_site`, the default is the one configured by the user or the centre."""

    def named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        del param
        if value is not None or not of_site or ctx.resilient_parsing:
            return value
        from vani.site import setting  # noqa: PLC0415 - `vani --help` reads no file

        return setting("system").value

    return click.option("--system", metavar="NAME|FILE", help=help, callback=named)


def format_option(formats: Iterable[str], *, default: str | None, help: str = "Output format.") -> Decorator:
    """Option for the format of a document; the command receives it as `kind`."""
    return click.option(
        "--format",
        "kind",
        type=click.Choice(list(formats)),
        default=default,
        show_default=default is not None,
        help=help,
    )
