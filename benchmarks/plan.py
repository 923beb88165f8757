"""`python -m benchmarks.plan`: every figure claimed for plans, next to those of the papers.

Each module also has a command of its own, such as `python -m benchmarks.plan_place`.
"""

from __future__ import annotations

from benchmarks import plan_forward, plan_path, plan_place, plan_simulate
from benchmarks.data import print_parts

PARTS = {
    "forward": plan_forward.main, "place": plan_place.print_placements, "path": plan_path.print_paths,
    "simulate": plan_simulate.main, "tarazu": plan_place.print_figures, "aiot": plan_path.print_figures,
    "joint": plan_path.print_joint, "library": plan_place.print_library,
}  # fmt: skip


if __name__ == "__main__":
    print_parts(PARTS)
