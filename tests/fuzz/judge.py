"""Runs Vani's commands on an input and reports faults in how they ended.

A correct end is exit status 0 (1 for `check`, `plan check` and `diff`), or 2 with no output and one line that
starts with the program's name, within 20 s of processor time and 1.5 GiB. `profile` must give the same bytes with
kernels and with numpy alone, and so must `profile` and `profile --quick` for an undamaged trace.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

from quick_differences import differences
from switched import numpy_alone

from vani.cli.main import _run as run_command
from vani.render.plots.catalogue import kinds as plots
from vani.schema.profile import Profile

__all__ = ["MAX_MEMORY", "MAX_SECONDS", "Finding", "findings"]

MAX_SECONDS = 20.0
MAX_MEMORY = 3 << 29
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Finding:
    """A fault of Vani: the command (paths below the input's folder) and what it did."""

    command: tuple[str, ...]
    what: str


def findings(kind: str, folder: Path, random_: random.Random) -> list[Finding]:
    """All faults of commands on the input in `folder/input`; they run and write in `folder`."""
    here = Path.cwd()
    os.chdir(folder)
    # Faults are raised, and inputs do not share a cache.
    os.environ |= {"VANI_TRACEBACK": "1", "VANI_CACHE": str(folder / "cache")}
    try:
        of_kind = {
            "document": _document, "plan": _plan, "model": _model, "results": _results, "centre": _centre,
            "tuned": _tuned,
        }.get(kind)  # fmt: skip
        return of_kind(random_) if of_kind is not None else _trace(kind, random_)
    finally:
        os.chdir(here)


def _trace(kind: str, random_: random.Random) -> list[Finding]:
    scheduler = random_.choice(("synchronous", "synchronous", "threads"))
    trace = {"darshan": "input/trace", "strace": "input/trace", "otf2": "input/traces.otf2"}.get(kind, "input")
    profile = ("profile", trace, "-q", "-o", "p.yaml", "--scheduler", scheduler)
    status, found = _command(*profile)
    if random_.random() < 0.3:
        found += _without_kernels(profile, status)
    if kind == "recorder" and random_.random() < 0.5:
        quick, faults = _command("profile", trace, "--quick", "-q", "-o", "q.yaml")
        found += faults
        if status == quick == 0:
            found += _disagreement()
    if status == 0 and random_.random() < 0.4:
        found += _document(random_, "p.yaml")
    if random_.random() < 0.1:
        found += _command("diff", trace, trace, "-o", "t.json")[1]
    if kind == "darshan" and random_.random() < 0.3:
        found += _command("history", "add", trace, "--database", "h.sqlite", "--judge", "0", "-q")[1]
    if random_.random() < 0.1:
        found += _command("convert", trace, "converted", "-q")[1]
    return found


def _without_kernels(profile: tuple[str, ...], status: int | None) -> list[Finding]:
    before = Path("p.yaml").read_bytes() if status == 0 else b""
    shutil.rmtree("cache", ignore_errors=True)
    with numpy_alone():
        again, found = _command(*profile)
    after = Path("p.yaml").read_bytes() if again == 0 else b""
    if (status, before) != (again, after):
        lines = zip(before.splitlines(), after.splitlines(), strict=False)
        differing = next(((a, b) for a, b in lines if a != b), (status, again))
        found.append(Finding(profile, f"kernels and numpy differ: {differing}"))
    return found


def _document(random_: random.Random, name: str = "input/p.yaml") -> list[Finding]:
    ways = [
        ("advise", name, "-q", "-o", "a.yaml"),
        ("advise", name, "-q", "-o", "a.yaml", "--system", "generic-lustre"),
        ("advise", name, "-q", "--script", "apply.sh"),
        ("report", name, "-q", "-o", random_.choice(("r.html", "r.html", "r.md", "r.txt"))),
        ("plot", random_.choice(sorted(plots())), name, "-q", "-o", "plot.svg"),
        ("plot", random_.choice(sorted(plots())), name, "-q", "-o", "plot.svg"),
        ("diff", name, name, name, "-o", random_.choice(("t.txt", "t.csv", "t.json"))),
        ("diff", name, name),
        ("check", name, "-q", "--save", "b.yaml"),
        ("check", name, "--format", random_.choice(("text", "json", "sarif", "junit"))),
    ]
    return _command(*random_.choice(ways))[1]


def _results(_: random.Random) -> list[Finding]:
    return _command("advise", "input", "--system", "generic-lustre", "-q", "-o", "a.yaml")[1]


def _centre(_: random.Random) -> list[Finding]:
    return _command("centre", "check", "--config", "input/centre.toml")[1]


def _tuned(_: random.Random) -> list[Finding]:
    return _command("tune", "--state", "input", "--show")[1]


def _model(random_: random.Random) -> list[Finding]:
    return _command("model", "fit", "input/writes.csv", "--scale", random_.choice(("bytes", "nodes")), "-o", "m.yaml")[1]


def _plan(random_: random.Random) -> list[Finding]:
    jobs, plan, now = "input/jobs.yaml", "input/plan.yaml", "input/now.yaml"
    forward = ("plan", "forward", jobs, "--io-nodes", random_.choice(("0", "1", "12")))
    ways = [
        (*forward, "--compare", "-o", "f.yaml"),
        (*forward, "--no-direct", "--objective", "max-min", "-o", "f.json"),
        (*forward, "--current", plan, "-o", "f.txt"),
        (*forward, "--replay", "--nodes", "96", "--poll", "10", "--compare", "-o", "f.yaml"),
        (*forward, "--replay", "--nodes", "96", "--no-direct", "-o", "f.txt"),
        ("plan", "check", plan, "--snapshot", now, "-o", "s.json"),
        ("plan", "check", plan, "--snapshot", now, "--max-age", "1e12", "-o", "s.txt"),
    ]
    return _command(*random_.choice(ways))[1]


def _disagreement() -> list[Finding]:
    full, quick = (Profile.load(Path(name)) for name in ("p.yaml", "q.yaml"))
    if any(t.problems or t.complete is False or t.repaired_times for p in (full, quick) for t in p.traces):
        return []
    return [
        Finding(("profile", "--quick"), f"{where} is {a!r}, without --quick {b!r}")
        for where, a, b in differences(quick, full)[:3]
    ]


def _command(*args: str) -> tuple[int | None, list[Finding]]:
    """Run one command; return its exit status (None: it raised), and its faults."""
    output = Path(args[args.index("-o") + 1]) if "-o" in args else None
    if output is not None:
        output.unlink(missing_ok=True)
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    _forget_peak()
    # What earlier tests of this process hold is not the command's.
    held, began = _memory("VmRSS"), time.process_time()
    status: int | None = None
    wrong = []
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = run_command(list(args))
    except BaseException:
        wrong.append(traceback.format_exc())
    took, peak = time.process_time() - began, _memory("VmHWM") - held
    said = err.getvalue()
    if took > MAX_SECONDS:
        wrong.append(f"took {took:.0f} s of processor time")
    if peak > MAX_MEMORY:
        wrong.append(f"took {peak >> 20} MiB")
    is_verdict = args[0] in ("check", "diff") or args[:2] in (("plan", "check"), ("centre", "check"))
    if status is not None and status not in ((0, 1, 2) if is_verdict else (0, 2)):
        wrong.append(f"ended with status {status}: {said[-500:]}")
    if status == 2:
        if (
            len(said.splitlines()) != 1
            or not said.startswith("vani: ")
            or not said.rstrip("\n").isprintable()
        ):
            wrong.append(f"does not say in one line what is wrong: {said[:500]!r}")
        if output is not None and output.exists():
            wrong.append(f"failed and left {output}")
    if "Traceback" in said:
        wrong.append(said[-2000:])
    return status, [Finding(args, one) for one in wrong]


def _forget_peak() -> None:
    with suppress(OSError):
        _CLEAR.write_text("5")


def _memory(kind: str) -> int:
    """Resident memory in bytes, now (VmRSS) or its peak since it was forgotten (VmHWM); 0 if unknown."""
    try:
        line = next(one for one in _STATUS.read_text().splitlines() if one.startswith(kind))
    except (OSError, StopIteration):
        return 0
    return int(line.split()[1]) * 1024
