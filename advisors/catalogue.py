"""All rules and patterns.

They are in the modules of `vani.advisors`' subfolders and in those of the entry points `vani.advisors`. A new one is
one new file. Nothing is registered by hand, and finding them loads no data library.
"""


import difflib
import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from types import ModuleType

import vani.advisors
from vani.advisors.patterns import Pattern
from vani.advisors.rule import Documented, Rule
from vani.errors import InputError, VaniError
from vani.plug_ins import described, plug_ins

ENTRY_POINTS = "vani.advisors"
"""Group of entry points, where each names a class of a rule or a pattern, or a module with some."""


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
    for rule in (entry for entry in _all() if issubclass(entry, Rule)):
        for known, key in ((by_id, rule.id), (names, rule.name)):
            if known.setdefault(key, rule) is not rule:
                raise VaniError(
                    f"rules {known[key].__qualname__} and {rule.__qualname__} are both called {key}",
                    where=rule.__module__,
                    todo="give one of them another id and name",
                )
    return tuple(by_id[id_] for id_ in sorted(by_id))


@functools.cache
def patterns() -> tuple[type[Pattern], ...]:
    """All patterns. Raises InputError if an entry point of another distribution cannot be loaded."""
    return tuple(entry for entry in _all() if issubclass(entry, Pattern))


def explained(word: str) -> str:
    """The documentation of the rule with this id or name, or of the pattern; of both if they share their name.

    A word of definitions names their patterns.

    Raises
    ------
    InputError
        There is no such rule or pattern. The message names the nearest.
    """
    lower = word.strip().lower()
    named = [pattern for pattern in patterns() if pattern.name == re.sub(r"[ -]", "_", lower)]
    acting = [rule for rule in rules() if lower in (rule.id.lower(), rule.name)]
    texts = [(pattern, pattern.page().sections["Definition"].replace("-", "")) for pattern in patterns()]
    about = [pattern for pattern, text in texts if re.search(rf"\b{re.escape(lower)}\b", text)]
    entries: Sequence[type[Rule | Pattern]] = [*acting, *named] or about or [find(word)]
    return "\n".join(map(page_text, entries))


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
    names = [pattern.name for pattern in patterns()]
    raise _unknown(word, [key for rule in rules() for key in (rule.id, rule.name)] + names)


def pick(select: Iterable[str] | None = None, ignore: Iterable[str] | None = None) -> tuple[type[Rule], ...]:
    """The rules of `select` (None: all) without those of `ignore`.

    Each word is an id, a name, a family, or letters that ids begin with (`LUS`); a word may contain several,
    separated by commas.

    Raises
    ------
    InputError
        A word matches no rule. The message names the nearest.
    """
    wanted = (set(rules()) if select is None else _matching(select)) - _matching(ignore or ())
    return tuple(rule for rule in rules() if rule in wanted)


def page_text(entry: type[Rule | Pattern]) -> str:
    """The documentation of a rule or a pattern as plain text, with its thresholds; ends in a newline."""
    page, sections = entry.page(), dict(entry.page().sections)
    if issubclass(entry, Pattern):
        acting = [rule for rule in rules() if rule.id in entry.rules]
        sections["Rules"] = "\n".join(f"{rule.id} {rule.name}" for rule in acting) or "None acts on it."
    lines = [entry.name if issubclass(entry, Pattern) else f"{entry.id} {entry.name}", "", page.finding]
    for section, text in sections.items():
        lines += ["", section, *(f"    {line}".rstrip() for line in text.splitlines())]
    if thresholds := entry.thresholds():
        lines += ["", "Thresholds", *(f"    {name} = {value}" for name, value in thresholds.items())]
    return "\n".join(lines) + "\n"


def _all() -> tuple[type[Documented], ...]:
    return (*_bundled(), *_plugged_in())


def _bundled() -> Iterator[type[Documented]]:
    for family in pkgutil.iter_modules(vani.advisors.__path__):
        if family.ispkg:
            package = importlib.import_module(f"vani.advisors.{family.name}")
            for module in pkgutil.iter_modules(package.__path__):
                yield from _members_of(importlib.import_module(f"{package.__name__}.{module.name}"))


def _plugged_in() -> Iterator[type[Documented]]:
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
            yield from _members_of(loaded)
        elif isinstance(loaded, type) and issubclass(loaded, Documented):
            yield loaded
        else:
            raise InputError(
                f"entry point {point.name!r} is neither a rule nor a module of rules",
                where=point.value,
                todo="update or uninstall the package that brings it",
            )


def _members_of(module: ModuleType) -> list[type[Documented]]:
    return [
        item
        for item in vars(module).values()
        # An imported one belongs to the other module. A rule without id and name is a base class, as is a pattern
        # without rules.
        if isinstance(item, type)
        and issubclass(item, Documented)
        and item.__module__ == module.__name__
        and (hasattr(item, "id") or hasattr(item, "rules" if issubclass(item, Pattern) else "name"))
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


def rule_findings() -> dict[str, str]:
    """The finding of each rule in one sentence, by the rule's id."""
    findings = {}
    for rule in rules():
        # A plug-in's rule may have no docstring in this form; its name is used instead.
        with suppress(VaniError):
            findings[rule.id] = rule.page().finding
    return findings
