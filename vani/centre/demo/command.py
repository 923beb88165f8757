"""`vani centre demo`: its days as text for a terminal."""

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import click

from vani.atomic import new_directory
from vani.centre.demo.centre import MACHINE, CentreReport, Gain, run_centre
from vani.centre.demo.cluster import PROGRAMS
from vani.cli.options import FILE, quiet_option
from vani.demo.striped_model import machine_of
from vani.render.table import table
from vani.units import counted, format_rate


def centre_as_text(report: CentreReport) -> str:
    """The report as text: a table of rules, each with its mean gain over all seeds."""
    machine = machine_of(report.machine)
    names = list(dict.fromkeys(rival.name for rivals in report.rivals for rival in rivals))
    head = (
        "layout of new files", "inputs as well", "slower", "outputs alone", "slower", "changed", "existing", "changed",
    )  # fmt: skip
    lines = [
        f"{report.jobs} jobs of {len(PROGRAMS)} programs on {report.nodes} nodes and {machine.targets} targets of "
        f"{format_rate(machine.target_rate)}, {counted(len(report.seeds), 'seed')}.",
        "The file system is a model: all seconds are modelled, and say nothing about Lustre.",
        "",
        *table(head, [_row(name, report) for name in names], left=(0,), all_rows=True),
        "",
        "Gains: mean I/O time without the rule over that with it. Inputs as well: the files that jobs read have",
        "the layout, too. Existing: outputs of the day before are overwritten. Slower: jobs with more than 1.1 times",
        "their I/O time. Changed: files that have another layout in the end.",
        "",
        *(f"{program.name}: {program.does}, {program.nodes} nodes" for program in PROGRAMS),
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
