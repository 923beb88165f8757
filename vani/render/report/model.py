"""The content of a report, which every format writes.

All texts are safe on one line (no control characters) but not escaped for a format. `Limits` bounds everything;
`left_out` names what a limit excluded.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vani.models.io_time import io_time
from vani.models.verdict import verdict_of
from vani.render.plots.catalogue import draw, kinds
from vani.render.plots.drawing import Drawing, Missing
from vani.render.plots.time_maps import coarse
from vani.render.report import facts as lines
from vani.render.report import structure
from vani.render.report.file_tables import file_groups, file_table, layout_table
from vani.render.report.first_picture import FirstPicture, first_picture
from vani.render.report.tables import LEVELS, Limits, Table, clip
from vani.render.report.unknowns import unknowns
from vani.render.wording import MATTERS, judged_by, things_to_do
from vani.schema.advice import Advice
from vani.schema.damage import damage
from vani.schema.profile import Profile
from vani.schema.saved_profile import ListedFile
from vani.schema.timeline import HeatMap
from vani.units import format_count

_SO_FAR = ", according to the rest of the trace"

_MAPS = ("heat-map", "io-time")
_OVER_TIME = (*_MAPS, "offsets", "phases", "bandwidth")
"""Kinds whose time range the page can change; their data has the start in `from`, and their selection is `zoom`."""

_FIRST_FILES = 10
_OF_FIRST_FILES = ("File or dataset", "Read", "Written", "I/O time")

_CUT = ("apps", "balance", "layers", "phases", "dependencies", "traces", "folders", "extensions")
"""Tables whose omitted rows are counted at the end."""


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
    called_share: float | None
    """Share of the run during which any process is in a call of I/O or of its libraries; None if these add nothing."""
    is_damaged: bool
    """Whether a part of the run is missing from every number."""
    is_in_libraries: bool
    """Whether libraries take time in which no file-system call runs."""
    remedy: str
    """The next step if the verdict is open; empty if the advice has it."""
    basis: lines.Item | None
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
class Sources:
    """The sources of the report, for people who want to reproduce it."""

    version: str
    profile_sha256: str
    system: str
    system_sha256: str


@dataclass(frozen=True)
class Report:
    """A report."""

    title: str
    damage: str
    """Loss caused by damaged traces, to be stated first; empty if they are complete."""
    identity: tuple[lines.Fact, ...]
    """Identity of the run."""
    facts: tuple[lines.Fact, ...]
    verdict: Verdict
    answers: tuple[lines.Fact, ...]
    """Why, when, where: a line each."""
    remarks: tuple[str, ...]
    """Reasons why numbers may mislead: time in libraries, reads past the end, ..."""
    picture: FirstPicture | None
    """None if the profile has no times, or the format shows no pictures."""
    not_over_time: str
    """Reason why there are no plots over time; empty if there are."""
    advice: tuple[lines.Item, ...]
    """All recommendations, those to follow first."""
    things_to_do: int
    silent: tuple[lines.Silent, ...]
    machine: str
    contact: tuple[str, ...]
    plots: tuple[Drawing | Missing, ...]
    smaller: tuple[Drawing, ...]
    """Plots with less detail for pictures, in which every mark takes space."""
    tables: Mapping[str, Table]
    """All tables by name, without those for which the profile has no data."""
    summaries: Mapping[str, str]
    """A few words on each section of the page."""
    gaps: tuple[Gap, ...]
    """Attributes that are unknown."""
    left_out: tuple[str, ...]
    sources: Sources

    @property
    def todo(self) -> tuple[lines.Item, ...]:
        """The recommendations to follow first."""
        return self.advice[: self.things_to_do]

    @property
    def first_files(self) -> Table:
        """The files that matter most, with few columns."""
        table = self.tables["files"]
        shown = [place for place, column in enumerate(table.columns) if column.title in _OF_FIRST_FILES]
        rows = (replace(row, cells=tuple(row.cells[i] for i in shown), members=()) for row in table.rows[:_FIRST_FILES])
        return replace(table, columns=tuple(table.columns[i] for i in shown), rows=tuple(rows))

    @property
    def has_times(self) -> bool:
        """Whether there is a plot over time."""
        return any(isinstance(plot, Drawing) and plot.kind in _OVER_TIME for plot in self.plots)


def prepare(inputs: Inputs, limits: Limits = LEVELS[0], *, with_plots: bool = True) -> Report:
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
    todo, others = things_to_do(advice)
    file = inputs.advice_file
    rest = ": `vani advise` writes all" if file is None else f": see {clip(file, limits.path)}"
    items = [
        lines.item(number, recommendation, limits, inputs.rule_findings, rest)
        for number, recommendation in enumerate([*todo, *others][: limits.items], 1)
    ]
    files, notes = file_table(profile, file_groups(profile.files), limits)
    tables = _tables(inputs, profile, files, limits)
    cut = [(name, tables[name].left_out) for name in _CUT if name in tables and tables[name].left_out]
    gaps = _gaps(inputs.profile, limits)
    further = len(todo) + len(others) - limits.items
    left_out = [
        *([f"{format_count(further)} further recommendations{rest}."] if further > 0 else []),
        *notes,
        *(f"{format_count(rows)} further rows of the table of {name}." for name, rows in cut),
    ]
    # The note of the source is below the first picture; plots need not repeat it.
    heat = inputs.heat if isinstance(inputs.heat, str) else inputs.heat.model_copy(update={"note": ""})
    plots = tuple(draw(kind, profile, heat=heat) for kind in kinds()) if with_plots else ()
    unadvised = lines.silent(advice, inputs.rule_names, limits)
    short = lines.summaries(
        profile,
        advice=len(items),
        silent=len(unadvised),
        unknown=sum(len(gap.attributes) for gap in gaps),
    )
    return Report(
        title=lines.some([app.name for app in profile.apps], limits.path // 4) if profile.apps else "no app",
        damage=clip(damage(profile) or "", limits.prose),
        identity=lines.identity(profile, inputs.users, limits),
        facts=lines.facts(profile, inputs.write_time),
        verdict=_verdict(inputs, limits),
        answers=lines.answers(profile, inputs.heat, limits),
        remarks=lines.remarks(profile, advice, limits),
        picture=first_picture(profile, inputs.heat) if with_plots else None,
        not_over_time=clip(inputs.heat, limits.prose) if isinstance(inputs.heat, str) else "",
        advice=tuple(items),
        things_to_do=len(todo),
        silent=unadvised,
        machine=judged_by(advice),
        contact=inputs.contact,
        plots=plots,
        smaller=_smaller(plots, profile, heat),
        tables=tables,
        summaries=short,
        gaps=gaps,
        left_out=tuple(left_out),
        sources=Sources(
            inputs.version,
            inputs.profile_sha256,
            clip(advice.system.name or "none", 80),
            advice.system.sha256,
        ),
    )


def _tables(inputs: Inputs, profile: Profile, files: Table, limits: Limits) -> dict[str, Table]:
    """The tables for which there is data, by name."""
    tables = (
        structure.kind_table(profile), structure.call_table(profile, limits), structure.metadata_table(profile),
        structure.library_table(profile), structure.slow_table(inputs.heat, limits),
        structure.layer_table(profile, limits), structure.diagnosis_table(inputs.advice, limits),
        structure.phase_table(profile, limits), structure.balance_table(profile, limits),
        structure.app_table(profile, limits), structure.dependency_table(profile, limits), files,
        layout_table(profile.files, limits), structure.folder_table(profile, limits),
        structure.extension_table(profile, limits), structure.trace_table(profile, limits),
    )  # fmt: skip
    return {table.name: table for table in tables if table is not None}


def _smaller(plots: Sequence[Drawing | Missing], profile: Profile, heat: HeatMap | str) -> tuple[Drawing, ...]:
    """Maps of processes with fewer rows and bins, if they have many."""
    if isinstance(heat, str) or (less := coarse(heat)) is heat:
        return ()
    maps = [draw(plot.kind, profile, heat=less) for plot in plots if plot.kind in _MAPS]
    return tuple(drawing for drawing in maps if isinstance(drawing, Drawing))


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
        called_share=verdict.share_calls if in_libraries and verdict.share is not None else None,
        is_damaged=damage(inputs.profile) is not None,
        is_in_libraries=in_libraries,
        remedy=clip(_capital(verdict.remedy or ""), limits.prose) if verdict.matters in ("open", "too_short") else "",
        basis=None if first is None else lines.item(0, first, limits),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _gaps(profile: Profile, limits: Limits) -> tuple[Gap, ...]:
    """Null attributes for which `provenance` gives a reason, by reason."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    given = set(profile.provenance.values())
    for attribute, reason in unknowns(profile).items():
        if reason in given:
            by_reason[reason].append(clip(attribute, limits.path))
    gaps = [Gap(tuple(names), clip(reason, limits.prose)) for reason, names in by_reason.items()]
    return tuple(gaps[: limits.rows])
