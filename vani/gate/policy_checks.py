"""The checks of a policy, parsed and ready to apply to a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vani.gate.attribute import Attribute, parse_attribute
from vani.gate.attribute_schema import Leaf, resolve
from vani.gate.tolerance import DEFAULTS, NOISE, SLOWER
from vani.schema import policy as spec
from vani.schema.check import Level, PolicyPlace, Source
from vani.schema.policy import Direction


@dataclass(frozen=True)
class BudgetCheck:
    """A `[[check.budget]]` table."""

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
    """A `[[check.change]]` table, or an entry of the built-in list. None: as in the table of tolerances."""

    name: str
    attribute: Attribute
    leaves: tuple[Leaf, ...]
    relative: float | None = None
    absolute: float | None = None
    direction: Direction | None = None
    noise: float = NOISE
    slower: float = SLOWER
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
    attribute: Attribute | None
    leaves: tuple[Leaf, ...]
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
        attribute, leaves = resolve(parse_attribute(text))
        rest = tuple(leaf for leaf in leaves if leaf.dotted not in compared)
        if rest:
            checks.append(ChangeCheck(f"change of {attribute}", attribute, rest))
    return tuple(checks)
