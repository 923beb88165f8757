"""`python -m benchmarks.stripes --leave-one-machine-out`: what LUS002 reaches on measured runs, beside rules of thumb.

The rule is asked as for a user's run: a profile, a default of one stripe, and of the machine the number of its targets
alone, so that no figure that was fitted to a machine helps there. A file of each process gets one stripe (LUS003).
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
from vani.schema.advice import ProfileRef, SystemRef
from vani.units import MiB

__all__ = ["THUMB", "advised", "print_counts", "shares"]

KINDS: Final[tuple[Kind, ...]] = ("collective", "independent", "file per process", "reads")

Rule = Callable[[Run], int]


def _nodes(run: Run) -> int:
    # BTIO's nodes are not stated: as many as its processes would need with 16 on each.
    return run.nodes or -(-run.processes // 16)


THUMB: Final[Mapping[str, Rule]] = {
    "keep": lambda _: 1,
    "4": lambda _: 4,
    "8": lambda _: 8,
    "16": lambda _: 16,
    "all": lambda run: run.targets,
    "1/node": _nodes,
    "2/node": lambda run: 2 * _nodes(run),
}
"""Rules of thumb, by name; none gives more targets than there are."""


def advised(run: Run, *, knows_nodes: bool = True) -> int:
    """The stripe count of the advice, or the default of one where there is none."""
    if run.kind == "file per process":
        return 1
    seconds = run.bytes / MiB / run.rate(1)
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
    advice = judge(
        asked,
        system(targets=run.targets, target_rate=None),
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=["LUS002"],
    )
    return next((int(entry.recommended["stripe_count"]) for entry in advice.recommendations), 1)  # type: ignore[arg-type]


def shares(rule: Rule, measured: Iterable[Run]) -> list[float]:
    """Share of the best bandwidth that a rule reaches on each run."""
    return [run.reached(max(1, min(rule(run), run.targets))) for run in measured]


def print_counts(data: Path = DATA, *, knows_nodes: bool = True) -> None:
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
        scores = {
            machine: {name: shares(rule, own) for name, rule in rules.items()}
            for machine, own in by_machine.items()
        }
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
        "--leave-one-machine-out", action="store_true", help="a row for each machine (always so)"
    )
    parser.add_argument(
        "--nodes-unknown", action="store_true", help="leave the number of nodes out of the profiles"
    )
    asked = parser.parse_args(arguments)
    print_counts(knows_nodes=not asked.nodes_unknown)


if __name__ == "__main__":
    main(sys.argv[1:])
