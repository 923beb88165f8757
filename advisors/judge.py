"""Ask all rules about a profile and a system, and make one document of their verdicts.

What holds for every rule is done here, so that no rule has to: null inputs, faults of a rule, the cap of
gains at the I/O time there is, severity, contradictions, order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from vani.advisors.base import Finding, Gain, NoAdvice, Number, Rule, Verdict
from vani.advisors.catalogue import find, pick, rules
from vani.advisors.conflicts import Judged, resolve
from vani.advisors.matter.io_share import IOShare
from vani.advisors.models.io_time import IOTime, io_time
from vani.errors import DocumentError, InputError, VaniError
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
from vani.schema.document import dumps, loads
from vani.schema.excerpt import excerpt, most_important
from vani.schema.profile import Profile
from vani.schema.reading import Reading
from vani.schema.system import System

__all__ = ["UNKNOWN_SYSTEM", "advise_document", "judge"]

Thresholds = Mapping[str, Mapping[str, Number | str]]

UNKNOWN_SYSTEM: Final = System(name="unknown", generic=False)
"""Stands for the machine where none was given: no figure of it is known."""

# Share of the run from which on seconds are this severe. 25 % and 10 % are ours: a quarter of a run is worth
# a change of the program, and 10 % is what Xie et al. (section II) let I/O take of a run. 1 % is what can be
# pasted without regret.
SEVERITIES: Final[tuple[tuple[float, Severity], ...]] = ((0.25, "high"), (0.10, "medium"), (0.01, "low"))

# What a user can supply for attributes whose provenance says nothing, by their beginning.
SUPPLY: Final = {
    "job": "supply --job job.yaml (`vani collect`, run inside the job, writes it)",
    "middleware": "supply --job job.yaml (`vani collect`, run inside the job, writes it)",
    "storage": "supply --system NAME or a system.yaml, or --job job.yaml",
    "": "supply a trace that holds it",
}
_TIMES: Final = "workflow.runtime_s"
_WITHOUT_QUICK: Final = "make the profile without --quick"


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
    hardly = next((rule.hardly for rule in asked if isinstance(rule, IOShare)), IOShare.hardly)
    # Without times no rule can tell what its finding is worth; few can find anything.
    time = None if profile.workflow.runtime_s is None else io_time(profile)
    silent: list[NoRecommendation] = []
    judged: list[Judged] = []
    for rule in asked:
        verdict = _ask(rule, profile, system)
        if isinstance(verdict, NoAdvice):
            silent.append(NoRecommendation(rule=rule.id, why=verdict.why))
            continue
        for finding in verdict:
            capped = _capped(finding, time)
            judged.append(Judged(type(rule), capped, capped.gain.seconds if capped.gain else 0.0))
    kept, lost = resolve(judged)
    silent += [NoRecommendation(rule=one.rule.id, why=why) for one, why in lost]
    lower = time is not None and time.share < hardly
    made = [_recommendation(one, time, lower=lower) for one in kept]
    order: dict[str, int] = {"high": 0, "medium": 1, "low": 2, "info": 3}
    # Stable: equals stay as `resolve` ordered them. Whether I/O matters comes first: it bounds all others.
    ranked = sorted(
        zip(kept, made, strict=True),
        key=lambda pair: (pair[0].rule is not IOShare, -pair[0].seconds, order[pair[1].severity]),
    )
    return Advice(
        profile=profile_ref,
        system=system_ref,
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


def _ask(rule: Rule, profile: Profile, system: System) -> Verdict:
    """The rule's verdict, or which of its inputs is missing."""
    for path in (_TIMES, *rule.needs) if rule.needs_times else rule.needs:
        if _is_null(profile, path.split(".")):
            return rule.nothing(_missing(path, profile))
    try:
        verdict = rule.check(profile, system)
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
    supply = SUPPLY.get(path.split(".", maxsplit=1)[0], SUPPLY[""])
    if why is not None and why.startswith("--quick"):
        supply = _WITHOUT_QUICK
    return f"{path} is not known{f' ({why})' if why else ''}; {supply}"


def _capped(finding: Finding, time: IOTime | None) -> Finding:
    """No gain exceeds the I/O time there is: centrally that of the slowest process, at best that of all."""
    gain = finding.gain
    if gain is None or time is None:
        return replace(finding, gain=None)

    def after(value: float, most: float) -> float:
        return min(max(value, gain.before_s - most, 0.0), gain.before_s)

    best = after(gain.best_s, time.busy_s)
    central = max(best, after(gain.after_s, time.slowest_s))
    worst = max(central, after(gain.worst_s, time.slowest_s))
    return replace(finding, gain=replace(gain, after_s=central, best_s=best, worst_s=worst))


def _severity(one: Judged, time: IOTime | None) -> Severity:
    """By share of the run; where the gain is unknown, by the time touched, and then one step lower."""
    if time is None:
        return "info"
    known = one.finding.gain is not None
    seconds = one.seconds if known else min(one.finding.touched_s, time.slowest_s)
    share = seconds / time.runtime_s if time.runtime_s else 0.0
    steps: list[Severity] = [severity for least, severity in SEVERITIES if share >= least]
    steps.append("info")
    if known:
        return steps[0]
    return {"high": "medium", "medium": "low"}.get(steps[0], steps[0])  # type: ignore[return-value]


def _recommendation(one: Judged, time: IOTime | None, *, lower: bool) -> Recommendation:
    rule, finding = one.rule, one.finding
    return Recommendation(
        rule=rule.id,
        name=rule.name,
        severity="info" if lower else _severity(one, time),
        confidence=finding.confidence,
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
