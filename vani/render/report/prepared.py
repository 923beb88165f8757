"""What a report holds, before any format: the model that `page`, `markdown` and `text` write.

All texts in it are safe on one line (no control characters) but not escaped for a format, and everything is bounded
by `Limits`; what a bound left out is in `left_out`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vani.render.plots.catalogue import draw, kinds
from vani.render.plots.drawing import Drawing, Missing
from vani.render.report.bounds import LEVELS, Limits, clip
from vani.render.report.datasets import FileGroup, file_groups
from vani.render.report.file_table import file_table
from vani.render.report.items import Item, Silent, item, silent
from vani.render.report.remarks import library_time, remarks
from vani.render.report.structure import (
    app_table,
    balance_table,
    dependency_table,
    kind_table,
    layer_table,
    phase_table,
    trace_table,
)
from vani.render.report.tables import Table
from vani.render.report.unknowns import Unknown, unknowns
from vani.render.wording import MATTERS, judged_by, matters, things_to_do
from vani.schema.advice import Advice
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap
from vani.units import format_bytes, format_count, format_seconds, format_share

__all__ = ["Fact", "Gap", "Inputs", "Prepared", "Sources", "Verdict", "prepare"]


@dataclass(frozen=True)
class Inputs:
    """What a report is made from."""

    profile: Profile
    profile_sha256: str
    advice: Advice
    heat: HeatMap | str
    """Time-resolved data, or why there are none."""
    rule_names: Mapping[str, str]
    """Names of rules by id."""
    version: str
    """Vani's."""
    rule_findings: Mapping[str, str] = field(default_factory=dict)
    """What each rule looks for, in one sentence, by id."""


@dataclass(frozen=True)
class Fact:
    """A line of "what ran": a label, its value, and what qualifies it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """Whether I/O matters."""

    headline: str
    sentence: str
    does_matter: bool | None
    """None: the advice does not say."""
    slowest_share: float | None
    """I/O time of `who` as a share of the run."""
    who: str
    """The slowest process, or all traces together where there are several."""
    mean_share: float | None
    """The same of the processes on average; None where their runs are only parts of the workload's."""
    is_in_libraries: bool
    """Libraries take time in which no file-system call runs."""
    basis: Item | None
    """The rule's own words: method, evidence, sources."""

    @property
    def without_advice(self) -> str:
        """What stands where there is nothing to do: that nothing is known, or found, is no all-clear."""
        if self.does_matter is None:
            return "What to do is not known"
        if self.does_matter:
            return "No rule knows what to change"
        return f"Nothing needs to be done{' about storage' if self.is_in_libraries else ''}"


@dataclass(frozen=True)
class Gap:
    """Attributes that are null for the same reason."""

    attributes: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Sources:
    """What the report was made from, for those who want to make it again."""

    version: str
    profile_sha256: str
    system: str
    system_sha256: str


@dataclass(frozen=True)
class Prepared:
    """A report."""

    title: str
    facts: tuple[Fact, ...]
    verdict: Verdict
    todo: tuple[Item, ...]
    advice: tuple[Item, ...]
    """All recommendations, those of `todo` first."""
    silent: tuple[Silent, ...]
    remarks: tuple[str, ...]
    """What keeps the numbers from being what they seem: damage, a machine that is not described, ..."""
    machine: str
    plots: tuple[Drawing | Missing, ...]
    kinds: Table
    apps: Table
    balance: Table
    layers: Table
    phases: Table | None
    dependencies: Table | None
    files: Table
    traces: Table
    gaps: tuple[Gap, ...]
    """Attributes that are not known."""
    none: tuple[Gap, ...]
    """Attributes that there are not: nothing is missing."""
    origins: tuple[tuple[str, str], ...]
    """Where values are from, by attribute."""
    left_out: tuple[str, ...]
    sources: Sources

    def plot(self, kind: str) -> Drawing | Missing | None:
        """The plot of a kind; None: there is no such kind."""
        return next((plot for plot in self.plots if plot.kind == kind), None)


def prepare(
    inputs: Inputs,
    limits: Limits = LEVELS[0],
    *,
    groups: Sequence[FileGroup] | None = None,
    with_plots: bool = True,
) -> Prepared:
    """Choose and word what a report says.

    Parameters
    ----------
    groups
        `file_groups` of the profile's files, where they were made already.
    with_plots
        False for formats that show none.
    """
    profile, advice = inputs.profile, inputs.advice
    first, others = things_to_do(advice)
    ordered = [
        item(number, one, limits, inputs.rule_findings)
        for number, one in enumerate([*first, *others][: limits.items], 1)
    ]
    left_out = []
    further = len(first) + len(others) - limits.items
    if further > 0:
        left_out.append(f"{format_count(further)} further recommendations: see advice.yaml.")
    files, notes = file_table(profile, file_groups(profile.files) if groups is None else groups, limits)
    plots = tuple(draw(kind, profile, heat=inputs.heat) for kind in kinds()) if with_plots else ()
    unknown = unknowns(profile)
    tables = (
        app_table(profile, limits), balance_table(profile, limits), layer_table(profile, limits),
        phase_table(profile, limits), dependency_table(profile, limits), trace_table(profile, limits),
    )  # fmt: skip
    left_out += notes
    left_out += [
        f"{format_count(table.left_out)} further rows of the table of {table.name}."
        for table in tables
        if table is not None and table.left_out
    ]
    origins = [(clip(key, limits.path), clip(why, limits.prose)) for key, why in profile.provenance.items()]
    if len(origins) > limits.rows:
        left_out.append(f"{format_count(len(origins) - limits.rows)} entries of `provenance` in the profile.")
    return Prepared(
        title=_title(profile, limits),
        facts=_facts(profile),
        verdict=_verdict(inputs, limits),
        todo=tuple(ordered[: len(first)]),
        advice=tuple(ordered),
        silent=silent(advice, inputs.rule_names, limits),
        remarks=remarks(profile, advice, limits),
        machine=judged_by(advice),
        plots=plots,
        kinds=kind_table(profile),
        apps=tables[0],
        balance=tables[1],
        layers=tables[2],
        phases=tables[3],
        dependencies=tables[4],
        files=files,
        traces=tables[5],
        gaps=_gaps([one for one in unknown if not one.is_expected], limits),
        none=_gaps([one for one in unknown if one.is_expected], limits),
        origins=tuple(origins[: limits.rows]),
        left_out=tuple(left_out),
        sources=Sources(
            inputs.version,
            inputs.profile_sha256,
            clip(advice.system.name or "none", 80),
            advice.system.sha256,
        ),
    )


def _title(profile: Profile, limits: Limits) -> str:
    names = [clip(app.name, limits.path // 4) for app in profile.apps]
    if len(names) <= 3:
        return ", ".join(names) or "no app"
    return f"{', '.join(names[:3])} and {len(names) - 3} more"


def _facts(profile: Profile) -> tuple[Fact, ...]:
    workflow, job = profile.workflow, profile.job
    instances = sum(app.instances for app in profile.apps)
    moved, files = workflow.io.bytes, workflow.files
    seconds = workflow.io.time_s.total
    each = None if seconds is None else seconds / max(1, workflow.processes)
    return (
        Fact(
            "Apps",
            format_count(workflow.apps),
            f"{format_count(instances)} traces" if instances > workflow.apps else "",
        ),
        Fact("Processes", format_count(workflow.processes)),
        Fact("Nodes", format_count(job.nodes), "" if job.nodes is not None else "`vani collect` tells"),
        Fact("Run time", format_seconds(workflow.runtime_s)),
        Fact("Read", format_bytes(moved.read), _calls(workflow.io.ops.read)),
        Fact("Written", format_bytes(moved.written), _calls(workflow.io.ops.write)),
        Fact("Files", format_count(files.total), f"{format_count(files.shared)} shared"),
        Fact("I/O time a process", format_seconds(each), _slowest(profile)),
    )


def _calls(number: int) -> str:
    return f"{format_count(number)} call{'' if number == 1 else 's'}"


def _slowest(profile: Profile) -> str:
    """The process with the most I/O time; empty where there is one process only, or no times."""
    slow = [
        (balance.slowest_io_time_s, f"rank {balance.slowest_rank}", app.name)
        for app in profile.apps
        if (balance := app.balance) is not None and balance.slowest_io_time_s is not None
    ]
    if not slow or profile.workflow.processes == 1:
        return ""
    worst, rank, name = max(slow, key=lambda one: one[0])
    if not worst:
        return ""
    of = f" of {clip(name, 40)}" if len(profile.apps) > 1 else ""
    return f"most in {rank}{of}: {format_seconds(worst)}"


def _verdict(inputs: Inputs, limits: Limits) -> Verdict:
    first = next((one for one in inputs.advice.recommendations if one.rule == MATTERS), None)
    words = matters(inputs.advice, inputs.profile)
    head, colon, tail = words.partition(": ")
    slowest = first.current.get("io_share_slowest_process") if first is not None else None
    mean = first.current.get("io_share_mean") if first is not None else None
    several = sum(app.instances for app in inputs.profile.apps) > 1
    if mean is None and not several:
        mean = inputs.profile.workflow.io_time_share
    return Verdict(
        headline=clip(head, limits.prose),
        sentence=clip(_capital(tail), limits.prose) if colon else "",
        does_matter=None if first is None else first.severity != "info",
        slowest_share=_share(slowest),
        who="all traces together" if several else "the slowest process",
        mean_share=_share(mean),
        is_in_libraries=bool(library_time(inputs.profile)),
        basis=None if first is None else item(0, first, limits),
    )


def _share(value: object) -> float | None:
    """A number as a share 0..1; None for anything else: advice comes from a file that anybody may have written."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        return None
    return min(1.0, float(value))


def _gaps(unknown: Sequence[Unknown], limits: Limits) -> tuple[Gap, ...]:
    """Attributes by reason, in the order of their first one; the same attribute of several entities once."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for one in unknown:
        some = ""
        if one.null < one.looked_at:
            some = f" ({format_share(one.null / one.looked_at)} of {format_count(one.looked_at)})"
        by_reason[one.reason].append(one.attribute + some)
    gaps = [
        Gap(tuple(clip(name, limits.path) for name in names), clip(reason, limits.prose))
        for reason, names in by_reason.items()
    ]
    return tuple(gaps[: limits.rows])


def _capital(text: str) -> str:
    first = text.split(" ", 1)[0]
    # The name of an attribute stays as it is written.
    return text if "_" in first or "." in first[:-1] else text[:1].upper() + text[1:]
