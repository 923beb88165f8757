"""The content of a report, which every format writes.

All texts are safe on one line (no control characters) but not escaped for a format. `Limits` bounds everything;
`left_out` names what a limit excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vani.models.io_time import io_time
from vani.models.verdict import verdict_of
from vani.render.plots.catalogue import draw, kinds
from vani.render.plots.drawing import Drawing, Missing
from vani.render.plots.time_maps import coarse
from vani.render.report.answers import answers
from vani.render.report.bounds import LEVELS, Limits, clip
from vani.render.report.cost import call_table, kind_table, library_table, metadata_table
from vani.render.report.datasets import file_groups
from vani.render.report.diagnosis_table import diagnosis_table
from vani.render.report.file_table import file_table
from vani.render.report.first_picture import FirstPicture, first_picture
from vani.render.report.glossary import GLOSSARY
from vani.render.report.identity import Fact, identity
from vani.render.report.items import Item, Silent, item, silent
from vani.render.report.layouts import layout_table
from vani.render.report.print_page import Ticket, ticket
from vani.render.report.remarks import remarks
from vani.render.report.section_summaries import gists
from vani.render.report.slow_calls import slow_table
from vani.render.report.structure import (
    app_table,
    balance_table,
    dependency_table,
    extension_table,
    folder_table,
    layer_table,
    phase_table,
    trace_table,
)
from vani.render.report.tables import Table
from vani.render.report.unknowns import Unknown, unknowns
from vani.render.wording import MATTERS, judged_by, things_to_do
from vani.schema.advice import Advice
from vani.schema.damage import damage
from vani.schema.profile import Profile
from vani.schema.saved_profile import ListedFile
from vani.schema.timeline import HeatMap
from vani.units import format_bytes, format_count, format_seconds, format_share

_SO_FAR = ", according to the rest of the trace"

_MAPS = ("heat-map", "io-time")
_OVER_TIME = (*_MAPS, "phases", "bandwidth")
"""Kinds whose time range the page can change; their data has the start in `from`, and their selection is `zoom`."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a report."""

    profile: Profile
    profile_sha256: str
    advice: Advice
    heat: HeatMap | str
    """Time-resolved data, or the reason why there is none."""
    rule_names: Mapping[str, str]
    """Names of rules by id."""
    version: str
    """Vani's version."""
    rule_findings: Mapping[str, str] = field(default_factory=dict)
    """One sentence about each rule, by id."""
    write_time: tuple[str, str] | None = None
    """The write time that a model predicts, and a note on it; None if no model was named."""
    files: Sequence[ListedFile] | None = None
    """All files of a long profile, of which `profile` has only the most important ones; None: those of `profile`."""
    users: tuple[str, ...] = ()
    """Users, from the names of the trace folders."""
    contact: tuple[str, ...] = ()
    """Contact lines."""
    advice_file: str | None = None
    """Name of the advice's file; None if there is none."""


@dataclass(frozen=True)
class Verdict:
    """Whether I/O matters."""

    headline: str
    sentence: str
    does_matter: bool | None
    """None if the advice does not say."""
    share: float | None
    """Share of the run during which any process does I/O."""
    called_share: float | None
    """The same including calls of I/O libraries; None if that adds nothing."""
    is_damaged: bool
    """Whether a part of the run is missing from every number."""
    is_in_libraries: bool
    """Whether libraries take time in which no file-system call runs."""
    remedy: str
    """The next step if the verdict is open; empty if the advice has it."""
    basis: Item | None
    """The rule's own method, evidence and sources."""

    @property
    def without_advice(self) -> str:
        """The sentence if there is nothing to do; an unknown or empty result must not read like an all-clear."""
        if self.does_matter is None:
            return self.remedy or "What to do is not known"
        if self.does_matter:
            return "No rule knows what to change"
        about = " about storage" if self.is_in_libraries else ""
        return f"Nothing needs to be done{about}{_SO_FAR if self.is_damaged else ''}"


@dataclass(frozen=True)
class Gap:
    """Attributes that are null for the same reason."""

    attributes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class SilentRules:
    """Rules without a recommendation for the same reason."""

    rules: tuple[tuple[str, str], ...]
    """Id and name of each."""
    why: str


@dataclass(frozen=True)
class Sources:
    """The sources of the report, for people who want to reproduce it."""

    version: str
    profile_sha256: str
    system: str
    system_sha256: str


@dataclass(frozen=True)
class Prepared:
    """A report."""

    title: str
    damage: str
    """Loss caused by damaged traces, to be stated first; empty if they are complete."""
    identity: tuple[Fact, ...]
    """Identity of the run."""
    facts: tuple[Fact, ...]
    verdict: Verdict
    answers: tuple[Fact, ...]
    """Why, when, where: a line each."""
    picture: FirstPicture | None
    """None if the profile has no times, or the format shows no pictures."""
    todo: tuple[Item, ...]
    advice: tuple[Item, ...]
    """All recommendations, those in `todo` first."""
    silent: tuple[Silent, ...]
    remarks: tuple[str, ...]
    """Reasons why numbers may mislead: time in libraries, reads past the end, ..."""
    machine: str
    contact: tuple[str, ...]
    plots: tuple[Drawing | Missing, ...]
    smaller: tuple[Drawing, ...]
    """Plots with less detail for pictures, in which every mark takes space."""
    kinds: Table
    calls: Table | None
    metadata: Table | None
    libraries: Table | None
    apps: Table
    balance: Table
    layers: Table
    diagnosis: Table | None
    """Patterns of the program; None without any."""
    phases: Table | None
    dependencies: Table | None
    slow: Table | None
    """The slowest calls; None if the calls are not available."""
    files: Table
    layouts: Table | None
    folders: Table | None
    extensions: Table | None
    traces: Table
    gaps: tuple[Gap, ...]
    """Attributes that are unknown."""
    gists: Mapping[str, str]
    """One line about each folded section of the page, by anchor."""
    none: tuple[Gap, ...]
    """Attributes that do not exist, without anything being missing."""
    origins: tuple[tuple[str, str], ...]
    """Origin of values, by attribute."""
    left_out: tuple[str, ...]
    sources: Sources
    ticket: Ticket

    @property
    def is_nothing_to_do(self) -> bool:
        """Whether it is certain that I/O needs no change."""
        return not self.todo and self.verdict.does_matter is False

    @property
    def has_times(self) -> bool:
        """Whether there is a plot over time."""
        return any(isinstance(plot, Drawing) and plot.kind in _OVER_TIME for plot in self.plots)

    @property
    def silent_by_reason(self) -> list[SilentRules]:
        """Rules without a recommendation, grouped by reason."""
        rules: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for rule in self.silent:
            rules[rule.why].append((rule.rule, rule.name))
        return [SilentRules(tuple(some), why) for why, some in rules.items()]

    def plot(self, kind: str) -> Drawing | Missing | None:
        """The plot of a kind; None if the kind does not exist."""
        return next((plot for plot in self.plots if plot.kind == kind), None)


def prepare(
    inputs: Inputs,
    limits: Limits = LEVELS[0],
    *,
    with_plots: bool = True,
) -> Prepared:
    """Choose and word the contents of a report.

    Parameters
    ----------
    with_plots
        False for formats without plots.
    """
    advice = inputs.advice
    # A summary has everything that plots and tables need of each file.
    profile = (
        inputs.profile if inputs.files is None else inputs.profile.model_copy(update={"files": inputs.files})
    )
    first, others = things_to_do(advice)
    file = inputs.advice_file
    rest = ": `vani advise` writes all" if file is None else f": see {clip(file, limits.path)}"
    ordered = [
        item(number, recommendation, limits, inputs.rule_findings, rest)
        for number, recommendation in enumerate([*first, *others][: limits.items], 1)
    ]
    left_out = []
    further = len(first) + len(others) - limits.items
    if further > 0:
        left_out.append(f"{format_count(further)} further recommendations{rest}.")
    files, notes = file_table(profile, file_groups(profile.files), limits)
    plots = tuple(draw(kind, profile, heat=inputs.heat) for kind in kinds()) if with_plots else ()
    smaller = _smaller(plots, profile, inputs.heat)
    unknown = unknowns(inputs.profile)
    gaps = _gaps([missing for missing in unknown if not missing.is_expected], limits)
    title, damaged = _title(profile, limits), clip(damage(profile) or "", limits.prose)
    why, picture = answers(profile, inputs.heat, limits), first_picture(profile, inputs.heat) if with_plots else None
    whose, verdict = identity(profile, inputs.users, limits), _verdict(inputs, limits)
    todo, unadvised = tuple(ordered[: len(first)]), silent(advice, inputs.rule_names, limits)
    tables = (
        app_table(profile, limits), balance_table(profile, limits), layer_table(profile, limits),
        phase_table(profile, limits), dependency_table(profile, limits), trace_table(profile, limits),
        folder_table(profile, limits), extension_table(profile, limits),
    )  # fmt: skip
    left_out += notes
    left_out += [
        f"{format_count(table.left_out)} further rows of the table of {table.name}."
        for table in tables
        if table is not None and table.left_out
    ]
    none = _gaps([missing for missing in unknown if missing.is_expected], limits)
    # The reason of a null attribute is already listed there.
    explained = {gap.reason for gap in (*gaps, *none)}
    sourced = [(key, clip(why, limits.prose)) for key, why in profile.provenance.items()]
    origins = [(clip(key, limits.path), why) for key, why in sourced if why not in explained]
    if len(origins) > limits.rows:
        left_out.append(f"{format_count(len(origins) - limits.rows)} entries of `provenance` in the profile.")
    return Prepared(
        title=title,
        damage=damaged,
        identity=whose,
        facts=(*_facts(profile), *_predicted(inputs)),
        verdict=verdict,
        answers=why,
        picture=picture,
        todo=todo,
        advice=tuple(ordered),
        silent=unadvised,
        remarks=remarks(profile, advice, limits),
        machine=judged_by(advice),
        contact=inputs.contact,
        plots=plots,
        smaller=smaller,
        kinds=kind_table(profile),
        calls=call_table(profile, limits),
        metadata=metadata_table(profile),
        libraries=library_table(profile),
        apps=tables[0],
        balance=tables[1],
        layers=tables[2],
        diagnosis=diagnosis_table(advice, limits),
        phases=tables[3],
        dependencies=tables[4],
        slow=slow_table(inputs.heat, limits),
        files=files,
        layouts=layout_table(profile.files, limits),
        folders=tables[6],
        extensions=tables[7],
        traces=tables[5],
        gaps=gaps,
        gists=gists(profile, ordered, unadvised, gaps, len(GLOSSARY)),
        none=none,
        origins=tuple(origins[: limits.rows]),
        left_out=tuple(left_out),
        sources=Sources(
            inputs.version,
            inputs.profile_sha256,
            clip(advice.system.name or "none", 80),
            advice.system.sha256,
        ),
        ticket=ticket(title, damaged, whose, verdict, why, todo, ordered),
    )


def _smaller(
    plots: Sequence[Drawing | Missing], profile: Profile, heat: HeatMap | str
) -> tuple[Drawing, ...]:
    """Maps of processes with fewer rows and bins, if they have many."""
    if isinstance(heat, str) or (less := coarse(heat)) is heat:
        return ()
    maps = [draw(plot.kind, profile, heat=less) for plot in plots if plot.kind in _MAPS]
    return tuple(drawing for drawing in maps if isinstance(drawing, Drawing))


def _title(profile: Profile, limits: Limits) -> str:
    names = [clip(app.name, limits.path // 4) for app in profile.apps]
    if len(names) <= 3:
        return ", ".join(names) or "no app"
    return f"{', '.join(names[:3])} and {len(names) - 3} more"


def _facts(profile: Profile) -> tuple[Fact, ...]:
    workflow = profile.workflow
    instances = sum(app.instances for app in profile.apps)
    moved, files = workflow.io.bytes, workflow.files
    return (
        Fact(
            "Apps",
            format_count(workflow.apps),
            f"{format_count(instances)} traces" if instances > workflow.apps else "",
            key="workflow.apps",
        ),
        Fact("Processes", format_count(workflow.processes), key="workflow.processes"),
        Fact("Run time", format_seconds(workflow.runtime_s), key="workflow.runtime_s"),
        Fact("Read", format_bytes(moved.read), _calls(workflow.io.ops.read), "workflow.io.bytes.read"),
        Fact("Written", format_bytes(moved.written), _calls(workflow.io.ops.write), "workflow.io.bytes.written"),
        Fact("Files", format_count(files.total), f"{format_count(files.shared)} shared", "workflow.files.total"),
        Fact("I/O", _of_run(workflow.io_time_share), _slowest(profile), "workflow.io_time_share"),
        *_values(profile),
    )


def _predicted(inputs: Inputs) -> tuple[Fact, ...]:
    return () if inputs.write_time is None else (Fact("Writes", *inputs.write_time),)


def _values(profile: Profile) -> tuple[Fact, ...]:
    """The distribution of the data set's values; empty if none was sampled."""
    distribution = profile.dataset.distribution
    if distribution is None:
        return ()
    note = f"of {format_count(distribution.values)} values in {format_count(distribution.files)} files"
    return (Fact("Values", distribution.name or f"of no known law; nearest is {distribution.closest}", note),)


def _calls(number: int) -> str:
    return f"{format_count(number)} call{'' if number == 1 else 's'}"


def _of_run(share: float | None) -> str:
    return "unknown" if share is None else f"{format_share(share)} of the run"


def _slowest(profile: Profile) -> str:
    """The process with the longest I/O time; empty if there is a single process, or no times."""
    slow = [
        (balance.slowest_io_time_s, f"rank {balance.slowest_rank}", app.name)
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


def _verdict(inputs: Inputs, limits: Limits) -> Verdict:
    first = next((entry for entry in inputs.advice.recommendations if entry.rule == MATTERS), None)
    verdict = verdict_of(inputs.profile)
    cause = verdict.cause.sentence if verdict.cause is not None else ""
    time = None if inputs.profile.workflow.runtime_s is None else io_time(inputs.profile)
    in_libraries = time is not None and time.is_in_libraries
    return Verdict(
        headline=clip(verdict.sentence.removesuffix("."), limits.prose),
        sentence=clip(f"Why: {cause}" if cause else "", limits.prose),
        does_matter={"yes": True, "no": False}.get(verdict.matters),
        share=verdict.share,
        called_share=verdict.share_calls if in_libraries and verdict.share is not None else None,
        is_damaged=damage(inputs.profile) is not None,
        is_in_libraries=in_libraries,
        remedy=clip(_capital(verdict.remedy or ""), limits.prose) if verdict.matters in ("open", "too_short") else "",
        basis=None if first is None else item(0, first, limits),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _gaps(unknown: Sequence[Unknown], limits: Limits) -> tuple[Gap, ...]:
    """Attributes by reason, in the order of their first one; the same attribute of several entities appears once."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for missing in unknown:
        part = ""
        if missing.null < missing.looked_at:
            part = f" ({format_share(missing.null / missing.looked_at)} of {format_count(missing.looked_at)})"
        by_reason[missing.reason].append(missing.attribute + part)
    gaps = [
        Gap(tuple(clip(name, limits.path) for name in names), clip(reason, limits.prose))
        for reason, names in by_reason.items()
    ]
    return tuple(gaps[: limits.rows])
