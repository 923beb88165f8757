"""`vani tune` on the stand-in of `examples/closed-loop`: eight programs on three machines, beside an exhaustive sweep.

`python -m benchmarks.tune [--machine NAME] [--kind NAME] [--json FILE] [--seed N]`

Each program is run under

- every setting of a grid: stripe counts of 1, 2, 4 to all targets in stripes of 1, 4 and 16 MiB; of collective calls
  those of 4 MiB also with collective buffering switched off, and with 1, 2 and 4 aggregators; and what `vani tune`
  tries;
- advice alone: the first value of each recommended knob, all together;
- `vani tune` with five runs, by the profile of a traced run (`profiles.json.gz`);
- random search with five runs, as it is and four settings of the grid: the median of a thousand draws. It is judged by
  the same run of the sweep by which it chooses, which flatters it.

As it is, advice alone, what `vani tune` ended with, and the three best settings of the sweep are then run again in
turn; shares of the best are of the medians of these runs. The stand-in is no Lustre: its figures say nothing about one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vani.demo.striped_model import MACHINES
from vani.schema.tuned import Tuned
from vani.tune.trial import empty

EXAMPLE: Final = Path(__file__).resolve().parents[1] / "examples" / "closed-loop"
sys.path.insert(0, str(EXAMPLE))

import stand_in  # noqa: E402 - an example, in no package

__all__ = ["main"]

GOAL: Final = 0.95
RUNS: Final = 5
SIZES: Final = (1, 4, 16)
SWITCHES: Final[tuple[dict[str, str], ...]] = (
    {}, {"romio_cb_write": "disable"}, {"cb_nodes": "1"}, {"cb_nodes": "2"}, {"cb_nodes": "4"},
)  # fmt: skip
DRAWS: Final = 1000


@dataclass(frozen=True)
class Setting:
    """Options of `lfs setstripe`, None for as it is, and hints of MPI-IO."""

    layout: str | None = None
    hints: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.layout or "", *map(" ".join, self.hints)])) or "as it is"

    @staticmethod
    def from_text(text: str) -> Setting:
        words = [] if text == "as it is" else text.split(", ")
        layout = words.pop(0) if words and words[0].startswith("-") else None
        return Setting(layout, tuple((name, value) for name, value in map(str.split, words)))


AS_IT_IS: Final = Setting()


@dataclass
class Case:
    """A program on a machine: seconds by setting, and what became of each way to choose one."""

    machine: str
    kind: str
    verdict: str
    runs: int
    tuned: Setting
    advised: Setting
    swept: dict[Setting, float] = field(default_factory=dict)
    repeated: dict[Setting, list[float]] = field(default_factory=dict)
    random_share: float = 0.0

    def seconds(self, setting: Setting) -> float:
        return statistics.median(self.repeated[setting])

    @property
    def best(self) -> Setting:
        return min(self.repeated, key=self.seconds)

    def share(self, setting: Setting) -> float:
        return self.seconds(self.best) / self.seconds(setting)

    @property
    def noise(self) -> float:
        """Half the range of repeated runs as it is, relative to their median."""
        times = self.repeated[AS_IT_IS]
        return (max(times) - min(times)) / 2 / statistics.median(times)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` takes."""
        own = {
            "machine": self.machine, "kind": self.kind, "verdict": self.verdict, "runs": self.runs,
            "tuned": str(self.tuned), "advised": str(self.advised), "random_share": self.random_share,
        }  # fmt: skip
        swept = {str(setting): seconds for setting, seconds in self.swept.items()}
        return own | {
            "swept": swept,
            "repeated": {str(setting): times for setting, times in self.repeated.items()},
        }

    @staticmethod
    def from_json(tree: dict[str, Any]) -> Case:
        settings = {name: Setting.from_text(name) for name in [*tree["swept"], *tree["repeated"]]}
        return Case(
            **tree
            | {name: settings[tree[name]] for name in ("tuned", "advised")}
            | {
                name: {settings[key]: value for key, value in tree[name].items()}
                for name in ("swept", "repeated")
            }
        )


class Bench:
    """Runs programs on a mounted stand-in."""

    def __init__(self, machine: str, mount: Path, folder: Path, seed: int, repeats: int) -> None:
        self.machine, self.mount, self.folder, self.repeats = machine, mount, folder, repeats
        self.random = random.Random(seed)
        self.data = mount / "run"
        self.data.mkdir(exist_ok=True)

    def case(self, kind: str) -> Case:
        """Everything about one program."""
        tuned = self._tune(kind)
        result = tuned.result
        assert result is not None
        first = {item.rule: number for number, item in reversed(list(enumerate(tuned.candidates)))}
        kept = result.candidates if result.verdict == "proven" else []
        case = Case(
            self.machine,
            kind,
            result.verdict,
            len(tuned.runs),
            _setting(tuned, kept),
            _setting(tuned, sorted(first.values())),
        )
        alone = [_setting(tuned, [number]) for number in range(len(tuned.candidates))]
        grid = [*dict.fromkeys([*_grid(self.machine, kind), *alone, case.tuned, case.advised])]
        self.random.shuffle(grid)
        for setting in grid:
            case.swept[setting] = self._seconds(kind, setting)
        ranked = sorted(grid, key=lambda setting: case.swept[setting])
        chosen = [*dict.fromkeys([AS_IT_IS, case.advised, case.tuned, *ranked[:3]])]
        case.repeated = {setting: [] for setting in chosen}
        for _ in range(self.repeats):
            for setting in chosen:
                case.repeated[setting].append(self._seconds(kind, setting))
        case.random_share = self._random_share(case.swept)
        return case

    def _tune(self, kind: str) -> Tuned:
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            (folder / "programs").symlink_to(self.folder / "programs")
            done = stand_in.tune(self.machine, kind, self.mount, folder, "--budget", str(RUNS))
            if done.returncode:
                raise SystemExit(f"vani tune: {done.stderr}{done.stdout}")
            print(done.stdout, file=sys.stderr, flush=True)
            return Tuned.load(folder / "vani-tune-state" / "tuned.yaml")

    def _seconds(self, kind: str, setting: Setting) -> float:
        environment = stand_in.environment()
        if setting.layout is not None:
            line = ["lfs", "setstripe", *shlex.split(setting.layout), str(self.data)]
            subprocess.run(line, env=environment, check=True)
        if setting.hints:
            file = self.folder / "hints"
            file.write_text("".join(f"{name} {value}\n" for name, value in setting.hints))
            environment["ROMIO_HINTS"] = str(file)
        command = stand_in.command(self.folder / "programs", kind, str(self.data))
        begin = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        seconds = time.perf_counter() - begin
        empty(self.data)
        if setting.layout is not None:
            subprocess.run(["lfs", "setstripe", "-d", str(self.data)], env=environment, check=True)
        return seconds

    def _random_share(self, swept: dict[Setting, float]) -> float:
        others, best = [time for setting, time in swept.items() if setting != AS_IT_IS], min(swept.values())
        draws = [
            best / min(swept[AS_IT_IS], *self.random.sample(others, min(RUNS - 1, len(others))))
            for _ in range(DRAWS)
        ]
        return statistics.median(draws)


def _grid(machine: str, kind: str) -> Iterator[Setting]:
    yield AS_IT_IS
    counts, count = [], 1
    while count <= MACHINES[machine].targets:
        counts.append(count)
        count *= 2
    for hints in SWITCHES if kind == "strided-collective" else SWITCHES[:1]:
        # Under names of four nodes `*:1`, the default, is an aggregator for each process.
        yield Setting(None, tuple(hints.items()))
        for count in counts:
            for size in SIZES[1:2] if hints else SIZES:
                yield Setting(f"-c {count} -S {size}M", tuple(hints.items()))


def _setting(tuned: Tuned, candidates: Sequence[int]) -> Setting:
    setting = tuned.setting(list(candidates))
    return Setting(setting.layout, tuple(setting.hints.items()))


def _table(cases: Sequence[Case]) -> str:
    lines = [
        "| machine | program | as it is | best of the sweep | advice alone | random | `vani tune` | runs | verdict |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for case in cases:
        shares = [case.share(case.advised), case.random_share, case.share(case.tuned)]
        cells = [f"{100 * share:.0f} %" for share in shares]
        verdict = case.verdict.replace("_", " ") if case.runs > 1 else "nothing tried"
        if case.tuned != AS_IT_IS:
            verdict += f": {case.tuned}"
        times = [f"{case.seconds(AS_IT_IS):.2f} s", f"{case.seconds(case.best):.2f} s, {case.best}"]
        lines.append(f"| {' | '.join([case.machine, case.kind, *times, *cells, str(case.runs), verdict])} |")
    return "\n".join(lines)


def _summary(cases: Sequence[Case]) -> str:
    ways = {
        "as it is": [case.share(AS_IT_IS) for case in cases],
        "advice alone": [case.share(case.advised) for case in cases],
        "random search": [case.random_share for case in cases],
        "vani tune": [case.share(case.tuned) for case in cases],
    }
    lines = [
        f"{name}: {sum(share >= GOAL for share in shares)} of {len(cases)} cases reach {100 * GOAL:.0f} % of the best, "
        f"median {100 * statistics.median(shares):.0f} %, least {100 * min(shares):.0f} %"
        for name, shares in ways.items()
    ]
    slower = [case for case in cases if case.seconds(case.tuned) > case.seconds(AS_IT_IS) * (1 + case.noise)]
    helps = [case for case in cases if case.share(AS_IT_IS) < GOAL]
    false = [case for case in cases if case.verdict == "proven" and case not in helps]
    lines += [
        f"vani tune ended slower than unchanged beyond noise in {len(slower)} cases",
        f"a setting helps by 5 % or more in {len(helps)} cases; of the others {len(false)} were called proven",
        f"runs used, median: {statistics.median(case.runs for case in cases):g}; repeated runs as it is: +-"
        f"{100 * statistics.median(case.noise for case in cases):.1f} % in the median",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the summary."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tune",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--machine", choices=MACHINES, action="append")
    parser.add_argument("--kind", choices=stand_in.KINDS, action="append")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write results here; what it has is not measured again"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    options = parser.parse_args(arguments)
    if reason := stand_in.impossible() or stand_in.without_mpi():
        print(f"there is no stand-in here: {reason}", file=sys.stderr)
        return 2
    begin, load = time.perf_counter(), os.getloadavg()[0]
    known = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    cases = [Case.from_json(tree) for tree in known]
    with tempfile.TemporaryDirectory(prefix="vani-bench-") as name:
        stand_in.compiled(Path(name))
        for machine in options.machine or MACHINES:
            with stand_in.mounted(machine, options.seed) as mount:
                bench = Bench(machine, mount, Path(name), options.seed, options.repeats)
                for kind in options.kind or stand_in.KINDS:
                    if any((case.machine, case.kind) == (machine, kind) for case in cases):
                        continue
                    cases.append(bench.case(kind))
                    print(_table(cases[-1:]).rpartition("\n")[2], file=sys.stderr, flush=True)
                    if options.json:
                        trees = [case.as_json() for case in cases]
                        options.json.write_text(json.dumps(trees, indent=1) + "\n")
    print(_table(cases))
    print(_summary(cases))
    print(
        f"{time.perf_counter() - begin:.0f} s on {os.cpu_count()} processors, load {load:.1f} at the beginning and "
        f"{os.getloadavg()[0]:.1f} at the end"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
