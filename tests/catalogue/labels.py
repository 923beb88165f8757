"""Expected findings of rules about traces, from `labels.yaml`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field

from vani.advisors.catalogue import rules
from vani.errors import InputError
from vani.schema.document import YAML, read_text, validate
from vani.schema.model import Model

__all__ = ["LABELS", "Case", "Kind", "Labels", "Narrowed", "Worth", "read_labels"]

LABELS = Path(__file__).with_name("labels.yaml")

Worth = Literal["right", "neither", "wrong"]
"""Worth of a recommendation; precision ignores those that are `neither` right nor wrong."""


class Kind(Model):
    """Something that can be wrong with a run."""

    means: str
    rules: tuple[str, ...]
    """Ids of the rules that find it; empty means that the catalogue has a gap."""


class Narrowed(Model):
    """A pathology that only some rules of its kind find in this trace."""

    reason: str
    rules: tuple[str, ...]


class Case(Model):
    """Expected findings for one program with its arguments. Keys are kinds or rule ids, values are reasons."""

    traces: tuple[str, ...] = Field(min_length=1)
    program: str | None = None
    pathologies: dict[str, str | Narrowed] = Field(default_factory=dict)
    useful: dict[str, str] = Field(default_factory=dict)
    acceptable: dict[str, str] = Field(default_factory=dict)
    wrong: dict[str, str] = Field(default_factory=dict)
    unreadable: str | None = None

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Each label's name and its reason."""
        for name, label in self.pathologies.items():
            yield name, label.reason if isinstance(label, Narrowed) else label
        for part in (self.useful, self.acceptable, self.wrong):
            yield from part.items()
        if self.unreadable is not None:
            yield "unreadable", self.unreadable


class Labels(Model):
    """The whole table."""

    machines: tuple[str, ...] = Field(min_length=1)
    verdicts: dict[str, str]
    """Rules that state something about every run without recommending anything, with the reason."""
    kinds: dict[str, Kind]
    cases: tuple[Case, ...]

    @cached_property
    def by_trace(self) -> dict[str, Case]:
        return {trace: case for case in self.cases for trace in case.traces}

    def finders(self, case: Case, pathology: str) -> tuple[str, ...]:
        """Ids of the rules of which any finds this pathology of the case."""
        label = case.pathologies[pathology]
        return label.rules if isinstance(label, Narrowed) else self.kinds[pathology].rules

    def worth(self, case: Case, rule: str) -> Worth:
        """Worth of a recommendation of this rule; a label for the rule overrides one for a kind."""
        named: tuple[tuple[Worth, dict[str, str]], ...] = (
            ("right", case.useful),
            ("neither", case.acceptable),
            ("wrong", case.wrong),
        )
        for worth, part in named:
            if rule in part:
                return worth
        if any(rule in self.finders(case, pathology) for pathology in case.pathologies):
            return "right"
        for worth, part in named:
            if any(rule in self.kinds[key].rules for key in part if key in self.kinds):
                return worth
        return "wrong"


def read_labels(path: Path = LABELS) -> Labels:
    """Read the table.

    Raises
    ------
    InputError
        The file is missing or invalid, or a label names neither a rule nor a kind, or contradicts another one.
    """
    text = read_text(path)
    tree = YAML.parse(text, str(path))
    if not isinstance(tree, dict):
        raise InputError("holds no table of labels", where=path, todo="see tests/catalogue/labels.yaml")
    labels = validate(tree, Labels, text=text, where=str(path))
    for what in _contradictions(labels):
        raise InputError(what, where=path, todo="correct the label")
    return labels


def _contradictions(labels: Labels) -> Iterator[str]:
    known = {rule.id for rule in rules()}
    for name, kind in labels.kinds.items():
        yield from (f"kind {name} names {id_}, which is no rule" for id_ in kind.rules if id_ not in known)
    yield from (f"verdicts name {id_}, which is no rule" for id_ in labels.verdicts if id_ not in known)
    seen: set[str] = set()
    for case in labels.cases:
        first = case.traces[0]
        yield from (f"trace {trace} is labelled twice" for trace in case.traces if trace in seen)
        seen.update(case.traces)
        for name, label in case.pathologies.items():
            if name not in labels.kinds:
                yield f"{first}: the pathology {name} is none of the kinds"
            elif isinstance(label, Narrowed) and (more := set(label.rules) - set(labels.kinds[name].rules)):
                yield f"{first}: {name} names {', '.join(sorted(more))}, which the kind does not"
        parts = (case.useful, case.acceptable, case.wrong)
        for key in {key for part in parts for key in part}:
            if key not in known and key not in labels.kinds:
                yield f"{first}: {key} is neither a rule nor a kind"
            elif sum(key in part for part in (*parts, case.pathologies)) > 1:
                yield f"{first}: {key} has two labels"
        found = {id_ for name in case.pathologies for id_ in labels.finders(case, name)}
        for id_ in sorted(found & (case.acceptable.keys() | case.wrong.keys())):
            yield f"{first}: {id_} finds a pathology of it, and is not right"
        yield from (f"{first}: {name} has no reason" for name, reason in case.reasons() if not reason.strip())
        if case.unreadable is not None and (case.pathologies or any(parts)):
            yield f"{first}: a trace that cannot be read has no other labels"
