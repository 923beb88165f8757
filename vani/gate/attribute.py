"""Paths of attributes, such as `apps[ior].io.bytes.written`: their grammar, and their meaning in profiles."""

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from vani.errors import nearest, one_line
from vani.gate.tolerance import MEANINGS, QUANTITY, Dimension, Quantity, parse_quantity
from vani.schema.model import Model
from vani.schema.profile import Profile, iostats

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
        got = repr(text[at : at + 12] + ("..." if len(text) > at + 12 else "")) if at < len(text) else "the end"
        super().__init__(f"expected {expected} at character {at + 1} of `{one_line(text)}`, found {got}")
        self.at = at


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
    """The list entries that meet all conditions; without any, every entry."""

    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.conditions)) or '*'}]"


Step = Key | AnyKey | Index | Where


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
            step: Step = Where()
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
            raise self.expected("`]` or `,`" if isinstance(step, Where) and step.conditions else "`]`")
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


_DIMENSIONS: Final[dict[Any, Dimension]] = {
    iostats.Bytes: "bytes",
    iostats.Seconds: "seconds",
    iostats.Share: "share",
    iostats.Rate: "rate",
    iostats.Count: "count",
    int: "count",
    float: "number",
    str: "text",
    bool: "flag",
}
# Their types do not show that these are bytes: a mean is not whole, and a stride may be negative.
_BY_NAME: Final[dict[str, Dimension]] = {"mean_bytes": "bytes", "stride": "bytes"}
_MAX_LEAVES: Final = 2000


class UnknownAttributeError(ValueError):
    """The path does not exist in a profile. The message names the nearest key."""


@dataclass(frozen=True)
class Leaf:
    """A single attribute, or, for a count, the entities to count.

    In `steps`, `io` is explicit, and `*` as a key occurs only in tables such as histograms.
    """

    steps: tuple[Step, ...]
    dimension: Dimension
    description: str
    entities: bool = False
    accepted: tuple[str, ...] = ()
    """Possible values of a text, if the schema lists them."""
    in_table: bool = False
    """True for a key in a table of counts, which omits zeros."""

    @property
    def dotted(self) -> str:
        """Only the keys: `files.io.ops.read`."""
        keys = (step for step in self.steps if isinstance(step, (Key, AnyKey)))
        return ".".join(step.name if isinstance(step, Key) else "*" for step in keys)


def resolve(attribute: Attribute) -> tuple[Attribute, tuple[Leaf, ...]]:
    """Resolve a path to the same path with explicit `io`, and all single attributes that it covers.

    Raises
    ------
    UnknownAttributeError
        A key does not exist, a selector is not on a list, or the path ends in a group.
    """
    counted = attribute.aggregate == "count"
    leaves_found = tuple(_walk(_Place(Profile, ""), attribute.steps, entities=counted))
    if not leaves_found:
        raise UnknownAttributeError(f"nothing in a profile is called {attribute}")
    if attribute.aggregate not in (None, "count"):
        for leaf in leaves_found:
            if leaf.dimension in ("text", "flag"):
                raise UnknownAttributeError(
                    f"{leaf.dotted} is {leaf.dimension}: only numbers have a {attribute.aggregate}"
                )
    # If the path means a single attribute, show the expanded path.
    steps = leaves_found[0].steps if len(leaves_found) == 1 else attribute.steps
    return Attribute(steps, attribute.aggregate), leaves_found


@functools.cache
def leaves(model: type[Model]) -> tuple[tuple[tuple[str, ...], Leaf], ...]:
    """All single attributes of a model outside its lists, and its tables, with their keys.

    The path of a table ends in `*`.
    """
    return tuple((tuple(s.name for s in leaf.steps if isinstance(s, Key)), leaf) for leaf in _below(model, ()))


def _below(model: type[Model], steps: tuple[Step, ...]) -> Iterator[Leaf]:
    for name, (kind, about) in _fields(model).items():
        deeper = (*steps, Key(name))
        if _is_model(kind):
            yield from _below(kind, deeper)
        elif (dimension := _dimension(kind)) is not None:
            yield Leaf(deeper, _BY_NAME.get(name, dimension), about)
        elif _is_table(kind) and (below := _dimension(_plain(get_args(kind)[1]))) is not None:
            yield Leaf((*deeper, AnyKey()), below, about)


class _Place(NamedTuple):
    """A place in the schema: its type, its path for errors, the steps that led there, and its description."""

    kind: Any
    path: str
    done: tuple[Step, ...] = ()
    about: str = ""


def _walk(at: _Place, steps: Sequence[Step], *, entities: bool = False) -> Iterator[Leaf]:
    """The attributes that `steps` lead to from a place; with `entities`, what can be counted."""
    kind, path, done, about = at
    if len(done) > 3 * len(steps) + 100:
        return
    if not steps:
        yield _end(at, entities=entities)
        return
    step, *rest = steps
    is_key = isinstance(step, (Key, AnyKey))
    if get_origin(kind) is list:
        if is_key:
            raise UnknownAttributeError(f"{path} is a list: name one, such as {path}[*] or {path}[0], before `{step}`")
        element = _plain(get_args(kind)[0])
        if isinstance(step, Where):
            step = Where(tuple(_condition(element, path, condition) for condition in step.conditions))
        yield from _walk(_Place(element, f"{path}[]", (*done, step), about), rest, entities=entities)
    elif not is_key:
        raise UnknownAttributeError(f"{path} is not a list: leave out {step}")
    elif _is_table(kind):
        below = _Place(_plain(get_args(kind)[1]), f"{path}{step}", (*done, step), about)
        for leaf in _walk(below, rest, entities=entities):
            yield replace(leaf, in_table=leaf.dimension == "count")
    elif not _is_model(kind):
        raise UnknownAttributeError(f"{path} is a single value: leave out `{step}`")
    elif not isinstance(step, Key):
        yield from _any_of(at, rest, entities=entities)
    elif step.name in (fields := _fields(kind)):
        yield from _walk(_key_of(at, step.name), rest, entities=entities)
    elif (inner := _io_of(fields)) is not None and step.name in _fields(inner):
        yield from _walk(at, (Key("io"), *steps), entities=entities)
    else:
        raise _unknown(step.name, path, [*fields, *(_fields(inner) if inner else ())])


def _key_of(at: _Place, name: str) -> _Place:
    kind, about = _fields(at.kind)[name]
    return _Place(kind, f"{at.path}.{name}".lstrip("."), (*at.done, Key(name)), about)


def _any_of(at: _Place, rest: Sequence[Step], *, entities: bool) -> Iterator[Leaf]:
    """Follow all keys below which the rest of the path exists. There must be at least one."""
    count = 0
    why: UnknownAttributeError | None = None
    for name, (kind, _) in _fields(at.kind).items():
        if rest and _is_table(kind):
            # A table accepts any key, so a misspelt one would match.
            continue
        try:
            for leaf in _walk(_key_of(at, name), rest, entities=entities):
                count += 1
                if count > _MAX_LEAVES:
                    raise UnknownAttributeError(f"{at.path}.* matches too many attributes: name fewer")
                yield leaf
        except UnknownAttributeError as error:
            why = error
    if not count:
        raise UnknownAttributeError(f"none of the keys of {at.path or 'a profile'} leads to {_text(rest)}") from why


def _text(steps: Sequence[Step]) -> str:
    return "".join(map(str, steps)).removeprefix(".") or "a single value"


def _end(at: _Place, *, entities: bool) -> Leaf:
    kind, path, done, about = at
    if (dimension := _dimension(kind)) is not None:
        if done and isinstance(done[-1], Key):
            dimension = _BY_NAME.get(done[-1].name, dimension)
        return Leaf(done, dimension, about, accepted=_accepted(kind))
    if entities:
        if get_origin(kind) is list:
            return Leaf((*done, Where()), "count", about, entities=True)
        if _is_model(kind) and done and not isinstance(done[-1], Key):
            return Leaf(done, "count", about, entities=True)
    if get_origin(kind) is list:
        raise UnknownAttributeError(f"{path} is a list: name an attribute of its entries, or count({path})")
    if _is_table(kind):
        raise UnknownAttributeError(f"{path} is a table: name one of its keys, or write {path}.*")
    known = ", ".join(_fields(kind)) if _is_model(kind) else ""
    raise UnknownAttributeError(f"{path} is a group: name one of its attributes ({known}), or write {path}.*")


def _condition(element: Any, path: str, condition: Condition) -> Condition:
    """The condition with explicit `io`, checked for entries of this type."""
    where = f"{path}[]"
    if not _is_model(element):
        raise UnknownAttributeError(f"the entries of {path} have no attributes: use {path}[*] or a position")
    leaf = next(_walk(_Place(element, where), [*map(Key, condition.keys)]))
    keys = tuple(step.name for step in leaf.steps if isinstance(step, Key))
    value, operator = condition.value, condition.operator
    name = ".".join(keys)
    if leaf.dimension == "flag":
        if value not in ("true", "false") or operator not in ("=", "!="):
            raise UnknownAttributeError(f"{where}.{name} is true or false: write {name}=true")
    elif leaf.dimension == "text":
        if isinstance(value, Quantity):
            value = value.text
        if operator not in ("=", "!=", "~", "!~"):
            raise UnknownAttributeError(f"{where}.{name} is text, which has no order: use = != ~ !~")
        if operator in ("=", "!="):
            refuse_never(f"{where}.{name}", leaf, value)
    elif not isinstance(value, Quantity) or operator in ("~", "!~"):
        raise UnknownAttributeError(f"{where}.{name} is a number: compare it with a number by = != <= < >= >")
    elif not value.fits(leaf.dimension):
        what = MEANINGS[leaf.dimension]
        raise UnknownAttributeError(f"{where}.{name} is {what}, and {value.text} is {value.meaning()}")
    elif leaf.dimension == "share":
        refuse_no_share(f"{where}.{name}", value)
    return Condition(keys, operator, value)


def refuse_never(name: str, leaf: Leaf, value: str) -> None:
    """Refuse a text that the attribute can never be.

    Raises
    ------
    UnknownAttributeError
        The schema lists the values, and the text is not one of them.
    """
    if leaf.accepted and value not in leaf.accepted:
        raise UnknownAttributeError(f"{name} is never {value!r}; {nearest(value, leaf.accepted)}")


def refuse_no_share(name: str, value: Quantity) -> None:
    """Refuse a number that a share never reaches: `<= 10` instead of `<= 10 %` would always pass.

    Raises
    ------
    UnknownAttributeError
        The number is not from 0 to 1.
    """
    if not 0 <= value.value <= 1:
        near = f"; did you mean {value.text} %?" if value.dimension is None and 1 < value.value <= 100 else ""
        raise UnknownAttributeError(f"{name} is a share, from 0 to 1, and never {value.text}{near}")


def _accepted(kind: Any) -> tuple[str, ...]:
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def _unknown(name: str, path: str, known: list[str]) -> UnknownAttributeError:
    where = f"in {path}" if path else "at the top of a profile"
    return UnknownAttributeError(f"unknown key {name!r} {where}; {nearest(name, known)}")


# --- types of the schema ----------------------------------------------------------------------------


@functools.cache
def _fields(model: type[Model]) -> dict[str, tuple[Any, str]]:
    """Types (without null) and descriptions of a model's keys."""
    hints: dict[str, Any] = {}
    # typing.get_type_hints would evaluate pydantic's own class for every model, which takes longer than a check.
    for kind in reversed(model.__mro__[: model.__mro__.index(Model)]):
        hints |= inspect.get_annotations(kind, eval_str=True)
    return {
        field.alias or name: (_plain(hints[name]), field.description or "")
        for name, field in model.model_fields.items()
    }


def _plain(annotation: Any) -> Any:
    """A type without null, and without annotations other than its unit."""
    if annotation in _DIMENSIONS:
        return annotation
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        kinds = [arg for arg in get_args(annotation) if arg is not types.NoneType]
        return _plain(kinds[0]) if len(kinds) == 1 else annotation
    if origin is Annotated:
        base, *extras = get_args(annotation)
        is_limited = base in (int, float) and any(isinstance(extra, FieldInfo) for extra in extras)
        return annotation if is_limited else _plain(base)
    return annotation


def _dimension(kind: Any) -> Dimension | None:
    if kind in _DIMENSIONS:
        return _DIMENSIONS[kind]
    if get_origin(kind) is Literal:
        return "text"
    if get_origin(kind) is Annotated:
        return _DIMENSIONS.get(get_args(kind)[0])
    return None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)


def _is_table(kind: Any) -> bool:
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _io_of(fields: dict[str, tuple[Any, str]]) -> type[Model] | None:
    kind = fields.get("io", (None, ""))[0]
    return kind if _is_model(kind) else None
