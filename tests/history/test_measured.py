"""Measurements of `vani tune` sessions are stored, and can be moved, hidden and deleted like runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from vani import centre
from vani.centre.history.measured import comparable, measurements_of
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.errors import InputError
from vani.schema.tuned import Candidate, Result, Setting, Tuned, TunedRun

LAYOUT, HINTS, STAGED = Setting(layout="-c 8"), Setting(hints={"cb_nodes": "8"}), Setting(environment={"TMPDIR": '/l/alice "1"'})


def session(runs: list[tuple[list[int], float]], result: Result | None, **more: object) -> Tuned:
    """A session of three settings; `runs` are candidates and seconds, negative ones for failed outcomes."""
    return Tuned(
        version="1", begun="2026-03-03T08:00:00+00:00", ended="2026-03-03T09:00:00+00:00", host="n1", command=["a"],
        data="/d", fresh="subfolder", result=result,
        **{"application": "ior", "machine": "testbed", "processes": 64, "nodes": 2, **more},
        candidates=[
            Candidate(rule=f"R{i}", name="r", reason="", expected=2.0, expected_run=1.2, setting=setting)
            for i, setting in enumerate([LAYOUT, HINTS, STAGED])
        ],
        runs=[
            TunedRun(number=i + 1, candidates=c, folder="f", seconds=abs(s), outcome="ended" if s > 0 else "failed")
            for i, (c, s) in enumerate(runs)
        ],
    )  # fmt: skip


PROVEN = Result(
    verdict="proven", why="", candidates=[0], speedup=1.48, low=1.45, high=1.51, noise=0.01, as_is_runs=2, best_runs=2
)  # fmt: skip
NOTHING = Result(verdict="nothing_helps", why="", candidates=[], noise=0.01, as_is_runs=2)
HELPED = session([([], 98.4), ([0], 66.2), ([0, 1], 66.1), ([0, 2], -1.0), ([], 99.1), ([0], 66.9)], PROVEN)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    HELPED.save(tmp_path / "tuned.yaml")
    centre.history_add(tmp_path / "tuned.yaml", db=tmp_path / "h.sqlite", user="alice")
    return tmp_path / "h.sqlite"


def rows(db: Path):
    with Store(db).reading() as connection:
        return read.measurements(connection)


def test_best_setting_and_all_others_have_a_row(db):
    best, hints, staged = rows(db)
    assert (best.verdict, best.speedup, best.low, best.high, best.runs, best.rules) == ("proven", 1.48, 1.45, 1.51, 2, ("R0",))
    assert (best.application, best.machine, best.processes, best.nodes, best.expected) == ("ior", "testbed", 64, 2, 1.2)
    # Applied on top of the layout, so its own expectation is not comparable.
    assert (hints.verdict, hints.rules, hints.low, hints.expected) == ("no_gain", ("R1",), None, None)
    assert hints.speedup == pytest.approx((66.2 * 66.9) ** 0.5 / 66.1)
    assert (staged.verdict, staged.speedup, staged.user) == ("failed", None, "alice")


def test_settings_proven_together_are_one_row():
    result = PROVEN.model_copy(update={"candidates": [0, 1]})
    (row,) = measurements_of(session([([], 9.0), ([0], 7.0), ([0, 1], 5.0), ([], 9.0), ([0, 1], 5.0)], result), "u")
    assert (row.rules, row.expected) == (("R0", "R1"), None)
    assert Setting.model_validate_json(row.setting) == LAYOUT.with_(HINTS)


def test_useless_settings_are_reported_as_without_gain():
    seen = measurements_of(session([([], 9.0), ([0], 9.1), ([1], 8.95), ([], 9.0)], NOTHING), "u")
    assert [(row.verdict, row.low) for row in seen] == [("no_gain", None)] * 2


def test_session_is_stored_once_and_replaced_by_a_later_state(db, tmp_path):
    for name in ("copy.yaml", "tuned.yaml"):
        HELPED.save(tmp_path / name)
    added = centre.history_add(tmp_path, db=db, user="alice").added
    assert (added.sessions, len(rows(db))) == (0, 3)
    HELPED.model_copy(update={"result": PROVEN.model_copy(update={"speedup": 1.5})}).save(tmp_path / "later.yaml")
    centre.history_add(tmp_path / "later.yaml", db=db, user="alice")
    assert rows(db)[0].speedup == 1.5
    assert len(rows(db)) == 3


def test_export_contains_the_measured_values(db, tmp_path):
    centre.history_export(tmp_path / "e.gz", db=db)
    for _ in range(2):
        centre.history_import(tmp_path / "e.gz", db=tmp_path / "copy.sqlite")
    assert rows(tmp_path / "copy.sqlite") == rows(db)


def test_hashing_leaves_no_user_and_no_path_of_a_session(db, tmp_path):
    centre.history_anonymise(tmp_path / "key", db=db)
    assert b"alice" not in db.read_bytes()
    assert rows(db)[0].setting == '{"layout": "-c 8"}'
    assert Setting.model_validate_json(rows(db)[2].setting).environment["TMPDIR"].startswith("/path-")
    centre.history_add(tmp_path / "tuned.yaml", db=db, user="alice", key=tmp_path / "key")
    assert (len(rows(db)), b"alice" in db.read_bytes()) == (3, False)


def test_measurements_of_a_removed_user_are_deleted(db):
    assert centre.history_remove(user="alice", db=db) == 1
    assert rows(db) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("schema: vani.tuned/1\nbegun: x\n", "missing"),
        (HELPED.model_copy(update={"ended": "some day"}).to_yaml(), "'some day' is not a date"),
        (HELPED.to_yaml().replace("speedup: 1.48", "speedup: .nan"), "speedup"),
        (HELPED.to_yaml().replace("candidates: [0, 2]", "candidates: [0, 9]"), "there are only 3 candidates"),
        (HELPED.model_copy(update={"result": None}).to_yaml(), "measured no setting, or continues"),
    ],
)
@pytest.mark.sampled(3)
def test_invalid_document_is_refused_by_name(tmp_path, text, why):
    (tmp_path / "t.yaml").write_text(text)
    added = centre.history_add(tmp_path / "t.yaml", db=tmp_path / "h.sqlite").added
    assert len(added.refused) == 1
    assert why in added.refused[0]
    assert rows(tmp_path / "h.sqlite") == []


def test_unfinished_session_in_a_folder_is_skipped(tmp_path):
    HELPED.model_copy(update={"result": None}).save(tmp_path / "t.yaml")
    added = centre.history_add(tmp_path, db=tmp_path / "h.sqlite").added
    assert (added.sessions, added.damaged) == (0, 0)


def test_the_nearest_scale_comes_first_and_then_the_latest_day():
    base = measurements_of(HELPED, "u")[0]
    scales = [(64, 2, 1.0), (128, 4, 2.0), (64, 2, 3.0), (129, 4, 4.0), (None, None, 5.0), (64, 5, 6.0), (64, None, 7.0)]
    made = [type(base)(**{n: getattr(base, n) for n in base.__slots__} | {"processes": p, "nodes": n, "ended": e}) for p, n, e in scales]
    assert [row.ended for row in comparable(made, 64, 2)] == [7.0, 3.0, 1.0, 2.0]
    assert comparable(made, None, None) == []


def test_unrelated_database_is_refused(tmp_path):
    HELPED.save(tmp_path / "tuned.yaml")
    (tmp_path / "h.sqlite").write_text("not a database")
    with pytest.raises(InputError, match="is not a database, and was not changed"):
        centre.history_add(tmp_path / "tuned.yaml", db=tmp_path / "h.sqlite")
