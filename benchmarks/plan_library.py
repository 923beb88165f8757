"""`python -m benchmarks.plan_library`: the time that the placement library adds to creating a file.

A C program creates files with open(2) and closes them, with and without the library in turn, on a file system in
memory and on a disk. A stand-in for liblustreapi creates files like the real one but contacts no server. Whether
the added time matters depends on the cost of a file on Lustre, which is not measured here. The share is computed
for a create of 1 ms, and the create time at which it is 1 % (AIOT's bound) is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vani.centre.placement_library.database import store
from vani.centre.placement_library.interactions import Interaction

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "preload"))

from building import Built, build, missing

ROW = Interaction("/", None, 1, 0, None, 1 << 20, 4, None, (0, 1, 2, 3))
LUSTRE_CREATE_S = 1e-3
"""Approximate time of a create with one stripe on an idle Lustre; more stripes take longer."""
BOUND = 0.01


def _nanoseconds(built: Built, work: Path, prefix: str, files: int, env: dict[str, str]) -> tuple[int, int]:
    """Elapsed and processor time per file."""
    done = subprocess.run(
        [built.calls, work, "timed", prefix, str(files)], env=env, capture_output=True, text=True, check=True
    )
    for path in work.iterdir():
        path.unlink()
    wall, busy = map(int, done.stdout.split())
    return wall, busy


def _start_ms(env: dict[str, str], repeats: int) -> float:
    """Median time in milliseconds of a program that creates no file."""
    import time  # noqa: PLC0415

    took = []
    for _ in range(repeats):
        begin = time.perf_counter()
        subprocess.run(["/bin/true"], env=env, check=True)
        took.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(took)


def measure(built: Built, place: Path, files: int, repeats: int, rows: int) -> None:
    """Print a table for one file system, and for a database of this many files."""
    with tempfile.TemporaryDirectory(prefix="vani-", dir=place) as name:
        work = Path(name) / "work"
        work.mkdir()
        database = Path(name) / "place.sqlite"
        inside = [f"{work}/in.{i}" for i in range(files)]
        others = [f"/lustre/run/file.{i}" for i in range(rows - files)]
        store([replace(ROW, file=one) for one in inside + others], str(database))
        bare = dict(os.environ)
        under = {k: v for k, v in built.environment(database, Path(), Path()).items() if k != "STANDIN_LOG"}
        under["VANI_PLACE_LOG"] = ""
        off = {**bare, "LD_PRELOAD": str(built.library)}
        cases = (
            ("without the library", "in", bare),
            ("loaded, no VANI_PLACE_DB", "in", off),
            ("file not in the database", "out", under),
            ("file in the database, placed", "in", under),
        )
        took: dict[str, list[tuple[int, int]]] = {label: [] for label, _, _ in cases}
        for _ in range(repeats):
            for label, prefix, env in cases:
                took[label].append(_nanoseconds(built, work, prefix, files, env))
        base = [busy for _, busy in took[cases[0][0]]]
        print(f"\n{place}: {files:,} files, database of {rows:,} files, {repeats} times in turn, us a file")
        print(
            f"{'':<30}{'clock':>8}{'quartiles':>18}{'processor':>11}{'added':>8}{'of 1 ms':>9}{'1 % from':>11}"
        )
        for label, both in took.items():
            low, middle, high = (one / 1e3 for one in statistics.quantiles([wall for wall, _ in both], n=4))
            busy = [one for _, one in both]
            # Differences of processor time between neighbouring measurements, which excludes other load on
            # the machine.
            more = statistics.median(one - other for one, other in zip(busy, base, strict=True)) / 1e9
            told = (
                f"{more * 1e6:>8.1f}{more / LUSTRE_CREATE_S:>9.2%}{more / BOUND * 1e6:>8.0f} us"
                if busy != base
                else ""
            )
            print(
                f"{label:<30}{middle:>8.1f}{low:>9.1f} -{high:>7.1f}{statistics.median(busy) / 1e3:>11.1f}{told}"
            )
        begun = [_start_ms(env, 40) for env in (bare, under)]
        print(f"a program that makes no file: {begun[0]:.2f} ms without, {begun[1]:.2f} ms with the library")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--memory", type=Path, default=Path("/dev/shm"), help="a folder in memory")
    parser.add_argument("--disk", type=Path, default=Path("/var/tmp"), help="a folder on a disk")
    parser.add_argument("--repeats", type=int, default=15)
    asked = parser.parse_args(arguments)
    if (why := missing()) is not None:
        print(f"not measured: {why}")
        return
    with tempfile.TemporaryDirectory(prefix="vani-") as name:
        built = build(Path(name))
        measure(built, asked.memory, 5000, asked.repeats, 10_000)
        measure(built, asked.memory, 5000, asked.repeats, 200_000)
        # A journal makes a file on a disk a hundred times as expensive.
        measure(built, asked.disk, 200, asked.repeats, 10_000)


if __name__ == "__main__":
    main()
