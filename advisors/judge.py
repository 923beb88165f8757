"""Ask all rules about a profile and a system, and make one document of their verdicts.

What holds for every rule is done here, so that no rule has to: null inputs, faults of a rule, gains in seconds of
the run, severity, how sure it all is, contradictions, order.

Gains. The run waits for its slowest process, so the part of it that a rule changes takes at most that process's I/O
time: longer ones are scaled down to it, factors stay. Order and severity are what a recommendation wins alone.
Expected is what it wins together with those above it: the first acts on the whole I/O time, each next one on what is
left, so that all gains add up to what MAT001 names at most.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from vani.advisors.base import (
    NO_LAYOUTS,
    Finding,
    Gain,
    Layouts,
    MatchingRule,
    NoAdvice,
    Number,
    Rule,
    Verdict,
)
from vani.advisors.catalogue import find, pick, rules
from vani.advisors.conflicts import Judged, resolve
from vani.advisors.matter.io_share import IOShare
from vani.errors import DocumentError, InputError, VaniError
from vani.models.io_time import IOTime, io_time
from vani.schema.advice import (
    Advice,
    Evidence,
    Expected,
    JudgedFiles,
    NoRecommendation,
    ProfileRef,
    Recommendation,
    Severity,
    SystemRef,
    Target,
)
from vani.schema.damage import damage, whole_share
from vani.schema.document import dumps, loads
from vani.schema.long_profile import excerpt, most_important
from vani.schema.profile import Profile
from vani.schema.reading import Reading
from vani.schema.system import System
from vani.schema.unknown import supply_of
from vani.units import format_seconds

__all__ = ["UNKNOWN_SYSTEM", "advise_document", "judge"]

Thresholds = Mapping[str, Mapping[str, Number | str]]

UNKNOWN_SYSTEM: Final = System(name="unknown", generic=False)
"""Stands for the machine where none was given: no figure of it is known."""

# Share of the run from which on seconds are this severe. 25 % and 10 % are ours: a quarter of a run is worth
# a change of the program, and 10 % is what Xie et al. (section II) let I/O take of a run. 1 % is what can be
# pasted without regret.
SEVERITIES: Final[tuple[tuple[float, Severity], ...]] = ((0.25, "high"), (0.10, "medium"), (0.01, "low"))

# Less than this is worth no change, and comes and goes between repetitions: low at most (ours).
LEAST_S: Final = 1.0

# Of a run too short to judge, what is found is taken for half as sure (ours).
SHORT_RUN: Final = 0.5

ORDER: Final[tuple[Severity, ...]] = ("high", "medium", "low", "info")

_LOWER: Final[Mapping[Severity, Severity]] = {"high": "medium", "medium": "low"}

RUNTIME: Final = "runtime_s"
"""Metric of gains that are told as times of the whole run."""

# What a user can supply for attributes whose provenance says nothing, by their beginning.
SUPPLY: Final = {
    "job": "supply --job job.yaml (`vani collect`, run inside the job, writes it)",
    "middleware": "supply --job job.yaml (`vani collect`, run inside the job, writes it)",
    "storage": "supply --system NAME or a system.yaml, or --job job.yaml",
    "": "supply a trace that holds it",
}
_TIMES: Final = "workflow.runtime_s"


def advise_document(
    profile: Profile | Reading | str | Path,
    system: System | None = None,
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
    files: int | None = None,
) -> Advice:
    """Judge a profile, or the profile in a file, and say which file and which machine were judged.

    The digest of a file is that of its bytes; that of a model is of the YAML that it is written as.
    Of a profile that lists more than `files` files, the rules see those with the most I/O time, as if
    it had been made with `vani profile --files N`; None: all. Positions in evidence are those of the whole list.

    Raises
    ------
    DocumentError
        The file is no valid profile.
    InputError
        `select`, `ignore` or `thresholds` name what there is not.
    VaniError
        A rule failed.
    """
    machine = UNKNOWN_SYSTEM if system is None else system
    system_ref = SystemRef(
        name=None if system is None else system.name, sha256=_digest(dumps(machine).encode())
    )
    if isinstance(profile, Profile):
        part, ref = (
            _most_important(profile, files),
            ProfileRef(path=None, sha256=_digest(dumps(profile).encode())),
        )
    else:
        reading = profile if isinstance(profile, Reading) else Reading(profile)
        part = _load(reading.content(), str(reading.path), files)
        ref = ProfileRef(path=str(reading.path), sha256=reading.sha256())
    model, kept, judged = part
    advice = judge(
        model,
        machine,
        profile_ref=ref.model_copy(update={"files": judged}),
        system_ref=system_ref,
        select=select,
        ignore=ignore,
        thresholds=thresholds,
    )
    return advice if kept is None else _renumbered(advice, kept)


Part = tuple[Profile, tuple[int, ...] | None, JudgedFiles | None]
"""A profile with some of its files, their positions in the whole list, and how much they are of it."""


def _load(content: bytes, where: str, files: int | None) -> Part:
    """Read a profile; of a long one that Vani wrote, only the entries of the files that are judged."""
    found = None if files is None else excerpt(content, files)
    if found is not None:
        try:
            model = loads(found.text.decode("utf-8-sig"), Profile, where=where)
        except (DocumentError, UnicodeDecodeError):
            pass  # The whole text is read, so that the error names the right line.
        else:
            return model, found.kept, _judged_files(found.listed, found.kept, found.io_time_share)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8 text", where=where, todo="give a profile.yaml") from error
    return _most_important(loads(text, Profile, where=where), files)


def _most_important(profile: Profile, files: int | None) -> Part:
    if files is None or len(profile.files) <= files:
        return profile, None, None
    times = [one.io.time_s.total for one in profile.files if one.io.time_s.total is not None]
    if len(times) < len(profile.files):
        return profile, None, None
    kept, share = most_important(times, files)
    part = profile.model_copy(update={"files": [profile.files[i] for i in kept]})
    return part, kept, _judged_files(len(profile.files), kept, share)


def _judged_files(listed: int, kept: tuple[int, ...], share: float) -> JudgedFiles:
    return JudgedFiles(listed=listed, judged=len(kept), io_time_share=min(1.0, share))


def _renumbered(advice: Advice, kept: tuple[int, ...]) -> Advice:
    """The advice with positions in `files` as they are in the whole list."""
    if kept == tuple(range(len(kept))):
        return advice

    def whole(match: re.Match[str]) -> str:
        index = int(match[1])
        return f"files[{kept[index]}]" if index < len(kept) else match[0]

    changed = []
    for one in advice.recommendations:
        evidence = [
            item.model_copy(update={"attribute": re.sub(r"^files\[(\d+)\]", whole, item.attribute)})
            for item in one.evidence
        ]
        changed.append(one.model_copy(update={"evidence": evidence}))
    return advice.model_copy(update={"recommendations": changed})


def judge(
    profile: Profile,
    system: System,
    *,
    profile_ref: ProfileRef,
    system_ref: SystemRef,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
) -> Advice:
    """Ask the chosen rules; each is in at least one of the advice's two lists.

    `thresholds` holds, by a rule's id or name, values by the name of its threshold. See `advise_document`
    for what is raised.
    """
    asked = [rule(values) for rule, values in _configured(pick(select, ignore), thresholds)]
    matter = next((rule for rule in asked if isinstance(rule, IOShare)), None) or IOShare()
    # Without times no rule can tell what its finding is worth; few can find anything.
    time = None if profile.workflow.runtime_s is None else io_time(profile)
    silent: list[NoRecommendation] = []
    judged: list[Judged] = []
    layouts: Layouts = NO_LAYOUTS
    # Rules that match the layouts of files come last: what is recommended for a file is known by then.
    for matching in (False, True):
        if matching:
            layouts = _layouts(judged)
        for rule in asked:
            if isinstance(rule, MatchingRule) is not matching:
                continue
            verdict = _ask(rule, profile, system, layouts)
            if isinstance(verdict, NoAdvice):
                silent.append(NoRecommendation(rule=rule.id, why=verdict.why))
                continue
            for finding in verdict:
                # Whether I/O matters is the bound itself.
                bound = finding if isinstance(rule, IOShare) else _of_run(finding, time)
                judged.append(_judged(type(rule), bound))
    kept, lost = resolve(judged)
    silent += [NoRecommendation(rule=one.rule.id, why=why) for one, why in lost]
    most = _most_severe(matter, time, profile)
    sure = whole_share(profile) * (SHORT_RUN if time is not None and matter.is_short(time) else 1.0)
    made = [
        _recommendation(one.rule, now, max(most, _severity(one, now, time), key=ORDER.index), sure)
        for one, now in zip(kept, _together(kept, time), strict=True)
    ]
    # Stable: equals stay as `resolve` ordered them. Whether I/O matters comes first: it bounds all others.
    ranked = sorted(
        zip(kept, made, strict=True),
        key=lambda pair: (pair[0].rule is not IOShare, -pair[0].seconds, ORDER.index(pair[1].severity)),
    )
    return Advice(
        profile=profile_ref,
        system=system_ref,
        damage=damage(profile),
        recommendations=[recommendation for _, recommendation in ranked],
        no_recommendation=sorted(silent, key=lambda one: one.rule),
    )


def _configured(
    chosen: Iterable[type[Rule]], thresholds: Thresholds | None
) -> Iterator[tuple[type[Rule], dict[str, Number | str]]]:
    given = {key.lower(): dict(values) for key, values in (thresholds or {}).items()}
    for key, values in (thresholds or {}).items():
        # Rules that are not asked, too: a misspelt name is one whatever was selected.
        _rule_of(key)(values)
    for rule in chosen:
        yield rule, given.get(rule.name.lower(), {}) | given.get(rule.id.lower(), {})


def _rule_of(key: str) -> type[Rule]:
    for rule in rules():
        if key.lower() in (rule.id.lower(), rule.name.lower()):
            return rule
    try:
        return find(key)
    except InputError as error:
        raise InputError(f"thresholds are given for {key!r}, which is no rule", todo=error.todo) from None


def _layouts(judged: Sequence[Judged]) -> Layouts:
    """What is recommended for files, by path, in the order of findings; not what is given up for something better."""
    kept, _ = resolve(judged)
    given = {id(one) for one in kept}
    return {
        path: one.finding.stripes
        for one in judged
        if one.finding.stripes is not None and id(one) in given
        for path in one.finding.files
    }


def _ask(rule: Rule, profile: Profile, system: System, layouts: Layouts) -> Verdict:
    """The rule's verdict, or which of its inputs is missing."""
    for path in (_TIMES, *rule.needs) if rule.needs_times else rule.needs:
        if _is_null(profile, path.split(".")):
            return rule.nothing(_missing(path, profile))
    try:
        verdict = (
            rule.check(profile, system, layouts)
            if isinstance(rule, MatchingRule)
            else rule.check(profile, system)
        )
    except Exception as error:
        raise _fault(rule, f"failed ({type(error).__name__}: {error})") from error
    if not verdict:
        raise _fault(rule, "neither recommends anything nor says why not")
    return verdict


def _fault(rule: Rule, what: str) -> VaniError:
    return VaniError(
        f"rule {rule.id} ({rule.name}) {what}",
        where=type(rule).__module__,
        todo=f"report this as a fault of Vani; `--ignore {rule.id}` goes on without it",
    )


def _is_null(value: Any, path: list[str]) -> bool:
    """Whether nothing is known at `path`: null, or for `files[].x` null in each of the files there are."""
    if value is None or not path:
        return value is None
    name, *rest = path
    found = getattr(value, name.removesuffix("[]"))
    if not name.endswith("[]"):
        return _is_null(found, rest)
    return bool(found) and all(_is_null(item, rest) for item in found)


def _missing(path: str, profile: Profile) -> str:
    why = profile.provenance.get(path)
    supply = supply_of(why) or SUPPLY.get(path.split(".", maxsplit=1)[0], SUPPLY[""])
    return f"{path} is not known{f' ({why})' if why else ''}; {supply}"


def _judged(rule: type[Rule], finding: Finding) -> Judged:
    return Judged(rule, finding, finding.gain.seconds if finding.gain else 0.0)


def _of_run(finding: Finding, time: IOTime | None) -> Finding:
    """The finding in seconds of the run: a part of it costs no more than the calls of the slowest process."""
    if time is None:
        return replace(finding, gain=None)
    most = time.calls_s if finding.acts_on == "libraries" else time.slowest_s
    gain = None if finding.gain is None else _within(_in_order(finding.gain), most)
    return replace(finding, gain=gain, touched_s=min(finding.touched_s, most))


def _in_order(gain: Gain) -> Gain:
    """0 <= best <= after <= worst <= before, whatever a rule says."""
    best = min(max(gain.best_s, 0.0), gain.before_s)
    central = min(max(gain.after_s, best), gain.before_s)
    worst = min(max(gain.worst_s, central), gain.before_s)
    return replace(gain, best_s=best, after_s=central, worst_s=worst)


def _within(gain: Gain, most: float) -> Gain:
    """The same gain of a part that takes `most` seconds at most; of the whole run, one that wins no more."""
    if gain.metric == RUNTIME:
        best, after, worst = (max(s, gain.before_s - most) for s in (gain.best_s, gain.after_s, gain.worst_s))
        return replace(gain, best_s=best, after_s=after, worst_s=worst)
    if gain.before_s <= most:
        return gain
    part = most / gain.before_s
    # Rounding must not make what is left longer than the whole.
    best, after, worst = (min(most, s * part) for s in (gain.best_s, gain.after_s, gain.worst_s))
    return replace(gain, before_s=most, best_s=best, after_s=after, worst_s=worst)


def _together(kept: Sequence[Judged], time: IOTime | None) -> list[Finding]:
    """The findings, best first, with gains that add up: each acts on what those before it leave of the I/O time."""
    if time is None:
        return [one.finding for one in kept]
    left = {"file_system": time.slowest_s, "libraries": time.calls_s}
    followed = []
    for one in kept:
        now = one.finding
        if now.gain is not None and one.rule is not IOShare:
            now = replace(now, gain=_after_others(now.gain, left[now.acts_on]))
            won = now.gain.seconds if now.gain else 0.0
            left["libraries"] -= won
            left["file_system"] -= won if now.acts_on == "file_system" else 0.0
            # Time in file-system calls is time in calls.
            left["file_system"] = max(0.0, min(left.values()))
        followed.append(now)
    return followed


def _after_others(gain: Gain, left: float) -> Gain:
    """What is won once those before it are followed, which leave so many seconds."""
    within = _within(gain, left)
    if within == gain:
        return gain
    return replace(within, method=f"{gain.method}; of the {format_seconds(left)} that those above leave")


def _severity(one: Judged, now: Finding, time: IOTime | None) -> Severity:
    """By the share of the run that is won alone; where the gain is unknown, by the time touched, one step lower.

    What wins less than `LEAST_S`, alone or once those before it are followed (`now`), is low at most.
    """
    if time is None:
        return "info"
    known = one.finding.gain is not None
    seconds = one.seconds if known else one.finding.touched_s
    share = seconds / time.runtime_s if time.runtime_s else 0.0
    steps: list[Severity] = [severity for least, severity in SEVERITIES if share >= least]
    steps.append("info")
    found = steps[0] if known else _LOWER.get(steps[0], steps[0])
    if now.gain is not None:
        seconds = min(seconds, now.gain.seconds)
    return max("low", found, key=ORDER.index) if seconds < LEAST_S else found


def _most_severe(matter: IOShare, time: IOTime | None, profile: Profile) -> Severity:
    """What the whole run allows."""
    if time is None or matter.is_hardly(time, profile):
        return "info"
    return "low" if matter.is_short(time) else "high"


def _recommendation(rule: type[Rule], finding: Finding, severity: Severity, sure: float) -> Recommendation:
    return Recommendation(
        rule=rule.id,
        name=rule.name,
        severity=severity,
        confidence=finding.confidence if sure == 1 else round(finding.confidence * sure, 2),
        target=Target(kind=finding.target.kind, path=finding.target.path, app=finding.target.app),
        current=dict(finding.current),  # type: ignore[arg-type]
        recommended=dict(finding.recommended),  # type: ignore[arg-type]
        evidence=[
            Evidence(attribute=item.attribute, value=item.value)  # type: ignore[arg-type]
            for item in finding.evidence
        ],
        reason=finding.reason,
        expected=None if finding.gain is None else _expected(finding.gain),
        apply=list(finding.apply),
        source=list(rule.sources),
    )


def _expected(gain: Gain) -> Expected:
    def speedup(after: float) -> float | None:
        # Nothing left is no finite factor.
        return gain.before_s / after if after > 0 else None

    return Expected(
        metric=gain.metric,
        before=gain.before_s,
        after=gain.after_s,
        speedup=speedup(gain.after_s),
        low=speedup(gain.worst_s),
        high=speedup(gain.best_s),
        method=gain.method,
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
