"""Compiles the tables of a policy to checks. Validates paths, limits and names against the schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vani.errors import DocumentError
from vani.gate.attribute import COMPARISONS, Attribute, AttributeSyntaxError, Reader, parse_attribute
from vani.gate.attribute_schema import Leaf, UnknownAttributeError, refuse_never, refuse_no_share, resolve
from vani.gate.policy_checks import (
    BudgetCheck,
    ChangeCheck,
    ExceptionCheck,
    PolicyChecks,
    RulesCheck,
    built_in_changes,
)
from vani.gate.profile_tree import path_text
from vani.gate.quantity import Dimension, Quantity, parse_quantity
from vani.schema import policy as spec
from vani.schema.check import PolicyPlace, Source
from vani.schema.document import Syntax
from vani.schema.policy import Policy


def compile_checks(document: Policy, path: Path, source: Source, text: str, syntax: Syntax) -> PolicyChecks:
    """Compile the checks of a policy; `text` is the text of its file.

    Raises
    ------
    DocumentError
        The policy is invalid. The message has the line.
    """
    return _Compiler(path, source, text, syntax).compile(document)


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
        return PolicyChecks(
            self.path,
            self.source,
            table,
            document.advise,
            tuple(_renamed(budget, names[i]) for i, budget in enumerate(budgets)),
            tuple(_renamed(change, names[len(budgets) + i]) for i, change in enumerate(changes)),
            None if table.rules is None else self._rules(table.rules),
            tuple(self._exception(number, exception) for number, exception in enumerate(table.except_)),
            self.path.parent,
            {
                key: self._line("check", key)
                for key in ("baseline", "system")
                if getattr(table, key) is not None
            },
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
        reader = Reader(table.expect)
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
            table.name or f"change of {attribute}", attribute, leaves, relative, absolute, table.direction, table.noise,
            table.slower, table.level, table.required, table.reason, self._place("check", "change", number),
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
        attribute: Attribute | None = None
        leaves: tuple[Leaf, ...] = ()
        if table.attribute is not None:
            attribute, leaves = self._attribute(table.attribute, "except", number, "attribute")
        return ExceptionCheck(table, attribute, leaves, self._place("check", "except", number))

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
        wrong = [dimension for dimension in dimensions if not quantity.fits(dimension)]
        if wrong or quantity.value < 0:
            problem = (
                "is negative" if quantity.value < 0 else f"is {quantity.meaning()}, which does not fit here"
            )
            raise self._error(f"{place[-1]} {given!r} {problem}", f"change {place[-1]}", *place)
        return quantity.value

    def _explained(self, error: ValueError, *place: str | int) -> DocumentError:
        problem = str(error)
        todo = (
            "docs/check.md describes the paths" if isinstance(error, AttributeSyntaxError) else ""
        )
        if isinstance(error, UnknownAttributeError):
            problem, _, todo = problem.partition("; ")
        return self._error(problem, todo, *place)

    def _error(self, problem: str, todo: str, *place: str | int) -> DocumentError:
        return DocumentError(problem, where=f"{self.path}:{self._line('check', *place)}", todo=todo)

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
    """The limit after the comparison operator, which must suit all attributes. The reader does not move."""
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
        limit = text if word is None else word
        for leaf in leaves:
            refuse_never(str(attribute), leaf, limit)
        return limit
    if dimensions & {"text", "flag"}:
        raise UnknownAttributeError(f"{attribute} matches numbers and text; name fewer")
    quantity: Quantity = parse_quantity(text)
    for dimension in sorted(dimensions):
        if not quantity.fits(dimension):
            expected = Quantity(0, dimension, "").meaning()
            raise UnknownAttributeError(f"{attribute} is {expected}, and {text} is {quantity.meaning()}")
        if dimensions == {"share"} and attribute.aggregate != "sum":
            refuse_no_share(str(attribute), quantity)
    return quantity.value


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, with numbers appended to repeated ones."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return distinct


def _renamed(check: Any, name: str) -> Any:
    return check if check.name == name else replace(check, name=name)
