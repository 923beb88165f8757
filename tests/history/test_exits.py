"""Exports of a history for other programs: rows as Parquet, and figures that Prometheus' own parser reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.processes import run
from tests.history.test_serve import HOSTILE
from tests.history.test_story import NOVEMBER, a_run
from vani import centre
from vani.centre.history.rows import Verdict
from vani.centre.history.runs import write
from vani.centre.history.runs.store import Store
from vani.errors import InputError

TIMES = "[" + ", ".join(f"[{target}, 1.0, {100.0 if target == 3 else 1.0}, 1e6]" for target in range(8)) + "]"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exits") / "h.sqlite"
    rows = [a_run(n, target_times=TIMES) for n in range(20)]
    rows += [a_run(90, application=HOSTILE, user='a"b\\', submitted=None), a_run(91, submitted=NOVEMBER - 90 * 86400)]
    verdict = Verdict(rows[0].digest, "m", 4.0, 6.0, 8.0, "LUS002", "stripes", "Few targets.", ("x",), False)
    with Store(place).writing(make=True) as connection:
        write.add_runs(connection, rows)
        write.put(connection, [verdict])
    return place


def test_parquet_has_a_row_for_each_run_and_the_advice_on_judged_ones(db, tmp_path):
    assert centre.history_export_runs(tmp_path / "runs.parquet", db=db) == 22
    rows = {row["digest"]: row for row in pq.read_table(tmp_path / "runs.parquet").to_pylist()}
    first = rows[f"{0:064x}"]
    assert (first["waiting_s"], first["advice_rule"], first["advice_saved_s"]) == (40.0, "LUS002", 6.0)
    assert first["submitted_at"].timestamp() == first["submitted"] == NOVEMBER
    odd = rows[f"{90:064x}"]
    assert (odd["application"], odd["submitted_at"], odd["advice_rule"]) == (HOSTILE, None, None)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.parquet"]
    with pytest.raises(InputError):
        centre.history_export_runs(tmp_path / "none" / "runs.parquet", db=db)


def test_metrics_are_read_by_prometheus(db):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client is not installed")
    families = {family.name: family for family in parser.text_string_to_metric_families(centre.history_metrics(db=db))}
    values = {name: family.samples[0].value for name, family in families.items()}
    assert values["vani_history_runs"] == 22
    assert values["vani_history_waiting_seconds"] == 22 * 40
    # The last 30 days before the last run, without the run in August and the one with an unknown time.
    (recent,) = families["vani_history_recent_runs"].samples
    assert (recent.labels, recent.value) == ({"application": "app", "user": "u1"}, 20)
    assert families["vani_history_recent_savable_seconds"].samples[0].value == pytest.approx(20 * 40 * 0.6)
    slow = {sample.labels["target"] for sample in families["vani_history_target_slow"].samples if sample.value}
    assert slow == {"3"}


def test_names_in_metrics_are_escaped(db):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client is not installed")
    with Store(db).writing() as connection:
        write.add_runs(connection, [a_run(95, application=HOSTILE, user='a"b\\', waiting_s=1e5)])
    families = {family.name: family for family in parser.text_string_to_metric_families(centre.history_metrics(db=db))}
    assert 'a"b\\' in {sample.labels["user"] for sample in families["vani_history_recent_runs"].samples}


@pytest.mark.slow
def test_a_hundred_thousand_runs_are_anonymised_in_300_mb(tmp_path):
    place = tmp_path / "h.sqlite"
    subprocess.run([sys.executable, "-m", "tests.history.bulk_history", str(place), "100000"], check=True)
    command = [sys.executable, "-m", "vani", "history", "anonymise", "--database", str(place), "--key", str(tmp_path / "key")]
    # A child that this process starts itself counts this process's own memory as its peak.
    done = run(command)
    assert (done.outcome, done.peak_bytes < 300e6) == ("done", True), done
