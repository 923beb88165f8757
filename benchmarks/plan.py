"""`python -m benchmarks.plan`: every figure claimed for plans, next to those of the papers.

Each module also has a command of its own, such as `python -m benchmarks.plan_place`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from benchmarks import plan_forward, plan_path, plan_place, plan_simulate

PARTS: dict[str, tuple[str, Callable[[], None]]] = {
    "forward": (
        "I/O nodes: table 4, the study of 10,000 sets, a replayed queue (Bez et al.)",
        plan_forward.print_plans,
    ),
    "place": ("OSTs: tables 1, 2, 4, 5, OST Cost beside the least possible (Tarazu)", plan_place.print_placements),
    "path": ("I/O paths: table III, greedy beside the maximum flow (AIOT)", plan_path.print_paths),
    "simulate": (
        "simulations: table 6, section 6.4, OPRAEL's stripe sweep, 10,000 flows",
        plan_simulate.print_simulations,
    ),
    "tarazu": (
        "figures 7, 14, 21, 22, 23 (Tarazu): OSTs that are filled, simulated bandwidth, logs as workloads",
        plan_place.print_figures,
    ),
    "aiot": (
        "figures 12 to 16 (AIOT): request split, read-ahead, stripes, Data-on-MDT, remapping",
        plan_path.print_figures,
    ),
    "joint": ("paths of jobs one after the other beside all at once", plan_path.print_joint),
    "library": ("what a placed file costs", plan_place.print_library),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all parts, or the named ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("--only", metavar="PART,...", help=f"some of {', '.join(PARTS)}")
    asked = parser.parse_args(arguments)
    names = asked.only.split(",") if asked.only else list(PARTS)
    if unknown := set(names) - set(PARTS):
        parser.error(f"no part {min(unknown)!r}; there are {', '.join(PARTS)}")
    for name in names:
        title, part = PARTS[name]
        print(f"\n=== {name}: {title}\n", flush=True)
        part()


if __name__ == "__main__":
    main()
