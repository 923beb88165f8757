"""Applies all rules to a profile and a system, and combines their verdicts in one document.

Work common to all rules is done here: null inputs, faults of a rule, gains in seconds of the run, severity,
confidence, contradictions and order.

Order and severity follow a recommendation's saving on its own. `expected` is its saving after those above it
(`vani.advisors.gains`).

The advice names the profile, which may be a file, and the machine.
"""


import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

from vani.advisors.catalogue import find, patterns, pick
from vani.advisors.commands import comment
from vani.advisors.competing_findings import Cause, Judged, before_what_builds_on_them, resolve, together
from vani.advisors.data_files import data_files
from vani.advisors.floors import above_floor
from vani.advisors.gains import WIDEST, before_bounds, is_measurable, of_run, without_little
from vani.advisors.libraries import in_its_words
from vani.advisors.matter.io_share import IOShare
from vani.advisors.patterns import Workload
from vani.advisors.patterns.whole_run import NothingRemarkable
from vani.advisors.placement import as_recorded, notes_on_mounts
from vani.advisors.rule import (
    NO_LAYOUTS,
    Finding,
    Gain,
    Layouts,
    MatchingRule,
    Number,
    Perhaps,
    Rule,
    Verdict,
    value_at,
)
from vani.advisors.rule import TunableSetting as RuleSetting
from vani.errors import InputError, VaniError
from vani.models.io_time import LEAST, IOTime, io_time, library_part, with_commands_as_instances
from vani.models.verdict import locking, unseen_bound, verdict_of
from vani.plug_ins import described
from vani.schema.advice import (
    Advice,
    Direction,
    Evidence,
    Expected,
    JudgedFiles,
    NoRecommendation,
    Observation,
    ProfileRef,
    Recommendation,
    Remainder,
    Severity,
    SystemRef,
    Target,
    TunableSetting,
)
from vani.schema.damage import damage, overhead_of, whole_share
from vani.schema.document import dumps
from vani.schema.profile import Profile
from vani.schema.profile import Verdict as ProfileVerdict
from vani.schema.saved_profile import ProfilePart, SavedProfile, most_important
from vani.schema.system import System
from vani.schema.unknown import supply_of
from vani.units import MiB, format_seconds, format_share

Thresholds = Mapping[str, Mapping[str, Number | str]]

UNKNOWN_SYSTEM: Final = System(name="unknown", generic=False)
"""The machine if none is given, without any figures."""

# Least share of the run for each severity. 25 % and 10 % are our choice: a quarter of a run is worth a change of the
# program, and Xie et al. (section II) allow I/O 10 % of a run. 1 % is worth pasting a line.
MATTER: Final = IOShare.id
"""The rule on whether I/O matters, which limits all others."""
SEVERITIES: Final[tuple[tuple[float, Severity], ...]] = ((0.25, "high"), (0.10, "medium"), (0.01, "low"))

# Decisions without the common floor: other storage has other rates, several writers may have separate files, and no
# process waits for data that is written in the background.
OWN_FLOORS: Final = frozenset({"location", "writers", "waiting"})

# A smaller saving is within the variation of runs and not worth a change: at most low severity (our choice).
LEAST_S: Final = 1.0

# Factor on the confidence of findings on a run that is too short to judge (our choice).
SHORT_RUN: Final = 0.5

ORDER: Final[tuple[Severity, ...]] = ("high", "medium", "low", "info")

_LOWER: Final[Mapping[Severity, Severity]] = {"high": "medium", "medium": "low"}

# What a user can supply for attributes without provenance, by prefix.
SUPPLY: Final = {
    "job": "supply --job job.yaml (`vani collect`, run inside the job, writes it)",
    "middleware": "supply --job job.yaml (`vani collect`, run inside the job, writes it)",
    "storage": "supply --system NAME or a system.yaml, or --job job.yaml",
    "": "supply a trace that contains it",
}
_TIMES: Final = "workflow.runtime_s"


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
    """Apply the chosen rules. Each is in at least one of the advice's two lists.

    `thresholds` maps a rule's id or name to values by threshold name. See `advise_document` for errors.
    """
    profile = with_commands_as_instances(profile)
    notes = list(notes_on_mounts(None if system_ref.name is None else system, profile))
    notes += [f"{text[0].upper()}{text[1:]}." for text in locking(profile)]
    system = as_recorded(system, profile)
    chosen = [rule(values) for rule, values in _configured(pick(select, ignore), thresholds)]
    matter = next((rule for rule in chosen if isinstance(rule, IOShare)), None) or IOShare()
    # Without times, no rule knows the value of its finding, and few find anything.
    time = None if profile.workflow.runtime_s is None else io_time(profile)
    most = _most_severe(matter, time, profile)
    silent: list[NoRecommendation] = []
    judged: list[Judged] = []
    # Rules that match file layouts come last, when the recommended layouts are known.
    for matching in (False, True):
        layouts = _layouts(judged) if matching else NO_LAYOUTS
        for rule in (rule for rule in chosen if isinstance(rule, MatchingRule) is matching):
            verdict = _ask(rule, profile, system, layouts)
            if isinstance(verdict, str):
                silent.append(NoRecommendation(rule=rule.id, why=verdict))
                continue
            for generic in verdict:
                # MAT001 is the bound itself.
                if isinstance(rule, IOShare):
                    judged.append(_judged(type(rule), generic))
                    continue
                finding = in_its_words(type(rule), generic, profile)
                if isinstance(finding, str):
                    silent.append(NoRecommendation(rule=rule.id, why=finding))
                    continue
                bound = of_run(
                    finding if rule.settles in OWN_FLOORS else above_floor(finding, profile, system), time
                )
                gain = bound.known_gain
                if gain is not None and not is_measurable(gain):
                    why = f"{finding.target.path or rule.name}: by its own figure it gains nothing that can be measured"
                    silent.append(NoRecommendation(rule=rule.id, why=f"{why} ({gain.method})"))
                else:
                    judged.append(_judged(type(rule), without_little(bound)))
    winners, lost = resolve(judged)
    silent += [NoRecommendation(rule=loser.rule.id, why=why) for loser, why in lost]
    observations = diagnosis(profile)
    sure = whole_share(profile) * (SHORT_RUN if time is not None and time.is_short else 1.0)
    recommendations = [
        _recommendation(
            winner.rule,
            now,
            max(most, _severity(winner, now, time, profile), key=ORDER.index),
            sure,
            profile,
            [seen.pattern for seen in observations if winner.rule.id in seen.rules],
        )
        for winner, now in zip(winners, together(winners, time, profile), strict=True)
    ]
    cause = Cause(profile)
    # A stable sort keeps the order of `resolve` for equals. MAT001 comes first, because it limits all others.
    ranked = sorted(
        zip(winners, recommendations, strict=True),
        key=lambda pair: (
            pair[0].rule is not IOShare,
            # A known but negligible gain does not rank above an unknown one.
            pair[1].severity == "info",
            -cause.acted_on(pair[0].rule, pair[0].finding),
            -pair[0].seconds,
            ORDER.index(pair[1].severity),
        ),
    )
    ranked = before_what_builds_on_them(ranked)
    ranked_recommendations = [recommendation for _, recommendation in ranked]
    worth_following = [winner for winner, recommendation in ranked if recommendation.severity != "info"]
    followed = [winner for winner in worth_following if winner.rule is not IOShare]
    touched_s = [winner.finding.touched_s for winner in followed]
    is_acted_on = any(cause.acted_on(winner.rule, winner.finding) for winner in followed)
    return Advice(
        profile=profile_ref,
        system=system_ref,
        damage=damage(profile),
        verdict=with_remedy(verdict_of(profile), ranked_recommendations),
        remainder=remainder(
            profile, time, max(touched_s, default=0.0), "" if is_acted_on else cause.why_not(silent)
        ),
        diagnosis=observations,
        notes=notes or None,
        recommendations=ranked_recommendations,
        no_recommendation=sorted(silent, key=lambda entry: entry.rule),
    )


def diagnosis(profile: Profile) -> list[Observation]:
    """All patterns that the profile shows, the one with the largest share of the I/O time first.

    A pure function. An entry names the costliest place with the pattern, but its share covers all such places.
    """
    run, observations = Workload(profile, locking(profile)), []
    for pattern in patterns():
        if (seen := pattern().see(run)) is None:
            continue
        values = ((path, value_at(profile, path)) for path in seen.attributes)
        observations.append(
            Observation(
                pattern=pattern.name,
                target=Target(kind=seen.target.kind, path=seen.target.path, app=seen.target.app),
                evidence=[Evidence(attribute=path, value=value) for path, value in values if value is not None],
                share=seen.share,
                time_s=None if seen.share is None else seen.share * run.io_s,
                rules=list(pattern.rules),
            )
        )
    remarkable = [entry for entry in observations if entry.pattern != NothingRemarkable.name]
    return sorted(remarkable or observations, key=lambda entry: -(entry.share or 0.0))


def with_remedy(verdict: ProfileVerdict, recommendations: Sequence[Recommendation]) -> ProfileVerdict:
    """The verdict of the profile, with the first recommendation worth following as its remedy."""
    first = next((entry for entry in recommendations if entry.rule != IOShare.id and entry.severity != "info"), None)
    if verdict.matters != "yes" or first is None:
        return verdict
    return verdict.model_copy(update={"remedy": f"{first.name} ({first.rule})"})


def _configured(
    chosen: Iterable[type[Rule]], thresholds: Thresholds | None
) -> Iterator[tuple[type[Rule], dict[str, Number | str]]]:
    given = {key.lower(): dict(values) for key, values in (thresholds or {}).items()}
    for key, values in (thresholds or {}).items():
        # Also for rules that are not selected, because a misspelt name is always an error.
        _rule_of(key)(values)
    for rule in chosen:
        yield rule, given.get(rule.name.lower(), {}) | given.get(rule.id.lower(), {})


def _rule_of(key: str) -> type[Rule]:
    try:
        return find(key)
    except InputError as error:
        raise InputError(f"thresholds are given for {key!r}, which is not a rule", todo=error.todo) from None


def _layouts(judged: Sequence[Judged]) -> Layouts:
    """Recommended stripes by path, in the order of findings, without those that a better recommendation replaces."""
    winners, _ = resolve(judged)
    given = {id(winner) for winner in winners}
    return {
        path: candidate.finding.stripes
        for candidate in judged
        if candidate.finding.stripes is not None and id(candidate) in given
        for path in candidate.finding.files
    }


def _ask(rule: Rule, profile: Profile, system: System, layouts: Layouts) -> Verdict:
    """The rule's verdict, or its first unmet requirement."""
    try:
        for need in (_TIMES, *rule.needs) if rule.needs_times else rule.needs:
            why = need(profile, system) if callable(need) else _missing(need, profile)
            if why is not None:
                return why
        arguments = (profile, system, layouts) if isinstance(rule, MatchingRule) else (profile, system)
        verdict = rule.check(*arguments)
    except InputError:
        # The profile is at fault, not the rule.
        raise
    except Exception as error:
        raise _fault(rule, f"failed ({described(error)})") from error
    if not verdict:
        raise _fault(rule, "neither recommends anything nor gives a reason")
    return verdict


def _fault(rule: Rule, problem: str) -> VaniError:
    is_plug_in = not type(rule).__module__.startswith("vani.")
    return (InputError if is_plug_in else VaniError)(
        f"rule {rule.id} ({rule.name}) {problem}",
        where=type(rule).__module__,
        todo=f"fix the rule, or report it if it came with Vani; `--ignore {rule.id}` continues without it",
    )


def _is_null(value: Any, path: list[str]) -> bool:
    """True if nothing is known at `path`: it is null, or null in every file for `files[].x`."""
    if value is None or not path:
        return value is None
    name, *rest = path
    below = getattr(value, name.removesuffix("[]"))
    if not name.endswith("[]"):
        return _is_null(below, rest)
    return bool(below) and all(_is_null(item, rest) for item in below)


def _missing(path: str, profile: Profile) -> str | None:
    """Reason why nothing is known at `path`; None if something is."""
    if not _is_null(profile, path.split(".")):
        return None
    why = profile.provenance.get(path)
    supply = supply_of(why) or SUPPLY.get(path.split(".", maxsplit=1)[0], SUPPLY[""])
    return f"{path} is not known{f' ({why})' if why else ''}; {supply}"


def _judged(rule: type[Rule], finding: Finding) -> Judged:
    return Judged(rule, finding, finding.known_gain.seconds if finding.known_gain else 0.0)


def _severity(judged: Judged, now: Finding, time: IOTime | None, profile: Profile) -> Severity:
    """Severity from the share of the run that a finding saves alone; one step lower from the time touched if unknown.

    A saving below `LEAST_S`, alone or after the earlier recommendations (`now`), is at most low. Where the tracer
    lengthened times, counts and bytes decide, so that two traces of a program give one severity.
    """
    if time is None:
        return "info"
    gain = judged.finding.known_gain
    known = gain is not None and not _is_direction(gain)
    seconds = judged.seconds if known else judged.finding.touched_s
    share = seconds / time.runtime_s if time.runtime_s else 0.0
    steps: list[Severity] = [severity for least, severity in SEVERITIES if share >= least]
    steps.append("info")
    if overhead_of(profile) is not None and steps[0] != "info":
        return "medium" if _counted_share(judged.finding, profile) >= SEVERITIES[0][0] else "low"
    severity_alone = steps[0] if known else _LOWER.get(steps[0], steps[0])
    if now.known_gain is not None:
        seconds = min(seconds, now.known_gain.seconds)
    return max("low", severity_alone, key=ORDER.index) if seconds < LEAST_S else severity_alone


def _most_severe(matter: IOShare, time: IOTime | None, profile: Profile) -> Severity:
    """The highest severity that the run allows."""
    if time is None or matter.is_hardly(time, profile):
        return "info"
    return "low" if time.is_short and overhead_of(profile) is None else "high"


def _counted_share(finding: Finding, profile: Profile) -> float:
    """The affected files' share of the data's I/O, in which a call costs as much as moving 1 MiB."""
    costs = {item.path: item.part.files * item.file.io.ops.all + item.moved / MiB for item in data_files(profile)}
    every = sum(costs.values())
    if not finding.files or not every:
        return 1.0
    return sum(costs.get(path, 0.0) for path in finding.files) / every


def _recommendation(
    rule: type[Rule],
    finding: Finding,
    severity: Severity,
    sure: float,
    profile: Profile,
    patterns: list[str],
) -> Recommendation:
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
        reason=f"{finding.reason} {finding.advice}".rstrip(),
        # There is no estimate from seconds that the tracer lengthened.
        expected=None
        if finding.gain is None or overhead_of(profile) is not None
        else _expected(finding.gain, profile, is_bound=rule is IOShare),
        apply=_lines(finding),
        settings=_tunable(tunable_settings(finding)),
        source=list(rule.sources),
        patterns=patterns,
    )


def _tunable(settings: Sequence[RuleSetting]) -> list[TunableSetting]:
    return [
        TunableSetting(kind=setting.kind, folder=setting.folder, values=[dict(value) for value in setting.values])
        for setting in settings
    ]


def _expected(gain: Gain | str | Perhaps, profile: Profile, *, is_bound: bool) -> Expected | Direction:
    """The expected gain as a number, or only its direction if there is none or its range is too wide."""
    if isinstance(gain, str):
        return Direction(why_no_number=gain)
    if isinstance(gain, Perhaps):
        return Direction(direction="perhaps faster", why_no_number=gain.why)
    if not is_bound and _is_direction(gain):
        is_sure = gain.worst_s < gain.before_s
        most, least = (format_seconds(gain.before_s - seconds) for seconds in (gain.best_s, gain.worst_s))
        why = f"it may save {least if is_sure else 'nothing'}, or up to {most} of {format_seconds(gain.before_s)}"
        return Direction(
            direction="faster" if is_sure else "perhaps faster", why_no_number=gain.why_no_number or why
        )

    def speedup(after: float) -> float | None:
        # With nothing left, the factor is infinite.
        return gain.before_s / after if after > 0 else None

    return Expected(
        metric=gain.metric,
        before=gain.before_s,
        after=gain.after_s,
        speedup=speedup(gain.after_s),
        low=speedup(gain.worst_s),
        high=speedup(gain.best_s),
        method=gain.method,
        before_bounds=before_bounds(gain, profile),
    )


def _is_direction(gain: Gain) -> bool:
    """True if a gain has no number, or a range that is too wide for one."""
    return bool(gain.why_no_number) or gain.worst_s > WIDEST * gain.best_s * (1 + 1e-9)


_NOT_REDUCED: Final = "no setting of storage reduces it"


def remainder(profile: Profile, time: IOTime | None, acted_on_s: float, why_not: str = "") -> Remainder | None:
    """Describe the time that recommendations leave; None if I/O does not matter or they act on at least half of it.

    `acted_on_s` is the largest number of seconds that a single recommendation acts on, because it is unknown how much
    several overlap. `why_not` is the reason why nothing acts on the named cause.
    """
    verdict = verdict_of(profile)
    if time is None or verdict.matters != "yes" or acted_on_s >= LEAST * time.calls_s:
        return None
    part = library_part(profile, time)
    if part is not None and part.seconds >= LEAST * time.calls_s:
        share = min(1.0, part.seconds / time.calls_s)
        text = f"{format_share(share)} of the time in I/O calls is {part.words}: {_NOT_REDUCED}."
        return Remainder(kind=part.kind, seconds=part.seconds, share=share, sentence=text)
    left = time.calls_s - acted_on_s
    whole = format_seconds(time.calls_s)
    text = f"Recommendations act on at most {format_seconds(acted_on_s)} of the {whole} in I/O calls"
    text += f"{unseen_bound(profile)}."
    if not acted_on_s:
        text = f"No rule has a setting for the {whole} in I/O calls."
    text = f"{text} {why_not}".rstrip()
    return Remainder(kind="file_system", seconds=left, share=left / time.calls_s, sentence=text)


_HINT_FILE = re.compile(r"printf '%s\\n' (.+) >> romio-hints")
_HINT_VARIABLES = ("export ROMIO_HINTS=", "export MPICH_MPIIO_HINTS=")


def tunable_settings(finding: Finding) -> Sequence[RuleSetting]:
    """Settings that a rule names, or else those that its lines set.

    Empty if a line does something else, or if the lines do not set a recommended hint. Such advice requires a change
    of the program or the job, and the tunable would be only a part of it.
    """
    if finding.settings is not None:
        return finding.settings
    lines = [line for line in _lines(finding) if not line.startswith("#")]
    tunable = [*chain.from_iterable(map(_settings_in, lines))] if all(map(_is_known, lines)) else []
    names = {name for tunable in tunable if tunable.kind == "hints" for value in tunable.values for name in value}
    return [] if names and not names >= set(finding.recommended) else tunable


def _lines(finding: Finding) -> list[str]:
    return comment(finding.apply) if isinstance(finding.apply, str) else list(finding.apply)


def _is_known(line: str) -> bool:
    return line.startswith(_HINT_VARIABLES) or any(True for _ in _settings_in(line))


def _settings_in(line: str) -> Iterator[RuleSetting]:
    if match := _HINT_FILE.fullmatch(line):
        hints = dict(word.split(" ", 1) for word in shlex.split(match[1]))
        yield RuleSetting("hints", (hints,))
        return
    words = shlex.split(line)
    # If joining the words does not give the line again, it contains something that a shell would expand.
    if line.startswith(_HINT_VARIABLES) or shlex.join(words) != line:
        return
    if words[:2] == ["lfs", "setstripe"] and len(words) > 3:
        yield RuleSetting("layout", ({"options": shlex.join(words[2:-1])},), folder=words[-1])
    elif words[:2] in (["beegfs-ctl", "--setpattern"], ["daos", "filesystem"]) and len(words) > 3:
        yield RuleSetting("layout", ({"command": shlex.join(words[:-1])},), folder=words[-1])
    elif words[0] == "export" and len(words) == 2 and "=" in words[1]:
        name, _, value = words[1].partition("=")
        yield RuleSetting("environment", ({name: value},))


_Entry = TypeVar("_Entry", Recommendation, Observation)


def advise_document(
    profile: Profile | SavedProfile | str | Path,
    system: System | None = None,
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
    files: int | None = None,
    part: ProfilePart | None = None,
) -> Advice:
    """Judge a profile, or the profile in a file. The advice names the file and the machine.

    The digest of a file is of its bytes, the digest of a model of its YAML.
    If a profile lists more than `files` files, the rules see those with the most I/O time, as if
    it had been made with `vani profile --files N`. None: all files. Positions in evidence refer to the whole list.
    `part` is the result of an earlier `judged_part` for this profile and the same number of files.

    Raises
    ------
    DocumentError
        The file is not a valid profile.
    InputError
        `select`, `ignore` or `thresholds` names a rule or a threshold that does not exist.
    VaniError
        A rule failed.
    """
    machine = UNKNOWN_SYSTEM if system is None else system
    system_ref = SystemRef(name=None if system is None else system.name, sha256=_digest(dumps(machine).encode()))
    if isinstance(profile, (str, Path)):
        profile = SavedProfile.read(profile)
    model, positions, judged = judged_part(profile, files) if part is None else part
    if isinstance(profile, Profile):
        ref = ProfileRef(path=None, sha256=_digest(dumps(profile).encode()))
    else:
        ref = ProfileRef(path=profile.where, sha256=profile.sha256)
    advice = judge(
        model,
        machine,
        profile_ref=ref.model_copy(update={"files": judged}),
        system_ref=system_ref,
        select=select,
        ignore=ignore,
        thresholds=thresholds,
    )
    return advice if positions is None else _renumbered(advice, positions)


def judged_part(profile: Profile | SavedProfile, files: int | None) -> ProfilePart:
    """The profile with the files that rules see, and their accesses. Raises DocumentError if it is invalid."""
    part = profile.most_important(files) if isinstance(profile, SavedProfile) else _most_important(profile, files)
    if part.positions is None or part.profile.accesses is None:
        return part
    paths = {None, *(file.path for file in part.profile.files)}
    rows = [row for row in part.profile.accesses if row.file in paths]
    return part._replace(profile=part.profile.model_copy(update={"accesses": rows}))


def _most_important(profile: Profile, files: int | None) -> ProfilePart:
    times = [file.io.time_s.total for file in profile.files if file.io.time_s.total is not None]
    if files is None or len(profile.files) <= files or len(times) < len(profile.files):
        return ProfilePart(profile, None, None)
    positions, share = most_important(times, files)
    part = profile.model_copy(update={"files": [profile.files[position] for position in positions]})
    return ProfilePart(part, positions, JudgedFiles(listed=len(times), judged=files, io_time_share=min(1.0, share)))


def _renumbered(advice: Advice, positions: tuple[int, ...]) -> Advice:
    """The advice with positions in `files` converted to those in the whole list."""
    if positions == tuple(range(len(positions))):
        return advice

    def in_whole_list(match: re.Match[str]) -> str:
        index = int(match[1])
        return f"files[{positions[index]}]" if index < len(positions) else match[0]

    def renumbered(entry: _Entry) -> _Entry:
        evidence = [
            item.model_copy(update={"attribute": re.sub(r"^files\[(\d+)\]", in_whole_list, item.attribute)})
            for item in entry.evidence
        ]
        return entry.model_copy(update={"evidence": evidence})

    return advice.model_copy(
        update={
            "diagnosis": [renumbered(entry) for entry in advice.diagnosis or ()],
            "recommendations": [renumbered(entry) for entry in advice.recommendations],
        }
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
