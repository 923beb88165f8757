"""`python -m benchmarks.stripes --leave-one-machine-out`: what LUS002 reaches on measured runs, beside rules of thumb.

The rule is asked as for a user's run: a profile of the run with the fewest targets that were measured, which are the
default, and of the machine the number of its targets alone, so that no figure that was fitted to a machine helps there.
A file of each process gets one stripe (LUS003). With `--leave-one-machine-out` the targets per node are those that do
best on the other machines, the fewest within `ALIKE` of the best mean.
`--nodes-unknown` leaves the number of nodes out of the profiles.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.stripe_runs import DATA, Kind, Run, runs
from tests.advisors.builders import profile, shared, system
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, Recommendation, SystemRef
from vani.units import MiB

__all__ = ["THUMB", "advice", "advised", "print_counts", "shares"]

KINDS: Final[tuple[Kind, ...]] = ("collective", "independent", "file per process", "reads")

Rule = Callable[[Run], int]


def _nodes(run: Run) -> int:
    # BTIO's nodes are not stated: as many as its processes would need with 16 on each.
    return run.nodes or -(-run.processes // 16)


THUMB: Final[Mapping[str, Rule]] = {
    "keep": lambda run: min(run.measured),
    "4": lambda _: 4,
    "8": lambda _: 8,
    "16": lambda _: 16,
    "all": lambda run: run.targets,
    "1/node": _nodes,
    "2/node": lambda run: 2 * _nodes(run),
}
"""Rules of thumb, by name; none gives more targets than there are."""


ALIKE: Final = 0.96
"""Share of the best mean from which on a number of targets per node is as good."""

PER_NODE: Final = (0.5, 1, 2, 3, 4, 6, 8)

_THRESHOLDS: Final = {"collective": "collective_per_node", "independent": "per_node"}


def advised(
    run: Run, *, start: int | None = None, knows_nodes: bool = True, per_node: float | None = None
) -> int:
    """The stripe count of the advice for a run on `start` targets, or `start` where there is no advice."""
    start = start or min(run.measured)
    if run.kind == "file per process":
        return 1
    recommendation = advice(run, start, knows_nodes=knows_nodes, per_node=per_node)
    return start if recommendation is None else int(recommendation.recommended["stripe_count"])  # type: ignore[arg-type]


def advice(
    run: Run, start: int, *, knows_nodes: bool = True, per_node: float | None = None
) -> Recommendation | None:
    """What LUS002 says of a run on `start` targets; None where it recommends nothing.

    `per_node` are targets per node, by default those in use.
    """
    seconds = run.bytes / MiB / run.measured[start]
    reads = run.kind == "reads"
    common: dict[str, Any] = {
        "processes": run.processes,
        "read" if reads else "written": run.bytes,
        "busy_s": seconds,
        "time_s": seconds * run.processes,
    }
    layers: list[dict[str, Any]] = []
    if run.kind == "collective":
        common |= {"writers": 1, "interface": run.interface, "transfer": 4 * MiB}
        layers = [{"layer": layer, "collective_share": 1.0} for layer in {run.interface, "mpiio"}]
    asked = profile(
        [shared("/lustre/out", **common, role="output")],
        processes=run.processes,
        nodes=run.nodes if knows_nodes else None,
        interfaces=layers,
        runtime_s=2 * seconds,
        slowest_s=seconds,
        busy_s=seconds,
    )
    answer = judge(
        asked,
        system(targets=run.targets, target_rate=None, stripe_count=start),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=["LUS002"],
        thresholds=None
        if per_node is None
        else {"LUS002": {_THRESHOLDS.get(run.kind, "per_node"): per_node}},
    )
    return next(iter(answer.recommendations), None)


def shares(rule: Rule, measured: Iterable[Run]) -> list[float]:
    """Share of the best bandwidth that a rule reaches on each run."""
    return [run.reached(max(1, min(rule(run), run.targets))) for run in measured]


def chosen(measured: Sequence[Run], *, knows_nodes: bool = True) -> float:
    """The fewest targets per node whose mean over machines is about the best."""
    means = {}
    for per_node in PER_NODE:
        rule = functools.partial(advised, knows_nodes=knows_nodes, per_node=per_node)
        machines = {run.machine for run in measured}
        means[per_node] = statistics.fmean(
            statistics.fmean(shares(rule, [run for run in measured if run.machine == machine]))
            for machine in machines
        )
    return next(per_node for per_node, mean in means.items() if mean >= ALIKE * max(means.values()))


def print_counts(data: Path = DATA, *, knows_nodes: bool = True, left_out: bool = False) -> None:
    """A table for each kind of access: a row for each machine."""
    if not data.exists():
        print(f"No measurements: {data.name} is not beside the repository")
        return
    rules: dict[str, Rule] = {"advised": functools.partial(advised, knows_nodes=knows_nodes), **THUMB}
    print("Mean share of the best bandwidth / the worst run / share of runs below half of the best, in %")
    for kind in KINDS:
        some = [run for run in runs(data) if run.kind == kind]
        print(f"\n{kind:<17} runs" + "".join(f"{name:>15}" for name in rules))
        by_machine = {
            name: [run for run in some if run.machine == name] for name in sorted({r.machine for r in some})
        }
        scores: dict[str, dict[str, list[float]]] = {
            machine: {name: shares(rule, own) for name, rule in rules.items()}
            for machine, own in by_machine.items()
        }
        if left_out and kind in _THRESHOLDS:
            for machine, own in by_machine.items():
                others = [run for run in some if run.machine != machine]
                per_node = chosen(others, knows_nodes=knows_nodes)
                rule = functools.partial(advised, knows_nodes=knows_nodes, per_node=per_node)
                scores[machine]["advised"] = shares(rule, own)
                print(f"  without {machine}: {per_node:g} targets per node")
            print(f"  on all machines: {chosen(some, knows_nodes=knows_nodes):g}")
        for machine, by_rule in scores.items():
            print(f"  {machine:<15} {len(by_machine[machine]):4}" + "".join(map(_cell, by_rule.values())))
        pooled = [[share for by_rule in scores.values() for share in by_rule[name]] for name in rules]
        print(f"  {'all runs':<15} {len(some):4}" + "".join(map(_cell, pooled)))
        means = [
            statistics.fmean(statistics.fmean(by_rule[name]) for by_rule in scores.values()) for name in rules
        ]
        print(f"  {'mean of machines':<20}" + "".join(f"{100 * mean:>15.0f}" for mean in means))


def _cell(values: Sequence[float]) -> str:
    below = sum(share < 0.5 for share in values) / len(values)
    return f"{100 * statistics.fmean(values):>7.0f}/{100 * min(values):3.0f}/{100 * below:3.0f}"


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stripes", description=__doc__)
    parser.add_argument(
        "--leave-one-machine-out",
        action="store_true",
        help="choose the targets per node on the other machines",
    )
    parser.add_argument(
        "--nodes-unknown", action="store_true", help="leave the number of nodes out of the profiles"
    )
    asked = parser.parse_args(arguments)
    print_counts(knows_nodes=not asked.nodes_unknown, left_out=asked.leave_one_machine_out)


if __name__ == "__main__":
    main(sys.argv[1:])
