"""Tarazu's rules for misses, event by event."""

from __future__ import annotations

from vani.centre.prediction.creations.following import Misses, ToDo


def fed(misses: Misses, events: str) -> list[tuple[int, ToDo]]:
    """Feed hits (`.`) and misses (`x`); return each event, from 1, that required an action."""
    found = [(at, misses.saw(hit=event == ".")) for at, event in enumerate(events, 1)]
    return [one for one in found if one[1] is not ToDo.NOTHING]


def test_correct_predictions_need_no_action():
    assert fed(Misses(100), "." * 1000) == []


def test_the_tenth_miss_of_a_hundred_files_predicts_again():
    assert fed(Misses(100), "x" * 9) == []
    assert fed(Misses(100), "x" * 10) == [(10, ToDo.PREDICT)]


def test_misses_are_counted_with_hits_between():
    assert fed(Misses(20), "x.......x") == [(9, ToDo.PREDICT)]


def test_misses_restart_after_a_new_prediction():
    assert fed(Misses(100), "x" * 19) == [(10, ToDo.PREDICT)]
    assert fed(Misses(100), "x" * 20) == [(10, ToDo.PREDICT), (20, ToDo.PREDICT)]


def test_the_fourth_time_in_a_row_retrains():
    assert fed(Misses(100), "x" * 40) == [
        (10, ToDo.PREDICT), (20, ToDo.PREDICT), (30, ToDo.PREDICT), (40, ToDo.RETRAIN),
    ]  # fmt: skip


def test_hits_in_succession_end_a_row_of_predictions():
    three = "x" * 30
    assert fed(Misses(100), three + "." * 9 + "x" * 10)[-1] == (49, ToDo.RETRAIN)
    assert fed(Misses(100), three + "." * 10 + "x" * 10)[-1] == (50, ToDo.PREDICT)


def test_after_retraining_a_new_row_begins():
    misses = Misses(1000)
    assert [todo for _, todo in fed(misses, "x" * 500)] == [ToDo.PREDICT] * 3 + [ToDo.RETRAIN, ToDo.PREDICT]


def test_more_than_half_missed_starts_over():
    misses = Misses(100)
    assert fed(misses, "x" * 51)[-1] == (51, ToDo.START_OVER)
    assert (misses.created, misses.missed, misses.predicted) == (0, 0, 0)


def test_half_is_not_more_than_half():
    assert ToDo.START_OVER not in [todo for _, todo in fed(Misses(100), "x" * 50)]


def test_run_longer_than_predicted_is_judged_by_half_of_its_creations():
    misses = Misses(4)
    assert fed(misses, "." * 10 + "x" * 5)[-1][1] is not ToDo.START_OVER
    assert ToDo.START_OVER in [todo for _, todo in fed(misses, "x" * 6)]


def test_first_file_starts_over_if_nothing_was_predicted():
    assert fed(Misses(0), "x") == [(1, ToDo.START_OVER)]
