"""`python -m benchmarks.behaviour`: how well Vani predicts the next behaviour of an application.

It prints AIOT's table I; sequences with known laws; runs of fourteen applications on Summit (`../shared/data`),
with those that were not used to choose constants listed separately; time series with known phases; and how long it
takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.data import DATA, no_measurements, print_parts, print_table
from tests.history.behaviour_laws import AIOT_TABLE_1, LAWS
from tests.history.behaviour_series import known_runs
from vani.centre.prediction.behaviour.evaluation import behaviour_scores, compare_predictors, judge, score
from vani.centre.prediction.behaviour.panel import AUTO, Panel, most_likely
from vani.centre.prediction.behaviour.phases import phase_ids, phases
from vani.centre.prediction.behaviour.predictors import begins
from vani.centre.prediction.behaviour.runs import read_table

SUMMIT = DATA / "summit-runs" / "dev.csv.gz"
CHOSEN_BY = ("App10", "App15", "App14", "App25", "App18", "App27", "App3")
"""Applications used to choose constants: every other one by its number of runs."""
LENGTH, SEEDS = 400, 5


def right_of(sequences: Iterable[Sequence[int]]) -> tuple[dict[str, int], int]:
    """How often each predictor is right about the next id in sequences, each a category of its own, and the total."""
    panel = Panel(begins())
    right = dict.fromkeys(panel.names, 0)
    asked = 0
    for category, sequence in enumerate(sequences):
        for place, behaviour in enumerate(sequence):
            if place:
                for name, shares in zip(panel.names, panel.predict(category), strict=True):
                    right[name] += most_likely(shares)[0] == behaviour
                asked += 1
            panel.see(category, behaviour, panel.guesses(category))
    return right, asked


def edges_found(noise: float, seeds: Iterable[int]) -> tuple[int, int, int, int, int]:
    """For generated series: runs; runs with exactly the true phases; edges; largest error; wrong ids."""
    runs = whole = edges = furthest = wrong = 0
    for seed in seeds:
        known = known_runs(seed, noise=noise)
        found = [phases(one.series) for one in known]
        for one, mine in zip(known, found, strict=True):
            here = [phase.begin for phase in mine][1:]
            runs, edges = runs + 1, edges + len(one.edges)
            whole += len(here) == len(one.edges)
            for edge in one.edges:
                furthest = max(furthest, min((abs(edge - place) for place in here), default=len(one.series)))
        numbers: dict[int, int] = {}
        wanted = [numbers.setdefault(one.variant, len(numbers)) for one in known]
        wrong += int(np.sum(np.array(phase_ids(found, [1.0] * len(found))[1]) != wanted))
    return runs, whole, edges, furthest, wrong


def _laws() -> None:
    right, asked = right_of([[int(one) for one in text] for text in AIOT_TABLE_1.values()])
    print(f"AIOT, table I, right of {asked}: " + ", ".join(f"{name} {count}" for name, count in right.items()))
    shown = ("last value", "most frequent", "Markov 3", AUTO)
    rows = []
    for law in LAWS:
        right, asked = right_of(law.draw(np.random.default_rng(seed), LENGTH) for seed in range(SEEDS))
        rows.append((law.name, f"{law.best:.3f}", *(f"{right[name] / asked:.3f}" for name in shown)))
    print_table("Sequences with known laws", ("law", "best possible", *shown), rows)


def _summit() -> None:
    if no_measurements():
        return
    runs = read_table(SUMMIT)
    print(behaviour_scores(compare_predictors(runs, 0.3)))
    first = int(0.7 * len(runs))
    application = np.array([name[0] for name in runs.names])
    shown = ("last value", "Markov 3", AUTO)
    rows = []
    for ended_only in (False, True):
        tested = judge(runs, first, ended_only=ended_only, begin=begins())
        of_chosen = np.isin(application[runs.category[tested.place]], CHOSEN_BY)
        for name, among in (("constants chosen by", of_chosen), ("others", ~of_chosen)):
            given = {
                one: {key: values[among] for key, values in getattr(tested, one).items()}
                for one in ("guesses", "probabilities")
            }
            mine = replace(tested, **{one: getattr(tested, one)[among] for one in ("place", "seen", "actual")}, **given)
            scores = [score(mine, runs.category[mine.place], one) for one in shown]
            cells = (f"{one.per_run[0]:.3f} / {one.per_category[0]:.3f}" for one in scores)
            case = f"{name}, {'ended only' if ended_only else 'all before'}"
            rows.append((case, f"{len(mine.place):,}", *cells, f"{mine.seen.mean():.3f}"))
    print_table("Applications: right per run / per category", ("", "runs", *shown, "seen before"), rows)


def _series() -> None:
    rows = []
    for noise in (0.0, 0.02, 0.1, 0.2):
        begin = time.process_time()
        found = edges_found(noise, range(20))
        rows.append((f"{noise:.0%}", *found, f"{(time.process_time() - begin) / found[0] * 1e3:.1f}"))
    head = ("noise", "runs", "all phases found", "edges", "furthest off", "wrong ids", "ms a run")
    print_table("Time series with known phases", head, rows)


PARTS = {"laws": _laws, "summit": _summit, "series": _series}


if __name__ == "__main__":
    print_parts(PARTS)
