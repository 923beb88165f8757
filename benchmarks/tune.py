"""`vani tune` on the stand-in of `examples/closed-loop`: eight programs on four machines, and an exhaustive sweep.

`python -m benchmarks.tune [--machine NAME] [--kind NAME] [--seed N] [--noise SESSIONS]`

Seconds are modelled (`modelled_programs.py`) instead of timed, so other load on the machine has no effect, and the
same seed gives the same table. Requests and runs vary by the model's noise. Each program is run under

- every setting of a grid, three times: stripe counts of 1, 2, 4, ... and all targets, in stripes of 1, 4 and 16 MiB; of
  collective calls those of 4 MiB also with collective buffering switched off, and with 1, 2 and 4 aggregators; and
  what `vani tune` tries;
- advice alone: the first value of each recommended setting, all together;
- `vani tune` with five runs, by the profile of a traced run (`profiles.json.gz`);
- random search with five runs, as it is and four settings of the grid, a thousand times: it chooses by one sweep and is
  judged by the others.

The unchanged program, advice alone, the result of `vani tune`, and the best by the mean of all sweeps are then run
again, ten times each. Shares of the best use the means of these runs, so that no setting is judged by a run that
chose it. The settings to try were chosen on two machines; the third and a drawn one had no part in it. The stand-in
is not Lustre, and its figures say nothing about Lustre.
"""

from __future__ import annotations

import random
import shlex
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import binomtest

import vani
from benchmarks.data import markdown, run
from vani.cli.advise import advise
from vani.cli.tune_trials import TRIAL, Program, candidates_of, with_trials
from vani.collect.layouts import lustre_layouts
from vani.schema.profile import Profile
from vani.schema.system import System
from vani.schema.tuned import Candidate, Tuned, TunedRun
from vani.schema.tuned import Setting as TunedSetting
from vani.tune.search import next_candidates, result_of

EXAMPLE: Final = Path(__file__).resolve().parents[1] / "examples" / "closed-loop"
sys.path.insert(0, str(EXAMPLE))

import modelled_programs  # noqa: E402 - an example, in no package
import stand_in  # noqa: E402

from vani.demo.striped_model import MACHINES, machine_of  # noqa: E402

MOUNT: Final = Path("/stand-in")
GOAL: Final = 0.95
RUNS: Final = 5
SIZES: Final = (1, 4, 16)
SWEEPS: Final = 3
REPEATS: Final = 10
SWITCHES: Final[tuple[dict[str, str], ...]] = (
    {}, {"romio_cb_write": "disable"}, {"cb_nodes": "1"}, {"cb_nodes": "2"}, {"cb_nodes": "4"},
)  # fmt: skip
DRAWS: Final = 1000
NOISE: Final = 0.2
REAL: Final = 1.3
SESSIONS: Final = 1000
DRAWN: Final = "drawn 1"
"""A machine with random figures, for which nothing was chosen."""


@dataclass(frozen=True)
class Setting:
    """Options of `lfs setstripe`, None for unchanged, and MPI-IO hints."""

    layout: str | None = None
    hints: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ", ".join(filter(None, [self.layout or "", *map(" ".join, self.hints)])) or "as it is"


AS_IT_IS: Final = Setting()


@dataclass
class Case:
    """A program on a machine: seconds by setting, and the result of each way to choose a setting."""

    machine: str
    kind: str
    verdict: str
    runs: int
    tuned: Setting
    advised: Setting
    swept: dict[Setting, list[float]] = field(default_factory=dict)
    repeated: dict[Setting, list[float]] = field(default_factory=dict)
    random_share: float = 0.0

    def seconds(self, setting: Setting) -> float:
        return statistics.mean(self.repeated[setting])

    @property
    def best(self) -> Setting:
        return min(self.swept, key=lambda setting: statistics.mean(self.swept[setting]))

    def share(self, setting: Setting) -> float:
        return self.seconds(self.best) / self.seconds(setting)

    @property
    def noise(self) -> float:
        """Half the range of fresh unchanged runs, relative to their mean."""
        times = self.repeated[AS_IT_IS]
        return (max(times) - min(times)) / 2 / statistics.mean(times)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the best that each way to choose reaches."""
        return {
            "as it is": self.share(AS_IT_IS), "advice alone": self.share(self.advised),
            "random search": self.random_share, "vani tune": self.share(self.tuned),
        }  # fmt: skip


class Bench:
    """Runs programs on a machine of the stand-in, each with different noise."""

    def __init__(self, machine: str, seed: int) -> None:
        self.machine = machine
        self.random = random.Random(seed)

    def case(self, kind: str) -> Case:
        """Everything about one program."""
        tuned = self.tuned(kind)
        result = tuned.result
        assert result is not None
        first = {item.rule: number for number, item in reversed([*enumerate(tuned.candidates)]) if item.name != TRIAL}
        kept = result.candidates if result.verdict == "proven" else []
        chosen = _setting(tuned, kept), _setting(tuned, sorted(first.values()))
        case = Case(self.machine, kind, result.verdict, len(tuned.runs), *chosen)
        alone = [_setting(tuned, [number]) for number in range(len(tuned.candidates))]
        grid = [*dict.fromkeys([*_grid(self.machine, kind), *alone, case.tuned, case.advised])]
        case.swept = {setting: [self.seconds(kind, setting) for _ in range(SWEEPS)] for setting in grid}
        for setting in dict.fromkeys([AS_IT_IS, case.advised, case.tuned, case.best]):
            case.repeated[setting] = [self.seconds(kind, setting) for _ in range(REPEATS)]
        case.random_share = self._random_share(case)
        return case

    def tuned(self, kind: str) -> Tuned:
        """A session like `vani tune --budget 5`."""
        system = System.model_validate(stand_in.described(self.machine, MOUNT))
        advice = advise(Profile.model_validate(stand_in.profile(self.machine, kind, MOUNT)), system=system)
        candidates, not_tried = candidates_of(advice, MOUNT / "run", Program(nodes=stand_in.PROCESSES))
        figures = machine_of(self.machine)
        layouts = lustre_layouts(figures.targets, figures.stripe_count, figures.stripe_size)
        candidates = with_trials(candidates, layouts, [])
        tuned = _session(str(MOUNT / "run"), RUNS, candidates, command=[kind], not_tried=not_tried)
        return _carried_out(tuned, lambda chosen: self.seconds(kind, _setting(tuned, chosen)))

    def seconds(self, kind: str, setting: Setting) -> float:
        words = shlex.split(setting.layout or "")
        hints, seed = dict(setting.hints), self.random.randrange(1 << 30)
        return modelled_programs.seconds(self.machine, kind, words, hints, seed=seed)

    def _random_share(self, case: Case) -> float:
        """Median share of the best, in the second sweep, for the first sweep's choice of unchanged and four more."""
        others, best = [setting for setting in case.swept if setting != AS_IT_IS], case.seconds(case.best)
        shares = []
        for _ in range(DRAWS):
            drawn = [AS_IT_IS, *self.random.sample(others, min(RUNS - 1, len(others)))]
            chosen = min(drawn, key=lambda setting: case.swept[setting][0])
            shares.append(best / statistics.mean(case.swept[chosen][1:]))
        return statistics.median(shares)


def _session(data: str, runs: int, candidates: Sequence[Candidate], **more: Any) -> Tuned:
    """A session without runs yet, of at most this many."""
    return Tuned(
        version=vani.__version__, begun="2026-01-01T00:00:00+00:00", data=data, most_runs=runs,
        candidates=list(candidates), **({"host": "modelled", "command": ["a"], "fresh": "emptied"} | more),
    )  # fmt: skip


def _carried_out(
    tuned: Tuned, seconds: Callable[[Sequence[int]], float], plan: Sequence[Sequence[int]] = ()
) -> Tuned:
    """A session in which runs with these candidates take `seconds`, with its result; its runs may be planned before."""
    while (chosen := next(iter(plan[len(tuned.runs) :]), None) if plan else next_candidates(tuned)) is not None:
        took = {"outcome": "ended", "seconds": seconds(chosen)}
        run = {"number": len(tuned.runs) + 1, "candidates": chosen, "folder": tuned.data} | took
        tuned = tuned.model_copy(update={"runs": [*tuned.runs, TunedRun.model_validate(run)]})
    return tuned.model_copy(update={"result": result_of(tuned)})


ALL_COMBINATIONS: Final = ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), ())
"""Nine runs in which each of three settings is on in four, so that every run counts fully for all of them."""


def proofs(
    runs: int, real: float, noise: float, sessions: int, seed: int, plan: Sequence[Sequence[int]] = ()
) -> tuple[int, int]:
    """Sessions that prove something, and those of them that also keep a setting without effect.

    Of three settings, one changes the time by the factor `real`, at each place in turn; at 1, none does.
    """
    settings = [TunedSetting(environment={name: "1"}) for name in "ABC"]
    session = _session("/d", runs, [
        Candidate(rule="R", name="r", reason="", expected=None, setting=setting) for setting in settings
    ])  # fmt: skip
    random, proven = np.random.default_rng(seed), []
    for number in range(sessions):
        def seconds(chosen: Sequence[int], at: int = number % 3) -> float:
            return float(np.exp(random.normal(0, noise))) / (real if at in chosen else 1)

        result = _carried_out(session, seconds, plan).result
        # A package without its real member proves nothing.
        if result is not None and result.verdict == "proven" and (real == 1 or number % 3 in result.candidates):
            proven.append(result.candidates)
    return len(proven), sum(len(members) > 1 for members in proven)


def _proofs(runs: int, sessions: int, seed: int) -> str:
    none, _ = proofs(runs, 1, NOISE, sessions, seed)
    proven, mixed = proofs(runs, REAL, NOISE / 2, sessions, seed + 1)
    return (
        f"{runs} runs, {sessions} sessions: nothing helps, {100 * NOISE:.0f} % noise: {_share(none, sessions)} call a "
        f"setting proven; one of three is {REAL} times as fast, {50 * NOISE:.0f} % noise: {_share(proven, sessions)} "
        f"prove it, and {_share(mixed, max(1, proven))} of these with one without effect"
    )


def _share(count: int, of: int) -> str:
    low, high = binomtest(count, of).proportion_ci(0.95)
    return f"{100 * count / of:.1f} % ({100 * low:.1f} to {100 * high:.1f} %)"


def counts_of(machine: str) -> list[int]:
    """Stripe counts of a machine that are swept: 1, 2, 4, ..., and all targets."""
    targets = machine_of(machine).targets
    return sorted({targets, *(1 << shift for shift in range(targets.bit_length()))})


def _grid(machine: str, kind: str) -> Iterator[Setting]:
    yield AS_IT_IS
    for hints in SWITCHES if kind == "strided-collective" else SWITCHES[:1]:
        # With four node names, `*:1`, the default, means one aggregator per process.
        yield Setting(None, tuple(hints.items()))
        for count in counts_of(machine):
            for size in SIZES[1:2] if hints else SIZES:
                yield Setting(f"-c {count} -S {size}M", tuple(hints.items()))


def _setting(tuned: Tuned, candidates: Sequence[int]) -> Setting:
    setting = tuned.setting(list(candidates))
    return Setting(setting.layout, tuple(setting.hints.items()))


def _table(cases: Sequence[Case]) -> str:
    rows = []
    for case in cases:
        cells = [f"{100 * share:.0f} %" for share in [*case.shares.values()][1:]]
        verdict = case.verdict.replace("_", " ") if case.runs > 1 else "nothing tried"
        verdict += "" if case.tuned == AS_IT_IS else f": {case.tuned}"
        times = [f"{case.seconds(AS_IT_IS):.2f} s", f"{case.seconds(case.best):.2f} s, {case.best}"]
        rows.append((case.machine, case.kind, *times, *cells, case.runs, verdict))
    ways = ("as it is", "best of the sweep", "advice alone", "random", "`vani tune`")
    head = ("machine", "program", *ways, "runs", "verdict")
    return "\n".join(markdown(head, rows, left=len(head)))


def _reached(cases: Sequence[Case]) -> str:
    counts = (f"{name} {sum(case.shares[name] >= GOAL for case in cases)}" for name in cases[0].shares)
    return f"{', '.join(counts)} of {len(cases)} at {100 * GOAL:.0f} % of the best"


def _summary(cases: Sequence[Case]) -> str:
    slower = [case for case in cases if case.seconds(case.tuned) > case.seconds(AS_IT_IS) * (1 + case.noise)]
    helps = [case for case in cases if case.share(AS_IT_IS) < GOAL]
    false = [case for case in cases if case.verdict == "proven" and case not in helps]
    lines = [
        _reached(cases),
        f"vani tune ended slower than unchanged beyond noise in {len(slower)} cases",
        f"a setting helps by 5 % or more in {len(helps)} cases; of the others {len(false)} were called proven",
        f"runs used, median: {statistics.median(case.runs for case in cases):g}; repeated runs as it is: +-"
        f"{100 * statistics.median(case.noise for case in cases):.1f} % in the median",
    ]
    return "\n".join(lines)


def main(*, machine: Sequence[str] = (), kind: Sequence[str] = (), seed: int = 0, noise: int = 0) -> None:
    """Print the table and the summary; or only what so many sessions of 5 and of 9 runs prove."""
    if not noise:
        machines, kinds = machine or [*MACHINES, DRAWN], kind or stand_in.KINDS
        cases = [Bench(name, seed).case(program) for name in machines for program in kinds]
        print(_table(cases))
        for name in machines:
            print(f"{name}: {_reached([case for case in cases if case.machine == name])}")
        print(_summary(cases))
    print("\n".join(_proofs(runs, noise or SESSIONS, seed) for runs in (RUNS, 9)))
    planned, _ = proofs(9, REAL, NOISE / 2, noise or SESSIONS, seed + 2, ALL_COMBINATIONS)
    print(f"the same with all combinations in nine runs that are planned before: {_share(planned, noise or SESSIONS)}")


if __name__ == "__main__":
    run(main)
