"""`python -m benchmarks.tune_rivals [--machine NAME ...] [--seed N]`: the best found in five runs, by several searches.

Compares `vani tune` with random search, the fixed layout that is best on average, and Optuna's TPE sampler. All start
with a run as it is. A setting is judged by runs that had no part in choosing it.

- On the stand-in: the programs and settings of `benchmarks.tune`, by default on machines that had no part in the
  development. `vani tune` uses up to three of its runs to prove what it found, the others use all of them to search.
- On measured sweeps: the shared-file runs of `benchmarks.stripes` with four to six stripe counts, of which five runs
  try nearly all. `vani tune` tries two, the advised count and all targets. Rates between counts are interpolated.

The fixed rule is chosen on the same cases, so its figure is an upper limit. Optuna is in the extra `peers`.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from benchmarks.data import markdown, no_measurements, run
from benchmarks.stripes import MeasuredRun, advised, runs
from benchmarks.tune import AS_IT_IS, GOAL, RUNS, SIZES, SWITCHES, Bench, Case, Setting, counts_of
from vani.demo.striped_model import machine_of

import stand_in  # isort: skip - benchmarks.tune makes it known

UNSEEN: Final = ("drawn 6", "drawn 7", "drawn 8", "drawn 9")
SEEDS: Final = 20
FEWEST: Final = 4
"""Least number of measured stripe counts of a sweep."""
COUNTS: Final[Mapping[str, Callable[[int], int]]] = {
    "1": lambda _: 1, "4": lambda targets: min(4, targets), "all": lambda targets: targets,
}  # fmt: skip
"""Stripe counts of fixed rules."""

Suggest = Callable[[Any], Any]
"""A point of the space from Optuna's trial."""


def best_of_optuna(suggest: Suggest, cost: Callable[[Any], float], first: float, start: Any, seed: int) -> Any:
    """The point with the least cost in five runs, of which the first, at `start`, costs `first`."""
    optuna = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # By default, its first ten runs are random.
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=2))
    best, least = start, first
    for _ in range(RUNS - 1):
        trial = study.ask()
        point = suggest(trial)
        seconds = cost(point)
        study.tell(trial, seconds)
        if seconds < least:
            best, least = point, seconds
    return best


def on_stand_in(case: Case) -> dict[str, float]:
    """Share of the best that each search reaches for a program; of fixed rules, that of each."""
    best = case.seconds(case.best)
    targets, counts = machine_of(case.machine).targets, counts_of(case.machine)
    switches = SWITCHES if case.kind == "strided-collective" else SWITCHES[:1]

    def suggest(trial: Any) -> Setting:
        count = counts[trial.suggest_int("count", 0, len(counts) - 1)]
        hints = tuple(switches[trial.suggest_categorical("hints", [*range(len(switches))])].items())
        size = SIZES[1] if hints else SIZES[trial.suggest_int("size", 0, len(SIZES) - 1)]
        return Setting(f"-c {count} -S {size}M", hints)

    def share(setting: Setting) -> float:
        return best / statistics.mean(case.swept[setting][1:])

    first = case.swept[AS_IT_IS][0]
    chosen = [best_of_optuna(suggest, lambda it: case.swept[it][0], first, AS_IT_IS, seed) for seed in range(SEEDS)]
    fixed = {
        f"-c {name} -S {size}M": share(Setting(f"-c {of(targets)} -S {size}M"))
        for name, of in COUNTS.items()
        for size in SIZES
    }
    return {**case.shares, "Optuna": statistics.median(map(share, chosen)), **fixed}


def on_sweep(measured: MeasuredRun, seed: int) -> dict[str, float]:
    """Share of the best measured bandwidth that each search reaches; of fixed rules, that of each."""
    start, counts = min(measured.measured), sorted(measured.measured)
    draw, tries = random.Random(seed), min(RUNS, len(counts)) - 1
    drawn = [max(map(measured.reached, [start, *draw.sample(counts[1:], tries)])) for _ in range(SEEDS)]

    def cost(count: int) -> float:
        return 1 / measured.rate(count)

    def suggest(trial: Any) -> int:
        return counts[trial.suggest_int("count", 0, len(counts) - 1)]

    chosen = [best_of_optuna(suggest, cost, cost(start), start, seed) for seed in range(SEEDS)]
    fixed = {f"-c {name}": measured.reached(of(measured.targets)) for name, of in COUNTS.items()}
    return {
        "as it is": measured.reached(start),
        "advice alone": measured.reached(advised(measured)),
        "vani tune": max(map(measured.reached, (start, advised(measured), measured.targets))),
        "random search": statistics.median(drawn),
        "Optuna": statistics.median(map(measured.reached, chosen)),
        **fixed,
    }


def rows_of(shares: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, int]]:
    """Mean share, and number of cases that reach the goal, for each way and for the best fixed rule."""
    rows = {
        name: (statistics.mean(case[name] for case in shares), sum(case[name] >= GOAL for case in shares))
        for name in shares[0]
    }
    fixed = max((name for name in rows if name.startswith("-c ")), key=lambda name: rows[name])
    others = {name: row for name, row in rows.items() if not name.startswith("-c ")}
    return {**others, f"best fixed rule ({fixed})": rows[fixed]}


def _table(title: str, shares: Sequence[Mapping[str, float]]) -> str:
    rows = [(name, f"{100 * mean:.0f} %", f"{best} of {len(shares)}") for name, (mean, best) in rows_of(shares).items()]
    return "\n".join([title, *markdown(("way", "mean share of the best", f"at {100 * GOAL:.0f} %"), rows, left=1)])


def main(*, machine: Sequence[str] = (), seed: int = 11) -> None:
    """Print a table for the stand-in, and one for measured sweeps."""
    cases = [Bench(name, seed).case(kind) for name in machine or UNSEEN for kind in stand_in.KINDS]
    print(_table("Stand-in", [on_stand_in(case) for case in cases]))
    if not no_measurements():
        many = [it for it in runs() if len(it.measured) >= FEWEST and it.kind != "file per process"]
        print(_table("Measured sweeps", [on_sweep(it, seed) for it in many]))


if __name__ == "__main__":
    run(main)
