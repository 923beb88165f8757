"""All rules, and which of them a user chose, with which thresholds.

Rules are in the modules of `vani.advisors`' subfolders and in those of the entry points `vani.advisors`. A new rule is
one new file. Nothing is registered by hand, and finding the rules loads no data library.

A file for `--config` has a table for the user's choice. Sizes may have units::

    [advise]
    ignore = ["POS"]

    [advise.thresholds.LUS002]
    reach = 0.8
    min_bytes = "1G"
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import vani.advisors
from vani.advisors.rule import SECTIONS, Rule
from vani.errors import InputError, VaniError, nearest, refuse_named_pipe
from vani.plug_ins import described, plug_ins

ENTRY_POINTS = "vani.advisors"
"""Group of entry points, where each names a rule class or a module with rules."""


@functools.cache
def rules() -> tuple[type[Rule], ...]:
    """All rules, by family and in the order of ids.

    Raises
    ------
    VaniError
        Two rules share an id or a name.
    InputError
        An entry point of another distribution cannot be loaded.
    """
    by_id: dict[str, type[Rule]] = {}
    names: dict[str, type[Rule]] = {}
    for rule in (*_bundled(), *_plugged_in()):
        for known, key in ((by_id, rule.id), (names, rule.name)):
            if known.setdefault(key, rule) is not rule:
                raise VaniError(
                    f"rules {known[key].__qualname__} and {rule.__qualname__} are both called {key}",
                    where=rule.__module__,
                    todo="give one of them another id and name",
                )
    return tuple(by_id[id_] for id_ in sorted(by_id))


def find(word: str) -> type[Rule]:
    """The rule with this id or name, in upper or lower case.

    Raises
    ------
    InputError
        There is no such rule. The message names the nearest.
    """
    lower = word.strip().lower()
    for rule in rules():
        if lower in (rule.id.lower(), rule.name.lower()):
            return rule
    raise _unknown(word, [key for rule in rules() for key in (rule.id, rule.name)])


def pick(select: Iterable[str] | None = None, ignore: Iterable[str] | None = None) -> tuple[type[Rule], ...]:
    """The rules of `select` (None: all) without those of `ignore`.

    Each word is an id, a name, a family, or letters that ids begin with (`LUS`); a word may contain several,
    separated by commas.

    Raises
    ------
    InputError
        A word matches no rule. The message names the nearest.
    """
    chosen = rules() if select is None else tuple(r for r in rules() if r in _matching(select))
    dropped = _matching(ignore or ())
    return tuple(rule for rule in chosen if rule not in dropped)


def page_text(rule: type[Rule]) -> str:
    """The rule's documentation as plain text, with its thresholds; ends in a newline."""
    page = rule.page()
    lines = [f"{rule.id} {rule.name}", "", page.finding]
    for section in SECTIONS:
        lines += ["", section, *(f"    {line}".rstrip() for line in page.sections[section].splitlines())]
    if thresholds := rule.thresholds():
        lines += ["", "Thresholds", *(f"    {name} = {value}" for name, value in thresholds.items())]
    return "\n".join(lines) + "\n"


def _bundled() -> Iterator[type[Rule]]:
    for family in pkgutil.iter_modules(vani.advisors.__path__):
        if family.ispkg:
            package = importlib.import_module(f"vani.advisors.{family.name}")
            for module in pkgutil.iter_modules(package.__path__):
                yield from _rules_of(importlib.import_module(f"{package.__name__}.{module.name}"))


def _plugged_in() -> Iterator[type[Rule]]:
    for point in plug_ins(ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:
            raise InputError(
                f"the rules of entry point {point.name!r} cannot be loaded ({described(error)})",
                where=point.value,
                todo="update or uninstall the package that brings it",
            ) from error
        if isinstance(loaded, ModuleType):
            yield from _rules_of(loaded)
        elif isinstance(loaded, type) and issubclass(loaded, Rule):
            yield loaded
        else:
            raise InputError(
                f"entry point {point.name!r} is neither a rule nor a module of rules",
                where=point.value,
                todo="update or uninstall the package that brings it",
            )


def _rules_of(module: ModuleType) -> list[type[Rule]]:
    return [
        item
        for item in vars(module).values()
        # An imported rule belongs to the other module. A rule without id and name is a base class.
        if isinstance(item, type)
        and issubclass(item, Rule)
        and item.__module__ == module.__name__
        and (hasattr(item, "id") or hasattr(item, "name"))
    ]


def _matching(words: Iterable[str]) -> set[type[Rule]]:
    matched: set[type[Rule]] = set()
    for word in (part.strip() for text in words for part in text.split(",")):
        lower = word.lower()
        hits = {
            rule
            for rule in rules()
            if lower in (rule.name.lower(), rule.family) or (lower and rule.id.lower().startswith(lower))
        }
        if not hits:
            raise _unknown(word, [key for rule in rules() for key in (rule.id, rule.name, rule.family)])
        matched |= hits
    return matched


def _unknown(word: str, known: Iterable[str]) -> InputError:
    by_lower = {key.lower(): key for key in known}
    near = difflib.get_close_matches(word.strip().lower(), by_lower, n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(by_lower[key] for key in near)}?"
        if near
        else "`vani explain` lists them all"
    )
    return InputError(f"no rule is called {word!r}", todo=hint)


_KEYS: Final = ("select", "ignore", "thresholds")
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Settings:
    """The table `[advise]`. Unset keys are None or empty."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_settings(path: Path) -> Settings:
    """Read the table `[advise]` of a TOML file. Other tables belong to other commands.

    Unknown rules and thresholds are detected when the rules are evaluated.

    Raises
    ------
    InputError
        The file does not exist or is not TOML, or `[advise]` has an unknown key.
    """
    return settings_of(_tables(path).get("advise", {}), path)


def settings_of(table: object, path: Path) -> Settings:
    """Convert the table `advise` of the file at `path`. See `read_settings` for errors."""
    if not isinstance(table, dict):
        raise InputError("`advise` is not a table", where=path, todo="write it as [advise]")
    for key in table:
        if key not in _KEYS:
            raise InputError(f"unknown key {key!r} in [advise]", where=path, todo=nearest(key, _KEYS))
    thresholds = table.get("thresholds", {})
    if not isinstance(thresholds, dict) or not all(
        isinstance(threshold, dict) for threshold in thresholds.values()
    ):
        todo = "write them as [advise.thresholds.LUS002] with a line `name = number` each"
        raise InputError("[advise.thresholds] contains no tables of rules", where=path, todo=todo)
    select = _words(table, "select", path)
    return Settings(select, _words(table, "ignore", path) or (), thresholds)


def _tables(path: Path) -> dict[str, Any]:
    refuse_named_pipe(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read ({why})", where=path) from error
    if len(content) > _MAX_BYTES:
        raise InputError("is longer than 1 MiB", where=path, todo="name a TOML file of settings")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=path, todo="name a TOML file of settings") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", where=path, todo="see https://toml.io") from None


def _words(table: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...] | None:
    if key not in table:
        return None
    value = table[key]
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{key} in [advise] is not a list of rules", where=path, todo=f'write {key} = ["LUS"]')
    return tuple(words)


def rule_findings() -> dict[str, str]:
    """The finding of each rule in one sentence, by the rule's id."""
    findings = {}
    for rule in rules():
        # A plug-in's rule may have no docstring in this form; its name is used instead.
        with suppress(VaniError):
            findings[rule.id] = rule.page().finding
    return findings
