"""Memory of `vani profile` over time: resident bytes of the command and its child processes every 20 ms."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.processes import succeed
from benchmarks.rates import VANI
from vani.schema.profile import Profile

_MOST_SAMPLES = 2000


def memory(trace: Path, folder: Path, *, scheduler: str | None = None) -> dict[str, Any]:
    """Profile a trace with the command, without an earlier store.

    Returns
    -------
    dict
        `seconds`, `cpu_s`, `peak_bytes` (all processes together), `records` and `bytes` (calls, and bytes read and
        written, according to the profile), `samples` ([seconds, bytes], at most 2,000: the maximum of each
        interval).
    """
    command = [*VANI, "profile", trace, "--store", folder / "memory-store", "-o", folder / "memory.yaml", "-q"]
    if scheduler is not None:
        command += ["--scheduler", scheduler]
    done = succeed(command)
    shutil.rmtree(folder / "memory-store")
    profile = Profile.load(folder / "memory.yaml")
    moved = profile.workflow.io.bytes
    stride = -(-len(done.samples) // _MOST_SAMPLES) or 1
    stretches = [done.samples[i : i + stride] for i in range(0, len(done.samples), stride)]
    return {
        "seconds": done.seconds,
        "cpu_s": done.cpu_s,
        "peak_bytes": done.memory_bytes,
        "scheduler": scheduler or "threads",
        "records": sum(part.records for part in profile.traces),
        "bytes": [moved.read, moved.written],
        "samples": [max(stretch, key=lambda sample: sample[1]) for stretch in stretches],
    }


def as_csv(found: dict[str, Any]) -> str:
    """Samples as a table of seconds and bytes."""
    return "\n".join(["seconds,bytes", *(f"{at:.3f},{size}" for at, size in found["samples"])]) + "\n"


def as_text(found: dict[str, Any]) -> str:
    """One line."""
    return (
        f"Memory of vani profile, {found['scheduler']}: {found['peak_bytes'] / 2**20:,.0f} MiB at the peak, "
        f"{found['seconds']:.2f} s by the clock, {found['cpu_s']:.2f} s of processor time"
    )
