"""`python -m benchmarks.stripes [--leave-one-machine-out] [--nodes-unknown]`: stripe counts on measured runs.

The runs are from the sweeps next to the repository:

- tianhe: IOR, independent writes of one shared file by 128 processes on 8 nodes, nothing flushed; BTIO, collective
  writes through PnetCDF by 64 processes, nodes not known (both OPRAEL). Of BTIO, points with stripes above
  `LARGEST` are left out, since few targets contain such a file whatever its count.
- archer, mahti, perlmutter, mi250x: `stripe-sweeps.csv`, whose README lists what cannot be trusted.

LUS002 judges each run as a user's run: a profile with the fewest measured targets, which are the default, at the
measured rate, on a machine of which only the number of targets is known. Files of one process each get the advice of
LUS010, which is silent if they are only read. No rule advises a run of one process, so these are left out. Fixed rules
stand next to it. With `--leave-one-machine-out`, targets per node and the least count are those that do best on the
other machines; only ARCHER was measured with files of one process each and with reads. The aims are printed below.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from benchmarks.data import DATA, Row, grouped, no_measurements, run
from tests.advisors.builders import file, profile, shared, system
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, Recommendation, SystemRef
from vani.units import GiB, MiB

LARGEST: Final = 16 * MiB

Kind = Literal["collective", "independent", "file per process", "reads"]


@dataclass(frozen=True)
class MeasuredRun:
    """A run, and its bandwidth in MiB/s by stripe count.

    `nodes` is None if it is not stated; `targets` are those of the file system; `reads` are of shared files.
    """

    machine: str
    name: str
    kind: Kind
    bytes: int
    processes: int
    nodes: int | None
    targets: int
    interface: str
    measured: Mapping[int, float] = field(hash=False)

    def rate(self, count: int) -> float:
        """MiB/s at a count, interpolated by the logarithm of the count.

        Below the smallest measured count it is proportional to the count, which is the worst case; above the
        largest it is constant.
        """
        counts = sorted(self.measured)
        rates = [self.measured[n] for n in counts]
        inside = float(np.interp(math.log(count), [math.log(n) for n in counts], rates))
        return inside * min(1.0, count / counts[0])

    def reached(self, count: int) -> float:
        """Share of the best measured bandwidth at a count."""
        return self.rate(count) / max(self.measured.values())


def runs(data: Path = DATA) -> list[MeasuredRun]:
    """All measured runs with more than one stripe count."""
    ior = _means(
        data / "oprael-tianhe-ior" / "oprael_ior_runs.csv",
        lambda row: int(float(row["file_gib"])) if (row["sweep"], row["op"]) == ("ost", "write") else None,
        "bw_mib_s",
    )
    btio = _means(
        data / "oprael-btio" / "points.csv",
        lambda row: float(row["total_mib"]) if int(row["stripe_size_bytes"]) <= LARGEST else None,
        "bandwidth_mib_s",
    )
    return [
        *(MeasuredRun("tianhe", f"ior {gib} GiB", "independent", gib * GiB, 128, 8, 32, "mpiio", means)
          for gib, means in ior),
        *(MeasuredRun("tianhe", f"btio {mib:.0f} MiB", "collective", int(mib * MiB), 64, None, 32, "pnetcdf", means)
          for mib, means in btio if len(means) > 1),
        *_sweeps(data / "stripe-sweeps" / "stripe-sweeps.csv"),
    ]  # fmt: skip


def _means(
    file: Path, key: Callable[[Row], float | None], rate: str
) -> Iterator[tuple[float, dict[int, float]]]:
    """Mean rates by stripe count for each key in order; a row without a key is left out."""
    found = grouped(file, key, lambda row: (int(float(row["stripe_count"])), float(row[rate])))
    for at, points in sorted(found.items()):
        yield at, {count: statistics.fmean(r for n, r in points if n == count) for count in dict(points)}


def _sweeps(file: Path) -> Iterator[MeasuredRun]:
    sweeps = grouped(file, lambda row: (row["set"], row["machine"], row["label"], row["stripe_size"]), dict)
    for (name, machine, label, size), same in sweeps.items():
        first, targets = same[0], int(same[0]["targets_of_machine"])
        counts = {
            targets if row["stripe_count"] == "-1" else int(row["stripe_count"]): float(row["MiB_s"])
            for row in same
        }
        if len(counts) > 1 and int(first["processes"]) > 1:
            stripes = f", {int(size) // MiB} MiB stripes" if size else ""
            yield MeasuredRun(
                machine.lower(), f"{name} {label}{stripes}", _kind(first), int(first["bytes"]),
                int(first["processes"]), int(first["nodes"]), targets, first["interface"], counts,
            )  # fmt: skip


def _kind(row: Mapping[str, str]) -> Kind:
    if "per-process" in row["set"]:
        return "file per process"
    if row["set"].endswith("-read"):
        return "reads"
    return "collective" if row["collective"] == "true" else "independent"

KINDS: Final[tuple[Kind, ...]] = ("collective", "independent", "file per process", "reads")

Rule = Callable[[MeasuredRun], int]


def nodes_of(run: MeasuredRun) -> int:
    # BTIO's number of nodes is not stated; 16 processes per node are assumed.
    return run.nodes or -(-run.processes // 16)


THUMB: Final[Mapping[str, Rule]] = {
    "keep": lambda run: min(run.measured),
    "4": lambda _: 4,
    "8": lambda _: 8,
    "16": lambda _: 16,
    "all": lambda run: run.targets,
    "1/node": nodes_of,
    "2/node": lambda run: 2 * nodes_of(run),
}
"""Fixed rules by name; none gives more targets than exist."""

CANDIDATES: Final = [(per_node, least) for least in (4, 1, 8) for per_node in (1, 2, 3, 4, 6)]
"""Targets per node and least counts to choose from on the other machines."""

_THRESHOLDS: Final = {"collective": "collective_per_node", "independent": "per_node"}


@functools.cache
def advised(run: MeasuredRun, *, knows_nodes: bool = True, chosen: tuple[int, int] | None = None) -> int:
    """The advised stripe count for a run on its fewest targets, or these without advice."""
    start = min(run.measured)
    given = advice(run, start, knows_nodes=knows_nodes, chosen=chosen)
    return start if given is None else int(given.recommended["stripe_count"])  # type: ignore[arg-type]


def advice(
    run: MeasuredRun,
    start: int,
    *,
    knows_nodes: bool = True,
    chosen: tuple[int, int] | None = None,
    curve: Sequence[int] = (),
) -> Recommendation | None:
    """LUS002's or LUS010's recommendation for a run on `start` targets; None if it makes none.

    All processes are in I/O at the measured rate. `chosen` has targets per node and the least count, `curve` the counts
    of which the machine's bandwidth is known.
    """
    seconds, nodes = run.bytes / MiB / run.measured[start], nodes_of(run)
    own, collective = run.kind == "file per process", run.kind == "collective"
    reads = run.kind == "reads" or "-read" in run.name
    io: dict[str, Any] = {"busy_s": seconds, "role": "input" if own and reads else "output"}
    layers: list[dict[str, Any]] = []
    if collective:
        io |= {"writers": 1, "interface": run.interface, "transfer": 4 * MiB}
        layers = [{"layer": layer, "collective_share": 1.0} for layer in {run.interface, "mpiio"}]
    moved = "read" if reads else "written"
    if own:
        io |= {"transfer": 4 * MiB, "time_s": seconds, moved: run.bytes // run.processes}
        files = [file(f"/lustre/own.{i}", **io) for i in range(run.processes)]
    else:
        io |= {"processes": run.processes, "time_s": seconds * run.processes, moved: run.bytes}
        files = [shared("/lustre/out", **io)]
    machine = system(targets=run.targets, target_rate=None, stripe_count=start)
    if curve:
        points = [{"stripe_count": count, "bandwidth": run.measured[count] * MiB} for count in curve]
        kinds = {"calls": "collective" if collective else "independent", "operation": "read" if reads else "write"}
        described = machine.model_dump(by_alias=True)
        described["file_systems"][0]["stripe_curves"] = [{**kinds, "nodes": nodes, "points": points}]
        machine = type(machine).model_validate(described)
    rule = "LUS010" if own else "LUS002"
    thresholds = {} if chosen is None else {_THRESHOLDS.get(run.kind, "per_node"): chosen[0], "least": chosen[1]}
    times = {"runtime_s": 2 * seconds, "slowest_s": seconds, "busy_s": seconds}
    answer = judge(
        profile(files, processes=run.processes, nodes=nodes if knows_nodes else None, interfaces=layers, **times),
        machine,
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=[rule],
        thresholds={rule: thresholds},
    )
    return next(iter(answer.recommendations), None)


def shares(rule: Rule, measured: Iterable[MeasuredRun]) -> list[float]:
    """Share of the best bandwidth that a rule achieves on each run."""
    return [run.reached(max(1, min(rule(run), run.targets))) for run in measured]


def chosen_on(measured: Sequence[MeasuredRun], *, knows_nodes: bool = True) -> tuple[int, int]:
    """Targets per node and the least count with the best mean over machines."""
    by_machine = machines_of(measured).values()

    def total(pair: tuple[int, int]) -> float:
        rule = functools.partial(advised, knows_nodes=knows_nodes, chosen=pair)
        return sum(statistics.fmean(shares(rule, own)) for own in by_machine)

    return max(CANDIDATES, key=total)


def machines_of(measured: Sequence[MeasuredRun]) -> dict[str, list[MeasuredRun]]:
    return {name: [run for run in measured if run.machine == name] for name in sorted({r.machine for r in measured})}


def scores_of(kind: Kind, *, knows_nodes: bool = True, left_out: bool = False) -> dict[str, dict[str, list[float]]]:
    """Shares of the best bandwidth by machine and rule."""
    some = [run for run in runs() if run.kind == kind]
    found = {}
    for machine, own in machines_of(some).items():
        pair = None
        if left_out and kind in _THRESHOLDS:
            pair = chosen_on([run for run in some if run.machine != machine], knows_nodes=knows_nodes)
        ours: Rule = functools.partial(advised, knows_nodes=knows_nodes, chosen=pair)
        rules = {"advised": ours, **{n: r for n, r in THUMB.items() if knows_nodes or "/node" not in n}}
        found[machine] = {name: shares(rule, own) for name, rule in rules.items()}
    return found


class Aims(NamedTuple):
    """Advised counts against the fixed rule that is best in the mean over machines, as shares of the best bandwidth.

    `behind` is how far the mean of any machine is at most below that rule's, `low` the share of runs below half.
    """

    rule: str
    mean: float
    best: float
    behind: float
    low: float

    def __str__(self) -> str:
        reached = self.mean > self.best - 0.005 and self.behind <= BEHIND and self.low <= FEW
        behind = f"at most {max(0.0, self.behind):.0%} behind it on a machine, {self.low:.1%} of runs below half"
        best = f"mean {self.mean:.0%}, best fixed rule {self.best:.0%} ({self.rule}), {behind}"
        return f"Aims {'reached' if reached else 'MISSED'}: {best}"


BEHIND, FEW = 0.15, 0.05
"""Aims for `behind` and `low` of `Aims`."""


def aims_of(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> Aims:
    """Compare the advised counts of `scores_of` with the best fixed rule."""
    means = {
        rule: [statistics.fmean(one[rule]) for one in scores.values()] for rule in next(iter(scores.values()))
    }
    ours = means.pop("advised")
    best = max(sorted(means), key=lambda rule: statistics.fmean(means[rule]))
    behind = max(theirs - own for theirs, own in zip(means[best], ours, strict=True))
    low = statistics.fmean(share < 0.5 for one in scores.values() for share in one["advised"])
    return Aims(best, statistics.fmean(ours), statistics.fmean(means[best]), behind, low)


def main(*, leave_one_machine_out: bool = False, nodes_unknown: bool = False) -> None:
    """Print a table for each kind of access, with a row for each machine."""
    if no_measurements():
        return
    print("Mean share of the best bandwidth / the worst run / share of runs below half of the best, in %")
    for kind in KINDS:
        scores = scores_of(kind, knows_nodes=not nodes_unknown, left_out=leave_one_machine_out)
        names = next(iter(scores.values())).keys()
        print(f"\n{kind:<17} runs" + "".join(f"{name:>15}" for name in names))
        for machine, by_rule in scores.items():
            print(f"  {machine:<15} {len(by_rule['keep']):4}" + "".join(map(_cell, by_rule.values())))
        means = [statistics.fmean(statistics.fmean(by_rule[name]) for by_rule in scores.values()) for name in names]
        print(f"  {'mean of machines':<20}" + "".join(f"{100 * mean:>15.0f}" for mean in means))
        print(f"  {aims_of(scores)}")


def _cell(values: Sequence[float]) -> str:
    below = sum(share < 0.5 for share in values) / len(values)
    return f"{100 * statistics.fmean(values):>7.0f}/{100 * min(values):3.0f}/{100 * below:3.0f}"


if __name__ == "__main__":
    run(main)
