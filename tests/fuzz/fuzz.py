"""`make fuzz FUZZ_SECONDS=600`: damage inputs at random for a time, and save those that Vani does not handle correctly.

Each processor has a worker that draws a seed from the corpus, damages it and lets `judge` run Vani's commands on
it. One attempt in eight is an undamaged program instead (`programs`), whose profile must agree with an independent
count. `SEED:NUMBER` identifies an attempt, and `--attempt SEED:NUMBER` repeats it. A worker that hangs, dies or
takes too much memory is also a finding. Findings are saved in `tests/fuzz/corpus`, and are tests from then on
(`test_corpus.py`).

Exit status: 0 nothing found, 1 something found.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Run as a script, this file has neither the repository nor the analyzers' tests on its path.
sys.path[1:1] = [str(HERE.parents[1]), str(HERE.parent), str(HERE.parent / "analyzers")]

from judge import MAX_MEMORY, MAX_SECONDS, Finding, findings  # noqa: E402
from mutations import damaged  # noqa: E402
from seeds import KINDS, seeds  # noqa: E402

CORPUS = HERE / "corpus"
_PROGRAMS_EVERY = 8
_HANGS = 15 * MAX_SECONDS
"""Elapsed seconds, on a machine that does other things as well."""


def attempt(name: str, work: Path) -> tuple[str, list[Finding]]:
    """Make the input of one attempt in `work/input` and judge it; return its kind, and the faults."""
    random_ = random.Random(name)
    if random_.randrange(_PROGRAMS_EVERY) == 0:
        return "program", _program(random_, work)
    # In a loop over formats, so that a short run damages each of them.
    kind = (*KINDS, "recorder", "recorder")[int(name.rpartition(":")[2]) % (len(KINDS) + 2)]
    seed = random_.choice([one for one in seeds(work.parent / "made") if one.kind == kind])
    files = damaged(kind, seed.files, random_)
    for place, content in files.items():
        (work / "input" / place).parent.mkdir(parents=True, exist_ok=True)
        (work / "input" / place).write_bytes(content)
    (work / "input").mkdir(exist_ok=True)
    return kind, findings(kind, work, random_)


def _program(random_: random.Random, work: Path) -> list[Finding]:
    from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: PLC0415 - not for all attempts
    from programs import programs  # noqa: PLC0415

    import vani  # noqa: PLC0415
    from vani.errors import VaniError  # noqa: PLC0415

    os.environ["VANI_CACHE"] = str(work / "cache")

    @seed(random_.randrange(2**32))
    @settings(
        max_examples=20,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(program=programs())
    def agrees(program: Any) -> None:
        shutil.rmtree(work / "input", ignore_errors=True)
        program.write(work / "input")
        for options in ({}, {"quick": True}):
            try:
                profile = vani.profile(work / "input", **options)
            except VaniError:
                assert any(not 0 <= size < 2**53 for _, size in program.moved), "a sound run is refused"
                continue
            differs = program.differs(profile)
            assert differs is None, (options, differs)

    try:
        agrees()
    except Exception as error:
        return [Finding(("profile", "input"), f"{type(error).__name__}: {error}")]
    return []


def keep(name: str, kind: str, found: list[Finding], work: Path) -> Path:
    """Save an input with its faults in the corpus."""
    digest = hashlib.sha256()
    for file in sorted((work / "input").rglob("*")):
        if file.is_file():
            digest.update(file.relative_to(work).as_posix().encode() + b"\0" + file.read_bytes())
    place = CORPUS / f"{kind}-{digest.hexdigest()[:12]}"
    if not place.exists():
        shutil.copytree(work / "input", place / "input")
        told = {
            "kind": kind,
            "attempt": name,
            # Only the last line; those above name folders of this machine.
            "found": [{"command": f.command, "what": f.what.strip().splitlines()[-1]} for f in found],
        }
        (place / "found.json").write_text(json.dumps(told, indent=1) + "\n")
    return place


def _work(seed: str, first: int, step: int, pipe: Connection, folder: Path) -> None:
    """One worker: makes attempts endlessly, and reports each before it starts and after it ends."""
    warnings.simplefilter("error")
    number = first
    while True:
        name = f"{seed}:{number}"
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        pipe.send(("begins", name, work))
        kind, found = attempt(name, work)
        place = keep(name, kind, found, work) if found else None
        pipe.send(("ends", name, (kind, found, place)))
        number += step


class _Worker:
    def __init__(self, seed: str, number: int, step: int, folder: Path) -> None:
        self.number, self._step, self._seed, self._folder = number, step, seed, folder
        self.start(number)

    def start(self, first: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe(duplex=False)
        target = (self._seed, first, self._step, other, self._folder)
        self.process: BaseProcess = context.Process(target=_work, args=target, daemon=True)
        self.process.start()
        other.close()
        self.doing: tuple[str, Path] | None = None
        self.since = time.monotonic()

    def restart(self) -> None:
        self.process.kill()
        self.process.join()
        last = int(self.doing[0].rpartition(":")[2]) if self.doing else self.number
        self.start(last + self._step)

    def resident(self) -> int:
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")


def fuzz(seconds: float, seed: str, workers: int, most: int | None = None) -> int:
    """Damage inputs for this time, or `most` of them; print findings, and return their number."""
    until = time.monotonic() + seconds
    tried: Counter[str] = Counter()
    count = 0
    with tempfile.TemporaryDirectory(prefix="vani fuzz ") as folder:
        team = [_Worker(seed, number, workers, Path(folder) / str(number)) for number in range(workers)]
        while time.monotonic() < until and (most is None or sum(tried.values()) < most):
            ready = wait([one.pipe for one in team], timeout=0.2)
            for one in team:
                lost = None
                if one.pipe in ready:
                    try:
                        what, name, told = one.pipe.recv()
                    except EOFError:
                        lost = f"the process ended (status {one.process.exitcode})"
                    else:
                        one.since = time.monotonic()
                        if what == "begins":
                            one.doing = (name, told)
                        else:
                            kind, found, place = told
                            tried[kind] += 1
                            count += _tell(name, found, place)
                elif time.monotonic() - one.since > _HANGS and one.doing:
                    lost = f"hangs for {_HANGS:.0f} s"
                elif one.resident() > 2 * MAX_MEMORY:
                    lost = f"takes {one.resident() >> 20} MiB"
                if lost is not None:
                    if one.doing:
                        name, work = one.doing
                        found = [Finding(("profile", "input"), lost)]
                        count += _tell(name, found, keep(name, "lost", found, work))
                    one.restart()
        for one in team:
            one.process.kill()
            one.process.join()
    kinds = ", ".join(f"{tried[kind]:,} {kind}" for kind in sorted(tried))
    spent = time.monotonic() - until + seconds
    print(f"seed {seed}: {sum(tried.values()):,} attempts in {spent:.0f} s ({kinds}); {count} findings")
    return count


def _tell(name: str, found: list[Finding], place: Path | None) -> int:
    for one in found:
        print(f"{name}: vani {' '.join(one.command)}\n  {one.what.strip()}\n  kept in {place}", flush=True)
    return len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long; default %(default)s")
    parser.add_argument("--most", type=int, help="how many attempts, where time allows; default: no limit")
    parser.add_argument("--seed", default=None, help="repeats a run; by default another one each time")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--attempt", metavar="SEED:NUMBER", help="one attempt alone, in this process")
    arguments = parser.parse_args()
    if arguments.attempt:
        with tempfile.TemporaryDirectory(prefix="vani fuzz ") as folder:
            work = Path(folder) / "0" / "work"
            work.mkdir(parents=True)
            kind, found = attempt(arguments.attempt, work)
            sys.exit(
                _tell(arguments.attempt, found, keep(arguments.attempt, kind, found, work) if found else None)
                > 0
            )
    seed = arguments.seed or str(random.SystemRandom().randrange(10**9))
    sys.exit(fuzz(arguments.seconds, seed, arguments.workers, arguments.most) > 0)


if __name__ == "__main__":
    main()
