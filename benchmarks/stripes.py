"""`python -m benchmarks.stripes [--leave-one-machine-out] [--nodes-unknown]`: stripe counts on measured runs.

The runs are from the sweeps next to the repository:

- tianhe: IOR, independent writes of one shared file by 128 processes on 8 nodes, nothing flushed; BTIO, collective
  writes through PnetCDF by 64 processes, nodes not known (both OPRAEL). Of BTIO, points with stripes above
  `LARGEST` are left out, since few targets contain such a file whatever its count.
- archer, mahti, perlmutter, mi250x: `stripe-sweeps.csv`, whose README lists what cannot be trusted.

LUS002 judges each run as a user's run: a profile with the fewest measured targets, which are the default, at the
measured rate, on a machine of which only the number of targets is known. Files of one process each get the advice of
LUS010 if one stripe is the default. Fixed rules stand next to it. With `--leave-one-machine-out`, targets per node and
the least count are those that do best on the other machines.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from benchmarks.data import DATA, Row, grouped, no_measurements, run
from tests.advisors.builders import file, profile, shared, system
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, Recommendation, SystemRef
from vani.schema.system import System
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
        if len(counts) > 1:
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
    if run.kind == "file per process":
        return _own_files(run)
    recommendation = advice(run, start, knows_nodes=knows_nodes, chosen=chosen)
    return start if recommendation is None else int(recommendation.recommended["stripe_count"])  # type: ignore[arg-type]


def advice(
    run: MeasuredRun,
    start: int,
    *,
    knows_nodes: bool = True,
    chosen: tuple[int, int] | None = None,
    curve: Sequence[int] = (),
) -> Recommendation | None:
    """LUS002's recommendation for a run on `start` targets; None if it makes none.

    `chosen` has targets per node and the least count, `curve` the counts of which the machine's bandwidth is known.
    """
    seconds = run.bytes / MiB / run.measured[start]
    reads, collective = run.kind == "reads", run.kind == "collective"
    common: dict[str, Any] = {
        "processes": run.processes,
        "read" if reads else "written": run.bytes,
        "busy_s": seconds,
        "time_s": seconds * run.processes,
    }
    layers: list[dict[str, Any]] = []
    if collective:
        common |= {"writers": 1, "interface": run.interface, "transfer": 4 * MiB}
        layers = [{"layer": layer, "collective_share": 1.0} for layer in {run.interface, "mpiio"}]
    machine = system(targets=run.targets, target_rate=None, stripe_count=start)
    if curve:
        points = [{"stripe_count": count, "bandwidth": run.measured[count] * MiB} for count in curve]
        kinds = {"calls": "collective" if collective else "independent", "operation": "read" if reads else "write"}
        described = machine.model_dump(by_alias=True)
        described["file_systems"][0]["stripe_curves"] = [{**kinds, "nodes": nodes_of(run), "points": points}]
        machine = type(machine).model_validate(described)
    thresholds = {} if chosen is None else {_THRESHOLDS.get(run.kind, "per_node"): chosen[0], "least": chosen[1]}
    files = [shared("/lustre/out", **common, role="output")]
    nodes = nodes_of(run) if knows_nodes else None
    return _recommendation("LUS002", files, run, seconds, machine, thresholds, nodes=nodes, interfaces=layers)


def _own_files(run: MeasuredRun) -> int:
    """LUS010's stripe count for one file per process; 1 if it makes no recommendation."""
    size, seconds = run.bytes // run.processes, run.bytes / MiB / run.rate(1)
    files = [
        file(f"/lustre/own.{i}", written=size, transfer=4 * MiB, busy_s=seconds, time_s=seconds)
        for i in range(run.processes)
    ]
    machine = system(targets=run.targets, target_rate=None, stripe_count=1)
    found = _recommendation("LUS010", files, run, seconds, machine)
    return 1 if found is None else int(found.recommended["stripe_count"])  # type: ignore[arg-type]


def _recommendation(
    rule: str, files: list[Any], run: MeasuredRun, seconds: float, machine: System,
    thresholds: dict[str, int] | None = None, **more: Any,
) -> Recommendation | None:  # fmt: skip
    """A rule's recommendation for a run whose processes are all in I/O for `seconds`; None if it makes none."""
    more = {"nodes": nodes_of(run)} | more
    answer = judge(
        profile(files, processes=run.processes, runtime_s=2 * seconds, slowest_s=seconds, busy_s=seconds, **more),
        machine,
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=[rule],
        thresholds={rule: thresholds or {}},
    )
    return next(iter(answer.recommendations), None)


def shares(rule: Rule, measured: Iterable[MeasuredRun]) -> list[float]:
    """Share of the best bandwidth that a rule achieves on each run."""
    return [run.reached(max(1, min(rule(run), run.targets))) for run in measured]


def chosen_on(measured: Sequence[MeasuredRun], *, knows_nodes: bool = True) -> tuple[int, int]:
    """Targets per node and the least count with the best mean over machines."""
    return max(
        CANDIDATES,
        key=lambda pair: _mean(functools.partial(advised, knows_nodes=knows_nodes, chosen=pair), measured),
    )


def _mean(rule: Rule, measured: Sequence[MeasuredRun]) -> float:
    """Mean over machines of the mean share of the best bandwidth."""
    by_machine = machines_of(measured)
    return statistics.fmean(statistics.fmean(shares(rule, own)) for own in by_machine.values())


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
        pooled = [[share for by_rule in scores.values() for share in by_rule[name]] for name in names]
        print(f"  {'all runs':<15} {len(pooled[0]):4}" + "".join(map(_cell, pooled)))
        means = [statistics.fmean(statistics.fmean(by_rule[name]) for by_rule in scores.values()) for name in names]
        print(f"  {'mean of machines':<20}" + "".join(f"{100 * mean:>15.0f}" for mean in means))


def _cell(values: Sequence[float]) -> str:
    below = sum(share < 0.5 for share in values) / len(values)
    return f"{100 * statistics.fmean(values):>7.0f}/{100 * min(values):3.0f}/{100 * below:3.0f}"


if __name__ == "__main__":
    run(main)
