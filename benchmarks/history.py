"""`python -m benchmarks.history`: how fast a history takes in logs and answers, as tables.

A month of logs is generated, and read by `vani history add --totals` with one process and with two, then again; a part
of its sound logs by `python -m darshan job_stats`, in the same run, since machines are noisy. Rates by processor time
are what one core does that has nothing else to do. The shared logs are read where `../shared/data` is there; `top` is
asked of 100,000 runs that are written into a history directly.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.processes import Run as Done
from benchmarks.processes import run, succeed
from tests.traces.darshan_month import generate_month
from vani.api import profile
from vani.database.runs import write
from vani.database.runs.connect import Store
from vani.database.runs.run import Run
from vani.errors import InputError

__all__ = ["main"]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
_VANI = (sys.executable, "-m", "vani", "history")
_OTHERS = 400
"""Logs that job_stats is given."""
_RUNS = 100_000


def main(args: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--logs",
        type=int,
        default=20_000,
        metavar="N",
        help="logs of the month; default 20,000: with few, the start of the processes decides",
    )
    asked = parser.parse_args(args)
    with tempfile.TemporaryDirectory(prefix="vani-history-") as folder:
        print("| step | logs | wall s | processor s | logs/s | logs/s of a core | peak MiB |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        _adding(Path(folder), asked.logs)
        _profiles(Path(folder))
        _asking(Path(folder))


def _adding(folder: Path, logs: int) -> None:
    month = generate_month(folder / "month", logs)
    bad = set(month.damaged)
    sound = [path for path in sorted(month.folder.rglob("*.darshan")) if path not in bad][:_OTHERS]
    listed = folder / "sound.txt"
    listed.write_text("".join(f"{path}\n" for path in sound))
    _row(
        "darshan job_stats",
        len(sound),
        [sys.executable, "-m", "darshan", "job_stats", "--log_paths_file", str(listed)],
    )
    add = ("add", str(month.folder), "--totals", "--judge", "0")
    one = _row(
        "add --totals --workers 1",
        month.files,
        [*_VANI, *add, "--workers", "1", "--database", f"{folder}/1.sqlite"],
    )
    two = _row(
        "add --totals --workers 2",
        month.files,
        [*_VANI, *add, "--workers", "2", "--database", f"{folder}/2.sqlite"],
    )
    _row("add again", month.files, [*_VANI, *add, "--workers", "1", "--database", f"{folder}/1.sqlite"])
    shared = list(SHARED.rglob("*.darshan")) if SHARED.is_dir() else []
    if shared:
        words = (
            "add",
            str(SHARED),
            "--totals",
            "--judge",
            "0",
            "--workers",
            "1",
            "--database",
            f"{folder}/s.sqlite",
        )
        _row("add --totals, shared logs", len(shared), [*_VANI, *words])
    print(
        f"\ntwo processes are {one.seconds / two.seconds:.2f} times as fast as one; they take "
        f"{two.cpu_s / one.cpu_s:.2f} times its processor time, so that two idle cores allow "
        f"{2 * one.cpu_s / two.cpu_s:.2f} at most\n"
    )


def _row(what: str, logs: int, command: Sequence[str]) -> Done:
    """Run a command, print its row, and return how it went."""
    done = run(command)
    if done.outcome != "done":
        print(f"| {what} | {logs:,} | {done.outcome}: {done.last_line} |")
        return done
    cpu, peak = done.cpu_s, done.memory_bytes
    print(
        f"| {what} | {logs:,} | {done.seconds:.2f} | {cpu:.2f} | {logs / done.seconds:,.0f} | {logs / cpu:,.0f} | "
        f"{peak / 2**20:,.0f} |"
    )
    return done


def _profiles(folder: Path) -> None:
    """Whole profiles of logs without DXT, after start-up."""
    logs = sorted((folder / "month").rglob("u20001_heat3d*.darshan"))[:21]
    times = []
    for path in logs:
        began = time.perf_counter()
        try:
            profile(path)
        except InputError:  # a damaged one has no profile
            continue
        times.append(time.perf_counter() - began)
    if times:
        print(
            f"a whole profile of a log: {1000 * statistics.median(times[1:]):.1f} ms (median of {len(times) - 1})"
        )


def _asking(folder: Path) -> None:
    db = folder / "many.sqlite"
    random = np.random.default_rng(1)
    with Store(db).writing(make=True) as connection:
        for start in range(0, _RUNS, 10_000):
            write.add_runs(connection, [_any_run(random, number) for number in range(start, start + 10_000)])
    for words in (
        ("top",),
        ("top", "--since", "2026-11", "--until", "2026-11"),
        ("top", "--by", "category"),
        ("show", "app7"),
    ):
        done = succeed([*_VANI, *words, "--database", str(db)])
        times = f"{done.seconds:.2f} s, {done.cpu_s:.2f} s of a processor"
        print(f"`{' '.join(words)}` over {_RUNS:,} runs: {times}, with start-up")


def _any_run(random: np.random.Generator, number: int) -> Run:
    seconds = float(random.lognormal(3.0, 1.0))
    processes = int(2 ** random.integers(0, 10))
    return Run(
        digest=f"{number:064x}",
        kind="darshan",
        user=f"u{random.integers(200)}",
        uid=1,
        application=f"app{random.integers(20)}",
        processes=processes,
        submitted=1_788_220_800 + float(random.uniform(0, 120 * 86400)),
        runtime_s=10 * seconds,
        bytes_read=1,
        bytes_written=1,
        reads=1,
        writes=1,
        opens=1,
        metadata=1,
        collective=0,
        independent=0,
        files=1,
        shared_files=0,
        read_s=seconds,
        write_s=seconds,
        metadata_s=0.0,
        in_io_s=2 * seconds,
        slowest_s=seconds,
        waiting_s=processes * seconds,
        writers=1,
        file_system="lustre",
        mount="/scratch",
        stripes=1,
        complete=True,
    )


if __name__ == "__main__":
    main()
