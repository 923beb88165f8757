"""Rules about plain file-system calls, and the base of those about I/O that could overlap with computing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

from vani.advisors.access_table import through_libraries
from vani.advisors.data_files import data_files, functions_of
from vani.advisors.rule import Answer, Finding, Rule, Verdict
from vani.models.run_time import app_share, seconds
from vani.models.savings import Overlap, overlap
from vani.units import format_share

if TYPE_CHECKING:
    from vani.schema.profile import App, Phase, Profile
    from vani.schema.system import System

class OverlappingRule(Rule):
    """A rule about phases of I/O that alternate with computing.

    `reads` is true for a rule about reading. `asynchronous` has prefixes of functions whose callers already overlap.
    """

    reads: ClassVar[bool]
    asynchronous: ClassVar[tuple[str, ...]]

    # One phase is not a pattern: writes at the end have nothing to overlap with.
    min_phases = 2
    # 1 % of the run, the least for a severity.
    min_share = 0.01
    # Our choice: a program that pauses after fewer of its writes, for as long as each took, does little but I/O. It
    # pauses for barriers and opens. Counted, because the sum of times differs between equal runs.
    min_pauses = 0.5
    # Our choice: most of the written bytes, as in storage benchmarks but not in restarts.
    min_read_back = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        by_app: defaultdict[str, list[Phase]] = defaultdict(list)
        for phase in profile.phases or ():
            by_app[phase.app].append(phase)
        apps = enumerate(profile.apps)
        answers = (self._judge(number, app, by_app[app.name], profile, system) for number, app in apps)
        return self.among(answers, "there is no app", most=3)

    def finding(self, number: int, app: App, overlapping: Overlap, profile: Profile, system: System) -> Finding:
        """The recommendation for an app; `number` is its index in the profile."""
        raise NotImplementedError

    def objection(self, app: App, profile: Profile) -> str | None:
        """A further reason why an app has nothing to overlap; None if there is none."""

    def _judge(self, number: int, app: App, phases: list[Phase], profile: Profile, system: System) -> Answer:
        if app.instances > 1:
            # The phases belong to several runs of the program, each with its own end.
            return f"{app.name} runs several times: its phases are not from one run"
        phases = sorted(phases, key=lambda phase: phase.start_s)
        overlapping = overlap(
            phases,
            max((phase.end_s for phase in phases), default=0.0),
            inside=not through_libraries(profile, app),
            reads=self.reads,
            share=app_share(app, "read" if self.reads else "write"),
            reads_back=self._reads_back(app, profile),
            library_s=_in_libraries_s(app),
        )
        why = self._objection(app, phases, overlapping, profile)
        return why or self.finding(number, app, overlapping, profile, system)

    def _objection(self, app: App, phases: list[Phase], overlapping: Overlap, profile: Profile) -> str | None:
        verb, where = ("reading", "after") if self.reads else ("writing", "before")
        if overlapping.phases < self.min_phases and not (
            # Several pauses within one phase are equally good.
            self.reads
            and overlapping.phases
            and all(p.frequency is not None and p.frequency.kind == "iterative" for p in phases if p.io.bytes.read)
        ):
            return f"{app.name} has fewer than {self.min_phases} phases of {verb} {where} a pause"
        if overlapping.pauses < self.min_pauses * overlapping.moves:
            return f"{app.name} hardly pauses between its {'reads' if self.reads else 'writes'}"
        if overlapping.hidden_s < self.min_share * seconds(app.runtime_s):
            return f"less than {format_share(self.min_share)} of {app.name} is {verb} that fits into its pauses"
        if any(name.startswith(self.asynchronous) for name in functions_of(app, profile)):
            return f"{app.name} calls asynchronous functions already"
        return self.objection(app, profile)

    def _reads_back(self, app: App, profile: Profile) -> bool:
        items = data_files(profile, lambda file: file.writers > 0 and app.name in file.apps)
        again = sum(item.io.bytes.written or 0 for item in items if item.io.bytes.read)
        return again > 0 and again >= self.min_read_back * sum(item.io.bytes.written or 0 for item in items)


def _in_libraries_s(app: App) -> float:
    """Seconds that the slowest process spends in I/O libraries outside file-system calls."""
    balance = app.balance
    if balance is None or balance.slowest_call_time_s is None:
        return 0.0
    return max(0.0, balance.slowest_call_time_s - (balance.slowest_io_time_s or 0.0))
