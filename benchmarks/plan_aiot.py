"""`python -m benchmarks.plan_aiot`: figures 12 to 16 of AIOT, as far as models and the simulator can compute them.

The paper plots these figures and prints one or two values of each; the rates of its forwarding nodes, targets and
metadata servers are not public. This module computes what the printed values imply, how the equations and the plans
do on the same case, and the cost of remapping if Vani itself writes the map.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.plan_path import JOBS, NODES, PER_STORAGE, STORAGE, jobs_of, machine, planned
from benchmarks.plan_path import NOW as SNAPSHOT
from vani.atomic import write_text
from vani.centre import plan_path
from vani.centre.plan.path_mapping import MAX_METADATA
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.simulate.simulate import Named, simulate
from vani.centre.plan.text.paths import path_to_map
from vani.models.forwarding import prefetch_chunk
from vani.units import GiB, KiB, MiB

FIGURE_12 = (2.0, 0.05)
"""Speed-up of Macdrp, and slowdown of Quantum."""
FIGURE_14 = 0.10
FIGURE_15 = (0.15, 0.06, 0.5)
"""Gain of small reads, gain of FlameD, and the minimum share of its time that is I/O."""
REMAPPED = (512, 2048, 8192, 40_960)
"""Compute nodes of one job."""


def shares(metadata: float, data: float, metadata_share: float) -> tuple[float, float]:
    """The shares that a forwarding node serves of two jobs' demands, with P the metadata's part of the turns.

    A turn that its own kind does not use goes to the other. P = 1 means metadata first, LWFS' default.
    """
    served = min(metadata, max(metadata_share, 1 - data))
    return served, min(data, 1 - served)


def implied() -> tuple[float, float]:
    """Quantum's demand on the forwarding node, and P, that give both values of figure 12.

    Macdrp demands more than it gets in both cases: (1 - P) / (1 - u) = gain, u / P = 1 + slowdown.
    """
    gain, slowdown = FIGURE_12
    asked = (gain - 1) / (gain - 1 / (1 + slowdown))
    return asked, asked / (1 + slowdown)


def read_ahead(files: int, request: int, chunk: int, buffer: int, size: int) -> tuple[float, int]:
    """Bytes fetched over bytes read, and number of fetches, when all files are read in turn.

    A read outside the buffer fetches the chunk that contains it, and evicts the least recently used chunk.
    """
    kept: OrderedDict[tuple[int, int], None] = OrderedDict()
    room, fetches = buffer // chunk, 0
    for place in range(0, size, request):
        for file in range(files):
            key = file, place // chunk
            if key in kept:
                kept.move_to_end(key)
                continue
            fetches += 1
            kept[key] = None
            if len(kept) > room:
                kept.popitem(last=False)
    return fetches * chunk / (files * size), fetches


def simulated(machine_: dict, phase: dict, layouts: dict[str, object]) -> dict[str, float]:
    """Seconds of one job of 64 processes on 16 nodes, by layout of its files."""
    scenario = Scenario.model_validate(
        {
            "machine": machine_,
            "workload": [{"name": "job", "nodes": 16, "processes": 64, "phases": [phase]}],
            "placement": {"policy": "round_robin"},
            "variants": [{"name": name, "layout": layout} for name, layout in layouts.items()],
        }
    )
    return {one.name: one.makespan_s or 0.0 for one in simulate(scenario, Named()).outcomes}


def print_requests() -> None:
    """Figure 12: two jobs on one forwarding node."""
    asked, share = implied()
    gain, slowdown = FIGURE_12
    print(
        f"Figure 12: Macdrp and Quantum on one forwarding node (paper: {gain:g} times as fast, {slowdown:.0%} slower)"
    )
    print(
        f"  both values hold if Quantum asks for {asked:.1%} of the node and P is {share:.3f}; neither is printed"
    )
    first, split = shares(asked, 1.0, 1.0), shares(asked, 1.0, MAX_METADATA)
    print(
        f"  with the largest P of plans, {MAX_METADATA:g}: Macdrp {split[1] / first[1]:.2f} times as fast, Quantum "
        f"{first[0] / split[0] - 1:.1%} slower"
    )


def print_read_ahead() -> None:
    """Figure 13: chunk sizes of the prefetch buffer around the result of equation 2."""
    files, request, buffer, size = 256, 256 * KiB, GiB, 32 * MiB
    best = int(prefetch_chunk(buffer, 1, files))
    print(
        f"\nFigure 13: {files} files read by turns through one forwarding node with a buffer of 1 GiB; equation 2: "
        f"chunks of {best / MiB:g} MiB"
    )
    for chunk in (best // 4, best // 2, best, 2 * best, 4 * best):
        more, fetches = read_ahead(files, request, chunk, buffer, size)
        print(
            f"  chunks of {chunk / MiB:5g} MiB: {more:5.1f} bytes fetched for a byte read, {fetches:7,} fetches"
        )


def print_stripes() -> None:
    """Figure 14: 64 processes that write one file."""
    plan = plan_path(JOBS, SNAPSHOT)
    (count,) = (job.stripe_count for job in plan.jobs if job.name == "Grapes")
    times = simulated(
        {"targets": 12, "target": 1e9, "process": 1e9},
        {"operation": "write", "bytes": 64e9, "files": 1, "opens": 0, "order": "strided"},
        {"one": 1, "planned": count},
    )
    faster = times["one"] / times["planned"]
    part = (1 - 1 / (1 + FIGURE_14)) / (1 - 1 / faster)
    print(
        f"\nFigure 14: one file of 64 processes on {count} OSTs, not 1, is written {faster:.1f} times as fast; a run "
        f"is {FIGURE_14:.0%} faster (paper) if {part:.0%} of its time was that write"
    )


def print_small_files() -> None:
    """Figure 15: small files on the metadata target."""
    small, whole, part = FIGURE_15
    print(
        f"\nFigure 15: reads of small files that are {small:.0%} faster make a run of {part:.0%} I/O "
        f"{1 / (1 - part * (1 - 1 / (1 + small))) - 1:.1%} faster (paper about {whole:.0%}, with more than {part:.0%})"
    )
    print(
        "  simulated, rates ours: 6,400 files, 20,000 opens per second, 12 OSTs of 1 GB/s; bytes on the metadata "
        "target pass the network alone, so that gains are upper bounds"
    )
    for kib in (64, 256, 1024):
        times = simulated(
            {"targets": 12, "target": 1e9, "process": 2e9, "node": 2.5e9, "metadata": 20_000},
            {"operation": "read", "bytes": 6400.0 * kib * KiB, "files": 6400, "opens": 6400},
            {"OST": 1, "MDT": f"-E {kib}K -L mdt -E -1 -c 1"},
        )
        print(f"    files of {kib:5} KiB: {times['OST'] / times['MDT'] - 1:.0%} faster with Data-on-MDT")


def print_remapping(repeats: int = 5) -> None:
    """Figure 16: the cost of searching a path and writing the map of all compute nodes of a job."""
    print("\nFigure 16: processor time of one job's remapping, by its compute nodes (median)")
    snapshot = machine(80, STORAGE, PER_STORAGE)
    with tempfile.TemporaryDirectory(prefix="vani-") as name:
        for nodes in REMAPPED:
            jobs = jobs_of([nodes], [nodes * 1e6])
            searched, wrote = [], []
            for _ in range(repeats):
                begin = time.process_time()
                plan = planned(jobs, snapshot)
                middle = time.process_time()
                write_text(Path(name) / "map", path_to_map(plan))
                searched.append(middle - begin)
                wrote.append(time.process_time() - middle)
            search, write = statistics.median(searched), statistics.median(wrote)
            print(
                f"  {nodes:6,} nodes: search {search * 1e3:6.1f} ms, map written in {write * 1e3:6.1f} ms, "
                f"{write / nodes * 1e6:.2f} us a node"
            )
    print(
        f"  all {NODES:,} nodes of TaihuLight are the last row; a job's dispatch time is not printed in the paper"
    )


def main(_: Sequence[str] = ()) -> None:
    """Print all tables."""
    print_requests()
    print_read_ahead()
    print_stripes()
    print_small_files()
    print_remapping()


if __name__ == "__main__":
    main()
