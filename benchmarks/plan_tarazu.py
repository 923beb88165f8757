"""`python -m benchmarks.plan_tarazu`: figures of Tarazu, by the simulator and by bytes on servers, as tables.

Figures 7 and 21 are bytes on OSTs and servers of the testbed. Figure 22 is bandwidth there, and figure 23 that of
three jobs of table 7 on up to 3,600 OSTs. Figure 14 shows how a Darshan log becomes a workload (section 6.3). The
paper prints few of the plotted values, and no rate of the testbed or of the clients, so only ratios can be
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import vani
from benchmarks.plan_place import CASES, HACC_16, OSTS, planned
from tests.plan.published import PFL_1, PFL_2, PIECES, TARGET, compared, written_and_read
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.simulate.simulate import Named, simulate
from vani.schema.profile import Profile
from vani.systems import load_system
from vani.units import GiB

LOGS = sorted((Path(__file__).resolve().parents[1] / "tests" / "data" / "darshan").glob("*.darshan"))
"""Logs of Darshan 3 with calls (DXT) or heat maps, which show phases."""
LAYOUTS = {"N": "8", "C1": PFL_1, "C2": PFL_2}
TABLE_7 = {
    "genomicPrediction": (128, 110.6e9, 80.2e9),
    "E3SM": (256, 100.8e9, 150.3e9),
    "cosmoFlow": (64, 250.6e9, 52.4e9),
}
"""Compute nodes, bytes read and bytes written of each job."""
SCALES = (160, 800, 3600)
OSTS_OF_SERVER = 8
FIGURE_23 = 3.34 / 2.1
"""Read bandwidth with Tarazu over that with LSA, 3,600 OSTs, PFL configuration 1: the only printed value."""
SEEDS = (1, 2, 3)
TEN = tuple(range(1, 11))


def print_utilisation() -> None:
    """Figures 7 and 21: shares of OSTs and servers that the files fill."""
    print(
        "Figure 7: part of an OST that is filled, 35 OSTs of 10 GiB: mean, fullest with LSA, fullest balanced"
    )
    for case in CASES:
        if "PFL-2" in case.name or len(case.files) > 1 or "shared" in case.name:
            continue
        plan = planned(case, seeds=200)
        (count, size, _), = case.files  # fmt: skip
        mean = count * size / (OSTS * 10 * GiB)
        rules = {one.rule: one for one in plan.allocator}
        low, middle, high = (
            getattr(rules["random-start"].ost_cost, name) * mean for name in ("low", "median", "high")
        )
        print(
            f"  {case.name:20} {mean:6.1%}   {middle:6.1%} ({low:.1%} to {high:.1%})   "
            f"{(plan.after.ost_cost or 0) * mean:6.1%}"
        )
    print("\nFigure 21: bytes of the fullest server over the mean, 7 servers, PFL configuration 1")
    for case in CASES:
        if case.name in {"IOR 32 GB, PFL-1", "IOR 128 GB, PFL-1"}:
            plan = planned(case, seeds=200)
            cells = [
                f"LSA {one.rule} {one.oss_cost.median:.3f} ({one.oss_cost.low:.3f} to {one.oss_cost.high:.3f})"
                for one in plan.allocator
                if one.oss_cost is not None and one.rule in {"going-on", "random-start"}
            ]
            print(f"  {case.name:20} {'   '.join(cells)}   balanced {plan.after.oss_cost:.3f}")


def print_bandwidth() -> None:
    """Figure 22: bandwidth with balanced targets over that with LSA, for two programs and three layouts."""
    testbed = load_system("tarazu-testbed")
    print(
        f"\nFigure 22: balanced over LSA, median (range over {len(TEN)} seeds); "
        "paper: reads up to 1.43, writes down to 0.90"
    )
    for pieces in PIECES:
        for program, moved in (("IOR, 32 GB", 32.0 * GiB), ("HACC-I/O, 16 p", float(16 * HACC_16))):
            for sharing, files in (("FPP", None), ("SSF", 1)):
                cells = []
                for name, layout in LAYOUTS.items():
                    job = written_and_read("job", moved, layout, processes=16, nodes=2, files=files)
                    found = compared(
                        testbed, [_numbered(job)], pieces=pieces, policy="random_start", seeds=TEN
                    )
                    cells += [
                        f"{name} {operation} {np.median(some):.2f} ({some.min():.2f} to {some.max():.2f})"
                        for operation, some in (("read", found.read), ("write", found.write))
                    ]
                print(f"  pieces {pieces:10}  {program:14} {sharing}  {'   '.join(cells)}")


def _numbered(job: dict) -> dict:
    """The job with its stripe count as a number."""
    for phase in job["phases"]:
        if phase["layout"].isdigit():
            phase["layout"] = int(phase["layout"])
    return job


def jobs_of_table_7(layout: str) -> list[dict]:
    """The three jobs, with one process per node that reads one file of its own and writes another."""
    return [
        _numbered(
            {
                "name": name,
                "nodes": nodes,
                "phases": [
                    {"operation": "read", "bytes": read, "layout": layout, "opens": 0, "file_set": "input"},
                    {
                        "operation": "write",
                        "bytes": written,
                        "layout": layout,
                        "opens": 0,
                        "file_set": "output",
                    },
                ],
            }
        )
        for name, (nodes, read, written) in TABLE_7.items()
    ]


def print_scales(scales: Sequence[int] = SCALES) -> None:
    """Figure 23: the jobs of table 7 at once on increasing numbers of OSTs."""
    testbed = load_system("tarazu-testbed")
    clients = sum(nodes for nodes, *_ in TABLE_7.values())
    print(
        f"\nFigure 23: the jobs of table 7 at once; balanced over LSA (median of {len(SEEDS)} seeds); when each call "
        "took place, the files and all rates are ours"
    )
    print(f"  the point that is printed: 3,600 OSTs, C1, read {FIGURE_23:.2f}")
    for title, more in (
        ("OSTs hold back", {}),
        (f"clients hold back, too: 3.34 GB/s over {clients}", {"node": 3.34e9 / clients}),
    ):
        print(f"  {title}")
        for count in scales:
            machine = {
                "target": TARGET, "targets": count, "servers": count // OSTS_OF_SERVER, "target_size": 10 * GiB
            } | more  # fmt: skip
            cells = []
            for name, layout in LAYOUTS.items():
                found = compared(
                    testbed, jobs_of_table_7(layout), pieces="in_turn", policy="random_start", seeds=SEEDS,
                    rates=machine, tolerance=0.02,
                )  # fmt: skip
                cells.append(f"{name} read {np.median(found.read):.2f} write {np.median(found.write):.2f}")
            print(f"    {count:5,} OSTs   {'   '.join(cells)}")


def end_of(profile: Profile) -> tuple[float, float]:
    """Seconds until a run ends on a machine that hardly slows it down, and the bytes that it moves."""
    scenario = Scenario.model_validate(
        {
            "machine": {"targets": 8, "target": 1e9, "process": 2e9},
            "workload": [{"name": "run", "profile": "log"}],
        }
    )
    (outcome,) = simulate(scenario, Named(profiles={"log": profile})).outcomes
    return outcome.makespan_s or 0.0, sum(job.bytes for job in outcome.jobs)


def print_logs() -> None:
    """Figure 14: logs as workloads by the times of their files, next to those by their phases."""
    print(
        "\nFigure 14, section 6.3: Darshan logs as workloads, bytes and idle time spread over the time of each file"
    )
    print(
        "  log                                        bytes      played   runtime   ends: by files   by phases"
    )
    for log in LOGS:
        profile = vani.profile(log)
        end, moved = end_of(profile.model_copy(update={"phases": None}))
        by_phases = f"{end_of(profile)[0]:8.3f} s" if profile.phases else "unknown"
        print(
            f"  {log.stem:35} {profile.workflow.io.bytes.total:12,} {moved:12,.0f} "
            f"{profile.workflow.runtime_s or 0:7.3f} s "
            f"{end:12.3f} s {by_phases}"
        )


def main(_: Sequence[str] = ()) -> None:
    """Print all tables."""
    print_utilisation()
    print_bandwidth()
    print_scales()
    print_logs()


if __name__ == "__main__":
    main()
