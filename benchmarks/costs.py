"""The cost of Vani's commands on this machine: speed next to the physical limit, and memory over time.

The limit is inflating the time stamps on one core, measured in the same run. Machines are noisy, so each round
measures the limit and the commands in turn, and the results are the ratios of processor time within a round.
Start-up is measured on a trace of 1,000 calls. Memory is that of the command and its child processes every 20 ms.
Nothing that is written identifies the machine or its user.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import statistics
import sys
import time
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from isal import isal_zlib

import vani
from benchmarks.processes import CommandRun, succeed
from tests.traces.trace_generator import Workload, generate_trace
from vani.engine.executor import available_processors
from vani.kernels.build import state
from vani.readers.open import open_trace
from vani.schema.profile import Profile

VANI = (sys.executable, "-m", "vani")

_READ, _PIECE = 1 << 18, 1 << 21
_LEAST_S = 0.5
"""Minimum time of repeated inflating, since the processor time clock is coarse."""
_FEW = 100_000
"""Number of calls below which a rate means nothing, even if repeated."""


def inflate_rate(trace: Path, library: Any) -> tuple[int, float] | str:
    """Inflate all time stamps of a trace on one core, in bounded memory.

    Parameters
    ----------
    library
        `zlib` or `isal.isal_zlib`.

    Returns
    -------
    tuple or str
        Calls, and seconds of processor time for them; or the reason why there is nothing to inflate.
    """
    reader = open_trace(trace)
    file = trace / "recorder.ts"
    if reader.tool != "recorder" or not file.is_file():
        return "this kind of trace has no file of time stamps to inflate"
    with file.open("rb") as source:
        sizes = [int.from_bytes(source.read(8), "little") for _ in range(reader.ranks)]
        if not any(sizes):
            return "the trace has no time stamps"
        inflated, seconds = 0, 0.0
        for size in sizes:
            if not size:
                continue
            head = source.read(18)
            # RFC 1950: a zlib stream begins with method 8, and its first two bytes are a multiple of 31.
            if head[16] & 15 != 8 or int.from_bytes(head[16:18], "big") % 31:
                return "the time stamps of this trace are not compressed"
            stream, left, packed = library.decompressobj(), size - 18, head[16:18]
            while packed and not stream.eof:
                began = time.process_time()
                inflated += len(stream.decompress(packed, _PIECE))
                seconds += time.process_time() - began
                packed = stream.unconsumed_tail
                if not packed:
                    packed = source.read(min(_READ, left))
                    left -= len(packed)
            source.seek(left, 1)
    return inflated // 8, seconds


def rates(trace: Path, folder: Path, *, rounds: int) -> dict[str, Any]:
    """Convert and profile a trace with the commands, and inflate its time stamps, `rounds` times.

    Returns
    -------
    dict
        `calls`; `kernels`: whether compiled ones are in use; `rounds`, one dict each: calls per second of processor
        time for inflating with `zlib` and `isal` (null, with a `note`, if there is nothing to inflate). For each
        command there are its calls per second of elapsed time, processor seconds of start-up (`convert_start_s`),
        and processor time relative to inflating with start-up (`convert_x_isal`) and without
        (`convert_work_x_isal`). `median` has the median of each.
    """
    calls = int(open_trace(trace).calls_per_rank().sum())
    small = folder / "rates-small"
    generate_trace(small, Workload(calls=1000, ranks=2, files=2))
    rows: list[dict[str, float | None]] = []
    note = ""
    for _ in range(rounds):
        limits = {name: inflated_rate(trace, library) for name, library in (("zlib", zlib), ("isal", isal_zlib))}
        note = next((why for why in limits.values() if isinstance(why, str)), "")
        row = {name: None if isinstance(rate, str) else rate for name, rate in limits.items()}
        for name in ("convert", "profile"):
            start, done = run_fresh(name, small, folder), run_fresh(name, trace, folder)
            row |= {name: calls / done.seconds, f"{name}_start_s": start.cpu_s}
            for limit in limits:
                rate = row[limit]
                for part, cpu_s in (("", done.cpu_s), ("_work", done.cpu_s - start.cpu_s)):
                    row[f"{name}{part}_x_{limit}"] = None if rate is None else cpu_s * rate / calls
        rows.append(row)
    shutil.rmtree(small)
    values = {name: [value for row in rows if (value := row[name]) is not None] for name in rows[0]}
    median = {name: statistics.median(listed) if listed else None for name, listed in values.items()}
    found = {"calls": calls, "kernels": state(), "rounds": rows, "median": median}
    return {**found, "note": note} if note else found


def inflated_rate(trace: Path, library: Any) -> float | str:
    """Calls per second of processor time for inflating their time stamps; or why there is nothing to inflate."""
    calls, seconds = 0, 0.0
    while seconds < _LEAST_S:
        once = inflate_rate(trace, library)
        if isinstance(once, str):
            return once
        calls, seconds = calls + once[0], seconds + max(once[1], 1e-6)
        if once[0] < _FEW:
            break
    return calls / seconds


def run_fresh(name: str, trace: Path, folder: Path) -> CommandRun:
    """Run `vani convert` or `vani profile` as users do, without leftovers of earlier runs; raises CommandError."""
    store, cache = folder / f"rates-{name}", folder / "rates-cache"
    arguments = [trace, store] if name == "convert" else [trace]
    try:
        return succeed([*VANI, name, *arguments, "-q"], environment={"VANI_CACHE": str(cache)})
    finally:
        for left in (store, cache):
            shutil.rmtree(left, ignore_errors=True)


def rates_as_text(found: dict[str, Any]) -> str:
    """A line per figure, with medians over all rounds."""
    median = found["median"]
    lines = [f"Rates, median of {len(found['rounds'])} rounds; kernels: {found['kernels']}"]
    for name, library in (("zlib", "zlib"), ("isal", "ISA-L")):
        if median[name] is not None:
            lines.append(f"  inflate with {library}: {median[name] / 1e6:,.1f} million calls/s of one core")
    for name in ("convert", "profile"):
        line = f"  vani {name}: {median[name] / 1e6:,.2f} million calls/s by the clock"
        if median[f"{name}_x_isal"] is not None:
            line += f", processor time {median[f'{name}_x_isal']:,.1f}x that of inflating with ISA-L"
            line += f", {median[f'{name}_work_x_isal']:,.1f}x without start-up"
        lines.append(f"{line}; start-up {median[f'{name}_start_s']:.2f} s of processor time")
    return "\n".join([*lines, *([f"  {found['note']}"] if "note" in found else [])])

_MAX_SAMPLES = 2000


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
    stride = -(-len(done.samples) // _MAX_SAMPLES) or 1
    stretches = [done.samples[i : i + stride] for i in range(0, len(done.samples), stride)]
    return {
        "seconds": done.seconds, "cpu_s": done.cpu_s, "peak_bytes": done.memory_bytes,
        "scheduler": scheduler or "threads", "bytes": [moved.read, moved.written],
        "records": sum(part.records for part in profile.traces),
        "samples": [max(stretch, key=lambda sample: sample[1]) for stretch in stretches],
    }  # fmt: skip


def memory_as_text(found: dict[str, Any]) -> str:
    """One line."""
    return (
        f"Memory of vani profile, {found['scheduler']}: {found['peak_bytes'] / 2**20:,.0f} MiB at the peak, "
        f"{found['seconds']:.2f} s by the clock, {found['cpu_s']:.2f} s of processor time"
    )

_PACKAGES = ("numpy", "pyarrow", "dask", "isal", "pydantic", "pyyaml")


def machine() -> dict[str, Any]:
    """Processor, cores, memory in bytes and system; null if the system does not report it."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_usable": available_processors(),
        "memory_bytes": _memory_bytes(),
        "system": f"{platform.system()} {platform.release()}",
        "load_1min": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def versions() -> dict[str, str | None]:
    """Versions of Vani, Python and the libraries that do the work; null for those that are not installed."""
    found: dict[str, str | None] = {"vani": vani.__version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _processor() -> str | None:
    try:
        model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        model = None
    return model[1].strip() if model else platform.processor() or None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
