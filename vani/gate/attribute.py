"""The language of attribute paths: keys of profile.yaml separated by dots, and selectors of list entries.

    path       = aggregate "(" steps ")" | steps
    aggregate  = "count" | "sum" | "mean" | "min" | "max"
    steps      = key { "." key | "[" selector "]" }
    key        = letter { letter | digit | "_" | "-" } | text | "*"
    selector   = "*" | number | condition { "," condition }
    condition  = key { "." key } comparison value
    comparison = "=" | "==" | "!=" | "~" | "!~" | "<=" | "<" | ">=" | ">"
    value      = text | number with unit | word
    text       = '"' ... '"' (with \\" and \\\\) | "'" ... "'"

`~` matches a pattern: `*` is any text, including `/`; `?` is one character; `[abc]`, `[a-z]`, `[!a]` are one of a set.
Patterns are case-sensitive and must match the whole text. A literal `*`, `?` or `[` is written `[*]`, `[?]`, `[[]`.

This module has only the grammar. `vani.gate.attribute_schema` has the keys of a profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vani.errors import one_line
from vani.gate.quantity import QUANTITY, Quantity, parse_quantity

AGGREGATES: Final = ("count", "sum", "mean", "min", "max")
COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}
MAX_STEPS: Final = 50

_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.+/-]*")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_OPERATOR: Final = re.compile(r"!~|<=|>=|==|!=|=|~|<|>")
_DOUBLE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SINGLE: Final = re.compile(r"'([^']*)'")


class AttributeSyntaxError(ValueError):
    """The text is not an attribute path. The message has what was expected, and where (a position from 1)."""

    def __init__(self, expected: str, text: str, at: int) -> None:
        got = f"{_excerpt(text, at)!r}" if at < len(text) else "the end"
        super().__init__(f"expected {expected} at character {at + 1} of `{one_line(text)}`, found {got}")
        self.at = at


def _excerpt(text: str, at: int) -> str:
    return text[at : at + 12] + ("..." if len(text) > at + 12 else "")


@dataclass(frozen=True)
class Key:
    """A key of a mapping."""

    name: str

    def __str__(self) -> str:
        return f".{key_text(self.name)}"


@dataclass(frozen=True)
class AnyKey:
    """Every key of a mapping."""

    def __str__(self) -> str:
        return ".*"


@dataclass(frozen=True)
class Index:
    """The list entry at a position from 0."""

    number: int

    def __str__(self) -> str:
        return f"[{self.number}]"


@dataclass(frozen=True)
class Each:
    """Every list entry."""

    def __str__(self) -> str:
        return "[*]"


@dataclass(frozen=True)
class Condition:
    """A condition on an attribute of a list entry. `operator` is `=` for `==`."""

    keys: tuple[str, ...]
    operator: str
    value: str | Quantity

    def __str__(self) -> str:
        value = self.value.text if isinstance(self.value, Quantity) else quoted(self.value)
        return ".".join(map(key_text, self.keys)) + self.operator + value


@dataclass(frozen=True)
class Where:
    """The list entries that meet all conditions."""

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.conditions))}]"


Step = Key | AnyKey | Index | Each | Where


@dataclass(frozen=True)
class Attribute:
    """A path, optionally with an aggregate of everything that it matches. Parsing its text gives it back."""

    steps: tuple[Step, ...]
    aggregate: str | None = None

    def __str__(self) -> str:
        path = "".join(map(str, self.steps)).removeprefix(".")
        return f"{self.aggregate}({path})" if self.aggregate else path


def quoted(text: str) -> str:
    """Quote `text` for the grammar, with double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def key_text(name: str) -> str:
    """A key as text, bare if possible and quoted otherwise."""
    return name if _BARE.fullmatch(name) else quoted(name)


def parse_attribute(text: str) -> Attribute:
    """Parse a text that is exactly one attribute path.

    Raises
    ------
    AttributeSyntaxError
        The text is not an attribute path.
    """
    reader = Reader(text)
    attribute = reader.attribute()
    reader.end("`.`, `[` or the end")
    return attribute


class Reader:
    """Recursive-descent parser."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def attribute(self) -> Attribute:
        """Parse a path or an aggregate from the current position."""
        self.space()
        match = _BARE.match(self.text, self.at)
        if match is None or self.text[match.end() :].lstrip()[:1] != "(":
            return Attribute(self._steps())
        if match[0] not in AGGREGATES:
            raise self.expected(f"one of {', '.join(AGGREGATES)} before `(`")
        self.at = match.end()
        self.take("(")
        steps = self._steps()
        if not self.take(")"):
            raise self.expected("`)`, `.` or `[`")
        return Attribute(steps, match[0])

    def end(self, expected: str) -> None:
        """Raise an error unless only blanks are left."""
        self.space()
        if self.at < len(self.text):
            raise self.expected(expected)

    def space(self) -> None:
        """Skip blanks."""
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1

    def take(self, token: str) -> bool:
        """Skip blanks, and `token` if it comes next. True if it did."""
        self.space()
        is_next = self.text.startswith(token, self.at)
        self.at += len(token) if is_next else 0
        return is_next

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Skip blanks and text that matches `pattern`. Return the match, or None."""
        self.space()
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def string(self) -> str | None:
        """Parse a quoted text if one comes next; None otherwise."""
        if (match := self.match(_DOUBLE)) is not None:
            return re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL)
        if (match := self.match(_SINGLE)) is not None:
            return match[1]
        if self.text[self.at : self.at + 1] in ('"', "'"):
            raise AttributeSyntaxError("a closing quote", self.text, len(self.text))
        return None

    def expected(self, expectation: str) -> AttributeSyntaxError:
        """An error at the current position."""
        self.space()
        return AttributeSyntaxError(expectation, self.text, self.at)

    def _steps(self) -> tuple[Step, ...]:
        steps: list[Step] = [self._key()]
        while True:
            if len(steps) > MAX_STEPS:
                raise self.expected(f"no more than {MAX_STEPS} steps")
            if self.take("["):
                steps.append(self._selector())
            elif self.take("."):
                steps.append(self._key())
            else:
                return tuple(steps)

    def _key(self) -> Key | AnyKey:
        if self.take("*"):
            return AnyKey()
        if (name := self._name()) is None:
            raise self.expected("a key")
        return Key(name)

    def _name(self) -> str | None:
        if (name := self.string()) is not None:
            return name
        match = self.match(_BARE)
        return None if match is None else match[0]

    def _selector(self) -> Step:
        if self.take("*"):
            step: Step = Each()
        elif (match := self.match(_INDEX)) is not None:
            step = Index(int(match[0]))
        else:
            conditions = [self._condition()]
            while self.take(","):
                if len(conditions) >= MAX_STEPS:
                    raise self.expected(f"no more than {MAX_STEPS} conditions")
                conditions.append(self._condition())
            step = Where(tuple(conditions))
        if not self.take("]"):
            raise self.expected("`]` or `,`" if isinstance(step, Where) else "`]`")
        return step

    def _condition(self) -> Condition:
        first = self._name()
        if first is None:
            raise self.expected('`*`, a position from 0, or a condition such as `role="output"`')
        keys = [first]
        while self.take("."):
            if (name := self._name()) is None:
                raise self.expected("a key")
            keys.append(name)
        operator = self.match(_OPERATOR)
        if operator is None:
            raise self.expected("one of = != ~ !~ <= < >= >")
        return Condition(tuple(keys), "=" if operator[0] == "==" else operator[0], self._value(operator[0]))

    def _value(self, operator: str) -> str | Quantity:
        if (text := self.string()) is not None:
            return text
        self.space()
        at = self.at
        if (match := self.match(QUANTITY)) is not None and operator not in ("~", "!~"):
            try:
                return parse_quantity(match[0])
            except ValueError as error:
                raise AttributeSyntaxError(f"a number ({error})", self.text, at) from None
        self.at = at
        if (match := self.match(_WORD)) is not None:
            return match[0]
        raise self.expected("a text in quotes" if operator in ("~", "!~") else "a text in quotes or a number")
