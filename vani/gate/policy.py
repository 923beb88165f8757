"""The policy of a project: where it is found, and what its checks ask, ready to be held against a profile."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, InputError
from vani.gate.attribute import COMPARISONS, Attribute, AttributeSyntaxError, Reader, parse_attribute
from vani.gate.quantity import Dimension, Quantity, parse_quantity
from vani.gate.reading import path_text, read_bytes
from vani.gate.shape import Leaf, UnknownAttributeError, refuse_never, refuse_no_share, resolve
from vani.gate.tolerance import DEFAULTS, NOISE
from vani.schema import policy as spec
from vani.schema.check import Level, PolicyPlace, Source
from vani.schema.document import YAML, Syntax, check, read_tree
from vani.schema.policy import Direction, Policy
from vani.schema.toml_text import TOML

__all__ = [
    "FILE_NAMES",
    "Asked",
    "BudgetCheck",
    "ChangeCheck",
    "Excuse",
    "RulesCheck",
    "find_policy",
    "is_there",
    "no_policy",
    "project_folder",
    "read_policy",
]

FILE_NAMES: Final = ("vani.toml", ".vani.yaml")
MAX_BYTES: Final = 1 << 20
"""Longer policies are refused: nobody writes a megabyte of settings by hand."""
BASELINE: Final = Path(".vani/baseline.yaml")


@dataclass(frozen=True)
class BudgetCheck:
    """One `[[check.budget]]`."""

    name: str
    attribute: Attribute
    leaves: tuple[Leaf, ...]
    operator: str
    limit: int | float | str | bool
    limit_text: str
    level: Level
    required: bool
    reason: str | None
    place: PolicyPlace


@dataclass(frozen=True)
class ChangeCheck:
    """One `[[check.change]]`, or an entry of the built-in list; None: as the table of tolerances says."""

    name: str
    attribute: Attribute
    leaves: tuple[Leaf, ...]
    relative: float | None = None
    absolute: float | None = None
    direction: Direction | None = None
    noise: float = NOISE
    level: Level | None = None
    required: bool = False
    reason: str | None = None
    place: PolicyPlace | None = None


@dataclass(frozen=True)
class RulesCheck:
    """`[check.rules]`."""

    table: spec.Rules
    place: PolicyPlace


@dataclass(frozen=True)
class Excuse:
    """One `[[check.except]]`."""

    table: spec.ExceptionSpec
    attribute: Attribute | None
    leaves: tuple[Leaf, ...]
    place: PolicyPlace


@dataclass(frozen=True)
class Asked:
    """All that a project asks."""

    path: Path | None
    """The file as the user or the search named it; None where there is none."""
    source: Source | None
    table: spec.CheckTable
    advise: Mapping[str, Any] | None = None
    budgets: tuple[BudgetCheck, ...] = ()
    changes: tuple[ChangeCheck, ...] = ()
    rules: RulesCheck | None = None
    excuses: tuple[Excuse, ...] = ()
    folder: Path = field(default_factory=Path)
    """What paths in the policy are seen from."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Of some keys of `[check]`, the lines of the file."""

    def where(self, key: str) -> str:
        """File and line of a key of `[check]`, for an error; empty where there is no file."""
        if self.path is None:
            return ""
        return f"{self.path}:{self.lines[key]}" if key in self.lines else str(self.path)

    @property
    def strip(self) -> tuple[str, ...]:
        """Beginnings of paths that differ from run to run."""
        return tuple(self.table.paths.strip)


def find_policy(start: Path) -> Path | None:
    """The nearest policy, from the folder `start` upwards.

    The last folder looked at is the top of a repository (it holds `.git`), the home directory or the root.

    Raises
    ------
    InputError
        A folder holds both kinds of files.
    """
    for folder in _upwards(start):
        found = [name for name in FILE_NAMES if is_there(folder / name)]
        if len(found) > 1:
            raise InputError(
                f"holds both {' and '.join(found)}",
                where=folder,
                todo="keep one of them, or name one with --policy",
            )
        if found:
            return Path(os.path.relpath(folder / found[0], start))
    return None


def project_folder(start: Path) -> Path:
    """Without a policy: the nearest folder upwards that has a saved baseline, else `start`."""
    for folder in _upwards(start):
        if is_there(folder / BASELINE):
            return Path(os.path.relpath(folder, start))
    return Path()


def is_there(path: Path) -> bool:
    """Whether there is a file of this name.

    Raises
    ------
    InputError
        There is something else, such as a link to nothing: whoever put it there meant it to be read.
    """
    if path.is_file():
        return True
    if not os.path.lexists(path):
        return False
    what = (
        "is a directory" if path.is_dir() else "is a link to nothing" if path.is_symlink() else "is no file"
    )
    raise InputError(what, where=path, todo="remove it, or put a file in its place")


def _upwards(start: Path) -> list[Path]:
    start = start.resolve()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    folders = []
    for folder in (start, *start.parents):
        folders.append(folder)
        if (folder / ".git").exists() or folder == home:
            break
    return folders


def no_policy(folder: Path = Path()) -> Asked:
    """What is asked where there is no policy: the built-in list of changes, if there is a baseline."""
    return Asked(None, None, spec.CheckTable(), changes=_defaults(()), folder=folder)


def read_policy(path: Path) -> Asked:
    """Read a policy, TOML or YAML by its suffix, and hold all its paths and limits against the schema.

    A file without `schema` and `check`, such as a vani.toml for `vani advise` alone, asks what is asked without one.

    Raises
    ------
    DocumentError
        What is wrong, with its line.
    """
    text = _text(path)
    source = Source(path=path_text(path), sha256=hashlib.sha256(text.encode()).hexdigest())
    syntax = TOML if path.suffix == ".toml" else YAML
    tree = syntax.parse(text, str(path))
    if syntax is TOML and isinstance(tree, dict) and not {"schema", "check"} & tree.keys():
        _refuse_near(tree, text, path)
        advise = tree.get("advise") if isinstance(tree.get("advise"), dict) else None
        return replace(no_policy(path.parent), path=path, source=source, advise=advise)
    tree = read_tree(text, Policy, where=str(path), syntax=syntax)
    document = check(tree, Policy, text=text, where=str(path), syntax=syntax)
    return _Compiler(path, source, text, syntax).asked(document)


def _refuse_near(tree: Mapping[str, Any], text: str, path: Path) -> None:
    """Refuse a file without `check` that was meant to have it: all that it asks would be passed over."""
    inside = {field.alias or name for name, field in spec.CheckTable.model_fields.items()}
    for name in tree:
        near = f"check.{name}" if name in inside else None
        if difflib.get_close_matches(name[:100], ["check"], n=1, cutoff=0.75):
            near = "check"
        if near is not None:
            where = f"{path}:{TOML.line_of(text, (name,))}"
            raise DocumentError(
                f"unknown key {name!r} at the top", where=where, todo=f"did you mean {near!r}?"
            )


def _text(path: Path) -> str:
    if not os.path.lexists(path):
        raise DocumentError("no such file", where=path)
    if path.is_dir():
        raise DocumentError("is a directory", where=path, todo="name a policy: vani.toml or .vani.yaml")
    content = read_bytes(path, todo="name a policy", most=MAX_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"is not UTF-8 text (byte 0x{content[error.start]:02x})"
        raise DocumentError(what, where=f"{path}:{line}", todo="save it as UTF-8") from None
    if "\0" in text:
        raise DocumentError("is binary, not text", where=path, todo="name a policy")
    return text


class _Compiler:
    """Makes checks of a policy's tables; errors name the line."""

    def __init__(self, path: Path, source: Source, text: str, syntax: Syntax) -> None:
        self.path, self.source, self.text, self.syntax = path, source, text, syntax

    def asked(self, document: Policy) -> Asked:
        table = document.check or spec.CheckTable()
        self._refuse_doubles(table)
        budgets = [self._budget(number, one) for number, one in enumerate(table.budget)]
        changes = [self._change(number, one) for number, one in enumerate(table.change)]
        own = tuple(changes)
        if table.defaults if table.defaults is not None else not own:
            changes += _defaults(own)
        names = _distinct([*(one.name for one in budgets), *(one.name for one in changes)])
        return Asked(
            self.path,
            self.source,
            table,
            document.advise,
            tuple(_renamed(one, names[i]) for i, one in enumerate(budgets)),
            tuple(_renamed(one, names[len(budgets) + i]) for i, one in enumerate(changes)),
            None if table.rules is None else self._rules(table.rules),
            tuple(self._excuse(number, one) for number, one in enumerate(table.except_)),
            self.path.parent,
            {
                key: self._line("check", key)
                for key in ("baseline", "system")
                if getattr(table, key) is not None
            },
        )

    def _refuse_doubles(self, table: spec.CheckTable) -> None:
        seen: set[str] = set()
        named = [("budget", number, one.name) for number, one in enumerate(table.budget)]
        named += [("change", number, one.name) for number, one in enumerate(table.change)]
        for kind, number, name in named:
            if name is None:
                continue
            if not name.isprintable():
                what = "name holds a control character"
                raise self._error(what, "write it without", kind, number, "name")
            if name in seen:
                raise self._error(
                    f"two checks are called {name!r}", "give each its own name", kind, number, "name"
                )
            seen.add(name)

    def _budget(self, number: int, one: spec.Budget) -> BudgetCheck:
        place = ("budget", number, "expect")
        reader = Reader(one.expect)
        try:
            attribute, leaves = resolve(reader.attribute())
            operator = next((sign for sign in COMPARISONS if reader.take(sign)), None)
            if operator is None:
                raise reader.expected("`.`, `[` or one of <= < >= > == !=")
            reader.space()
            dimensions = {_dimension(attribute, leaf) for leaf in leaves}
            limit = _limit(reader, operator, dimensions, attribute, leaves)
        except ValueError as error:
            raise self._explained(error, *place) from None
        text = one.expect[reader.at :].strip()
        return BudgetCheck(
            one.name or str(attribute), attribute, leaves, operator, limit, f"{operator} {text}",
            one.level, one.required, one.reason, self._place("check", "budget", number),
        )  # fmt: skip

    def _change(self, number: int, one: spec.Change) -> ChangeCheck:
        attribute, leaves = self._attribute(one.attribute, "change", number, "attribute")
        dimensions = {_dimension(attribute, leaf) for leaf in leaves}
        if dimensions & {"text", "flag"}:
            raise self._error(
                f"{attribute} is no number", "write a [[check.budget]] such as `... == \"posix\"`",
                "change", number, "attribute",
            )  # fmt: skip
        relative = self._quantity(one.relative, {"share"}, "change", number, "relative")
        absolute = self._quantity(one.absolute, dimensions, "change", number, "absolute")
        if one.relative is not None or one.absolute is not None:
            relative, absolute = relative or 0.0, absolute or 0.0
        return ChangeCheck(
            one.name or f"change of {attribute}", attribute, leaves, relative, absolute, one.direction, one.noise,
            one.level, one.required, one.reason, self._place("check", "change", number),
        )  # fmt: skip

    def _rules(self, table: spec.Rules) -> RulesCheck:
        if table.fail_on_severity is None and not table.forbid:
            raise self._error("accepts any advice", "give `fail_on_severity` or `forbid`", "rules")
        return RulesCheck(table, self._place("check", "rules"))

    def _excuse(self, number: int, one: spec.ExceptionSpec) -> Excuse:
        if not (one.check or one.attribute or one.target or one.rule):
            raise self._error(
                "an exception covers everything",
                "name its check, attribute, target or rule",
                "except",
                number,
            )
        attribute: Attribute | None = None
        leaves: tuple[Leaf, ...] = ()
        if one.attribute is not None:
            attribute, leaves = self._attribute(one.attribute, "except", number, "attribute")
        return Excuse(one, attribute, leaves, self._place("check", "except", number))

    def _attribute(self, text: str, *place: str | int) -> tuple[Attribute, tuple[Leaf, ...]]:
        try:
            return resolve(parse_attribute(text))
        except ValueError as error:
            raise self._explained(error, *place) from None

    def _quantity(
        self, given: float | str | None, dimensions: set[Dimension], *place: str | int
    ) -> float | None:
        if given is None:
            return None
        if not isinstance(given, str):
            if given > 1 and dimensions == {"share"}:
                raise self._error(
                    f"{place[-1]} {given:g} is {given * 100:g} %",
                    f'write "{given:g} %" or "{given * 100:g} %"', *place,
                )  # fmt: skip
            return given
        try:
            quantity = parse_quantity(given)
        except ValueError as error:
            raise self._error(str(error), f"change {place[-1]}", *place) from None
        wrong = [one for one in dimensions if not quantity.fits(one)]
        if wrong or quantity.value < 0:
            what = (
                "is negative" if quantity.value < 0 else f"is {quantity.meaning()}, which does not fit here"
            )
            raise self._error(f"{place[-1]} {given!r} {what}", f"change {place[-1]}", *place)
        return quantity.value

    def _explained(self, error: ValueError, *place: str | int) -> DocumentError:
        what = str(error)
        todo = "docs/check.md tells how paths are written" if isinstance(error, AttributeSyntaxError) else ""
        if isinstance(error, UnknownAttributeError):
            what, _, todo = what.partition("; ")
        return self._error(what, todo, *place)

    def _error(self, what: str, todo: str, *place: str | int) -> DocumentError:
        return DocumentError(what, where=f"{self.path}:{self._line('check', *place)}", todo=todo)

    def _place(self, *place: str | int) -> PolicyPlace:
        return PolicyPlace(path=path_text(self.path), line=self._line(*place))

    def _line(self, *place: str | int) -> int:
        return self.syntax.line_of(self.text, place)


def _dimension(attribute: Attribute, leaf: Leaf) -> Dimension:
    if attribute.aggregate == "count":
        return "count"
    return "number" if attribute.aggregate == "mean" and leaf.dimension == "count" else leaf.dimension


def _limit(
    reader: Reader, operator: str, dimensions: set[Dimension], attribute: Attribute, leaves: Sequence[Leaf]
) -> int | float | str | bool:
    """What stands behind the comparison; it must fit each of the attributes. Leaves the reader where it began."""
    text = reader.text[reader.at :].strip()
    if dimensions <= {"text", "flag"}:
        if operator not in ("==", "!="):
            raise UnknownAttributeError(f"{attribute} has no order; compare it by == or !=")
        if dimensions == {"flag"}:
            if text not in ("true", "false"):
                raise UnknownAttributeError(f"{attribute} is true or false, not {text!r}")
            return text == "true"
        begin = reader.at
        word = reader.string()
        if word is not None:
            reader.end("the end")
        reader.at = begin
        found = text if word is None else word
        for leaf in leaves:
            refuse_never(str(attribute), leaf, found)
        return found
    if dimensions & {"text", "flag"}:
        raise UnknownAttributeError(f"{attribute} stands for numbers and for text; name fewer")
    quantity: Quantity = parse_quantity(text)
    for dimension in sorted(dimensions):
        if not quantity.fits(dimension):
            what = Quantity(0, dimension, "").meaning()
            raise UnknownAttributeError(f"{attribute} is {what}, and {text} is {quantity.meaning()}")
        if dimensions == {"share"} and attribute.aggregate != "sum":
            refuse_no_share(str(attribute), quantity)
    return quantity.value


def _defaults(own: Sequence[ChangeCheck]) -> tuple[ChangeCheck, ...]:
    """The built-in list, without what the policy compares in its own way."""
    compared = {leaf.dotted for one in own for leaf in one.leaves if one.attribute.aggregate is None}
    checks = []
    for text in DEFAULTS:
        attribute, leaves = resolve(parse_attribute(text))
        rest = tuple(leaf for leaf in leaves if leaf.dotted not in compared)
        if rest:
            checks.append(ChangeCheck(f"change of {attribute}", attribute, rest))
    return tuple(checks)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that are there again."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def _renamed(one: Any, name: str) -> Any:
    return one if one.name == name else replace(one, name=name)
