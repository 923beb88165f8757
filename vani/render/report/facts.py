"""Lines of a report: identity, figures, why, when and where, remarks, summaries of sections, recommendations.

The page shows the identity on its first screen, so that printed copies can be distinguished.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from vani.models.verdict import could_matter, verdict_of
from vani.render.answers import by_app, files_line, library_words, moved, numbers_of, rank_words, when
from vani.render.report.structure import slowest_part
from vani.render.report.tables import Limits, clip
from vani.render.wording import expected_gain, how_sure, judged_part, matters, target, tracer_of
from vani.schema.advice import Advice, Recommendation, Setting
from vani.schema.damage import damage
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes, format_count, format_number, format_seconds, format_share

_MAX_NAMES: Final = 3
"""Maximum number of names to list."""
_LAST: Final = 253_402_300_799.0
"""Last second of the year 9999; a clock with a later time is broken."""


@dataclass(frozen=True)
class Fact:
    """A line of "what ran": a label, its value, and a qualification."""

    label: str
    value: str
    note: str = ""
    key: str = ""
    """Attribute of the profile, such as `workflow.io.bytes.read`."""


def identity(profile: Profile, users: Sequence[str], limits: Limits) -> tuple[Fact, ...]:
    """Facts that identify the run; for unknown ones, a note or how to get them.

    Parameters
    ----------
    users
        Users who ran it, from the names of the trace folders; empty if these contain none, although the profile
        may.
    """
    tools = dict.fromkeys(tracer_of(trace.tool, trace.format) for trace in profile.traces)
    programs = dict.fromkeys(app.name for app in profile.apps)
    nodes, most = profile.job.nodes, limits.path // 4
    return (
        Fact("Run", _when(profile)),
        Fact("Program", some([*programs], most)),
        # Few tracers record the command line.
        *([Fact("Command", clip(profile.job.command, 2 * limits.path))] if profile.job.command else ()),
        _job(profile, limits),
        Fact("User", some([*dict.fromkeys(users or filter(None, [profile.job.user]))], most)),
        Fact("Nodes", format_count(nodes), "" if nodes is not None else "`vani collect` records it"),
        Fact("Traced by", some([*tools], most)),
        Fact("Trace", _state(profile)),
    )


def _when(profile: Profile) -> str:
    starts = [trace.start_unix_s for trace in profile.traces if trace.start_unix_s is not None]
    if not starts or not 0 < min(starts) <= _LAST:
        return "date unknown"
    return f"{datetime.fromtimestamp(min(starts), UTC):%Y-%m-%d %H:%M:%S} UTC"


def _job(profile: Profile, limits: Limits) -> Fact:
    job_id = profile.job.id
    if job_id is None:
        return Fact("Job", "unknown", "`vani collect` records it")
    return Fact("Job", clip(" ".join(filter(None, (profile.job.scheduler, job_id))), limits.path // 4))


def some(names: Sequence[str], most: int) -> str:
    """The first names, cut to `most` characters, and the number of further ones."""
    shown = [clip(name, most) for name in names[:_MAX_NAMES]]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(shown)}{more}" if shown else "unknown"


def _state(profile: Profile) -> str:
    if damage(profile) is not None:
        broken = sum(trace.complete is False for trace in profile.traces)
        part = f" ({format_count(broken)} of {counted(len(profile.traces), 'trace')})"
        return "damaged" + (part if broken else "")
    return "complete" if all(trace.complete for trace in profile.traces) else "not checked (no times were read)"


# --- figures -----------------------------------------------------------------------------------------


def facts(profile: Profile, write_time: tuple[str, str] | None) -> tuple[Fact, ...]:
    """The run in a few figures, with the predicted time of its writes if there is one."""
    workflow = profile.workflow
    instances = sum(app.instances for app in profile.apps)
    traces = f"{format_count(instances)} traces" if instances > workflow.apps else ""
    moved, files, share = workflow.io.bytes, workflow.files, workflow.io_time_share
    reads, writes = counted(workflow.io.ops.read, "call"), counted(workflow.io.ops.write, "call")
    of_run = "unknown" if share is None else f"{format_share(share)} of the run"
    return (
        Fact("Apps", format_count(workflow.apps), traces, "workflow.apps"),
        Fact("Processes", format_count(workflow.processes), key="workflow.processes"),
        Fact("Run time", format_seconds(workflow.runtime_s), key="workflow.runtime_s"),
        Fact("Read", format_bytes(moved.read), reads, "workflow.io.bytes.read"),
        Fact("Written", format_bytes(moved.written), writes, "workflow.io.bytes.written"),
        Fact("Files", format_count(files.total), f"{format_count(files.shared)} shared", "workflow.files.total"),
        Fact("I/O", of_run, _slowest(profile), "workflow.io_time_share"),
        *_values(profile),
        *(() if write_time is None else [Fact("Writes", *write_time)]),
    )


def _values(profile: Profile) -> tuple[Fact, ...]:
    """The distribution of the data set's values; empty if none was sampled."""
    distribution = profile.dataset.distribution
    if distribution is None:
        return ()
    note = f"of {format_count(distribution.values)} values in {format_count(distribution.files)} files"
    return (Fact("Values", distribution.name or f"of no known law; nearest is {distribution.closest}", note),)


def _slowest(profile: Profile) -> str:
    """The process with the longest I/O time; empty if there is a single process, or no times."""
    slow = [
        (balance.slowest_io_time_s, rank_words(balance.slowest_rank), app.name)
        for app in profile.apps
        if (balance := app.balance) is not None and balance.slowest_io_time_s is not None
    ]
    if not slow or profile.workflow.processes == 1:
        return ""
    worst, rank, name = max(slow, key=lambda row: row[0])
    if not worst:
        return ""
    of = f" of {clip(name, 40)}" if len(profile.apps) > 1 else ""
    share = profile.workflow.io_time_share_slowest
    part = "" if share is None else f", {format_share(share)}"
    return f"slowest process, {rank}{of}: {format_seconds(worst)}{part}"


# --- why, when and where -----------------------------------------------------------------------------

_ROOM = 10_000
"""Maximum number of characters in a line, which the page wraps itself."""


def answers(profile: Profile, heat: HeatMap | str, limits: Limits) -> tuple[Fact, ...]:
    """The lines for which the profile has an answer."""
    cause = verdict_of(profile).cause
    where = [line for line in (by_app(profile), files_line(profile, _ROOM)) if line]
    lines = (
        ("Why", cause.sentence if cause is not None else "", "verdict.cause"),
        ("When", when(profile), ""),
        ("Where", "; ".join(where), ""),
        ("Data", moved(profile), ""),
        ("Slowest", slowest_part(heat), ""),
    )
    # A key names an attribute, which an older document may lack.
    stated = profile.verdict is not None
    return tuple(Fact(label, clip(text, limits.prose), "", key if stated else "") for label, text, key in lines if text)


# --- remarks: reasons why the numbers may mislead -----------------------------------------------------

MAX_REMARKS: Final = 12


def remarks(profile: Profile, advice: Advice, limits: Limits) -> tuple[str, ...]:
    """All remarks, those that affect most numbers first."""
    sentences = [
        *_blind_spots(profile),
        *filter(None, (library_words(profile),)),
        *((advice.remainder.sentence,) if advice.remainder is not None else ()),
        *_unseen_writes(profile),
        *_doubts(profile),
    ]
    if profile.workflow.runtime_s is None:
        why = profile.provenance.get("workflow.runtime_s") or "the profile was made without time stamps"
        if why not in matters(advice, profile):
            sentences.append(why)
    if advice.profile.files is not None:
        sentences.append(judged_part(advice.profile.files))
    return tuple(clip(sentence, limits.prose) for sentence in sentences[:MAX_REMARKS])


def _blind_spots(profile: Profile) -> Iterator[str]:
    """Activity missing from the trace: the files, the probable cause, and how to record it."""
    for entry in could_matter(profile):
        where = f" ({some(entry.files, 60)})" if entry.files else ""
        yield f"Not seen: {entry.cause}{where}. To see it: {entry.see_with}."


def _unseen_writes(profile: Profile) -> Iterator[str]:
    """Apps whose files others read, although no write to them was recorded."""
    edges = profile.workflow.app_dependencies or ()
    # Profiles of older versions have 0 for unknown bytes.
    makers = dict.fromkeys(
        edge.producer
        for edge in edges
        if edge.bytes_written is None or (edge.bytes_read and not edge.bytes_written)
    )
    if makers:
        yield (
            f"Others read files of {some([*makers], 40)} to which no write is in the trace: formatted output, such as "
            "fprintf, often leaves no record. Bytes written are more than shown."
        )


def _doubts(profile: Profile) -> Iterator[str]:
    past = profile.workflow.io.past_end.read
    if past:
        yield f"{format_bytes(past)} of the reads are past the end of their file and returned no data."
    for side in ("read", "write"):
        why = profile.provenance.get(f"io.bandwidth.{side}")
        if why:
            yield f"Bandwidth of {side}s: {why}"


# --- summaries of sections ---------------------------------------------------------------------------

_KINDS: Final = {"read": "reading", "write": "writing", "sync": "flushing", "metadata": "metadata"}


def summaries(profile: Profile, *, advice: int, silent: int, unknown: int) -> Mapping[str, str]:
    """A few words on each folded section of the page by its anchor; empty if there is nothing to state."""
    workflow = profile.workflow
    return {
        "cost": _costs(profile),
        "time": _phases(profile),
        "balance": _balance(profile),
        "apps": f"{counted(workflow.apps, 'app')}, {counted(workflow.processes, 'process')}",
        "files": _data(profile),
        "advice": f"{counted(advice, 'remark')}; {counted(silent, 'rule')} with nothing to recommend",
        "unknown": counted(unknown, "attribute"),
        "about": counted(len(profile.traces), "trace"),
    }


def _costs(profile: Profile) -> str:
    times = profile.workflow.io.time_s
    seconds = {word: getattr(times, kind) or 0.0 for kind, word in _KINDS.items()}
    whole = sum(seconds.values())
    if not whole:
        return ""
    most = max(seconds, key=lambda word: seconds[word])
    share = format_share(seconds[most] / whole)
    return f"{format_seconds(whole)} in calls, summed over processes; {share} of it {most}"


def _phases(profile: Profile) -> str:
    runtime = format_seconds(profile.workflow.runtime_s)
    if profile.phases is None:
        return f"a run of {runtime}"
    return f"{counted(sum(phase.count for phase in profile.phases), 'phase')} of I/O in a run of {runtime}"


def _balance(profile: Profile) -> str:
    ratios = [
        balance.slowest_io_time_s / balance.mean_io_time_s
        for app in profile.apps
        if (balance := app.balance) is not None and balance.slowest_io_time_s and balance.mean_io_time_s
    ]
    return f"the slowest has {format_number(max(ratios))} times the mean I/O time" if ratios else ""


def _data(profile: Profile) -> str:
    files, moved = profile.workflow.files, profile.workflow.io.bytes
    if files.total is None:
        return ""
    return (
        f"{counted(files.total, 'file')}, {format_count(files.shared)} shared; {format_bytes(moved.read)} read, "
        f"{format_bytes(moved.written)} written"
    )


# --- recommendations ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingChange:
    """A setting's current and recommended values; empty if unknown."""

    name: str
    now: str
    then: str


@dataclass(frozen=True)
class Item:
    """One recommendation."""

    number: int
    rule: str
    name: str
    title: str
    """The rule's finding without a full stop, or the rule's name if the catalogue lacks it."""
    severity: str
    sure: str
    target: str
    app: str
    """App to which the target belongs; empty if the target is the app itself, or none is named."""
    reason: str
    gain: str
    """Expected gain with its range, or the reason why there is none."""
    has_gain: bool
    method: str
    lines: tuple[str, ...]
    """Lines to paste."""
    left_lines: int
    rest: str
    """Where to find omitted lines and numbers, as the end of a sentence."""
    settings: tuple[SettingChange, ...]
    evidence: tuple[str, ...]
    """The numbers behind it, in words."""
    sources: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Its anchor on a page."""
        return f"advice-{self.number}"


@dataclass(frozen=True)
class Silent:
    """A rule without a recommendation, and the reason."""

    rule: str
    name: str
    why: str


def item(
    number: int,
    recommendation: Recommendation,
    limits: Limits,
    findings: Mapping[str, str] = MappingProxyType({}),
    rest: str = "",
) -> Item:
    """Convert a recommendation for a report.

    Parameters
    ----------
    number
        Its position, from 1.
    findings
        The findings of rules, by id.
    rest
        See `Item`.
    """
    target_ = recommendation.target
    lines = [line for line in recommendation.apply[: limits.lines] if len(line) <= limits.line]
    gain = expected_gain(recommendation)
    return Item(
        number=number,
        rule=clip(recommendation.rule, 40),
        name=clip(recommendation.name, 80),
        title=clip(findings.get(recommendation.rule, "").rstrip(".") or recommendation.name, 160),
        severity=recommendation.severity,
        sure=how_sure(recommendation),
        target=clip(target(recommendation), limits.path),
        app=clip(target_.app, 40) if target_.app and target_.path else "",
        reason=clip(recommendation.reason, limits.prose),
        gain=clip(gain, limits.prose) if gain else "not estimated",
        has_gain=bool(gain),
        method="" if recommendation.gain is None else clip(recommendation.gain.method, limits.prose),
        # A control character in a line to paste is shown, but never pasted.
        lines=tuple(clip(line, limits.line) for line in lines),
        left_lines=len(recommendation.apply) - len(lines),
        rest=rest,
        settings=_settings(recommendation.current, recommendation.recommended, limits),
        evidence=tuple(numbers_of(recommendation)),
        sources=tuple(clip(source, limits.prose) for source in recommendation.source[:10]),
    )


def silent(advice: Advice, names: Mapping[str, str], limits: Limits) -> tuple[Silent, ...]:
    """Rules without any recommendation; `names` are the names of rules by id."""
    speaking = {recommendation.rule for recommendation in advice.recommendations}
    return tuple(
        Silent(clip(entry.rule, 40), clip(names.get(entry.rule, ""), 80), clip(entry.why, limits.prose))
        for entry in advice.no_recommendation[: 2 * limits.rows]
        if entry.rule not in speaking
    )


def _settings(now: Mapping[str, Setting], then: Mapping[str, Setting], limits: Limits) -> tuple[SettingChange, ...]:
    keys = list(dict.fromkeys([*now, *then]))[:20]
    return tuple(
        SettingChange(clip(key.replace("_", " "), 60), _value(key, now, limits), _value(key, then, limits))
        for key in keys
    )


def _value(key: str, settings: Mapping[str, Setting], limits: Limits) -> str:
    if key not in settings:
        return ""
    value = settings[key]
    return _unit(key, value) or clip(_plain(value), limits.path)


def _plain(value: Setting) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, list):
        return ", ".join(_plain(entry) for entry in value[:20]) + (", …" if len(value) > 20 else "")
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(entry)}" for key, entry in list(value.items())[:20])
    return str(value)


def _unit(attribute: str, value: Setting) -> str:
    """A number with the unit of its attribute; empty if it has none, or is clear without one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    parts = attribute.lower().replace("[", ".").split(".")
    last = parts[-1]
    if last.endswith("_s") or any(part in ("time_s", "busy_s") for part in parts):
        return format_seconds(value)
    if last.endswith("share") or "share" in last.split("_") or "access_pattern" in parts:
        return format_share(value)
    sized = {"bytes", "footprint", "transfer_size", "past_end", "granularity"}
    if last.endswith(("bytes", "_size", "capacity")) or last == "size" or sized & set(parts):
        return format_bytes(value) if abs(value) >= 1000 else ""
    return ""
