"""`python -m benchmarks.behaviour`: how well Vani predicts the next behaviour of an application.

It prints AIOT's table I; sequences with known laws; runs of fourteen applications on Summit (`../shared/data`),
with those that were not used to choose constants listed separately; time series with known phases; and how long it
takes.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.data import DATA, print_parts, print_table
from tests.history.behaviour_laws import AIOT_TABLE_1, LAWS
from tests.history.behaviour_series import known_runs
from vani.centre.prediction.behaviour.evaluation import behaviour_scores, compare_predictors, judge, score
from vani.centre.prediction.behaviour.panel import AUTO, Panel, most_likely
from vani.centre.prediction.behaviour.phases import phase_ids, phases
from vani.centre.prediction.behaviour.predictors import begins
from vani.centre.prediction.behaviour.runs import Runs, read_table

SUMMIT = DATA / "summit-runs" / "dev.csv.gz"
CHOSEN_BY = ("App10", "App15", "App14", "App25", "App18", "App27", "App3")
"""Applications used to choose constants: every other one by its number of runs."""
LENGTH = 400
SEEDS = 5


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


def many_runs(number: int, categories: int = 200) -> Runs:
    """Runs of categories that follow the laws in turn, one second apart."""
    random = np.random.default_rng(3)
    category = random.integers(0, categories, number)
    ids = np.zeros(number, np.int64)
    for mine in range(categories):
        among = category == mine
        ids[among] = LAWS[1 + mine % (len(LAWS) - 1)].draw(random, int(among.sum()))
    submitted = np.arange(number, dtype=np.float64)
    none, nothing = np.full(number, np.nan), np.zeros(number)
    figures = {"bytes_read": nothing, "bytes_written": 1e9 * 2.0**ids, "metadata": nothing + 100}
    figures |= dict.fromkeys(("reads", "writes", "files", "runtime_s", "in_io_s"), none)
    names = [("app", f"user{mine}", 8) for mine in range(categories)]
    return Runs(names, category, submitted, submitted + 30.0, figures)


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
            mine = replace(
                tested,
                **{one: getattr(tested, one)[among] for one in ("place", "seen", "actual")},
                **{
                    one: {key: values[among] for key, values in getattr(tested, one).items()}
                    for one in ("guesses", "probabilities")
                },
            )
            scores = [score(mine, runs.category[mine.place], one) for one in shown]
            cells = (f"{one.per_run.share:.3f} / {one.per_category.share:.3f}" for one in scores)
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


def _time() -> None:
    runs = many_runs(50_000)
    begin, used = time.perf_counter(), time.process_time()
    compare_predictors(runs, 0.3)
    wall, used = time.perf_counter() - begin, time.process_time() - used
    print(f"50,000 runs evaluated, both ways: {wall:.1f} s, {used:.1f} s of a processor")
    with contextlib.suppress(ImportError), tempfile.TemporaryDirectory() as folder:
        _from_store(runs, Path(folder) / "many.sqlite")


def _from_store(runs: Runs, place: Path) -> None:
    from vani import centre  # noqa: PLC0415
    from vani.centre.history.rows import StoredRun  # noqa: PLC0415
    from vani.centre.history.runs import write  # noqa: PLC0415
    from vani.centre.history.runs.store import Store  # noqa: PLC0415

    nothing = dict.fromkeys(StoredRun.__slots__)
    kept = [
        StoredRun(
            **nothing
            | {
                "digest": f"{number:064x}", "kind": "darshan", "user": runs.names[mine][1], "application": "app",
                "processes": 8, "submitted": 1.7e9 + number, "runtime_s": 30.0, "file_system": "lustre", "mount": "/s",
                "bytes_read": 0, "bytes_written": int(runs.figures["bytes_written"][number]), "metadata": 100,
                "complete": True,
            }
        )
        for number, mine in enumerate(runs.category.tolist())
    ]  # fmt: skip
    with Store(place).writing(make=True) as connection:
        write.add_runs(connection, kept)
    for asked in ({"user": "user7"}, {}):
        times = []
        for _ in range(3):
            begin, used = time.perf_counter(), time.process_time()
            centre.history_predict("app", db=place, **asked)
            times.append((time.process_time() - used, time.perf_counter() - begin))
        whose = "of one user" if asked else "of all users"
        used, wall = min(times)
        print(
            f"one prediction from a store of 50,000 runs, {whose}: {wall:.2f} s, {used:.2f} s of a processor"
        )


def main() -> None:
    """Print all tables."""
    parts = {"laws": _laws, "summit": _summit, "series": _series, "time": _time}
    if not SUMMIT.exists():
        del parts["summit"]
    print_parts("behaviour", __doc__, parts)


if __name__ == "__main__":
    main()
