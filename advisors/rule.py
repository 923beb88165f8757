"""The interface of a rule: an id, thresholds with their sources, a page of documentation and a pure `check`.

Neither this module nor a rule's module loads pydantic or numpy, because `vani explain` imports the whole catalogue
and must answer immediately. Rules therefore use the plain values below, and `vani.advisors.judge` builds the
document from them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from vani.errors import InputError, VaniError, nearest
from vani.units import parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

Number: TypeAlias = int | float
"""Type of a threshold."""
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | Sequence[Scalar] | Mapping[str, Scalar] | Sequence[Mapping[str, Scalar]]

SECTIONS = ("Looks at", "Why", "Recommends", "Stays silent when", "Source", "Example")
"""Sections of a rule's docstring, after its first line, in this order."""


@dataclass(frozen=True)
class Target:
    """The thing that a setting applies to, with a `kind` as in advice.yaml."""

    kind: Literal["file", "directory", "dataset", "app", "job"]
    path: str | None = None
    app: str | None = None


@dataclass(frozen=True)
class Evidence:
    """A figure behind a finding: a path in the profile, or `system.` and a path in the system, and the value."""

    attribute: str
    value: Value


def figures(entry: object, where: str, *attributes: str) -> list[Evidence]:
    """Values of paths such as `io.bytes.read` in an entry of a document, which is itself at the path `where`."""
    return [Evidence(f"{where}.{path}".lstrip("."), value_at(entry, path)) for path in attributes]


def known_figures(entry: object, where: str, *attributes: str) -> list[Evidence]:
    """Those of the figures that are not null."""
    return [figure for figure in figures(entry, where, *attributes) if figure.value is not None]


def value_at(entry: Any, path: str) -> Any:
    """The value at a path such as `files[0].io.ops.read` in an entry of a document; None if there is none."""
    for name in path.replace("[", ".").replace("]", "").split("."):
        if entry is None:
            return None
        if isinstance(entry, list):
            entry = entry[int(name)]
        else:
            entry = entry.get(name) if isinstance(entry, dict) else getattr(entry, name)
    return entry


@dataclass(frozen=True)
class Gain:
    """The expected change, in seconds of the run, never summed over processes.

    `after_s` is the central estimate, and `best_s` and `worst_s` its range: best_s <= after_s <= worst_s. All are
    times of the same part of the run, which took `before_s`: the time in which any process was in it, or the whole run
    if `metric` is `runtime_s`. Rules need not scale them to what that part can have cost the run;
    `vani.advisors.judge` does. With `why_no_number`, the estimate only orders recommendations, and users read the
    direction and this reason.
    """

    metric: str
    before_s: float
    after_s: float
    best_s: float
    worst_s: float
    method: str
    why_no_number: str = ""

    @classmethod
    def at_best(cls, metric: str, before_s: float, *, after: float, best: float, method: str) -> Gain | None:
        """A gain that is none at worst; None if the part of the run took no time."""
        return cls(metric, before_s, after, best, before_s, method) if before_s else None

    @property
    def seconds(self) -> float:
        """Seconds saved according to the central estimate, at least 0."""
        return max(0.0, self.before_s - self.after_s)


@dataclass(frozen=True)
class Perhaps:
    """Used in place of a gain: the reason why a change may gain nothing."""

    why: str


@dataclass(frozen=True)
class Stripes:
    """The stripes that a recommendation of `rule` gives a file: `count` (-1: all targets) of `size` bytes.

    `evidence` has the figures of the system behind them.
    """

    rule: str
    count: int
    size: int
    evidence: tuple[Evidence, ...] = ()


Layouts: TypeAlias = Mapping[str, Stripes]
"""Recommended stripes by file path."""

NO_LAYOUTS: Layouts = MappingProxyType({})
"""No file gets another layout."""


@dataclass(frozen=True)
class TunableSetting:
    """A setting that can be tried without changing the program, with the values to try, the best first.

    A value depends on `kind`. For a layout it has the `options` of `lfs setstripe` for `folder`, or a `command` whose
    last argument is the folder. For MPI-IO hints and the environment it has values by name. If `folder` is staged in or
    out, it has a folder `near` the nodes. For a mapping of processes it has the `order`, block or cyclic.
    """

    kind: Literal["layout", "hints", "environment", "stage_in", "stage_out", "mapping"]
    values: Sequence[Mapping[str, str]]
    folder: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing to change, or, for the rule on whether I/O matters, one thing to know.

    Parameters
    ----------
    touched_s
        Seconds of the run that the setting can act on: an upper bound of its gain, which decides the severity if
        `gain` is unknown.
    acts_on
        The calls that the setting makes faster: file-system calls, or calls of I/O libraries with everything inside
        them. Their time in the slowest process limits `gain` and `touched_s`.
    files
        Paths of the files that the setting affects. They show which rules contradict each other on a file.
    apply
        Lines of sh, or the text of a change by hand, which becomes comments.
    gain
        A phrase if the change makes the run faster by an unknown amount: why, or what to supply. `Perhaps` if it may
        gain nothing. None if it is unknown whether the run gets faster.
    stripes
        Stripes that `files` get if the finding is followed, for rules whose settings must match them.
    advice
        The end of the reason, with what to do, for users who call the file system themselves. A library's own remedy
        replaces it (`vani.advisors.libraries`).
    direction
        `read` or `write` if the change is about one of them: a library has other words for each.
    removes
        What else the change removes on `files`, by what rules settle: other remedies for these are left out.
    precedes
        What builds on the change, on `files`: other remedies for these come after it. A buffer that collects records
        needs a file that stays open.
    settings
        None: those that the lines of `apply` set (`vani.advisors.judge`).
    """

    target: Target
    reason: str
    confidence: float
    touched_s: float
    recommended: Mapping[str, Value]
    evidence: Sequence[Evidence]
    current: Mapping[str, Value] = field(default_factory=dict)
    gain: Gain | str | Perhaps | None = None
    apply: Sequence[str] | str = ()
    stripes: Stripes | None = None
    files: frozenset[str] = frozenset()
    acts_on: Literal["file_system", "libraries"] = "file_system"
    settings: Sequence[TunableSetting] | None = None
    advice: str = ""
    direction: Literal["", "read", "write"] = ""
    removes: frozenset[str] = frozenset()
    precedes: frozenset[str] = frozenset()

    @property
    def known_gain(self) -> Gain | None:
        """The gain if it is a number, otherwise None."""
        return self.gain if isinstance(self.gain, Gain) else None


Answer: TypeAlias = Finding | str
"""A finding on a part of a profile, such as the files of a folder, or the reason why there is none."""

Verdict: TypeAlias = list[Finding] | str
"""The answer of a rule: its findings, or the reason why there is none, as a sentence without a full stop."""

Need: TypeAlias = "str | Callable[[Profile, System], str | None]"
"""A requirement: the path of a profile attribute, or a function that returns why a rule has nothing to judge."""


@dataclass(frozen=True)
class Page:
    """The parts of a docstring: the finding and the text of each section."""

    finding: str
    sections: Mapping[str, str]


class Documented:
    """A rule or a pattern: a class whose docstring is its page, and whose numbers are thresholds."""

    name: ClassVar[str]
    sections: ClassVar[tuple[str, ...]]
    """Sections of the docstring, after its first line, in this order."""

    @classmethod
    def thresholds(cls) -> dict[str, Number]:
        """Names and defaults of all thresholds, in order of definition."""
        # Python 3.13 adds numbers of its own to a class (`__firstlineno__`).
        thresholds: dict[str, Number] = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, Documented):
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
        """Parse the docstring.

        Raises
        ------
        VaniError
            The class has no docstring, or its sections are not `sections` in order.
        """
        # Not inspect.getdoc, which would inherit this class's docstring.
        first, _, rest = inspect.cleandoc(vars(cls).get("__doc__") or "").partition("\n")
        sections: dict[str, list[str]] = {}
        body: list[str] = []
        for line in rest.splitlines():
            if line and not line[0].isspace():
                body = sections.setdefault(line, [])
            else:
                body.append(line)
        if not first or tuple(sections) != cls.sections:
            raise VaniError(
                f"the docstring of {cls.__name__} has the sections {', '.join(sections) or 'none'}",
                where=cls.__module__,
                todo=f"they must be {', '.join(cls.sections)}",
            )
        return Page(first, {name: inspect.cleandoc("\n" + "\n".join(text)) for name, text in sections.items()})


class Rule(Documented):
    """A question about a workload and, if the answer is bad, a setting that improves it.

    A subclass sets the attributes below and defines `check`. Its thresholds are further numeric class attributes, each
    with its source in a comment. Its docstring is the page that `vani explain` prints.

    Attributes
    ----------
    id
        Stable id: family prefix and number. It is never reused for another rule.
    name
        Name for people, which reads well after "ignore ...": by default that of the module.
    family
        The kind of setting: by default the name of the module's folder.
    needs
        Requirements of `check`, in order. The path of a profile attribute (`workflow.io_time_share`,
        `files[].readers`) must not be null. A function gets profile and system and returns None, or the reason why
        the rule has nothing to judge; rules of a family share such functions. If a requirement is not met, `judge`
        answers with the reason and does not call `check`.
    needs_times
        If true, the rule is not evaluated for a profile without time stamps (`vani profile --quick`). A rule that
        sets it to False gives no gain for such a profile.
    settles
        What the recommendation decides about a file (see `vani.advisors.competing_findings`). Empty: nothing that
        another rule could contradict.
    sources
        Papers, equations and manual pages for advice.yaml.
    """

    sections: ClassVar[tuple[str, ...]] = SECTIONS
    id: ClassVar[str]
    family: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    needs_times: ClassVar[bool] = True
    settles: ClassVar[str] = ""
    sources: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        """Name a rule after its module and folder, unless it sets its name and family."""
        if "id" in vars(cls):
            _, *folders, module = ["", *cls.__module__.split(".")]
            cls.name = getattr(cls, "name", module.replace("_", "-"))
            cls.family = getattr(cls, "family", folders[-1] if folders else module)

    def __init__(self, thresholds: Mapping[str, Number | str] | None = None) -> None:
        """Override thresholds of the class.

        Raises
        ------
        InputError
            A name is not a threshold of this rule, or a value is not a number >= 0.
        """
        known = self.thresholds()
        for name, value in (thresholds or {}).items():
            if name not in known:
                hint = nearest(name, known, f"it has {', '.join(known) or 'none'}")
                raise InputError(f"rule {self.id} has no threshold {name!r}", todo=hint)
            setattr(self, name, _number(value, known[name], f"threshold {name} of rule {self.id}"))

    def check(self, profile: Profile, system: System) -> Verdict:
        """Judge a profile. A pure function: it uses no files and no clock, and prints nothing."""
        raise NotImplementedError

    def among(self, answers: Iterable[Answer], otherwise: str = "", *, most: int | None = None) -> Verdict:
        """The findings among the answers; if there are none, the first reasons, each once; without any, `otherwise`."""
        answers = list(answers)
        findings = [answer for answer in answers if isinstance(answer, Finding)]
        reasons = dict.fromkeys(answer for answer in answers if isinstance(answer, str))
        return findings or "; ".join(list(reasons)[:most]) or otherwise


class PartRule(Rule):
    """A rule that judges parts of a profile one by one, such as the files of a folder."""

    def parts(self, profile: Profile) -> Iterable[Any]:
        """The parts to judge."""
        raise NotImplementedError

    def check(self, profile: Profile, system: System) -> Verdict:
        return self.among(self.judge(part, profile, system) for part in self.parts(profile))

    def judge(self, part: Any, profile: Profile, system: System) -> Answer:
        """Judge a part."""
        raise NotImplementedError


class MatchingRule(Rule):
    """A rule whose setting must match the layout of files, which other rules may change.

    It is evaluated after these and gets the recommended stripes of each file in `layouts`.
    """

    def check(self, profile: Profile, system: System, layouts: Layouts = NO_LAYOUTS) -> Verdict:
        """Judge a profile. A pure function, like `Rule.check`."""
        raise NotImplementedError


def _number(value: Number | str, default: Number, subject: str) -> Number:
    """Parse a threshold: a number, or a size such as `64M` if the default is a whole number."""
    number: Number | str = value
    if isinstance(value, str) and isinstance(default, int):
        try:
            number = parse_bytes(value)
        except ValueError:
            raise InputError(f"{subject} is {value!r}", todo="give a number or a size such as 64M") from None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
        raise InputError(f"{subject} is {value!r}", todo="give a number of 0 or more")
    return number
