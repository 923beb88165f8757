"""`python -m benchmarks.plan_run_time`: what the prolog of a job costs, alone and a hundred at once, and the collector.

Every prolog is a process of its own, as Slurm begins it. The scripts are those of `templates/slurm`.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from vani.collect.load_channel import LoadMessage, pack
from vani.collect.load_listener import Listener
from vani.collect.load_publisher import Publisher
from vani.schema.snapshot import Server, Snapshot, Target

ROOT = Path(__file__).resolve().parents[1]
RUNNING, POOL, AT_ONCE, REPEATS, PUBLISHERS = 200, 256, 100, 15, 100


def slurm(number: int) -> dict[str, str]:
    """What Slurm tells the prolog of a job; every fourth job is of a name of which nothing is known."""
    return {
        "SLURM_JOB_ID": str(number),
        "SLURM_JOB_NAME": f"app{number % 4}",
        "SLURM_JOB_USER": "ada",
        "SLURM_JOB_NODELIST": f"n[{number * 32}-{number * 32 + 31}]",
        "SLURM_JOB_NUM_NODES": "32",
        "PYTHONPATH": str(ROOT),
        "PATH": os.environ["PATH"],
    }


def known(folder: Path) -> Path:
    """Curves of three applications."""
    folder.mkdir()
    for app in range(3):
        curve = [{"io_nodes": n, "bandwidth": 1e8 * (1 + n) ** (0.3 + app / 4)} for n in (0, 1, 2, 4, 8)]
        jobs = [{"name": f"app{app}", "nodes": 32, "processes": 1024, "curve": curve}]
        (folder / f"app{app}.yaml").write_text(json.dumps({"schema": "vani.jobs/1", "jobs": jobs}))
    return folder


def command(state: Path, folder: Path, *more: str, budget: str = "2s") -> list[str]:
    return [
        sys.executable, "-m", "vani", "plan", "job", "--state", str(state), "--budget", budget, "--io-nodes", str(POOL),
        "--known", str(folder), *more,
    ]  # fmt: skip


def timed(what: Sequence[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Wall and CPU seconds of a process, and what it said."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(what, env=environment, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr.strip()


def filled(state: Path, folder: Path) -> None:
    """Let 200 jobs run: all but the last are registered as the script does it, and planned by the last one's prolog."""
    (state / "jobs").mkdir(parents=True)
    for number in range(1, RUNNING):
        told = "".join(f"{key}={value}\0" for key, value in slurm(number).items())
        (state / "jobs" / str(number)).write_text(told)
    timed(command(state, folder, budget="60s"), slurm(RUNNING))


def alone(folder: Path, state: Path) -> None:
    shapes = {
        "a job begins": lambda n: (command(state, folder), slurm(RUNNING + 1 + n)),
        "a job ends": lambda n: (command(state, folder, "--end"), slurm(RUNNING + 1 + n)),
        "its plan was made by another": lambda _: (command(state, folder), slurm(1)),
    }
    print(f"`vani plan job`, {RUNNING} jobs running, pool of {POOL}; medians of {REPEATS}\n")
    print("| | wall, ms | slowest, ms | CPU, ms |\n| --- | ---: | ---: | ---: |")
    for name, make in shapes.items():
        took = [timed(*make(number))[:2] for number in range(REPEATS)]
        wall, cpu = (statistics.median(one) * 1e3 for one in zip(*took, strict=True))
        print(f"| {name} | {wall:.0f} | {max(one for one, _ in took) * 1e3:.0f} | {cpu:.0f} |")
    wall, cpu, _ = timed([sys.executable, "-c", "pass"], slurm(1))
    print(f"| (Python alone) | {wall * 1e3:.0f} | | {cpu * 1e3:.0f} |\n")


def at_once(what: Sequence[str], state: Path, name: str) -> None:
    """Begin a hundred prologs together."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    numbers = range(5000, 5000 + AT_ONCE)
    walls: dict[int, float] = {}

    def wait(number: int, one: subprocess.Popen[bytes], since: float) -> None:
        one.wait()
        walls[number] = time.perf_counter() - since

    waiting = []
    for number in numbers:
        since = time.perf_counter()
        one = subprocess.Popen(what, env=slurm(number), stderr=subprocess.DEVNULL)
        waiting.append((one, threading.Thread(target=wait, args=(number, one, since))))
        waiting[-1][1].start()
    for _, thread in waiting:
        thread.join()
    whole, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    time.sleep(0.5)  # Jobs are registered with nobody waiting where the budget is used up.
    registered = sum((state / "jobs" / str(number)).exists() for number in numbers)
    planned = sum((state / f"{number}.env").exists() for number in numbers)
    statuses = {one.returncode for one, _ in waiting}
    print(
        f"| {name} | {whole:.2f} | {max(walls.values()):.2f} | {cpu / AT_ONCE * 1e3:.0f} | {registered} | {planned} | "
        f"{', '.join(map(str, sorted(statuses)))} |"
    )


def bursts(folder: Path, place: Path) -> None:
    print(f"{AT_ONCE} jobs begin at once on {os.cpu_count()} cores, none running before\n")
    print("| | all, s | slowest, s | CPU each, ms | registered | planned | status |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    scripts = place / "scripts"
    shutil.copytree(ROOT / "templates" / "slurm", scripts)
    (place / "vani").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m vani "$@"\n')
    (place / "vani").chmod(0o755)
    (scripts / "vani.conf").write_text(
        f"VANI={place}/vani\nVANI_STATE={place}/s0\nVANI_BUDGET=2\nVANI_OPTIONS='--io-nodes {POOL} --known {folder}'\n"
    )
    (place / "s0").mkdir()
    at_once([str(scripts / "prolog-slurmctld")], place / "s0", "templates/slurm/prolog-slurmctld, 2 s")
    at_once(command(place / "s1", folder), place / "s1", "`vani plan job --budget 2s`, without the script")
    at_once(
        command(place / "s2", folder, budget="20s"),
        place / "s2",
        "`vani plan job --budget 20s`, without the script",
    )
    print()


def collector() -> None:
    names = [f"oss{number}" for number in range(PUBLISHERS)]
    with Listener("tcp://127.0.0.1:*", names) as listener, ExitStack() as until:
        publishers = [
            until.enter_context(closing(Publisher(listener.endpoint, name, "oss", 60.0))) for name in names
        ]
        listener.hear(0.5)
        states = [
            Snapshot(
                oss=[Server(name=name, cpu=0.5, memory=0.5)],
                ost=[Target(index=10 * n + k, oss=name, size=1 << 40, used=1 << 39) for k in range(10)],
            )
            for n, name in enumerate(names)
        ]
        begin, cpu = time.perf_counter(), time.process_time()
        for one, state in zip(publishers, states, strict=True):
            one.send(state)
        listener.hear(30.0, until=lambda: listener.heard.has_all)
        heard, cpu = time.perf_counter() - begin, time.process_time() - cpu
        begin = time.perf_counter()
        text = listener.snapshot().to_yaml()
        written = time.perf_counter() - begin
        message = LoadMessage(
            publisher="oss0", run="0" * 16, number=0, interval_s=60.0, role="oss", snapshot=states[0]
        )
        print(f"{PUBLISHERS} publishers of 10 targets on one host\n")
        size = len(pack(message))
        print(
            f"- sent, heard and checked in {heard * 1e3:.0f} ms ({cpu * 1e3:.0f} ms of CPU), {size:,} bytes each"
        )
        print(f"- written as a snapshot of {len(text):,} bytes in {written * 1e3:.0f} ms")
        print(
            f"- lost {listener.heard.lost}, late {listener.heard.late}, left out {listener.heard.malformed}"
        )


def main() -> None:
    """Print every table."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = known(place / "known")
        filled(place / "state", folder)
        alone(folder, place / "state")
        bursts(folder, place)
    collector()


if __name__ == "__main__":
    main()
