"""Makes docs/profile.md from the models: `python docs/generators/profile.py [FILE]`."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from vani.atomic import write_text
from vani.schema import dataset_facts, job, profile
from vani.schema.model import Model
from vani.schema.profile import iostats

_HEAD = """\
<!-- Made from the models in schema/profile/ by `make docs`; edit those. -->

# The profile

`vani profile TRACE -o profile.yaml` writes one YAML document with the entities and attributes of
tables II to XI of the Vani paper; `-o profile.json` writes the same as JSON on one line, which
every command takes, too, and which is read about ten times as fast. It is validated when it is
written and when it is read;
`schema/json/profile-4.json` is the same as JSON Schema.

- Sizes are bytes, times seconds, shares 0 to 1, rates bytes per second.
- Unknown values are `null`, never a guess and never 0. `provenance` states why, by attribute
  path, and the source of values that are not in the trace.
- I/O means file-system calls (POSIX and stdio), each counted once: an `H5Dwrite` that becomes an
  `MPI_File_write_at` that becomes a `pwrite64` is one write. A *data operation* reads or writes, a
  *metadata operation* is any other call.
- `bytes` is what calls requested, because Recorder stores no return values; `footprint` and `past_end`
  show what can have been moved.
- `time_s` is summed over processes: for each process the length of the union of its calls' intervals.
  `busy_s` is the length of the union over all processes.
- Histograms count by powers of four: `1K-4K` counts sizes from 1,024 to 4,095.

"""

_UNITS = {
    iostats.Bytes: "bytes",
    iostats.Seconds: "seconds",
    iostats.Share: "share",
    iostats.Rate: "bytes per second",
    iostats.Count: "count",
    iostats.AtLeastOne: "count, at least 1",
    job.Count: "count",
    dataset_facts.Count: "count",
    dataset_facts.Rate: "bytes per second",
    dataset_facts.Ratio: "number above 0",
    int: "integer",
    float: "number",
    str: "text",
    bool: "true or false",
    Any: "any value",
}


def reference(of: type[Model] = profile.Profile) -> str:
    """The page as Markdown: every model once, in order of its first use in the profile.

    Raises
    ------
    TypeError
        An attribute has a type without a name for the page.
    """
    return _HEAD + "\n".join(_section(model) for model in _models(of, set()))


def _models(model: type[Model], seen: set[type[Model]]) -> Iterator[type[Model]]:
    seen.add(model)
    yield model
    for hint in get_type_hints(model, include_extras=True).values():
        for below in _below(hint):
            if below not in seen:
                yield from _models(below, seen)


def _below(hint: object) -> Iterator[type[Model]]:
    if isinstance(hint, type) and not get_args(hint):
        if issubclass(hint, Model):
            yield hint
        return
    for part in get_args(hint):
        yield from _below(part)


def _section(model: type[Model]) -> str:
    title = "profile.yaml" if model is profile.Profile else model.__name__
    lines = [
        f"## {title}",
        "",
        inspect.cleandoc(model.__doc__ or ""),
        "",
        "| attribute | type | meaning |",
        "| --- | --- | --- |",
    ]
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        text = field.description or ""
        lines.append(f"| `{field.alias or name}` | {_type(hints[name])} | {text} |")
    return "\n".join(lines) + "\n"


def _type(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, type) or origin is Annotated:
        unit = _UNITS.get(hint)
        if unit is not None:
            return unit
    if isinstance(hint, type) and issubclass(hint, Model):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if origin in (Union, types.UnionType):
        return " or ".join("null" if arg is types.NoneType else _type(arg) for arg in args)
    if origin is Literal:
        return ", ".join(f"`{arg}`" for arg in args)
    if origin is list:
        return f"list of {_type(args[0])}"
    if origin is tuple:
        return f"[{', '.join(_type(arg) for arg in args)}]"
    if origin is dict or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"{_type(args[0])} to {_type(args[1])}"
    raise TypeError(f"no word for {hint}: add it to _UNITS")


if __name__ == "__main__":
    write_text(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/profile.md"), reference())
