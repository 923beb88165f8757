"""The closed loop: run slowly, advise, apply, run again, and compare the measured speed-up with the predicted one.

    python loop.py [FOLDER] [LATENCY_S] [BYTES_PER_S]

1. A folder is shown through `slow_file_system.py`, and Montage runs there (`workflow.py`).
2. `montage.profile.yaml`, the profile of a Recorder trace of the same workflow on another machine, is given this
   file system's times: operations of the trace x seconds per operation measured here, and this run's length.
3. `vani advise --script apply.sh` judges it; `sh apply.sh --job` prints the lines for the job, which are run.
4. Montage runs again. What apply.sh did is all that differs.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mounting
import workflow

import vani
from vani.schema.advice import Advice
from vani.schema.profile import Profile
from vani.schema.system import System

HERE = Path(__file__).parent
TRACED = "/lustre/scratch/proj/v3-workflow-montage"
PIECE, PIECES, BUFFER = 2880, 400, 4096
"""Montage moves blocks of FITS, 2880 bytes, through C's stdio, which asks the system for 4096 at a time."""

Costs = dict[str, float]


def impossible() -> str:
    """Why the loop cannot run here; empty where it can."""
    if reason := mounting.impossible():
        return reason
    if workflow.missing():
        return f"not installed: {', '.join(workflow.missing())} (Debian: apt install montage)"
    return ""


@contextmanager
def slow_folder(folder: Path, latency_s: float, bytes_per_s: float) -> Iterator[Path]:
    """Mount the slow file system below `folder` for a while."""
    mount, backing = folder / "slow", folder / "backing"
    mount.mkdir()
    backing.mkdir()
    with mounting.served(mount, "slow_file_system", str(backing), str(latency_s), str(bytes_per_s)):
        yield mount


def measure(folder: Path) -> Costs:
    """Seconds per operation by kind, with a file that is written, flushed, read and queried piece by piece."""
    path, piece = folder / "calibration", b"x" * PIECE

    def timed(work: Any) -> float:
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) / PIECES

    with path.open("wb", buffering=BUFFER) as file:
        write = timed(lambda: [file.write(piece) for _ in range(PIECES)])
        # fflush(), with which Montage ends a file, writes what is in the buffer, or nothing.
        sync = timed(lambda: [file.flush() for _ in range(PIECES)])
    with path.open("rb", buffering=BUFFER) as file:
        read = timed(lambda: [file.read(PIECE) for _ in range(PIECES)])
    metadata = timed(lambda: [os.stat(path) for _ in range(PIECES)])
    path.unlink()
    return {"read": read, "write": write, "metadata": metadata, "sync": sync}


def retimed(profile: Profile, folder: Path, costs: Costs, runtime_s: float) -> Profile:
    """The profile as it would be here: same operations, this folder's paths, this file system's times."""

    def io(stats: Any) -> Any:
        # Profiles of an older Vani count flushing as metadata.
        times = {kind: (getattr(stats.ops, kind) or 0) * cost for kind, cost in costs.items()}
        kinds = type(stats.time_s)(**times, total=sum(times.values()))
        return stats.model_copy(update={"time_s": kinds, "busy_s": kinds, "time_share": None, "calls": None})

    def here(entity: Any, **more: Any) -> Any:
        return entity.model_copy(update={"io": io(entity.io), **more})

    whole = io(profile.workflow.io).time_s.total
    apps = []
    for app in profile.apps:
        after = io(app.io).time_s.total
        apps.append(here(app, runtime_s=app.runtime_s - app.io.time_s.total + after, balance=None, io_time_share=None))
    files = [here(file, path=str(folder) + file.path.removeprefix(TRACED)) for file in profile.files]
    return profile.model_copy(
        update={
            "workflow": here(
                profile.workflow,
                runtime_s=runtime_s,
                # Its steps follow one another: the busy times add up.
                io_time_share=min(1.0, whole / runtime_s),
                io_time_share_slowest=None,
                library_time_s=None,
            ),
            "apps": apps,
            "phases": [],
            "dataset": here(profile.dataset),
            "files": sorted(files, key=lambda file: -file.io.time_s.total),
            "job": profile.job.model_copy(update={"nodes": 1}),
            "provenance": profile.provenance | {"workflow.io.time_s": "operations of the trace x seconds each here"},
        }
    )


def machine(mount: Path, near: Path, near_costs: Costs) -> System:
    """What is known of this machine: the slow mount, and a folder in memory whose rates were measured."""
    rates = {"read": PIECE / near_costs["read"], "write": PIECE / near_costs["write"]}
    memory = shutil.disk_usage(near).free
    return System.model_validate(
        {
            "name": "slow on purpose",
            "file_systems": [{"name": "slow", "type": "fuse", "mounts": [str(mount)]}],
            "burst_buffers": [
                {"name": "memory", "kind": "node_local", "type": "tmpfs", "dir": str(near), "uses_memory": True,
                 "capacity_per_node": memory, "bandwidth_per_node": rates},
            ],
        }
    )  # fmt: skip


def advised(folder: Path, profile: Profile, system: System) -> tuple[Advice, Path]:
    """Advice and apply.sh, by the command that a user types."""
    profile.save(folder / "profile.yaml")
    system.save(folder / "system.yaml")
    script, advice = folder / "apply.sh", folder / "advice.yaml"
    command = [sys.executable, "-m", "vani", "advise", "profile.yaml", "--system", "system.yaml", "--quiet"]
    command += ["--select", "MAT,BB", "--script", script.name, "-o", advice.name]
    # Works from a clone, too, where Vani is not installed.
    paths = os.pathsep.join([str(Path(vani.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": paths})
    return Advice.load(advice), script


@contextmanager
def shell_around(lines: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A job script that has run `lines`, and ends when its input does."""
    script = f"{lines}\necho ready\nread -r end || :"
    with subprocess.Popen(
        ["sh", "-eu", "-c", script], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as shell:
        if "ready\n" not in iter(shell.stdout.readline, ""):  # type: ignore[union-attr]
            raise SystemExit("the lines of apply.sh failed")
        yield shell


def loop(folder: Path, near: Path, latency_s: float, bytes_per_s: float) -> dict[str, float]:
    """The whole loop below `folder`; seconds of both runs and speed-ups."""
    profile = Profile.load(HERE / "montage.profile.yaml")
    with slow_folder(folder, latency_s, bytes_per_s) as mount:
        place = mount / "montage"
        place.mkdir()
        workflow.prepare(place, None, [])
        before_s = workflow.run(place)
        costs = measure(mount)
        found = retimed(profile, place, costs, before_s)
        advice, script = advised(folder, found, machine(mount, near, measure(near)))
        chosen = next(one for one in advice.recommendations if one.rule == "BB002")
        # Empty again, as it was before the first run; the rest is apply.sh's.
        for name in ("proj", "diff", "corr"):
            shutil.rmtree(place / name)
        lines = subprocess.run(["sh", script.name, "--job"], cwd=folder, capture_output=True, text=True, check=True)
        with shell_around(lines.stdout, folder) as shell:
            for name in ("proj", "diff", "corr"):
                (place / name).mkdir(exist_ok=True)
            moved = [name for name in ("proj", "diff", "corr") if (place / name).is_symlink()]
            after_s = workflow.run(place)
            # Bringing results back, when the script ends, is part of the price.
            copy = time.perf_counter()
            shell.communicate()
            after_s += time.perf_counter() - copy
        size = (place / "mosaic.fits").stat().st_size
    expected = chosen.expected

    def speedup(by: float | None) -> float:
        """Of the run, where what BB002 changes is faster by a factor; no number where none is promised."""
        if expected is None or not by:
            return math.nan
        before = expected.before or 0.0
        return before_s / (before_s - before + before / by)

    return {
        "before_s": before_s,
        "after_s": after_s,
        "measured": before_s / after_s,
        "predicted": speedup(expected and expected.speedup),
        "predicted_low": speedup(expected and expected.low),
        "predicted_high": speedup(expected and expected.high),
        "folders_moved": float(len(moved)),
        "mosaic_bytes": float(size),
    }


def main(arguments: list[str]) -> None:
    reason = impossible()
    if reason:
        raise SystemExit(f"the closed loop cannot run here: {reason}")
    latency_s, bytes_per_s = (float(arguments[1]), float(arguments[2])) if len(arguments) > 2 else (0.0005, 50e6)
    with (
        tempfile.TemporaryDirectory(prefix="vani-loop-", dir=arguments[0] if arguments else None) as folder,
        tempfile.TemporaryDirectory(prefix="vani-near-", dir="/dev/shm") as near,
    ):
        found = loop(Path(folder), Path(near), latency_s, bytes_per_s)
        print((Path(folder) / "apply.sh").read_text().partition("\nin_the_job() {")[2].partition("\n}\n")[0])
    print(f"first run   {found['before_s']:6.1f} s")
    print(f"second run  {found['after_s']:6.1f} s")
    print(f"measured    {found['measured']:6.2f} times as fast")
    if math.isnan(found["predicted"]):
        print("predicted   nothing: rates do not explain a file system that is slow by waiting")
        return
    low, high = found["predicted_low"], found["predicted_high"]
    print(f"predicted   {found['predicted']:6.2f} times as fast ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main(sys.argv[1:])
