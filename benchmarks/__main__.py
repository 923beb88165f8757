"""`python -m benchmarks`: what each stage costs, and how it grows, as a table and as JSON.

Every figure comes from one run on one machine; ratios within a run are what counts, machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.trace_generator import Workload, generate_trace
from vani.analyzers.characterise import Options, world_of
from vani.analyzers.passes import measure
from vani.engine import Engine
from vani.readers.open import open_trace
from vani.store.read import open_store
from vani.store.write import write_store

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces" / "v3-large-smallio-8r"


def inflate(trace: Path) -> tuple[float, int]:
    """Seconds to inflate all time stamps with zlib on one core (the floor of any reader), and calls inflated."""
    raw = (trace / "recorder.ts").read_bytes()
    ranks = int.from_bytes((trace / "recorder.mt").read_bytes()[:4], "little")
    sizes = np.frombuffer(raw[: 8 * ranks], "<u8")
    at, calls = 8 * ranks, 0
    began = time.perf_counter()
    for size in sizes.tolist():
        if size > 16:
            calls += len(zlib.decompress(raw[at + 16 : at + size])) // 8
        at += size
    return time.perf_counter() - began, calls


def stages(trace: Path) -> dict[str, float]:
    """Seconds of each stage of `vani profile` on this trace, in this process."""
    found: dict[str, float] = {}
    marks: dict[str, float] = {}

    def progress(stage: str, done: int, total: int) -> None:
        if done == total:
            marks[stage] = time.perf_counter()

    found["inflate (zlib, 1 core)"], calls = inflate(trace) if (trace / "recorder.ts").is_file() else (0.0, 0)
    began = time.perf_counter()
    reader = open_trace(trace)
    records = int(reader.calls_per_rank().sum())
    found["tables"] = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(progress=progress)
        began = time.perf_counter()
        write_store(
            reader, Path(folder) / "s", version="benchmark", run=lambda f, t: engine.map(f, t, stage="decode")
        )
        found["decode and write"] = time.perf_counter() - began
        store = open_store(Path(folder) / "s")
        world, contexts = world_of([store], ["app"], None)
        began = time.perf_counter()
        measure(world, [store], contexts, engine, list_files=Options().list_files)
        found["survey"] = marks["survey"] - began
        found["measure"] = marks["measure"] - marks["survey"]
        found["overlap"] = marks["overlap"] - marks["measure"]
    found["convert"] = found["tables"] + found["decode and write"]
    found["calls"] = records
    del calls
    return found


_LAUNCH = """
import resource, subprocess, sys, time
began = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(status, time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def whole(command: list[str]) -> tuple[float, float]:
    """Seconds and peak resident MiB of a command in a process of its own."""
    # Started from a small process: a child's peak counts what its parent had when it was forked.
    answer = subprocess.run([sys.executable, "-c", _LAUNCH, *command], capture_output=True, text=True, check=True)
    status, seconds, peak = answer.stdout.split()
    if int(status):
        raise SystemExit(f"failed: {' '.join(command)}")
    return float(seconds), float(peak) / 1024


def peers() -> list[str]:
    """Readers of other projects that are installed here."""
    return [name for name in ("recorder2parquet", "recorder2text") if shutil.which(name)]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--trace", type=Path, help="a Recorder trace; a generated one of 2 million calls by default"
    )
    parser.add_argument("--calls", type=float, default=2e6, help="size of the generated trace")
    parser.add_argument(
        "--scaling", action="store_true", help="also generate and profile traces of growing size"
    )
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vani-bench-") as folder:
        trace = options.trace or (_SHARED if _SHARED.is_dir() else None)
        if trace is None:
            trace = Path(folder) / "generated"
            generate_trace(
                trace, Workload(calls=int(options.calls), ranks=8, files=32, pattern="mixed", zlib_level=1)
            )
        result = {
            "machine": {
                "processor": platform.processor() or platform.machine(),
                "python": platform.python_version(),
            },
            "versions": {n: version(n) for n in ("numpy", "pyarrow", "dask", "isal")},
            "trace": trace.name,
            "stages": stages(trace),
            "peers": peers() or "none on PATH: recorder2parquet, recorder2text",
        }
        profile = [
            sys.executable,
            "-m",
            "vani",
            "profile",
            str(trace),
            "--store",
            str(Path(folder) / "p"),
            "-q",
        ]
        result["profile"] = dict(zip(("seconds", "peak_mib"), whole(profile), strict=True))
        result["again"] = dict(zip(("seconds", "peak_mib"), whole(profile), strict=True))
        result["quick"] = quick(Path(folder))
        result["help"] = dict(
            zip(("seconds", "peak_mib"), whole([sys.executable, "-m", "vani", "--help"]), strict=True)
        )
        if options.scaling:
            result["scaling"] = scaling(Path(folder))
    _print(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


def quick(folder: Path) -> dict[str, float]:
    """`vani profile --quick` of a billion calls in a grammar of ten thousand symbols, the command as a whole."""
    trace = folder / "billion"
    generate_trace(trace, Workload(calls=10**9, pattern="random", symbols=10_000, times=False))
    command = [sys.executable, "-m", "vani", "profile", "--quick", str(trace), "-q"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, peak = whole(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return {"calls": 1e9, "seconds": seconds, "user_seconds": user, "peak_mib": peak}


def scaling(folder: Path) -> list[dict[str, float]]:
    """Profile generated traces: more calls, more ranks, more files."""
    rows = []
    for calls, ranks, files in (
        (1e5, 8, 32),
        (1e6, 8, 32),
        (1e7, 8, 32),
        (1e6, 128, 32),
        (1e6, 1024, 32),
        (1e6, 8, 4096),
    ):
        trace = folder / f"c{calls:.0f}-r{ranks}-f{files}"
        generate_trace(
            trace, Workload(calls=int(calls), ranks=ranks, files=files, pattern="mixed", zlib_level=1)
        )
        command = [sys.executable, "-m", "vani", "profile", str(trace), "--store", str(folder / "s"), "-q"]
        seconds, peak = whole(command)
        rows.append({"calls": calls, "ranks": ranks, "files": files, "seconds": seconds, "peak_mib": peak})
        shutil.rmtree(trace)
        shutil.rmtree(folder / "s", ignore_errors=True)
    return rows


def _print(result: dict[str, object]) -> None:
    found: dict[str, float] = dict(result["stages"])  # type: ignore[arg-type]
    calls = found.pop("calls")
    print(f"{result['trace']}: {calls:,.0f} calls; {result['machine']} {result['versions']}")
    for name, seconds in found.items():
        print(f"  {name:<24} {seconds:8.3f} s  {calls / seconds / 1e6 if seconds else 0:8.2f} M calls/s")
    for name in ("profile", "again", "help"):
        one: dict[str, float] = result[name]  # type: ignore[assignment]
        rate = f"{calls / one['seconds'] / 1e6:8.2f} M calls/s" if name != "help" else ""
        print(f"  {'vani ' + name:<24} {one['seconds']:8.3f} s  {rate}  {one['peak_mib']:6.0f} MiB")
    one = result["quick"]  # type: ignore[assignment]
    print(
        f"  {'vani profile --quick':<24} {one['seconds']:8.3f} s  {one['user_seconds']:8.3f} s user  "
        f"{one['peak_mib']:6.0f} MiB ({one['calls']:,.0f} calls)"
    )
    for row in result.get("scaling", ()):  # type: ignore[union-attr]
        print("  " + ", ".join(f"{k} {v:,.6g}" for k, v in row.items()))
    print(f"  peers: {result['peers']}")


if __name__ == "__main__":
    main()
