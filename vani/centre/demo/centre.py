"""Days of forty jobs of five programs, with layouts of new files by every rule of thumb and by the advice.

Programs run on the model of a striped file system (`vani.demo.striped_model`), so all seconds are modelled. They
do not depend on the machine and say nothing about Lustre. History and advice are real: `vani centre advise` sees only
what a history keeps of two days with the file system's default.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from vani.atomic import new_directory
from vani.centre.demo import cluster
from vani.centre.history.runs import write
from vani.centre.history.runs.read import ALWAYS
from vani.centre.history.runs.store import Store
from vani.centre.prediction.creations.series import pack_creations
from vani.centre.service.advise import advice_in
from vani.centre.service.configuration import SharedFileSystem
from vani.centre.service.layouts import LayoutAdvice
from vani.cli.options import FILE, quiet_option
from vani.demo.striped_model import layout_of, machine_of
from vani.errors import InputError
from vani.render.table import table
from vani.units import counted, format_rate

MACHINE: Final = "many slow targets"
NODES: Final = 12
JOBS: Final = 40
NOTHING: Final = "nothing (chance alone)"
_PAUSE_S: Final = 5.0
"""Mean time between two submissions."""
_EPOCH_S: Final = 1_793_491_200.0
_DAY_S: Final = 86400.0
_SLOWER: Final = 1.1
_NOISE: Final = 2
"""The days before have the noise of days 0 and 1."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Gain:
    """Figures of a day with other layouts.

    Attributes
    ----------
    gain
        Mean I/O time of a job without them over that with them.
    slower
        Number of jobs with more than 1.1 times their I/O time without them.
    changed
        Number of written files that have another layout than the default's, as `lfs getstripe` would print it.
    """

    gain: float
    slower: int
    changed: int


@dataclass(frozen=True)
class Rival:
    """A rule for new files: where outputs and inputs are new, where only outputs are, and where both exist."""

    name: str
    all_files: Gain
    new_files: Gain
    existing: Gain


@dataclass(frozen=True)
class CentreReport:
    """All rules of each seed, and the advice for it."""

    machine: str
    jobs: int
    nodes: int
    seeds: tuple[int, ...]
    rivals: tuple[tuple[Rival, ...], ...]
    advice: tuple[LayoutAdvice | None, ...]
    seconds: float


def run_centre(
    folder: Path, *, seed: int = 0, seeds: int = 1, machine: str = MACHINE, progress: Progress = lambda _: None
) -> CentreReport:
    """Run the days in a new folder, which keeps the histories.

    The result depends only on the seeds. All days of a seed have the same jobs. Days with other layouts have other
    noise than the day that they are compared with; `NOTHING` shows what noise alone does.

    Parameters
    ----------
    seed, seeds
        The first seed, and their number.
    machine
        A name for `vani.demo.striped_model.machine_of`.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    begin = time.perf_counter()
    rivals, advice, used = [], [], tuple(range(seed, seed + seeds))
    for number in used:
        progress(f"seed {number}: two days with the default, and the advice from their history")
        advice.append(advice_of(folder / f"seed{number}", number, machine))
        rivals.append(tuple(_rivals(number, machine, advice[-1], progress)))
    return CentreReport(machine, JOBS, NODES, used, tuple(rivals), tuple(advice), time.perf_counter() - begin)


def advice_of(folder: Path, seed: int, machine: str = MACHINE) -> LayoutAdvice | None:
    """Advice from the runs of two days, whose history is kept in the folder."""
    folder.mkdir(parents=True)
    store = Store(folder / "history.sqlite")
    with store.writing(make=True) as connection:
        for day in range(_NOISE):
            for ended in cluster.run_day(cluster.Machinery(machine_of(machine), NODES, seed, day), jobs_of_day(seed)):
                run, created = ended.stored(_EPOCH_S + day * _DAY_S, ended.job.number + 1000 * day)
                write.add_runs(connection, [run])
                write.put_creations(connection, {run.digest: (len(created), pack_creations(created))})
    figures = machine_of(machine)
    known = SharedFileSystem(
        mount=cluster.MOUNT, targets=figures.targets, stripe_count=figures.stripe_count, stripe_size=figures.stripe_size
    )
    with store.reading() as connection:
        return advice_in(connection, ALWAYS, known).layout


def _rivals(seed: int, machine: str, advice: LayoutAdvice | None, progress: Progress) -> list[Rival]:
    day = _Day(seed, machine)
    if advice is None:
        raise InputError("the days have too few jobs for advice", where="vani centre demo")
    rivals = []
    for name, options in {NOTHING: None, **{rule.rule: rule.options for rule in advice.rules}}.items():
        progress(f"seed {seed}: {name}")
        rivals.append(day.rival(name, options))
    return [*rivals, day.rival("the advice's line", advice.options)]


class _Day:
    """The days that rules are compared with."""

    def __init__(self, seed: int, machine: str) -> None:
        self.seed, self.machine, self.jobs = seed, machine_of(machine), jobs_of_day(seed)
        self._plain = _by_number(cluster.run_day(self._machinery(_NOISE), self.jobs))
        before = self._machinery(_NOISE)
        self._existed = _by_number(self._after_a_day(before, cluster.DEFAULT, _NOISE))

    def _machinery(self, noise: int, layout_of: cluster.LayoutOf = cluster.DEFAULT) -> cluster.Machinery:
        return cluster.Machinery(self.machine, NODES, self.seed, noise, layout_of=layout_of)

    def _after_a_day(self, machinery: cluster.Machinery, line: cluster.LayoutOf, noise: int) -> list[cluster.Ended]:
        """A day whose output files exist from the day before, when files had the default layout."""
        cluster.run_day(machinery, self.jobs)
        machinery.next_day(noise + 10)
        return cluster.run_day(machinery, self.jobs, line, keeps=True)

    def rival(self, name: str, options: str | None) -> Rival:
        layout = None if options is None else layout_of(options.split(), self.machine)
        noise, line = _NOISE + 1, lambda _: layout
        everywhere, new, old = self._machinery(noise, line), self._machinery(noise), self._machinery(_NOISE)
        return Rival(
            name, self._gain(everywhere, cluster.run_day(everywhere, self.jobs, line), self._plain),
            self._gain(new, cluster.run_day(new, self.jobs, line), self._plain),
            self._gain(old, self._after_a_day(old, line, noise), self._existed),
        )

    def _gain(self, machinery: cluster.Machinery, ended: Sequence[cluster.Ended], before: Mapping[int, float]) -> Gain:
        after = _by_number(ended)
        plain = layout_of([], self.machine)
        written = {path for entry in ended for path in entry.run.written}
        return Gain(
            statistics.fmean(before.values()) / statistics.fmean(after.values()),
            sum(after[number] > _SLOWER * seconds for number, seconds in before.items()),
            sum(machinery.files[path].layout != plain for path in written),
        )


def _by_number(ended: Sequence[cluster.Ended]) -> dict[int, float]:
    return {entry.job.number: entry.io_s for entry in ended}


def jobs_of_day(
    seed: int, each: int = JOBS // len(cluster.PROGRAMS), programs: Sequence[cluster.Program] = cluster.PROGRAMS
) -> list[cluster.Submitted]:
    """Jobs of a day: `each` of every program, in random order and with random pauses."""
    draw = random.Random(seed)
    drawn = [program for program in programs for _ in range(each)]
    draw.shuffle(drawn)
    jobs, when = [], 0.0
    for number, program in enumerate(drawn, start=101):
        jobs.append(cluster.Submitted(number, program, when))
        when += draw.expovariate(1 / _PAUSE_S)
    return jobs


def centre_as_text(report: CentreReport) -> str:
    """The report as text: a table of rules, each with its mean gain over all seeds."""
    machine = machine_of(report.machine)
    names = list(dict.fromkeys(rival.name for rivals in report.rivals for rival in rivals))
    head = (
        "layout of new files", "inputs as well", "slower", "outputs alone", "slower", "changed", "existing", "changed",
    )  # fmt: skip
    lines = [
        f"{report.jobs} jobs of {len(cluster.PROGRAMS)} programs on {report.nodes} nodes and {machine.targets} targets "
        f"of {format_rate(machine.target_rate)}, {counted(len(report.seeds), 'seed')}.",
        "The file system is a model: all seconds are modelled, and say nothing about Lustre.",
        "",
        *table(head, [_row(name, report) for name in names], left=(0,), all_rows=True),
        "",
        "Gains: mean I/O time without the rule over that with it. Inputs as well: the files that jobs read have",
        "the layout, too. Existing: outputs of the day before are overwritten. Slower: jobs with more than 1.1 times",
        "their I/O time. Changed: files that have another layout in the end.",
        "",
        *(f"{program.name}: {program.does}, {program.nodes} nodes" for program in cluster.PROGRAMS),
        "",
        *_advice(report),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, report: CentreReport) -> tuple[str, ...]:
    some = [rival for rivals in report.rivals for rival in rivals if rival.name == name]
    all_files, new, existing = ([getattr(rival, of) for rival in some] for of in ("all_files", "new_files", "existing"))
    return (
        name, _mean(all_files), _sum(all_files, "slower"), _mean(new), _sum(new, "slower"), _sum(new, "changed"),
        _mean(existing), _sum(existing, "changed"),
    )  # fmt: skip


def _mean(gains: Sequence[Gain]) -> str:
    return f"{statistics.fmean(gain.gain for gain in gains):.2f}"


def _sum(gains: Sequence[Gain], name: str) -> str:
    return f"{sum(getattr(gain, name) for gain in gains):,}"


def _advice(report: CentreReport) -> list[str]:
    known = {seed: advice for seed, advice in zip(report.seeds, report.advice, strict=True) if advice is not None}
    lines = []
    for seed, advice in known.items():
        said = "leave it" if advice.options is None else f"lfs setstripe {advice.options}, {advice.rule}"
        lines.append(f"Advice from the history of seed {seed}: {said}.")
    if any(advice.hook_is_better for advice in known.values()):
        return [*lines, "A hook in each job promises more by replay (`hook` in centre.toml)."]
    return [*lines, "By replay no hook in each job beats this advice: the demonstration ends here."]


@click.command("demo")
@click.option("-o", "--output", type=FILE, metavar="DIR", help="Keep the histories in this new folder.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="First seed of jobs and noise.")
@click.option("--seeds", type=click.IntRange(1, 100), default=2, show_default=True, help="Number of seeds.")
@click.option("--machine", metavar="NAME", default=MACHINE, show_default=True, help="The modelled file system.")
@quiet_option
def command(output: Path | None, seed: int, seeds: int, machine: str, quiet: bool) -> None:
    """Run days of forty jobs with every fixed layout, and with the one that `vani centre advise` chooses.

    Five programs run on a model of a striped file system, by a small scheduler: all seconds are modelled. The history
    of two days with the file system's default and the advice from it are real.
    """
    def progress(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    scratch: AbstractContextManager[Path | str] = tempfile.TemporaryDirectory(prefix="vani-centre-")
    with scratch if output is None else new_directory(output) as folder:
        report = run_centre(Path(folder), seed=seed, seeds=seeds, machine=machine, progress=progress)
    click.echo(centre_as_text(report), nl=False)
