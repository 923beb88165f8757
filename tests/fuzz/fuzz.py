"""`make fuzz FUZZ_SECONDS=600`: damage inputs at random for a time, and save those that Vani does not handle correctly.

Each processor has a worker that draws a seed from the corpus, damages it and lets `judge` run Vani's commands on
it. One attempt in eight is an undamaged program instead (`programs`), whose profile must agree with an independent
count. An input that reaches lines of Vani that no input of its worker reached before is damaged further in half of the
later attempts on its kind.

`SEED:NUMBER` identifies an attempt, `SEED:NUMBER/NUMBER` one that damages the input of another, and `--attempt` repeats
either. A worker that hangs, dies or takes too much memory is also a finding. Findings are saved in `tests/fuzz/corpus`,
and are tests from then on (`test_fuzz.py`). The names of inputs that reached new lines are saved in `build/fuzz.txt`,
and the next run begins with them.

Exit status: 0 nothing found, 1 something found.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import coverage

HERE = Path(__file__).resolve().parent
# Run as a script, this file has neither the repository nor the analyzers' tests on its path.
sys.path[1:1] = [str(HERE.parents[1]), str(HERE.parent), str(HERE.parent / "analyzers")]

from judge import MAX_MEMORY, MAX_SECONDS, Finding, findings  # noqa: E402
from mutations import damaged  # noqa: E402
from seeds import KINDS, seeds  # noqa: E402

CORPUS = HERE / "corpus"
REACHING = HERE.parents[1] / "build" / "fuzz.txt"
"""Names of inputs that reached lines of Vani first, one per line, the latest last."""
_MAX_REACHING = 5_000
_PROGRAMS_EVERY = 8
_MAX_DAMAGES = 20
"""Damages of an input on top of each other: a name beyond would take too long to repeat."""
_HANGS = 15 * MAX_SECONDS
"""Seconds by the clock of a worker, including those in which it waits for others that it started."""


def attempt(name: str, work: Path) -> tuple[str, list[Finding]]:
    """Make the input of one attempt in `work/input` and judge it; return its kind, and the faults."""
    kind = kind_of(name)
    if kind == "program":
        return kind, _program(random.Random(name), work)
    files, random_ = _input(name, kind, work.parent / "made")
    for place, content in files.items():
        (work / "input" / place).parent.mkdir(parents=True, exist_ok=True)
        (work / "input" / place).write_bytes(content)
    (work / "input").mkdir(exist_ok=True)
    return kind, findings(kind, work, random_)


def kind_of(name: str) -> str:
    """The kind of an attempt's input, which is that of the attempt whose input it damages."""
    first = name.partition("/")[0]
    if random.Random(first).randrange(_PROGRAMS_EVERY) == 0:
        return "program"
    # In a loop over formats, so that a short run damages each of them.
    return (*KINDS, "recorder", "recorder")[int(first.rpartition(":")[2]) % (len(KINDS) + 2)]


def _input(name: str, kind: str, made: Path) -> tuple[dict[str, bytes], random.Random]:
    """The files of an attempt, and the generator of its further choices."""
    before, _, _ = name.rpartition("/")
    random_ = random.Random(name)
    if before:
        files = _input(before, kind, made)[0]
    else:
        random_.randrange(_PROGRAMS_EVERY)
        files = random_.choice([one for one in seeds(made) if one.kind == kind]).files
    return damaged(kind, files, random_), random_


class _Reached:
    """The lines of Vani that attempts reached, and the names of those that reached some first, by kind."""

    def __init__(self, seed: str, first: int, earlier: Sequence[str]) -> None:
        self._lines: dict[str, set[int]] = {}
        self._names: dict[str, list[str]] = {}
        for name in earlier:
            self._names.setdefault(kind_of(name), []).append(name)
        self._seed, self._random = seed, random.Random(f"{seed} {first}")

    def next_name(self, number: int) -> str:
        """The name of the next attempt: on a seed, or on an input that reached new lines."""
        fresh = f"{self._seed}:{number}"
        names = self._names.get(kind_of(fresh))
        return f"{self._random.choice(names)}/{number}" if names and self._random.random() < 0.5 else fresh

    def attempt(self, name: str, work: Path) -> tuple[str, list[Finding], bool]:
        """Make an attempt; also returns whether it reached new lines."""
        measured = coverage.Coverage(data_file=None, config_file=False, source=[str(HERE.parents[1] / "vani")])
        measured.set_option("run:disable_warnings", ["no-data-collected", "module-not-measured", "already-imported"])
        measured.start()
        try:
            kind, found = attempt(name, work)
        finally:
            measured.stop()
        data, is_new = measured.get_data(), False
        for file in data.measured_files():
            known, lines = self._lines.setdefault(file, set()), set(data.lines(file) or ())
            is_new |= not lines <= known
            known |= lines
        if is_new and kind != "program" and name.count("/") < _MAX_DAMAGES:
            self._names.setdefault(kind, []).append(name)
            return kind, found, True
        return kind, found, False


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


def _work(seed: str, first: int, step: int, pipe: Connection, folder: Path, earlier: Sequence[str]) -> None:
    """One worker: makes attempts endlessly, and reports each before it starts and after it ends."""
    warnings.simplefilter("error")
    number, reached = first, _Reached(seed, first, earlier)
    while True:
        name = reached.next_name(number)
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        pipe.send(("begins", name, work))
        kind, found, is_new = reached.attempt(name, work)
        place = keep(name, kind, found, work) if found else None
        pipe.send(("ends", name, (kind, found, place, is_new)))
        number += step


class _Worker:
    def __init__(self, seed: str, number: int, step: int, folder: Path, reaching: Sequence[str]) -> None:
        self.number, self._step, self._seed, self._folder, self._reaching = number, step, seed, folder, reaching
        self.start(number)

    def start(self, first: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe(duplex=False)
        arguments = (self._seed, first, self._step, other, self._folder, tuple(self._reaching))
        self.process: BaseProcess = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other.close()
        self.doing: tuple[str, Path] | None = None
        self.since = self.clock()

    def clock(self) -> float:
        """Seconds, which stop while other programs have the processor that this process waits for."""
        try:
            waited_ns = int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[1])
        except (OSError, IndexError):
            waited_ns = 0
        return time.monotonic() - waited_ns / 1e9

    def restart(self) -> None:
        self.process.kill()
        self.process.join()
        last = int(re.split("[:/]", self.doing[0])[-1]) if self.doing else self.number
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
    reaching = REACHING.read_text().split() if REACHING.is_file() else []
    earlier = len(reaching)
    with tempfile.TemporaryDirectory(prefix="vani fuzz ") as folder:
        team = [_Worker(seed, number, workers, Path(folder) / str(number), reaching) for number in range(workers)]
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
                        one.since = one.clock()
                        if what == "begins":
                            one.doing = (name, told)
                        else:
                            kind, found, place, is_new = told
                            tried[kind] += 1
                            reaching += [name] if is_new else []
                            count += _tell(name, found, place)
                elif one.clock() - one.since > _HANGS and one.doing:
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
    REACHING.parent.mkdir(exist_ok=True)
    REACHING.write_text("".join(f"{name}\n" for name in dict.fromkeys(reaching[-_MAX_REACHING:])))
    kinds = ", ".join(f"{tried[kind]:,} {kind}" for kind in sorted(tried))
    spent = time.monotonic() - until + seconds
    print(
        f"seed {seed}: {sum(tried.values()):,} attempts in {spent:.0f} s ({kinds}); "
        f"{len(reaching) - earlier} reached new lines; {count} findings"
    )
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
