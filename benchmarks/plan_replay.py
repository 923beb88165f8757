"""`python -m benchmarks.plan_replay`: a queue of jobs compared with section 5.3 of Bez et al., IPDPS 2021, as tables.

The paper prints few bandwidths of its queue, so its sums cannot be reproduced. This module computes what follows
from the printed values, and replays the queue with curves of another machine, whose ratio is shown next to the
paper's.
"""

from __future__ import annotations

from pathlib import Path

from vani.centre import plan_replay
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import ReplayPlan

QUEUE = Path(__file__).resolve().parents[1] / "examples" / "plan" / "queue.yaml"
NODES, IO_NODES, POLL_S = 96, 12, 10.0

PAPER_STATIC, PAPER_MCKP = 8.41e9, 16.02e9
"""Sums of bandwidths of the queue."""
PAPER_NUMBERS = {"HACC": 1, "POSIX-L": 8}
"""Numbers of I/O nodes that STATIC assigns."""
PAPER_POSIX_L = (0.097, 1963.9e6, {"table 4": 411.9e6, "SIZE in section 5.3": 180.5e6}, 391.7e6)
"""Share of its time with 8 I/O nodes, bandwidth with 8, two printed values for 2, and its overall bandwidth."""


def replay_of_queue(**more: object) -> ReplayPlan:
    """The queue of section 5.3 without direct access, with the nearest patterns of MareNostrum 4."""
    asked = {"nodes": NODES, "poll": POLL_S, "direct": False, "estimate": "nearest", "compare": True} | more
    return plan_replay(QUEUE, io_nodes=IO_NODES, **asked)  # type: ignore[arg-type]


def numbers_of_first_job(gap_s: float = 0.05) -> list[int]:
    """Successive numbers of I/O nodes that MCKP gives HACC, if jobs start `gap_s` seconds apart."""
    queue = Jobs.load(QUEUE)
    later = [job.model_copy(update={"submit_s": n * gap_s}) for n, job in enumerate(queue.jobs)]
    found = plan_replay(
        queue.model_copy(update={"jobs": later}), io_nodes=IO_NODES, nodes=NODES, direct=False, estimate="nearest"
    )
    return [part.io_nodes for part in found.jobs[0].periods]


def posix_l_bounds() -> tuple[float, float]:
    """Bandwidth of a job with 8 I/O nodes for 9.7 % of its time and 2 for the rest, by both values printed for 2."""
    part, with_8, with_2, _ = PAPER_POSIX_L
    least, most = sorted(part * with_8 + (1 - part) * one for one in with_2.values())
    return least, most


def main() -> None:
    """Print all tables."""
    found = replay_of_queue()
    print(f"Section 5.3: {len(found.jobs)} jobs, {NODES} nodes, {IO_NODES} I/O nodes, no direct access")
    at_once = [one for one in found.jobs if one.start_s == 0]
    print(
        f"  the first {len(at_once)} begin at once on {sum(one.nodes for one in at_once)} nodes, and "
        f"{found.jobs[len(at_once)].name} waits: whatever the bandwidths"
    )
    static = replay_of_queue(policy="static", compare=False)
    for one in static.jobs:
        if one.name in PAPER_NUMBERS:
            print(
                f"  STATIC gives {one.name} {one.periods[0].io_nodes} I/O nodes (paper {PAPER_NUMBERS[one.name]})"
            )
    numbers = ", then ".join(map(str, numbers_of_first_job()))
    print(f"  MCKP gives HACC {numbers} as others begin (paper 8, then 4)")
    least, most = posix_l_bounds()
    print(
        f"  POSIX-L, 8 I/O nodes for 9.7 % of its time, then 2: {least / 1e6:.1f} to {most / 1e6:.1f} MB/s by what is "
        f"printed for 2 (paper {PAPER_POSIX_L[-1] / 1e6:.1f})"
    )
    print("  with curves of MareNostrum 4, nearest patterns (paper: its own curves, not published):")
    for outcome in found.compared:
        if outcome.bandwidth is None or outcome.makespan_s is None:
            print(f"    {outcome.policy:8} {outcome.reason}")
            continue
        paper = {"static": PAPER_STATIC, "mckp": PAPER_MCKP}.get(outcome.policy)
        print(
            f"    {outcome.policy:8} {outcome.bandwidth / 1e9:6.2f} GB/s"
            + (f" (paper {paper / 1e9:.2f})" if paper else "")
            + f", {outcome.makespan_s:,.0f} s, {outcome.io_nodes} I/O nodes at most, {outcome.changes} changes"
        )
    ratio = found.expected.speedup if found.expected is not None else None
    print(f"    MCKP / STATIC {ratio:.2f} (paper {PAPER_MCKP / PAPER_STATIC:.2f})")
    at_once_seen = replay_of_queue(poll=0.0, compare=False)
    print(
        f"    a mapping that is seen at once and not every {POLL_S:g} s: "
        f"{(at_once_seen.after.bandwidth or 0) / (found.after.bandwidth or 1) - 1:+.2%}"
    )


if __name__ == "__main__":
    main()
