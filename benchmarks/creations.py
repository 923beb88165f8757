"""`python -m benchmarks.creations`: predictors of creations on runs they have not seen.

The runs come from ten families of generated applications with known laws and six whose law breaks, from Summit, and
from traces of HACC-IO, IOR, a checkpoint and Montage, which need `../shared`. Figures are shares of creations with
a size within 1 %.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.data import DATA, SHARED, Row, grouped, print_table, run
from tests.history.creation_families import FAMILIES, HARDER, category
from vani.centre.prediction.creations.choice import (
    WALKED,
    Chosen,
    Follower,
    ForecastOutcome,
    blocks_of,
    choose_next,
    compare,
    on_next_run,
    on_rest,
    trust_in,
)
from vani.centre.prediction.creations.extraction import creations_of_trace
from vani.centre.prediction.creations.predictors import PREDICTORS
from vani.centre.prediction.creations.series import WITHIN, Creations, joined

TRACES = SHARED / "traces"
AUTO, _COSTLY_BLOCKS = "auto", 2

Runs = Sequence[Creations]
Rows = defaultdict[str, defaultdict[str, list[float]]]
"""Accuracy in each category, by row and method."""


def _no_rows() -> Rows:
    return defaultdict(lambda: defaultdict(list))


class Checked:
    """Predicted probabilities and intervals, compared with the outcomes."""

    def __init__(self) -> None:
        self.probability: list[np.ndarray] = []
        self.right: list[np.ndarray] = []
        self.inside: list[float] = []

    def add(self, chosen: Chosen, outcome: ForecastOutcome, came: Creations) -> None:
        """Add creations that were both predicted and created."""
        nth = outcome.at
        there = nth >= 0
        self.probability.append(chosen.probability[nth[there]])
        self.right.append(outcome.right[there])
        if np.isfinite(chosen.low) and there.any():
            sizes = chosen.foreseen.sizes[nth[there]]
            low, high = np.rint(sizes * chosen.low), np.rint(sizes * chosen.high)
            self.inside.append(float(((came.values[there] >= low) & (came.values[there] <= high)).mean()))

    def summary(self) -> str:
        """How often a probability of at least 0.9 was right, the Brier score, and the coverage of intervals."""
        probability, right = np.concatenate(self.probability), np.concatenate(self.right).astype(float)
        sure = probability >= 0.9
        brier = float(((probability - right) ** 2).mean())
        return (
            f"given 0.9 or more: {100 * sure.mean():.0f} % of files"
            + (f", {100 * right[sure].mean():.1f} % correct" if sure.any() else "")
            + f"; Brier score {brier:.3f}; nine-of-ten intervals contain {100 * np.mean(self.inside):.0f} %"
        )


def auto_next(past: Runs, came: Creations, checked: Checked | None = None) -> ForecastOutcome:
    """Predict the next run with the predictor chosen from the past."""
    chosen = choose_next(past)
    outcome = compare(chosen.foreseen, came)
    if checked is not None:
        checked.add(chosen, outcome, came)
    return outcome


def auto_rest(
    past: Runs, came: Creations, blocks: Sequence[tuple[int, int]], checked: Checked | None = None
) -> list[ForecastOutcome]:
    """Predict the rest of a run block by block; the predictor may change with each."""
    follower, found = Follower(past), []
    for begin, end in blocks:
        so_far, block = came.first(begin), came.part(begin, end)
        follower.see(so_far)
        chosen = follower.rest(so_far, end - begin + 2 * len(np.unique(so_far.ranks)))
        outcome = compare(chosen.foreseen, block)
        # More is predicted than a block contains, since ranks come in any order.
        outcome = replace(outcome, accuracy=float(outcome.right.mean()))
        if checked is not None:
            checked.add(chosen, outcome, block)
        found.append(outcome)
    return found


def families(number: int, costly: int) -> tuple[Rows, Rows, dict[str, Checked]]:
    """Predict next runs and rests of runs in `number` categories of each family, with costly predictors in `costly`.

    Returns
    -------
    tuple
        Accuracy for the next run, accuracy for the rest of a run, and the checks of `auto`.
    """
    ahead, online = _no_rows(), _no_rows()
    checked = {"next run": Checked(), "online": Checked()}
    for family in FAMILIES:
        for seed in range(number):
            *past, came = category(family, seed)
            blocks = blocks_of(len(came))
            chosen = auto_next(past, came, checked["next run"])
            found = {AUTO: (chosen, auto_rest(past, came, blocks, checked["online"]))}
            for name, method in PREDICTORS.items():
                if not method.costly or seed < costly:
                    some = blocks[:: len(blocks) // _COSTLY_BLOCKS] if method.costly else blocks
                    found[name] = on_next_run(method, past, came), list(on_rest(method, past, came, some))
            for name, (one, parts) in found.items():
                ahead[family][name].append(one.accuracy)
                online[family][name].append(_mean(parts))
    return ahead, online, checked


LONG = 24
"""Number of runs before the predicted one when trust is judged: nine must be right for a probability of 0.9."""


def trusted(number: int) -> Iterator[tuple[str, Checked, Checked]]:
    """Yield each family, and all whose law breaks, with the checks for the next run and for the rest of a run."""
    breaking = Checked(), Checked()
    for family in (*FAMILIES, *HARDER):
        own = Checked(), Checked()
        for seed in range(100, 100 + number):
            *past, came = category(family, seed, LONG + 1)
            for ahead, online in (own, breaking) if family in HARDER else (own,):
                auto_next(past, came, ahead)
                auto_rest(past, came, blocks_of(len(came)), online)
        yield family, *own
    yield "all whose law breaks", *breaking


def repeated() -> Iterator[str]:
    """On Summit's runs of 2021, whether a run writes as much as the one before within 1 %, given a probability of 0.9.

    Reported for both halves of the categories: one chose the rule (`choice._RIGHT`, `_WRONG`), the other judges it.
    """
    path = DATA / "summit-runs" / "dev.csv.gz"
    if not path.exists():
        return

    def application(row: Row) -> str | None:
        return str((row["app"], row["user"], int(row["processes"]))) if float(row["bytes_written"]) > 0 else None

    written = grouped(path, application, lambda row: (float(row["start"]), float(row["bytes_written"])))
    for half, name in enumerate(("chosen on", "judged on")):
        given: list[np.ndarray] = []
        for runs in (runs for key, runs in written.items() if zlib.crc32(key.encode()) % 2 == half):
            sizes = np.array([size for _, size in sorted(runs)])
            right = np.abs(sizes[1:] / sizes[:-1] - 1) <= WITHIN
            trusts = (trust_in(right[max(0, at - WALKED) : at].sum(), min(at, WALKED)) for at in range(1, len(right)))
            sure = right[1:][np.array([trust >= 0.9 for trust in trusts], dtype=bool)]
            given += [sure] if len(sure) else []
        every, first = np.concatenate(given), np.concatenate([one[:10] for one in given])
        yield (
            f"{name} {len(given)} categories: {len(every):,} runs given 0.9, {100 * every.mean():.1f} % right; "
            f"at most ten of each category: {100 * first.mean():.1f} %"
        )


def traced() -> dict[str, list[Creations]]:
    """Runs of the shared traces by name; the last one is predicted from those before it."""
    found = {
        name: [made for folder in folders if (made := creations_of_trace(TRACES / folder)) is not None]
        for name, folders in {
            "HACC-IO, a file per process": ["v3-haccio-fpp-8r"],
            "IOR, a file per process": ["v2-ior-fpp-posix-8r", "v3-ior-fpp-posix-8r"],
            "IOR, 16 processes": ["v3-ior-fpp-posix-16r"],
            "IOR, one file": ["v2-ior-ssf-posix-8r", "v25g-ior-ssf-posix-8r", "v3-ior-ssf-posix-8r"],
            "checkpoint": ["v3-ckpt-then-restart-8r"],
        }.items()
        if all((TRACES / folder).exists() for folder in folders)
    }
    montage = TRACES / "v3-workflow-montage"
    if montage.exists():
        steps = sorted(one for one in montage.iterdir() if one.is_dir())
        for program in ("mProject", "mDiff", "mBackground"):
            runs = [creations_of_trace(one) for one in steps if program in one.name]
            found[f"Montage, {program}"] = [one for one in runs if one is not None and len(one)]
        whole = [one for one in map(creations_of_trace, steps) if one is not None]
        found["Montage, all as one run"] = [joined(whole)]
    return found


def on_traces() -> tuple[Rows, Rows]:
    """Predict each run from all earlier runs, and the rest of each run from its beginning, block by block."""
    ahead, online = _no_rows(), _no_rows()
    for name, runs in traced().items():
        for at, came in enumerate(runs):
            past, blocks = runs[:at], blocks_of(len(came))
            if past:
                for one, method in PREDICTORS.items():
                    ahead[name][one].append(on_next_run(method, past, came).accuracy)
                ahead[name][AUTO].append(auto_next(past, came).accuracy)
            if blocks and len(came) >= 5:
                for one, method in PREDICTORS.items():
                    online[name][one].append(_mean(list(on_rest(method, past, came, blocks))))
                online[name][AUTO].append(_mean(auto_rest(past, came, blocks)))
    return ahead, online


def with_range(values: Sequence[float]) -> str:
    """The mean, and its 95 % bootstrap range over categories."""
    random = np.random.default_rng(0)
    drawn = random.choice(np.array(values), (2000, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{np.mean(values):.2f} ({low:.2f}-{high:.2f})"


def _mean(outcomes: Sequence[ForecastOutcome]) -> float:
    return float(np.mean([one.accuracy for one in outcomes]))


def _print(title: str, rows: Rows, *, mean: bool) -> None:
    methods = [*PREDICTORS, AUTO]
    shown = dict(rows)
    if mean:
        shown["mean"] = {one: [value for found in rows.values() for value in found[one]] for one in methods}
    cells = [
        (name, *(with_range(found[one]) if found.get(one) else "-" for one in methods)) for name, found in shown.items()
    ]
    print_table(title, ("", *methods), cells)


def print_trust(number: int) -> None:
    """Print how often a probability of 0.9 was right, in `number` categories of each family and on Summit."""
    print(f"\nWhat auto says of itself after {LONG} runs, other applications")
    for family, next_run, rest in trusted(number):
        print(f"  {family}\n    next run: {next_run.summary()}\n    online: {rest.summary()}")
    print("\nThe same amount again, on Summit")
    for line in repeated():
        print(f"  {line}")


def main(*, categories: int = 20, arima: int = 3, trust: bool = False) -> None:
    """Print the tables for as many `categories` of each family, of these `arima` with ARIMA; or only the trust."""
    if trust:
        print_trust(categories)
        return
    ahead, online, checked = families(categories, arima)
    _print(f"Next run: {categories} categories of each family (ARIMA: {arima})", ahead, mean=True)
    _print(f"Online, in ten blocks (ARIMA: {_COSTLY_BLOCKS} of them)", online, mean=True)
    print("\nWhat auto says of itself")
    for task, one in checked.items():
        print(f"  {task}: {one.summary()}")
    print_trust(categories)
    if TRACES.exists():
        ahead, online = on_traces()
        _print("Traces: each run from those before it", ahead, mean=False)
        _print("Traces: each run of five files and more from its beginning", online, mean=False)


if __name__ == "__main__":
    run(main)
