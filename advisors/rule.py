"""The interface of a rule: an id, thresholds with their sources, a page of documentation and a pure `check`.

Nothing here or in a rule's module loads pydantic or numpy: `vani explain` imports the whole catalogue and
must answer at once. Rules therefore speak in the plain values below, and `vani.advisors.judge` makes the
document of them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from vani.errors import InputError, VaniError, nearest
from vani.models.run_time import seconds
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

__all__ = [
    "NO_LAYOUTS",
    "SECTIONS",
    "Evidence",
    "Finding",
    "Gain",
    "Knob",
    "Layouts",
    "MatchingRule",
    "Need",
    "NoAdvice",
    "Number",
    "Page",
    "Perhaps",
    "Rule",
    "Stripes",
    "Target",
    "Verdict",
    "seconds",
]

Number: TypeAlias = int | float
"""A threshold."""
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | Sequence[Scalar] | Mapping[str, Scalar] | Sequence[Mapping[str, Scalar]]

SECTIONS = ("Looks at", "Why", "Recommends", "Stays silent when", "Source", "Example")
"""Sections of a rule's docstring, after its first line, in this order."""


@dataclass(frozen=True)
class Target:
    """The thing that a setting applies to; `kind` as in advice.yaml."""

    kind: Literal["file", "directory", "dataset", "app", "job"]
    path: str | None = None
    app: str | None = None


@dataclass(frozen=True)
class Evidence:
    """A number that the finding rests on: a path in the profile, or `system.` and a path in the system."""

    attribute: str
    value: Value


@dataclass(frozen=True)
class Gain:
    """The expected change, in seconds of the run, never summed over processes.

    `after_s` is the central estimate, `best_s` and `worst_s` its range: best_s <= after_s <= worst_s. All of
    them are times of the same part of the run, which took `before_s`: the time in which any process was at it, or
    where `metric` is `runtime_s` the whole run. `vani.advisors.judge` scales them down to what that part can have cost
    the run, so a rule need not.
    """

    metric: str
    before_s: float
    after_s: float
    best_s: float
    worst_s: float
    method: str

    @property
    def seconds(self) -> float:
        """Seconds saved by the central estimate, never below 0."""
        return max(0.0, self.before_s - self.after_s)


@dataclass(frozen=True)
class Perhaps:
    """The reason why a change may gain nothing, in place of a gain."""

    why: str


@dataclass(frozen=True)
class Stripes:
    """The stripes that a recommendation of `rule` gives a file: `count` (-1: on all targets) of `size` bytes.

    `evidence` are the figures of the system that they rest on.
    """

    rule: str
    count: int
    size: int
    evidence: tuple[Evidence, ...] = ()


Layouts: TypeAlias = Mapping[str, Stripes]
"""Recommended stripes by path of a file."""

NO_LAYOUTS: Layouts = MappingProxyType({})
"""Every file has the layout that it has."""


@dataclass(frozen=True)
class Knob:
    """A setting that can be tried without a change of the program, with the values worth trying, best first.

    A value is, by `kind`: of a layout the `options` of `lfs setstripe` for `folder`, or the `command` that takes the
    folder last; of hints of MPI-IO, and of the environment, values by name; where `folder` is staged in or out, a
    folder `near` the nodes; of a mapping of processes its `order`, block or cyclic.
    """

    kind: Literal["layout", "hints", "environment", "stage_in", "stage_out", "mapping"]
    values: Sequence[Mapping[str, str]]
    folder: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing to change, or for the rule that asks whether I/O matters, one thing to know.

    Parameters
    ----------
    touched_s
        Seconds of the run that the setting can act on at all; an upper bound of its gain, which decides the
        severity where `gain` is unknown.
    acts_on
        The calls that the setting makes faster: those to the file system, or those of I/O libraries with all that
        happens inside them. Their time in the slowest process bounds `gain` and `touched_s`.
    files
        Paths that the setting is about: two rules that turn contradicting knobs on one file are found by
        them.
    gain
        A phrase where the change makes the run faster, but by an unknown amount: why, or what to supply.
        `Perhaps` where it may gain nothing.
        None where it is unknown whether it gets faster.
    stripes
        What `files` get if it is followed, where rules about what uses the files must match them.
    knobs
        None: those that the lines of `apply` turn (`vani.advisors.knobs`).
    """

    target: Target
    reason: str
    confidence: float
    touched_s: float
    recommended: Mapping[str, Value]
    current: Mapping[str, Value]
    evidence: Sequence[Evidence]
    gain: Gain | str | Perhaps | None = None
    apply: Sequence[str] = ()
    stripes: Stripes | None = None
    files: frozenset[str] = frozenset()
    acts_on: Literal["file_system", "libraries"] = "file_system"
    knobs: Sequence[Knob] | None = None

    @property
    def known_gain(self) -> Gain | None:
        """The gain where it is a number."""
        return self.gain if isinstance(self.gain, Gain) else None


@dataclass(frozen=True)
class NoAdvice:
    """The reason why a rule has nothing to recommend, as one sentence without a full stop."""

    why: str


Verdict: TypeAlias = list[Finding] | NoAdvice
"""The answer of a rule: its findings, or the reason why there is none."""

Need: TypeAlias = "str | Callable[[Profile, System], str | None]"
"""Path of an attribute of the profile, or a function that returns the reason why a rule has nothing to judge."""


@dataclass(frozen=True)
class Page:
    """A rule's docstring, taken apart: the finding and the text of each section."""

    finding: str
    sections: Mapping[str, str]


class Rule:
    """One question about a workload and, where the answer is bad, a setting that makes it better.

    A subclass sets the attributes below, its thresholds as further class attributes that are numbers, each
    with its source in a comment, and defines `check`. Its docstring is the page that `vani explain` prints.

    Attributes
    ----------
    id
        Stable: family prefix and number. Never given to another rule.
    name
        For people; reads well after "ignore ...".
    family
        The knob that the rule turns: its folder.
    needs
        Conditions of `check`, in order. A path of a profile attribute (`workflow.io_time_share`,
        `files[].readers`) must not be null. A function gets profile and system and returns None, or the reason why
        the rule has nothing to judge; rules of a family share such functions. Where a need is not met, `judge`
        answers with the reason and does not call `check`.
    needs_times
        The rule is not evaluated for a profile that was made without reading time stamps
        (`vani profile --quick`). A rule that sets it to False gives no gain for such a profile.
    settles
        What the recommendation decides about a file, as in `vani.advisors.conflicts`; empty: nothing that
        another rule could contradict.
    sources
        For advice.yaml: papers, equations, manual pages.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    family: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    needs_times: ClassVar[bool] = True
    settles: ClassVar[str] = ""
    sources: ClassVar[tuple[str, ...]]

    def __init__(self, thresholds: Mapping[str, Number | str] | None = None) -> None:
        """Take thresholds other than the class's.

        Raises
        ------
        InputError
            A name that is no threshold of this rule, or a value that is not a number >= 0.
        """
        known = self.thresholds()
        for name, value in (thresholds or {}).items():
            if name not in known:
                hint = nearest(name, known, f"it has {', '.join(known) or 'none'}")
                raise InputError(f"rule {self.id} has no threshold {name!r}", todo=hint)
            setattr(self, name, _number(value, known[name], f"threshold {name} of rule {self.id}"))

    def check(self, profile: Profile, system: System) -> Verdict:
        """Judge; pure: no files, no clock, no printing."""
        raise NotImplementedError

    def trials(self, profile: Profile, system: System) -> Sequence[Knob]:  # noqa: ARG002 - of rules that have some
        """Values that a trial can judge where the rule has nothing to recommend and I/O matters; pure."""
        return ()

    def nothing(self, why: str) -> NoAdvice:
        """Return the reason why there is nothing to recommend."""
        return NoAdvice(why)

    def verdict(self, findings: list[Finding], reasons: Sequence[str]) -> Verdict:
        """The findings; if there are none, the reasons, each once."""
        return findings or NoAdvice("; ".join(dict.fromkeys(reasons)))

    @classmethod
    def thresholds(cls) -> dict[str, Number]:
        """Name and default of every threshold, in the order of definition."""
        # Python 3.13 adds its own numbers to a class (`__firstlineno__`).
        thresholds: dict[str, Number] = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, Rule):
                thresholds |= {
                    name: value
                    for name, value in vars(base).items()
                    if isinstance(value, int | float)
                    and not isinstance(value, bool)
                    and not name.startswith("_")
                }
        return thresholds

    @classmethod
    def page(cls) -> Page:
        """Take the docstring apart.

        Raises
        ------
        VaniError
            The class has no docstring, or its sections are not `SECTIONS` in order.
        """
        # Not inspect.getdoc, which would inherit the text of this class.
        first, _, rest = inspect.cleandoc(vars(cls).get("__doc__") or "").partition("\n")
        sections: dict[str, list[str]] = {}
        body: list[str] = []
        for line in rest.splitlines():
            if line and not line[0].isspace():
                body = sections.setdefault(line, [])
            else:
                body.append(line)
        if not first or tuple(sections) != SECTIONS:
            raise VaniError(
                f"the docstring of rule {cls.__name__} has the sections {', '.join(sections) or 'none'}",
                where=cls.__module__,
                todo=f"they must be {', '.join(SECTIONS)}",
            )
        return Page(
            first, {name: inspect.cleandoc("\n" + "\n".join(text)) for name, text in sections.items()}
        )


class MatchingRule(Rule):
    """A rule whose setting must match the layout of files, which other rules may recommend to change.

    It is evaluated after them and gets, in `layouts`, what the advice recommends for each file.
    """

    def check(self, profile: Profile, system: System, layouts: Layouts = NO_LAYOUTS) -> Verdict:
        """Judge; pure, as `Rule.check`."""
        raise NotImplementedError


def _number(value: Number | str, default: Number, subject: str) -> Number:
    """Read a threshold: a number, or for whole numbers a size such as `64M`."""
    number: Number | str = value
    if isinstance(value, str) and isinstance(default, int):
        try:
            number = parse_bytes(value)
        except ValueError:
            raise InputError(f"{subject} is {value!r}", todo="give a number or a size such as 64M") from None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
        raise InputError(f"{subject} is {value!r}", todo="give a number of 0 or more")
    return number
