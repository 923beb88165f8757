"""Documents in and out: YAML text to a checked model and back, for every `vani.*` schema.

`load` and `loads` read, `dump` and `dumps` write, `json_schema` describes. A document that is not
what its schema says is a `DocumentError` of one line: file, line, key, value found, values accepted.
`python -m vani.schema.document` writes the committed JSON Schema files anew.
"""

from __future__ import annotations

import importlib
import json
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from vani.atomic import write_text
from vani.errors import DocumentError, refuse_named_pipe
from vani.garbage import collection_paused
from vani.schema.lifts import profile_2, system_2
from vani.schema.reading import MAX_BYTES
from vani.schema.yaml.layout import Tree
from vani.schema.yaml.write import yaml_text

__all__ = [
    "LIFTS",
    "MODULES",
    "YAML",
    "Syntax",
    "document_model",
    "dump",
    "dumps",
    "json_schema",
    "load",
    "loads",
    "read_text",
    "read_tree",
    "schema_name",
    "text_of",
    "validate",
]

Document = TypeVar("Document", bound=BaseModel)
Doc = dict[str, Any]

LIFTS: Final[dict[str, dict[int, Callable[[Doc], Doc]]]] = {
    "profile": {1: profile_2}, "advice": {}, "system": {1: system_2}, "job": {}, "policy": {}, "check": {},
    "baseline": {}, "diff": {}, "jobs": {}, "plan": {}, "scenario": {}, "snapshot": {}, "history": {},
    "prediction": {}, "model": {}, "standing": {}, "table": {},
}  # fmt: skip
"""Per schema: the step from version n to n + 1. A step returns a new mapping and leaves its argument be."""

MODULES: Final = {name: f"vani.schema.{name}" for name in LIFTS} | {
    "model": "vani.schema.write_model",
    "table": "vani.schema.run_table",
}
"""Where the model of each schema lives."""


@dataclass(frozen=True, eq=False)
class Syntax:
    """A language in which documents are written: how it is read, and where in it a value stands."""

    parse: Callable[[str, str], Tree]
    line_of: Callable[[str, tuple[int | str, ...]], int]
    assign: str
    """How a key gets its value, such as `{}: {}`."""


def _parsed_yaml(text: str, where: str) -> Tree:
    # What writes documents has none to read.
    from vani.schema.yaml.read import parse  # noqa: PLC0415

    return parse(text, where)


def _line_of_yaml(text: str, place: tuple[int | str, ...]) -> int:
    from vani.schema.yaml.read import line_of  # noqa: PLC0415

    return line_of(text, place)


YAML: Final = Syntax(_parsed_yaml, _line_of_yaml, "{}: {}")

_NAME = re.compile(r"vani\.([a-z]+)/([1-9][0-9]{0,5})")


def load(path: str | Path, model: type[Document]) -> Document:
    """Read the document at `path`.

    Raises
    ------
    DocumentError
        No file, no text, no YAML, or not what `model` says; names the line.
    """
    return loads(read_text(path), model, where=str(path))


def loads(text: str, model: type[Document], *, where: str = "document", syntax: Syntax = YAML) -> Document:
    """Read a document from `text`; `where` is the name that errors give it. See `load`."""
    with collection_paused():
        tree = read_tree(text, model, where=where, syntax=syntax)
        return validate(tree, model, text=text, where=where, syntax=syntax)


def read_tree(text: str, model: type[BaseModel], *, where: str, syntax: Syntax = YAML) -> Doc:
    """Parse a document and lift it to the version of `model`, but check no more than its `schema:`."""
    begin = f"begin it with `{_begin(model, syntax)}`"
    tree = syntax.parse(text, where)
    if tree is None:
        raise DocumentError("is empty", where=where, todo=begin)
    if not isinstance(tree, dict):
        found = "a list" if isinstance(tree, list) else f"only {_shown(tree)}"
        raise DocumentError(f"holds {found}, not a mapping of keys", where=where, todo=begin)
    return _lifted(tree, model, text, where, syntax)


def validate(tree: Doc, model: type[Document], *, text: str, where: str, syntax: Syntax = YAML) -> Document:
    """Turn a tree into a document; `text` is where an error's line is looked up."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise _explain(error, model, tree, text, where, syntax) from None


def dumps(document: BaseModel, *, only_set: bool = False) -> str:
    """Write a document as YAML: keys in the order of the model, the same document the same bytes.

    With `only_set`, keys that nobody set are left out.

    Floats are rounded to nine significant digits (from 1e8 on to whole numbers), so that
    `loads(dumps(x)) == x` holds for every document that was read, and for a computed one up to that
    rounding.
    """
    with collection_paused():
        return yaml_text(document.model_dump(by_alias=True, exclude_unset=only_set))


def dump(document: BaseModel, path: str | Path) -> None:
    """Write a document to `path`, whole or not at all.

    Raises
    ------
    InputError
        `path` cannot be written.
    """
    write_text(Path(path), dumps(document))


def schema_name(model: type[BaseModel]) -> str:
    """Tell what stands behind `schema:` in documents of this model, such as `vani.profile/1`."""
    field = model.model_fields.get("schema_")
    names = get_args(field.annotation) if field is not None else ()
    if not names:
        raise TypeError(f"{model.__name__} is not a document: it has no `schema_: Literal[...]`")
    return str(names[-1])


def document_model(name: str) -> type[BaseModel]:
    """Find the model of the schema `name`, one of `MODULES`."""
    module = importlib.import_module(MODULES[name])
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, BaseModel) and "schema_" in value.model_fields:
            return value
    raise TypeError(f"{MODULES[name]} defines no document")


def json_schema(model: type[BaseModel]) -> Doc:
    """Describe `model` in JSON Schema (draft 2020-12); of a document of several kinds, each."""
    kinds: Any = getattr(model, "variants", lambda: (model,))()
    adapter: TypeAdapter[Any] = TypeAdapter(Union[kinds])  # noqa: UP007 - made at run time
    described = adapter.json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": schema_name(model)} | {
        key: value for key, value in described.items() if key != "title"
    }


def read_text(path: str | Path) -> str:
    """Read the text of a document.

    Raises
    ------
    DocumentError
        No file, too long, or not UTF-8.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise DocumentError("is a directory", where=path, todo="name a YAML file")
        refuse_named_pipe(path)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DocumentError("no such file", where=path) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DocumentError(f"cannot be read ({why})", where=path) from error
    if len(content) > MAX_BYTES:
        del content  # The error keeps what its place knows.
        todo = "name a document of Vani; a profile is shorter with fewer files (`--files N`)"
        raise DocumentError(f"is longer than {MAX_BYTES >> 20} MiB", where=path, todo=todo)
    return text_of(content, path)


def text_of(content: bytes, path: Path) -> str:
    """The text of a document whose bytes were read from `path`; raises DocumentError where that is none."""
    if b"\0" in content:
        raise DocumentError("is binary, not YAML", where=path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8 text (byte 0x{content[error.start]:02x})"
        raise DocumentError(what, where=f"{path}:{line}", todo="save it as UTF-8") from None


def _begin(model: type[BaseModel], syntax: Syntax) -> str:
    name = schema_name(model)
    return syntax.assign.format("schema", name if syntax is YAML else f'"{name}"')


def _lifted(tree: Doc, model: type[BaseModel], text: str, where: str, syntax: Syntax) -> Doc:
    """Bring a document to the version that `model` describes, step by step."""
    known = schema_name(model)
    kind, newest = known.removeprefix("vani.").split("/")
    if "schema" not in tree:
        raise DocumentError("has no `schema:`", where=where, todo=f"begin it with `{_begin(model, syntax)}`")
    found = tree["schema"]
    match = _NAME.fullmatch(found) if isinstance(found, str) else None
    if match is None or match[1] != kind:
        place = f"{where}:{syntax.line_of(text, ('schema',))}"
        raise DocumentError(f"schema is {_shown(found)}", where=place, todo=f"known here is {known}")
    version = int(match[2])
    if version > int(newest):
        older = [number for number in LIFTS.get(kind, {}) if number < int(newest)]
        versions = ", ".join(f"vani.{kind}/{number}" for number in (*older, int(newest)))
        raise DocumentError(
            f"schema {found} is newer than this Vani; known: {versions}",
            where=f"{where}:{syntax.line_of(text, ('schema',))}",
            todo="update Vani",
        )
    for step in range(version, int(newest)):
        tree = LIFTS[kind][step](tree)
        if tree.get("schema") != f"vani.{kind}/{step + 1}":
            raise TypeError(f"the step from vani.{kind}/{step} did not change the version")
    return tree


# --- what is wrong, for people --------------------------------------------------------------------

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


def _explain(
    error: ValidationError, model: type[BaseModel], tree: Doc, text: str, where: str, syntax: Syntax
) -> DocumentError:
    """Turn pydantic's list of errors into one line about the first of them."""
    found = error.errors(include_url=False)
    # An unknown key is often a required one misspelt: it says more than "missing" does.
    rank = {"extra_forbidden": 0, "missing": 2}
    worst = min(rank.get(details["type"], 1) for details in found)
    first = [details for details in found if rank.get(details["type"], 1) == worst][:20]
    details, line = min(((d, syntax.line_of(text, d["loc"])) for d in first), key=itemgetter(1))
    what, todo = _sentence(details, model, tree)
    if len(found) > 1:
        todo += f" (and {len(found) - 1} more)"
    return DocumentError(what, where=f"{where}:{line}", todo=todo)


def _sentence(details: ErrorDetails, model: type[BaseModel], tree: Doc) -> tuple[str, str]:
    """What is wrong with one value, and what the user can write instead."""
    loc: tuple[int | str, ...] = details["loc"]
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("extra_forbidden", "missing"):
        parent = _path(loc[:-1], tree)
        inside = f" in {parent}" if parent else " at the top"
        known = sorted(_keys_of(_annotations_at([model], loc[:-1])))
        if kind == "missing":
            return f"key {str(loc[-1])!r} is missing{inside}", "add it"
        import difflib  # noqa: PLC0415 - wanted only for what is misspelt

        near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.6)
        todo = f"did you mean {near[0]!r}?" if near else f"known keys are {', '.join(known)}"
        return f"unknown key {_shorten(str(loc[-1]))}{inside}", todo
    pattern = _ACCEPTED.get(kind)
    accepted = pattern.format(**context) if pattern else details["msg"].removeprefix("Value error, ").lower()
    if types.NoneType in _annotations_at([model], loc) and "null" not in accepted:
        accepted += " or null"
    accepted = accepted.replace("at least 1 entries", "at least 1 entry").removeprefix("input should be ")
    shown = "an empty list" if details["input"] == [] else _shown(details["input"])
    return f"{_path(loc, tree) or 'the document'} is {shown}", f"accepted: {accepted}"


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
    """Every type that may stand at `loc` below one of `annotations`, unions taken apart."""
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
        # A part that leads nowhere is a label of a union.
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


def _shown(value: object) -> str:
    """A value as it stands in YAML, in at most 40 characters."""
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


def _write_json_schemas(folder: Path) -> list[Path]:
    """Write one JSON Schema file per document into `folder`; returns their paths."""
    folder.mkdir(exist_ok=True)
    written = []
    for name in MODULES:
        model = document_model(name)
        path = folder / (schema_name(model).removeprefix("vani.").replace("/", "-") + ".json")
        write_text(path, json.dumps(json_schema(model), indent=2, ensure_ascii=False) + "\n")
        written.append(path)
    return written


if __name__ == "__main__":
    _write_json_schemas(Path(__file__).parent / "json")
