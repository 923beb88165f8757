"""`python -m benchmarks.plan`: every figure claimed for plans, next to those of the papers.

Each part is a module of its own with its own options: `python -m benchmarks.plan_place`, and so on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

PARTS = {
    "forward": "I/O nodes: table 4, the study of 10,000 sets, a replayed queue (Bez et al.)",
    "place": "OSTs: tables 1, 2, 4, 5, OST Cost beside the least possible (Tarazu)",
    "path": "I/O paths: table III, greedy beside the maximum flow (AIOT)",
    "simulate": "simulations: table 6, section 6.4, OPRAEL's stripe sweep, 10,000 flows",
    "tarazu": "figures 7, 14, 21, 22, 23 (Tarazu): OSTs that are filled, simulated bandwidth, logs as workloads",
    "aiot": "figures 12 to 16 (AIOT): request split, read-ahead, stripes, Data-on-MDT, remapping",
    "joint": "paths of jobs one after the other beside all at once",
    "library": "what a placed file costs",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all parts, or the named ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("--only", metavar="PART,...", help=f"some of {', '.join(PARTS)}")
    asked = parser.parse_args(arguments)
    names = asked.only.split(",") if asked.only else list(PARTS)
    for name in names:
        if name not in PARTS:
            parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    for name in names:
        print(f"\n=== {name}: {PARTS[name]}\n", flush=True)
        module = import_module(f"benchmarks.plan_{name}")
        module.main([])


if __name__ == "__main__":
    main()
