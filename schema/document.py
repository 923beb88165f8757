"""Read and write documents: YAML or JSON text to a checked model and back, for every `vani.*` schema.

`load` and `loads` read, `dump` and `dumps` write, `json_schema` describes. A document that does not match its schema
is a `DocumentError` of one line: file, line, key, value found, values accepted. `python -m vani.schema.document` writes
the committed JSON Schema files.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar, Union, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from vani.atomic import write_text
from vani.errors import DocumentError, refuse_named_pipe
from vani.garbage import collection_paused
from vani.plug_ins import plug_ins
from vani.schema.document_json import document_json
from vani.schema.lifts import advice_2, profile_2, profile_3, system_2
from vani.schema.model import Model
from vani.schema.syntax.yaml_or_json import line_of, parse
from vani.schema.syntax.yaml_reader import Tree
from vani.schema.syntax.yaml_writer import yaml_text
from vani.schema.validation_errors import explained, shown

AnyDocument = TypeVar("AnyDocument", bound=BaseModel)
Doc = dict[str, Any]

MAX_BYTES: Final = 1 << 29
"""Longer documents are refused: a profile of 50,000 files has about 1e8 bytes, and a device has no end."""

LIFTS: Final[dict[str, dict[int, Callable[[Doc], Doc]]]] = {
    "profile": {1: profile_2, 2: profile_3},
    "advice": {1: advice_2},
    "system": {1: system_2},
}
"""Per schema: the step from version n to n + 1. A step returns a new mapping and leaves its argument be."""

_NAMES: Final = ("profile", "advice", "system", "job", "policy", "check", "baseline", "diff", "tuned")
_CORE: Final = {name: f"vani.schema.{name}" for name in _NAMES} | {"table": "vani.schema.run_table"}


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
    """Parse a document and lift it to the version of `model`; only its `schema:` is checked."""
    begin = f"start it with `{_begin(model, syntax)}`"
    tree = syntax.parse(text, where)
    if tree is None:
        raise DocumentError("is empty", where=where, todo=begin)
    if not isinstance(tree, dict):
        content = "a list" if isinstance(tree, list) else f"only {shown(tree)}"
        raise DocumentError(f"contains {content}, not a mapping of keys", where=where, todo=begin)
    return _lifted(tree, model, text, where, syntax)


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
    return head | {
        key: value for key, value in described.items() if key != "title"
    }


def read_text(path: str | Path) -> str:
    """Read the text of a document.

    Raises
    ------
    DocumentError
        No file, too long, or not UTF-8.
    """
    return text_of(read_bytes(path), path)


def read_bytes(path: str | Path) -> bytes:
    """Read the bytes of a document, from a file or a pipe.

    Raises
    ------
    DocumentError
        No file, or too long.
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
        del content  # The error keeps the local variables of this function.
        todo = "name a document of Vani; a profile is shorter with fewer files (`--files N`)"
        raise DocumentError(f"is longer than {MAX_BYTES >> 20} MiB", where=path, todo=todo)
    return content


def text_of(content: bytes, path: str | Path) -> str:
    """Decode the bytes of a document read from `path`; raises DocumentError if they are not text."""
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


def _lifted(tree: Doc, model: type[BaseModel], text: str, where: str, syntax: Syntax) -> Doc:
    """Bring a document to the version that `model` describes, step by step."""
    known = schema_name(model)
    kind, newest = known.removeprefix("vani.").split("/")
    if "schema" not in tree:
        raise DocumentError("has no `schema:`", where=where, todo=f"start it with `{_begin(model, syntax)}`")
    declared = tree["schema"]
    match = _NAME.fullmatch(declared) if isinstance(declared, str) else None
    if match is None or match[1] != kind:
        place = f"{where}:{syntax.line_of(text, ('schema',))}"
        what = f"schema is {shown(declared)}"
        if match is not None and match[1] in _TAKEN_BY:
            what += f", {_TAKEN_BY[match[1]]}"
        raise DocumentError(what, where=place, todo=f"known here is {known}")
    version = int(match[2])
    if version > int(newest):
        older = [number for number in LIFTS.get(kind, {}) if number < int(newest)]
        versions = ", ".join(f"vani.{kind}/{number}" for number in (*older, int(newest)))
        raise DocumentError(
            f"schema {declared} is newer than this Vani; known: {versions}",
            where=f"{where}:{syntax.line_of(text, ('schema',))}",
            todo="update Vani",
        )
    for step in range(version, int(newest)):
        tree = LIFTS[kind][step](tree)
        if tree.get("schema") != f"vani.{kind}/{step + 1}":
            raise TypeError(f"the step from vani.{kind}/{step} did not change the version")
    return tree


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
