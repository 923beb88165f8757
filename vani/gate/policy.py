"""The policy of a project: finds and reads its file, compiles its tables to checks, and finds its saved baseline."""

import difflib
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from vani.errors import DocumentError, InputError
from vani.gate import attribute as attributes
from vani.gate.matching import path_text
from vani.gate.tolerance import DEFAULTS, MEANINGS, Dimension, parse_quantity
from vani.schema import policy as spec
from vani.schema.check import Level, PolicyPlace, Source
from vani.schema.document import YAML, Syntax, read_bytes, read_tree, text_of, validate
from vani.schema.policy import Direction, Policy
from vani.schema.settings import PathLike
from vani.schema.syntax.toml_reader import TOML


@dataclass(frozen=True)
class BudgetCheck:
    """A `[[check.budget]]` table."""

    name: str
    attribute: attributes.Attribute
    leaves: tuple[attributes.Leaf, ...]
    operator: str
    limit: int | float | str | bool
    limit_text: str
    level: Level
    required: bool
    reason: str | None
    place: PolicyPlace


@dataclass(frozen=True)
class ChangeCheck:
    """A `[[check.change]]` table, or an entry of the built-in list. None: as in the table of tolerances."""

    name: str
    attribute: attributes.Attribute
    leaves: tuple[attributes.Leaf, ...]
    relative: float | None = None
    absolute: float | None = None
    direction: Direction | None = None
    level: Level | None = None
    required: bool = False
    reason: str | None = None
    place: PolicyPlace | None = None


@dataclass(frozen=True)
class RulesCheck:
    """The `[check.rules]` table."""

    table: spec.Rules
    place: PolicyPlace


@dataclass(frozen=True)
class ExceptionCheck:
    """A `[[check.except]]` table."""

    table: spec.ExceptionSpec
    attribute: attributes.Attribute | None
    leaves: tuple[attributes.Leaf, ...]
    place: PolicyPlace


@dataclass(frozen=True)
class PolicyChecks:
    """All checks of a project."""

    path: Path | None
    """Path of the policy as given or found; None without a policy."""
    source: Source | None
    table: spec.CheckTable
    advise: Mapping[str, Any] | None = None
    budgets: tuple[BudgetCheck, ...] = ()
    changes: tuple[ChangeCheck, ...] = ()
    rules: RulesCheck | None = None
    exceptions: tuple[ExceptionCheck, ...] = ()
    folder: Path = field(default_factory=Path)
    """Folder that paths in the policy are relative to."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Line numbers of some keys of `[check]`."""

    def where(self, key: str) -> str:
        """File and line of a key of `[check]` for an error; empty without a file."""
        if self.path is None:
            return ""
        return f"{self.path}:{self.lines[key]}" if key in self.lines else str(self.path)

    @property
    def strip(self) -> tuple[str, ...]:
        """Leading parts of paths that differ from run to run."""
        return tuple(self.table.paths.strip)


def no_policy(folder: Path = Path()) -> PolicyChecks:
    """The checks of a project without a policy: the built-in list of changes since a baseline."""
    return PolicyChecks(None, None, spec.CheckTable(), changes=built_in_changes(()), folder=folder)


def built_in_changes(own: Sequence[ChangeCheck]) -> tuple[ChangeCheck, ...]:
    """The built-in list without the attributes that the policy compares."""
    compared = {leaf.dotted for check in own for leaf in check.leaves if check.attribute.aggregate is None}
    checks = []
    for text in DEFAULTS:
        attribute, leaves = attributes.resolve(attributes.parse_attribute(text))
        rest = tuple(leaf for leaf in leaves if leaf.dotted not in compared)
        if rest:
            checks.append(ChangeCheck(f"change of {attribute}", attribute, rest))
    return tuple(checks)


class _Compiler:
    """Builds checks from a policy's tables. Errors name the line."""

    def __init__(self, path: Path, source: Source, text: str, syntax: Syntax) -> None:
        self.path, self.source, self.text, self.syntax = path, source, text, syntax

    def compile(self, document: Policy) -> PolicyChecks:
        table = document.check or spec.CheckTable()
        self._refuse_doubles(table)
        budgets = [self._budget(number, budget) for number, budget in enumerate(table.budget)]
        changes = [self._change(number, change) for number, change in enumerate(table.change)]
        own = tuple(changes)
        if table.defaults if table.defaults is not None else not own:
            changes += built_in_changes(own)
        names = _distinct([*(budget.name for budget in budgets), *(change.name for change in changes)])
        given = [key for key in ("baseline", "system") if getattr(table, key) is not None]
        return PolicyChecks(
            self.path,
            self.source,
            table,
            document.advise,
            tuple(replace(budget, name=names[i]) for i, budget in enumerate(budgets)),
            tuple(replace(change, name=names[len(budgets) + i]) for i, change in enumerate(changes)),
            None if table.rules is None else self._rules(table.rules),
            tuple(self._exception(number, exception) for number, exception in enumerate(table.except_)),
            self.path.parent,
            {key: self._line("check", key) for key in given},
        )

    def _refuse_doubles(self, table: spec.CheckTable) -> None:
        seen: set[str] = set()
        named = [("budget", number, budget.name) for number, budget in enumerate(table.budget)]
        named += [("change", number, change.name) for number, change in enumerate(table.change)]
        for kind, number, name in named:
            if name is None:
                continue
            if not name.isprintable():
                problem = "name contains a control character"
                raise self._error(problem, "write it without", kind, number, "name")
            if name in seen:
                raise self._error(
                    f"two checks are called {name!r}", "give each a different name", kind, number, "name"
                )
            seen.add(name)

    def _budget(self, number: int, table: spec.Budget) -> BudgetCheck:
        place = ("budget", number, "expect")
        reader = attributes.Reader(table.expect)
        try:
            attribute, leaves = attributes.resolve(reader.attribute())
            operator = next((sign for sign in attributes.COMPARISONS if reader.take(sign)), None)
            if operator is None:
                raise reader.expected("`.`, `[` or one of <= < >= > == !=")
            reader.space()
            dimensions = {_dimension(attribute, leaf) for leaf in leaves}
            limit = _limit(reader, operator, dimensions, attribute, leaves)
        except ValueError as error:
            raise self._explained(error, *place) from None
        text = table.expect[reader.at :].strip()
        return BudgetCheck(
            table.name or str(attribute), attribute, leaves, operator, limit, f"{operator} {text}",
            table.level, table.required, table.reason, self._place("check", "budget", number),
        )  # fmt: skip

    def _change(self, number: int, table: spec.Change) -> ChangeCheck:
        attribute, leaves = self._attribute(table.attribute, "change", number, "attribute")
        dimensions = {_dimension(attribute, leaf) for leaf in leaves}
        if dimensions & {"text", "flag"}:
            raise self._error(
                f"{attribute} is not a number", "write a [[check.budget]] such as `... == \"posix\"`",
                "change", number, "attribute",
            )  # fmt: skip
        relative = self._quantity(table.relative, {"share"}, "change", number, "relative")
        absolute = self._quantity(table.absolute, dimensions, "change", number, "absolute")
        if table.relative is not None or table.absolute is not None:
            relative, absolute = relative or 0.0, absolute or 0.0
        return ChangeCheck(
            table.name or f"change of {attribute}", attribute, leaves, relative, absolute, table.direction, table.level,
            table.required, table.reason, self._place("check", "change", number),
        )  # fmt: skip

    def _rules(self, table: spec.Rules) -> RulesCheck:
        if table.fail_on_severity is None and not table.forbid:
            raise self._error("accepts any advice", "give `fail_on_severity` or `forbid`", "rules")
        return RulesCheck(table, self._place("check", "rules"))

    def _exception(self, number: int, table: spec.ExceptionSpec) -> ExceptionCheck:
        if not (table.check or table.attribute or table.target or table.rule):
            raise self._error(
                "an exception covers everything",
                "name its check, attribute, target or rule",
                "except",
                number,
            )
        attribute: attributes.Attribute | None = None
        leaves: tuple[attributes.Leaf, ...] = ()
        if table.attribute is not None:
            attribute, leaves = self._attribute(table.attribute, "except", number, "attribute")
        return ExceptionCheck(table, attribute, leaves, self._place("check", "except", number))

    def _attribute(self, text: str, *place: str | int) -> tuple[attributes.Attribute, tuple[attributes.Leaf, ...]]:
        try:
            return attributes.resolve(attributes.parse_attribute(text))
        except ValueError as error:
            raise self._explained(error, *place) from None

    def _quantity(self, given: float | str | None, dimensions: set[Dimension], *place: str | int) -> float | None:
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
        wrong = [dimension for dimension in dimensions if not quantity.fits(dimension)]
        if wrong or quantity.value < 0:
            problem = ("is negative" if quantity.value < 0 else f"is {quantity.meaning()}, which does not fit here")
            raise self._error(f"{place[-1]} {given!r} {problem}", f"change {place[-1]}", *place)
        return quantity.value

    def _explained(self, error: ValueError, *place: str | int) -> DocumentError:
        problem = str(error)
        todo = ("docs/check.md describes the paths" if isinstance(error, attributes.AttributeSyntaxError) else "")
        if isinstance(error, attributes.UnknownAttributeError):
            problem, _, todo = problem.partition("; ")
        return self._error(problem, todo, *place)

    def _error(self, problem: str, todo: str, *place: str | int) -> DocumentError:
        return DocumentError(problem, where=f"{self.path}:{self._line('check', *place)}", todo=todo)

    def _place(self, *place: str | int) -> PolicyPlace:
        return PolicyPlace(path=path_text(self.path), line=self._line(*place))

    def _line(self, *place: str | int) -> int:
        return self.syntax.line_of(self.text, place)


def _dimension(attribute: attributes.Attribute, leaf: attributes.Leaf) -> Dimension:
    if attribute.aggregate == "count":
        return "count"
    return "number" if attribute.aggregate == "mean" and leaf.dimension == "count" else leaf.dimension


def _limit(
    reader: attributes.Reader,
    operator: str,
    dimensions: set[Dimension],
    attribute: attributes.Attribute,
    leaves: Sequence[attributes.Leaf],
) -> int | float | str | bool:
    """The limit after the comparison operator, which must suit all attributes. The reader does not move."""
    text = reader.text[reader.at :].strip()
    if dimensions <= {"text", "flag"}:
        if operator not in ("==", "!="):
            raise attributes.UnknownAttributeError(f"{attribute} has no order; compare it by == or !=")
        if dimensions == {"flag"}:
            if text not in ("true", "false"):
                raise attributes.UnknownAttributeError(f"{attribute} is true or false, not {text!r}")
            return text == "true"
        begin = reader.at
        word = reader.string()
        if word is not None:
            reader.end("the end")
        reader.at = begin
        limit = text if word is None else word
        for leaf in leaves:
            attributes.refuse_never(str(attribute), leaf, limit)
        return limit
    if dimensions & {"text", "flag"}:
        raise attributes.UnknownAttributeError(f"{attribute} matches numbers and text; name fewer")
    quantity = parse_quantity(text)
    for dimension in sorted(dimensions):
        if not quantity.fits(dimension):
            is_other = f"is {MEANINGS[dimension]}, and {text} is {quantity.meaning()}"
            raise attributes.UnknownAttributeError(f"{attribute} {is_other}")
        if dimensions == {"share"} and attribute.aggregate != "sum":
            attributes.refuse_no_share(str(attribute), quantity)
    return quantity.value


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with numbers appended to repeated ones."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


FILE_NAMES: Final = ("vani.toml", ".vani.yaml")
BASELINE: Final = Path(".vani/baseline.yaml")
MAX_BYTES: Final = 1 << 20
"""Longest accepted policy: no user writes a megabyte of settings by hand."""


def find_policy(start: Path) -> Path | None:
    """The nearest policy, from the folder `start` upwards.

    The search ends at the top of a repository (with `.git`), the home directory or the root.

    Raises
    ------
    InputError
        A folder has both kinds of policy file.
    """
    for folder in _upwards(start):
        names = [name for name in FILE_NAMES if is_there(folder / name)]
        if len(names) > 1:
            raise InputError(
                f"contains both {' and '.join(names)}",
                where=folder,
                todo="keep one of them, or name one with --policy",
            )
        if names:
            return Path(os.path.relpath(folder / names[0], start))
    return None


def checks_of_policy(policy: PathLike | None, *, search: bool) -> PolicyChecks:
    """Checks from the given policy, else with `search` from the nearest one, else the built-in list."""
    path = Path(policy) if policy is not None else find_policy(Path()) if search else None
    return read_policy(path) if path is not None else no_policy(project_folder(Path()) if search else Path())


def project_folder(start: Path) -> Path:
    """Folder of a project without a policy: the nearest one upwards with a saved baseline, or else `start`."""
    for folder in _upwards(start):
        if is_there(folder / BASELINE):
            return Path(os.path.relpath(folder, start))
    return Path()


def is_there(path: Path) -> bool:
    """True if there is a file of this name.

    Raises
    ------
    InputError
        The name belongs to something else, such as a broken link, which was probably meant to be read.
    """
    if path.is_file():
        return True
    if not os.path.lexists(path):
        return False
    problem = ("is a directory" if path.is_dir() else "is a broken link" if path.is_symlink() else "is not a file")
    raise InputError(problem, where=path, todo="remove it, or replace it by a file")


def read_policy(path: Path) -> PolicyChecks:
    """Read a policy, TOML or YAML depending on its suffix, and validate its paths and limits against the schema.

    A file without `schema` and `check`, such as a vani.toml for `vani advise` alone, has the checks of `no_policy`.

    Raises
    ------
    DocumentError
        The policy is invalid. The message has the line.
    """
    text = text_of(read_bytes(path, most=MAX_BYTES, todo="name a policy: vani.toml or .vani.yaml"), path)
    source = Source(path=path_text(path), sha256=hashlib.sha256(text.encode()).hexdigest())
    syntax = TOML if path.suffix == ".toml" else YAML
    tree = syntax.parse(text, str(path))
    if syntax is TOML and isinstance(tree, dict) and not {"schema", "check"} & tree.keys():
        _refuse_near(tree, text, path)
        advise = tree.get("advise") if isinstance(tree.get("advise"), dict) else None
        return replace(no_policy(path.parent), path=path, source=source, advise=advise)
    tree = read_tree(text, Policy, where=str(path), syntax=syntax)
    document = validate(tree, Policy, text=text, where=str(path), syntax=syntax)
    return _Compiler(path, source, text, syntax).compile(document)


def _refuse_near(tree: Mapping[str, Any], text: str, path: Path) -> None:
    """Refuse a file with a misspelt or missing `check`, whose checks would silently be ignored."""
    inside = {field.alias or name for name, field in spec.CheckTable.model_fields.items()}
    for name in tree:
        near = f"check.{name}" if name in inside else None
        if difflib.get_close_matches(name[:100], ["check"], n=1, cutoff=0.75):
            near = "check"
        if near is not None:
            where = f"{path}:{TOML.line_of(text, (name,))}"
            raise DocumentError(f"unknown key {name!r} at the top", where=where, todo=f"did you mean {near!r}?")


def _upwards(start: Path) -> list[Path]:
    start = start.resolve()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises if there is none
    folders = []
    for folder in (start, *start.parents):
        folders.append(folder)
        if (folder / ".git").exists() or folder == home:
            break
    return folders
