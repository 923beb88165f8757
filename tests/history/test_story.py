"""Possible savings, the ranking, and the story of an application."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vani.centre.history.daily import daily_runs, daily_text
from vani.centre.history.ranking import Share, pairs_that_matter, ranking, shares, state_of, verdict_from
from vani.centre.history.ranking_text import hours, next_step, ranking_table
from vani.centre.history.rows import StoredRun, Verdict
from vani.centre.history.runs.read import Group, Period, Whole
from vani.centre.history.settings import period_of
from vani.centre.history.story import CategoryRuns, change_sentence, story, story_text
from vani.errors import InputError
from vani.schema.advice import Advice, Expected, ProfileRef, Recommendation, SystemRef, Target

NOVEMBER = 1_793_491_200
DAY = 86400


def a_run(number: int = 0, **more: object) -> StoredRun:
    names = dict.fromkeys(StoredRun.__slots__)
    told = {
        "digest": f"{number:064x}", "kind": "darshan", "user": "u1", "application": "app", "processes": 4,
        "submitted": NOVEMBER + number * DAY / 4, "runtime_s": 100.0, "in_io_s": 20.0, "slowest_s": 10.0, "waiting_s": 40.0,
        "bytes_read": 0, "bytes_written": 1000, "file_system": "lustre", "mount": "/s", "complete": True,
    }  # fmt: skip
    return StoredRun(**names | told | more)


def advised(
    rule: str, before: float, after: float, low: float, high: float, **more: object
) -> Recommendation:
    told = {
        "rule": rule, "name": "stripe-count", "severity": "high", "confidence": 0.8, "target": Target(kind="app"),
        "current": {}, "recommended": {"stripe_count": 8, "stripe_size": 1 << 20}, "evidence": [], "reason": "", "source": [],
        "expected": Expected(metric="write_time_s", before=before, after=after, speedup=before / after, low=low, high=high, method=""),
        "apply": ["lfs setstripe -c 8 -S 1M /scratch/u1/out"],
    }  # fmt: skip
    return Recommendation(**told | more)


def advice(*recommendations: Recommendation) -> Advice:
    return Advice(
        profile=ProfileRef(path=None, sha256=""),
        system=SystemRef(name="m", sha256=""),
        recommendations=list(recommendations),
        no_recommendation=[],
    )


def judged(*recommendations: Recommendation, run: StoredRun | None = None) -> Verdict:
    return verdict_from(advice(*recommendations), run or a_run(), {"LUS002": "Few targets."}, typical=False)


# Possible savings


def test_recommendation_with_the_largest_saving_is_the_setting():
    found = judged(advised("MIO001", 3.0, 2.0, 1.2, 2.0, apply=["x"]), advised("LUS002", 8.0, 2.0, 2.0, 8.0))
    assert (found.saved_s, found.rule, found.why) == (7.0, "LUS002", "Few targets.")
    assert found.setting == "lfs setstripe -c 8 -S 1M DIR"
    # The first saves 0.5 to 1.5 of 10 s, the second 4 to 7 of the 9 s that the first is expected to leave.
    assert found.saved_low_s == pytest.approx(0.5 + 4.0)
    assert found.saved_high_s == pytest.approx(1.5 + 7.0 * 8.5 / 9.0)


def test_no_more_is_saved_than_the_slowest_process_takes():
    assert judged(advised("LUS002", 30.0, 1.0, 10.0, 40.0)).saved_s == 10.0


def test_at_best_no_second_is_saved_by_two_recommendations():
    found = judged(advised("LUS002", 10.0, 5.0, 1.0, 50.0), advised("MIO001", 5.0, 4.0, 1.0, 5.0))
    assert (found.saved_low_s, found.saved_s) == (0.0, 6.0)
    assert found.saved_high_s == pytest.approx(9.8 + 0.2 * 4.0 / 5.0)


def test_recommendation_that_leaves_no_time_saves_everything():
    nothing_left = Expected(metric="m", before=4.0, after=0.0, speedup=None, low=2.0, high=None, method="")
    found = judged(advised("X", 4.0, 1.0, 1.0, 4.0, expected=nothing_left))
    assert (found.saved_low_s, found.saved_s, found.saved_high_s) == (2.0, 4.0, 4.0)


@pytest.mark.parametrize(
    ("recommendation", "state"),
    [
        (advised("X", 10.0, 9.99, 1.0, 1.01, severity="info"), "saves"),
        (advised("X", 1.0, 0.5, 1.0, 1.0, severity="info", expected=None), "gain_unknown"),
        (advised("MAT001", 10.0, 1.0, 1.0, 2.0), "nothing_found"),
    ],
    ids=["a little", "no number", "only what I/O takes"],
)
def test_advice_is_never_nothing(recommendation, state):
    found = judged(recommendation)
    assert state_of(found.rule, found.saved_high_s) == state


def test_unknown_gain_is_not_zero_gain():
    unknown = judged(advised("LUS002", 8.0, 2.0, 2.0, 8.0, expected=None), run=a_run(1))
    some = [(unknown, a_run(1)), (judged(advised("LUS002", 8.0, 4.0, 2.0, 4.0), run=a_run(2)), a_run(2))]
    found = shares(some)["app", "u1"]
    assert (found.low, found.runs) == (pytest.approx(0.4), 1)


def test_largest_possible_gain_is_not_a_setting():
    assert judged(advised("MAT001", 100.0, 1.0, 2.0, 3.0)).rule == ""


def test_setting_without_a_command_is_shown_by_name():
    found = judged(
        advised(
            "POS004",
            8.0,
            2.0,
            1.0,
            8.0,
            apply=["# in the program"],
            recommended={"writing_processes": "one per node"},
        )
    )
    assert found.setting == "stripe count: writing processes one per node"
    assert found.saved_low_s == 0.0
    sizes = judged(
        advised(
            "X",
            8.0,
            2.0,
            1.0,
            8.0,
            apply=[],
            recommended={
                "request_bytes": 1 << 22,
                "moved_bytes": 2_168_896_353,
                "io_time_s": 0.49769,
                "share": 0.123456,
            },
        )
    )
    assert sizes.setting == "stripe count: request bytes 4M, moved bytes 2.17 GB, io time 498 ms, share 0.123"


def test_judged_runs_represent_their_pair_from_minimum_to_maximum():
    some = [
        (judged(advised("LUS002", 8.0, after, 2.0, 8.0), run=a_run(n)), a_run(n))
        for n, after in ((1, 2.0), (2, 4.0))
    ]
    found = shares(some)["app", "u1"]
    assert (found.low, found.expected, found.high) == (
        pytest.approx(0.4),
        pytest.approx(0.5),
        pytest.approx(0.7),
    )


def test_pairs_that_cost_most_by_either_cost_are_judged():
    groups = [Group((), ("a", "u"), 1, 1.0, 100.0, 100.0), Group((), ("b", "u"), 1, 1.0, 1.0, 90.0), Group((), ("c", "u"), 1, 1.0, 99.0, 2.0),
              Group((), ("d", "u"), 1, 1.0, 0.0, 0.0)]  # fmt: skip
    assert pairs_that_matter(groups, 3) == [("a", "u"), ("c", "u"), ("b", "u")]
    assert len(pairs_that_matter(groups, 9)) == 3


def test_users_of_one_application_do_not_use_up_the_judged_pairs():
    groups = [Group((), ("healthy", f"u{n}"), 1, 1.0, 100.0, 100.0 - n) for n in range(30)]
    groups.append(Group((), ("ill", "u"), 1, 1.0, 5.0, 5.0))
    assert pairs_that_matter(groups, 3) == [("healthy", "u0"), ("ill", "u"), ("healthy", "u1")]


def test_other_users_of_a_healthy_application_are_judged_last():
    groups = [Group((), ("healthy", f"u{n}"), 1, 1.0, 100.0, 100.0 - n) for n in range(3)]
    groups += [Group((), ("ill", f"u{n}"), 1, 1.0, 5.0, 5.0 - n) for n in range(2)]
    verdicts = shares(
        [
            (judged(), a_run(application="healthy", user="u0")),
            (judged(advised("LUS002", 8.0, 2.0, 1.0, 8.0)), a_run(1, application="ill", user="u0")),
        ]
    )
    assert pairs_that_matter(groups, 3, verdicts) == [("healthy", "u0"), ("ill", "u0"), ("ill", "u1")]


# The ranking


def ranked(**more: object):
    groups = [
        Group(("big", "u1"), ("big", "u1"), 9, 900.0, 400.0, 400.0),
        Group(("mid", "u2"), ("mid", "u2"), 5, 500.0, 10.0, 200.0),
        Group(("new", "u3"), ("new", "u3"), 1, 100.0, 50.0, 50.0),
        Group(("odd", "u4"), ("odd", "u4"), 1, 100.0, 30.0, 30.0),
    ]
    nothing = Verdict("0" * 64, "m", 0.0, 0.0, 0.0, "", "", "", (), False)
    unknown = replace(nothing, rule="MIO002", severity=1)
    some = {
        ("big", "u1"): Share(0.0, 0.0, 0.0, nothing, 4, False),
        ("odd", "u4"): Share(0.0, 0.0, 0.0, unknown, 2, True),
        ("mid", "u2"): Share(0.1, 0.5, 0.9, judged(advised("LUS002", 8.0, 2.0, 2.0, 8.0)), 3, True),
    }
    whole = Whole(15, 3, 1500.0, 460.0, 650.0, NOVEMBER, NOVEMBER + DAY)
    return ranking(groups, whole, some, **{"by": "pair", "period": Period(), "limit": 9, "damaged": 1} | more)


def test_ranking_is_by_savings_not_by_costs():
    found = ranked()
    assert [row.application for row in found.rows] == ["mid", "odd", "big", "new"]
    states = [row.saved.state for row in found.rows[:3]]
    assert states == ["saves", "gain_unknown", "nothing_found"]
    assert [row.saved.judged_runs for row in found.rows[:3]] == [3, 2, 4]
    cells = [(cells[6], cells[7]) for cells in ranking_table(found)[2]]
    assert cells == [
        ("0.0278 (0.00556 to 0.05)", "3 runs, with figures of a typical machine"),
        ("gain not known", "2 runs"),
    ]
    assert next_step(found).startswith("2 more rows without a possible saving. ")
    assert (found.rows[1].saved.expected_s, found.rows[2].saved.expected_s) == (None, 0.0)
    saved = found.rows[0].saved
    assert (saved.low_s, saved.expected_s, saved.high_s) == (pytest.approx(20.0), 100.0, pytest.approx(180.0))
    assert found.rows[3].saved is None
    assert found.concentration == 1
    assert found.groups == 4


def test_settings_list_the_users_they_would_help():
    (one,) = ranked(settings=True).settings
    assert (one.rule, one.expected_s, [(m.application, m.user) for m in one.members]) == (
        "LUS002",
        100.0,
        [("mid", "u2")],
    )


@pytest.mark.parametrize("seconds", [0.0, 3.6, 36.0, 360_000.0, 3_598_000.0, 3.6e7, 5.7e9, 1e13])
def test_core_hours_are_short(seconds):
    assert len(hours(seconds)) <= 8


def test_core_hours_have_three_digits():
    assert [hours(3600 * value) for value in (0, 1e-5, 0.94, 95, 999.7, 1594.0, 95_400, 1.7e6)] == [
        "0", "0", "0.94", "95", "1 k", "1.59 k", "95.4 k", "1.7 M",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [("2026-11", "2026-11", 30), ("2026-12-31", "2026-12-31", 1), ("2026-12", "2027-01-02", 33)],
)
def test_days_and_months_include_their_end(since, until, days):
    period = period_of(since, until)
    assert period.until - period.since == days * DAY


@pytest.mark.parametrize(
    "words",
    [("yesterday", None), ("2026-13", None), ("2026-02-30", None), ("2026-11", "2026-10"), (None, "9999-12")],
)
def test_invalid_day_is_refused(words):
    with pytest.raises(InputError):
        period_of(*words)


# The story


def told(runs: list[StoredRun]):
    categories: dict[tuple[str, int], list[tuple]] = {}
    for run in runs:
        moved = (run.bytes_read or 0) + (run.bytes_written or 0)
        figures = (run.submitted, run.runtime_s, run.in_io_s, run.waiting_s, moved)
        categories.setdefault((run.user, run.processes), []).append(figures)
    return story(
        "app",
        None,
        [CategoryRuns(*names, *np.array(rows, np.float64).T) for names, rows in categories.items()],
        worst=max(runs, key=lambda run: run.waiting_s),
        saved=None,
        lines=(),
        paths=("/logs/a",),
    )


def test_change_of_behaviour_is_found_at_its_first_run():
    random = np.random.default_rng(1)
    runs = [
        a_run(
            n,
            waiting_s=float(random.normal(40.0 if n < 60 else 120.0, 4.0)),
            in_io_s=20.0 * float(random.uniform(0.9, 1.1)),
        )
        for n in range(100)
    ]
    (change,) = told(runs).changes
    assert (change.figure, change.at) == ("waiting_s", runs[60].submitted)
    assert (change.before, change.after) == (pytest.approx(40, rel=0.05), pytest.approx(120, rel=0.05))


def test_a_terminal_shows_the_latest_ten_changes():
    runs = [
        a_run(n, user=f"u{user:02}", waiting_s=1.0 if n < 10 + user else 9.0, in_io_s=20.0, submitted=NOVEMBER + n * DAY)
        for user in range(12)
        for n in range(40)
    ]
    found = told(runs)
    lines = story_text(found).splitlines()
    assert [change.user for change in found.changes] == [f"u{user:02}" for user in range(12)]
    assert [line for line in lines if line.startswith("Since")] == [*map(change_sentence, found.changes[2:])]
    assert "and 2 earlier changes" in lines


def test_noise_is_not_a_change_of_behaviour():
    random = np.random.default_rng(2)
    for _ in range(20):
        runs = [
            a_run(n, waiting_s=float(v), in_io_s=float(v))
            for n, v in enumerate(random.lognormal(3.0, 1.0, 80))
        ]
        assert told(runs).changes == []


def test_story_gives_trend_spread_and_the_worst_run():
    runs = [a_run(n, waiting_s=float(n), submitted=NOVEMBER + n * 10 * DAY) for n in range(6)]
    found = told(runs)
    assert [(one.month, one.runs) for one in found.months] == [("2026-11", 3), ("2026-12", 3)]
    (category,) = found.categories
    assert (category.waiting_s.least, category.waiting_s.median, category.waiting_s.most) == (0.0, 2.5, 5.0)
    assert found.worst.waiting_s == 5.0
    assert found.worst.paths == ["/logs/a"]


def test_poorly_known_runs_are_described_as_well():
    unknown = a_run(1, waiting_s=None, in_io_s=None, runtime_s=None, submitted=None, bytes_written=None)
    found = told([unknown])
    assert (found.runs, found.waiting_s, found.months, found.categories[0].waiting_s) == (1, 0.0, [], None)


def test_daily_run_is_compared_with_the_seven_before_it():
    random = np.random.default_rng(3)
    seconds = [*random.uniform(9.0, 11.0, 40).tolist(), 20.0]
    rows = [("u1", 64, "/s", NOVEMBER + n * DAY, time, 0, 10**9, 4) for n, time in enumerate(seconds)]
    few = [("u2", 64, "/s", NOVEMBER + n * DAY, 1.0 + n % 2 / 10, 0, 1, 4) for n in range(8)]
    (daily, short) = daily_runs([*rows, *few, ("u3", 1, "/s", NOVEMBER, 1.0, 0, 1, 4)])
    assert (daily.user, daily.runs, daily.last_s, daily.verdict) == ("u1", 41, 20.0, "slower")
    assert daily.usual_s == pytest.approx(np.median(seconds[-8:-1]))
    assert daily.next_s == pytest.approx(np.median(seconds[-7:]))
    assert 0.8 < daily.low < 1.0 < daily.high < 1.25
    assert (short.user, short.verdict) == ("u2", "usual")
    assert 0.8 < short.low < 1.0 < short.high < 1.3  # Based on the seven alone.
    assert daily_runs(rows[:-1])[0].verdict == "usual"
    text = daily_text("ior", [daily])
    assert "SLOWER" in text
    assert "20 s" in text
