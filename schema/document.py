"""Read and write documents: YAML or JSON text to a checked model and back, for every `vani.*` schema.

`load` and `loads` read, `dump` and `dumps` write, `json_schema` describes. A document that does not match its schema
is a `DocumentError` of one line: file, line, key, value found, values accepted. `python -m vani.schema.document` writes
the committed JSON Schema files.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from vani.atomic import write_text
from vani.errors import DocumentError, InputError, nearest, refuse_named_pipe
from vani.plug_ins import plug_ins
from vani.schema.model import Model, SparseModel
from vani.schema.syntax.json_text import harmless, json_text
from vani.schema.syntax.yaml_text import Tree, line_of, parse, rounded, yaml_text

Doc = dict[str, Any]


_Path = tuple[int | str, ...]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause Python's search for cycles, which takes half of the time when millions of new objects contain none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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


def document_json(document: BaseModel) -> str:
    """Write a document as JSON on one line, with the keys and the rounded numbers of its YAML.

    Raises
    ------
    InputError
        A plug-in's measure returned a number that is not finite, which JSON has not.
    """
    with collection_paused():
        try:
            tree = _plain(document)
        except ValueError:
            raise InputError(
                "contains a number that is not finite; JSON has none",
                where="extensions of the profile",
                todo="write YAML, or fix the plug-in that measured it",
            ) from None
        try:
            return harmless(to_json(tree).decode())
        except PydanticSerializationError:  # a file name that is not UTF-8
            return json_text(tree, indent=None)


def _plain(value: Any) -> Any:
    """A value as plain JSON data, with floats rounded as in YAML; raises ValueError for a number that is not finite.
    """
    if value is None or type(value) in (int, str, bool):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number is not finite")
        return rounded(value)
    if isinstance(value, BaseModel):
        values = value.__dict__
        absent = value.keys_left_out() if isinstance(value, SparseModel) else ()
        return {key: _plain(values[name]) for name, key in _keys(type(value)) if name not in absent}
    if isinstance(value, Mapping):
        return {_plain(key): _plain(below) for key, below in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, Iterable):
        return [_plain(entry) for entry in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a document cannot contain {type(value).__name__}")


@cache
def _keys(model: type[BaseModel]) -> list[tuple[str, str]]:
    """Names of a model's fields, and the keys under which they are written."""
    return [(name, field.alias or name) for name, field in model.model_fields.items()]


AnyDocument = TypeVar("AnyDocument", bound=BaseModel)

MAX_BYTES: Final = 1 << 29
"""Longer documents are refused: a profile of 50,000 files has about 1e8 bytes, and a device has no end."""

_NAMES: Final = ("profile", "advice", "system", "job", "policy", "check", "diff", "tuned")
_CORE: Final = {name: f"vani.schema.{name}" for name in _NAMES} | {
    "baseline": "vani.schema.check",
    "table": "vani.schema.diff",
}


def document_modules() -> dict[str, str]:
    """Module with the model of each schema; the entry-point group `vani.documents` adds those of other packages."""
    return _CORE | {point.name: point.value for point in plug_ins("vani.documents")}


@dataclass(frozen=True, eq=False)
class Syntax:
    """A document language: functions that parse its text and locate a value in it."""

    parse: Callable[[str, str], Tree]
    line_of: Callable[[str, tuple[int | str, ...]], int]
    assign: str
    """How a key gets its value, such as `{}: {}`."""


YAML: Final = Syntax(parse, line_of, "{}: {}")
"""YAML, and JSON where the text begins as such."""

_NAME = re.compile(r"vani\.([a-z]+)/([1-9][0-9]{0,5})")


def load(path: str | Path, model: type[AnyDocument]) -> AnyDocument:
    """Read the document at `path`.

    Raises
    ------
    DocumentError
        No file, not text, not YAML, or not valid for `model`; names the line.
    """
    return loads(read_text(path), model, where=str(path))


def loads(text: str, model: type[AnyDocument], *, where: str = "document", syntax: Syntax = YAML) -> AnyDocument:
    """Read a document from `text`; errors call it `where`. See `load`."""
    with collection_paused():
        tree = read_tree(text, model, where=where, syntax=syntax)
        return validate(tree, model, text=text, where=where, syntax=syntax)


def read_tree(text: str, model: type[BaseModel], *, where: str, syntax: Syntax = YAML) -> Doc:
    """Parse a document and check that its `schema:` is the one of `model`; nothing else is checked."""
    begin = f"start it with `{_begin(model, syntax)}`"
    tree = syntax.parse(text, where)
    if tree is None:
        raise DocumentError("is empty", where=where, todo=begin)
    if not isinstance(tree, dict):
        content = "a list" if isinstance(tree, list) else f"only {shown(tree)}"
        raise DocumentError(f"contains {content}, not a mapping of keys", where=where, todo=begin)
    _check_schema(tree, model, text, where, syntax)
    return tree


def validate(tree: Doc, model: type[AnyDocument], *, text: str, where: str, syntax: Syntax = YAML) -> AnyDocument:
    """Turn a tree into a document; lines for errors are looked up in `text`."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise explained(error, model, tree, where, lambda path: syntax.line_of(text, path)) from None


def dumps(document: BaseModel, *, only_set: bool = False) -> str:
    """Return a document as YAML: keys in the order of the model; the same document gives the same bytes.

    With `only_set`, keys that were not set are left out.

    Floats are rounded to nine significant digits (from 1e8 on to whole numbers), so that
    `loads(dumps(x)) == x` is true for every document that was read, and for a computed one up to that
    rounding.
    """
    with collection_paused():
        return yaml_text(document.model_dump(by_alias=True, exclude_unset=only_set))


def dump(document: BaseModel, path: str | Path) -> None:
    """Write a document to `path`, whole or not at all: as JSON on one line if it ends in `.json`, otherwise as YAML.

    Raises
    ------
    InputError
        `path` cannot be written, or a number is not finite, which JSON cannot represent.
    """
    is_json = Path(path).suffix.lower() == ".json"
    write_text(Path(path), document_json(document) if is_json else dumps(document))


class Document(Model):
    """A whole document, which is read from a file and written to one."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a document of this kind from YAML or JSON.

        Raises
        ------
        DocumentError
            The file is not a valid document of this kind, or contradicts itself.
        """
        document = load(path, cls)
        document.refuse_contradictions(str(path))
        return document

    @classmethod
    def of(cls, source: str | Path | Self) -> Self:
        """The document itself, or the one at a path."""
        return cls.load(source) if isinstance(source, (str, Path)) else source

    def refuse_contradictions(self, where: str) -> None:
        """Compare the parts of the document with each other; errors call the document `where`.

        Raises
        ------
        DocumentError
            Two parts contradict each other.
        """

    def save(self, path: str | Path) -> None:
        """Write the document as YAML, or as JSON to a path that ends in `.json`; it appears whole or not at all."""
        dump(self, path)

    def to_yaml(self) -> str:
        """The document as YAML text; the same document gives the same bytes."""
        return dumps(self)


def schema_name(model: type[BaseModel]) -> str:
    """The value of `schema:` in documents of this model, such as `vani.profile/1`."""
    field = model.model_fields.get("schema_")
    names = get_args(field.annotation) if field is not None else ()
    if not names:
        raise TypeError(f"{model.__name__} is not a document: it has no `schema_: Literal[...]`")
    return str(names[-1])


def document_model(name: str) -> type[BaseModel]:
    """Find the model of the schema `name`, one of `document_modules()`."""
    defining = document_modules()[name]
    module = importlib.import_module(defining)
    for value in vars(module).values():
        if not (isinstance(value, type) and issubclass(value, BaseModel) and "schema_" in value.model_fields):
            continue
        if schema_name(value).startswith(f"vani.{name}/"):
            return value
    raise TypeError(f"{defining} defines no document")


def json_schema(model: type[BaseModel]) -> Doc:
    """Describe `model` in JSON Schema (draft 2020-12); for a document of several kinds, describe each kind."""
    kinds: Any = getattr(model, "variants", lambda: (model,))()
    adapter: TypeAdapter[Any] = TypeAdapter(Union[kinds])  # noqa: UP007 - made at run time
    described = adapter.json_schema(by_alias=True)
    name = schema_name(model)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        # A name, not an address: it stays the same wherever the file is.
        "$id": f"urn:{name.replace('.', ':').replace('/', ':')}",
        "title": name,
    }
    return head | {key: value for key, value in described.items() if key != "title"}


def read_text(path: str | Path) -> str:
    """Read the text of a document.

    Raises
    ------
    DocumentError
        No file, too long, or not UTF-8.
    """
    return text_of(read_bytes(path), path)


def read_bytes(path: str | Path, *, most: int | None = None, todo: str = "") -> bytes:
    """Read the bytes of a document, from a file or a pipe.

    Parameters
    ----------
    most
        Largest accepted number of bytes; None for that of documents.
    todo
        Advice in errors.

    Raises
    ------
    DocumentError
        No file, or too long.
    """
    path, largest = Path(path), MAX_BYTES if most is None else most
    try:
        if path.is_dir():
            raise DocumentError("is a directory", where=path, todo=todo or "name a YAML file")
        refuse_named_pipe(path)
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError:
        raise DocumentError("no such file", where=path, todo=todo) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise DocumentError(f"cannot be read ({why})", where=path, todo=todo) from error
    if len(content) > largest:
        del content  # The error keeps the local variables of this function.
        if most is None:
            todo = f"{todo or 'name a document of Vani'}; a profile is shorter with fewer files (`--files N`)"
        raise DocumentError(f"is longer than {largest >> 20} MiB", where=path, todo=todo)
    return content


def text_of(content: bytes, path: str | Path) -> str:
    """Decode the bytes of a document read from `path`; raises DocumentError if they are not text."""
    if b"\0" in content:
        raise DocumentError("is binary, not text", where=path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8 text (byte 0x{content[error.start]:02x})"
        raise DocumentError(what, where=f"{path}:{line}", todo="save it as UTF-8") from None


def _begin(model: type[BaseModel], syntax: Syntax) -> str:
    name = schema_name(model)
    return syntax.assign.format("schema", name if syntax is YAML else f'"{name}"')


_TAKEN_BY = {
    "advice": "advice, for `vani apply ADVICE` and `vani report PROFILE --advice ADVICE`",
    "baseline": "a baseline, for `vani check PROFILE --baseline FILE`",
    "job": "facts of a job, for `vani profile TRACE --job FILE`",
    "jobs": "jobs, which `vani plan` takes",
    "plan": "a plan, for `vani plan check PLAN`",
    "policy": "a policy, for `vani check PROFILE --policy FILE`",
    "profile": "a profile, for `vani advise`, `report`, `check` and `diff`",
    "scenario": "a scenario, for `vani plan simulate SCENARIO`",
    "snapshot": "the state of a machine, for --snapshot of `vani plan`",
    "system": "a machine, for --system of most commands",
    "tuned": "a result of `vani tune`, for `vani check PROFILE --tuned FILE`",
}
"""Each kind of document, and the commands that it is for."""


_MADE_BY = {
    "advice": "make it again with `vani advise PROFILE`",
    "baseline": "make it again with `vani check PROFILE --save FILE`",
    "profile": "make it again with `vani profile TRACE`",
    "system": "make it again with `vani systems detect`, or by hand as in docs/machines.md",
}
"""Commands that make a document of each kind again."""


def _check_schema(tree: Doc, model: type[BaseModel], text: str, where: str, syntax: Syntax) -> None:
    """Raise DocumentError unless a document is of the kind and the version that `model` describes."""
    known = schema_name(model)
    kind, newest = known.removeprefix("vani.").split("/")
    if "schema" not in tree:
        raise DocumentError("has no `schema:`", where=where, todo=f"start it with `{_begin(model, syntax)}`")
    declared = tree["schema"]
    if declared == known:
        return
    match = _NAME.fullmatch(declared) if isinstance(declared, str) else None
    if match is None or match[1] != kind:
        what, todo = f"schema is {shown(declared)}", f"known here is {known}"
        if match is not None and match[1] in _TAKEN_BY:
            what += f", {_TAKEN_BY[match[1]]}"
    elif int(match[2]) > int(newest):
        what, todo = f"schema {declared} is newer than this Vani; known: {known}", "update Vani"
    else:
        what, todo = f"schema {declared} is an older version", _MADE_BY.get(kind, f"write it again as {known}")
    raise DocumentError(what, where=f"{where}:{syntax.line_of(text, ('schema',))}", todo=todo)


class DocumentOfKinds(Document):
    """The base of all kinds of a document; each is a subclass with a field `kind: Literal[...] = ...`."""

    @classmethod
    def variants(cls) -> tuple[type[DocumentOfKinds], ...]:
        """The kinds that this model covers."""
        return tuple(cls.__subclasses__()) or (cls,)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a document of this kind, or of any kind if called on the base class, from YAML or JSON.

        Raises
        ------
        DocumentError
            The file is not a valid document, or is of another kind.
        """
        text = read_text(path)
        tree = read_tree(text, cls, where=str(path))
        models = {model.model_fields["kind"].default: model for model in cls.variants()}
        kind = tree.get("kind")
        model = models.get(kind) if isinstance(kind, str) else None
        if model is None:
            fault = "key 'kind' is missing at the top" if "kind" not in tree else f"kind is {str(kind)[:40]!r}"
            place = f"{path}:{line_of(text, ('kind',)) if 'kind' in tree else 1}"
            name = str(tree["schema"]).removeprefix("vani.").partition("/")[0]
            raise DocumentError(fault, where=place, todo=f"this takes a {name} of kind {' or '.join(models)}")
        document = validate(tree, model, text=text, where=str(path))
        assert isinstance(document, cls)
        return document


def _write_json_schemas(folder: Path) -> list[Path]:
    """Write one JSON Schema file per document into `folder` and return the paths."""
    folder.mkdir(exist_ok=True)
    paths = []
    for name in document_modules():
        model = document_model(name)
        path = folder / (schema_name(model).removeprefix("vani.").replace("/", "-") + ".json")
        write_text(path, json.dumps(json_schema(model), indent=2, ensure_ascii=False) + "\n")
        paths.append(path)
    return paths


if __name__ == "__main__":
    _write_json_schemas(Path(__file__).parent / "json")
