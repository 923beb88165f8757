"""`python -m benchmarks.stripes --leave-one-machine-out`: LUS002 and rules of thumb on measured runs.

The rule judges each run as a user's run: a profile with the fewest measured targets, which are the default, and a
machine of which only the number of targets is known, so that no figure fitted to a machine helps. Files of one
process each get the advice of LUS010 if one stripe is the default, and otherwise one stripe (LUS003). With
`--leave-one-machine-out`, the targets per node are those that do best on the other machines: the fewest within
`ALIKE` of the best mean. `--nodes-unknown` leaves the number of nodes out of the profiles. Then the processes that
LUS002 assumes per node are chosen as well: those that do best on the other machines if their runs had 1, 4, 16 or
64 processes on each node, all equally likely, at the measured rates.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.stripe_runs import DATA, Kind, Run, runs
from tests.advisors.builders import file, profile, shared, system
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, Recommendation, SystemRef
from vani.units import MiB, counted

KINDS: Final[tuple[Kind, ...]] = ("collective", "independent", "file per process", "reads")

Rule = Callable[[Run], int]


def _nodes(run: Run) -> int:
    # BTIO's number of nodes is not stated; 16 processes per node are assumed.
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
"""Rules of thumb by name; none gives more targets than exist."""

OF_NODES: Final = ("1/node", "2/node")
"""Rules of thumb that need the number of nodes."""

ALIKE: Final = 0.96
"""Share of the best mean from which on a number of targets per node counts as equally good."""

PER_NODE: Final = (0.5, 1, 2, 3, 4, 6, 8)

ASSUMED: Final = (1, 2, 4, 8, 16)
"""Candidates for the assumed processes per node."""

ON_A_NODE: Final = (1, 4, 16, 64)
"""Processes that nodes may really have: from one to most cores of common nodes."""

_THRESHOLDS: Final = {"collective": "collective_per_node", "independent": "per_node"}


@functools.cache
def advised(
    run: Run,
    *,
    start: int | None = None,
    knows_nodes: bool = True,
    per_node: float | None = None,
    processes_per_node: int | None = None,
) -> int:
    """The advised stripe count for a run on `start` targets, or `start` without advice."""
    start = start or min(run.measured)
    if run.kind == "file per process":
        return _own_files(run, per_node)
    recommendation = advice(
        run, start, knows_nodes=knows_nodes, per_node=per_node, processes_per_node=processes_per_node
    )
    return start if recommendation is None else int(recommendation.recommended["stripe_count"])  # type: ignore[arg-type]


def advice(
    run: Run,
    start: int,
    *,
    knows_nodes: bool = True,
    per_node: float | None = None,
    processes_per_node: int | None = None,
) -> Recommendation | None:
    """LUS002's recommendation for a run on `start` targets; None if it makes none.

    `per_node` is the number of targets per node, and `processes_per_node` the assumed processes if nodes are
    unknown; by default both are those in use.
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
        nodes=_nodes(run) if knows_nodes else None,
        interfaces=layers,
        runtime_s=2 * seconds,
        slowest_s=seconds,
        busy_s=seconds,
    )
    thresholds = {
        _THRESHOLDS.get(run.kind, "per_node"): per_node,
        "processes_per_node": processes_per_node,
    }
    answer = judge(
        asked,
        system(targets=run.targets, target_rate=None, stripe_count=start),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=["LUS002"],
        thresholds={"LUS002": {name: value for name, value in thresholds.items() if value is not None}},
    )
    return next(iter(answer.recommendations), None)


def _own_files(run: Run, per_node: float | None) -> int:
    """LUS010's stripe count for one file per process; 1 if it makes no recommendation."""
    size, seconds = run.bytes // run.processes, run.bytes / MiB / run.rate(1)
    some = [
        file(f"/lustre/own.{i}", written=size, transfer=4 * MiB, busy_s=seconds, time_s=seconds)
        for i in range(run.processes)
    ]
    answer = judge(
        profile(
            some,
            processes=run.processes,
            nodes=_nodes(run),
            runtime_s=2 * seconds,
            slowest_s=seconds,
            busy_s=seconds,
        ),
        system(targets=run.targets, target_rate=None, stripe_count=1),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=["LUS010"],
        thresholds={"LUS010": {} if per_node is None else {"per_node": per_node}},
    )
    return int(next((one.recommended["stripe_count"] for one in answer.recommendations), 1))  # type: ignore[arg-type]


def shares(rule: Rule, measured: Iterable[Run]) -> list[float]:
    """Share of the best bandwidth that a rule achieves on each run."""
    return [run.reached(max(1, min(rule(run), run.targets))) for run in measured]


def chosen(measured: Sequence[Run]) -> float:
    """The fewest targets per node whose mean over machines is close to the best."""
    means = {n: _mean(functools.partial(advised, per_node=n), measured) for n in PER_NODE}
    return next(per_node for per_node, mean in means.items() if mean >= ALIKE * max(means.values()))


def assumed(measured: Sequence[Run], per_node: float) -> int:
    """The assumed processes per node that do best if nodes are unknown, on average over `ON_A_NODE`."""
    # Bandwidth follows the number of nodes: more processes per node would not have changed it.
    possible = [
        dataclasses.replace(run, processes=_nodes(run) * on_each) for run in measured for on_each in ON_A_NODE
    ]
    means = {
        n: _mean(
            functools.partial(advised, knows_nodes=False, per_node=per_node, processes_per_node=n), possible
        )
        for n in ASSUMED
    }
    return max(means, key=lambda n: means[n])


def _mean(rule: Rule, measured: Sequence[Run]) -> float:
    """Mean over machines of the mean share of the best bandwidth."""
    machines = sorted({run.machine for run in measured})
    return statistics.fmean(
        statistics.fmean(shares(rule, [run for run in measured if run.machine == machine])) for machine in machines
    )


def print_counts(data: Path = DATA, *, knows_nodes: bool = True, left_out: bool = False) -> None:
    """Print a table for each kind of access, with a row for each machine."""
    if not data.exists():
        print(f"No measurements: {data.name} is not beside the repository")
        return
    thumb = {name: rule for name, rule in THUMB.items() if knows_nodes or name not in OF_NODES}
    rules: dict[str, Rule] = {"advised": functools.partial(advised, knows_nodes=knows_nodes), **thumb}
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
                print(f"  without {machine}: ", end="")
                scores[machine]["advised"] = shares(_chosen_rule(others, knows_nodes=knows_nodes), own)
            print("  on all machines: ", end="")
            _chosen_rule(some, knows_nodes=knows_nodes)
        if left_out and kind == "file per process":
            _print_file_systems(some)
        for machine, by_rule in scores.items():
            print(f"  {machine:<15} {len(by_machine[machine]):4}" + "".join(map(_cell, by_rule.values())))
        pooled = [[share for by_rule in scores.values() for share in by_rule[name]] for name in rules]
        print(f"  {'all runs':<15} {len(some):4}" + "".join(map(_cell, pooled)))
        means = [
            statistics.fmean(statistics.fmean(by_rule[name]) for by_rule in scores.values()) for name in rules
        ]
        print(f"  {'mean of machines':<20}" + "".join(f"{100 * mean:>15.0f}" for mean in means))


def _print_file_systems(measured: Sequence[Run]) -> None:
    """Print targets per node chosen on all other file systems, for those on which one stripe leaves targets idle."""
    few = [run for run in measured if run.processes < run.targets]
    names = {run: run.name.split("-")[1] for run in few}
    for name in sorted(set(names.values())):
        others, own = [run for run in few if names[run] != name], [run for run in few if names[run] == name]
        per_node = chosen(others)
        reached = statistics.fmean(shares(functools.partial(advised, per_node=per_node), own))
        narrow = statistics.fmean(shares(lambda _: 1, own))
        print(
            f"  without {name}: {per_node:g} targets per node; {counted(len(own), 'run')} there of fewer processes "
            f"than targets: {100 * reached:.0f}, with one stripe {100 * narrow:.0f}"
        )


def _chosen_rule(measured: Sequence[Run], *, knows_nodes: bool) -> Rule:
    """LUS002 with thresholds chosen by some runs, which are printed."""
    per_node = chosen(measured)
    print(f"{per_node:g} targets per node", end="\n" if knows_nodes else ", ")
    if knows_nodes:
        return functools.partial(advised, per_node=per_node)
    on_each = assumed(measured, per_node)
    print(f"where nodes are unknown {counted(on_each, 'process')} on each")
    return functools.partial(advised, knows_nodes=False, per_node=per_node, processes_per_node=on_each)


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
