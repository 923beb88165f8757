"""`python -m benchmarks.diagnosis`: names are mapped to dimensions, and halves keep repetitions together."""

from __future__ import annotations

import csv

import pytest

from benchmarks import diagnosis as benchmark
from vani.advisors.catalogue import patterns

NAMED = {
    "access_granularity", "metadata_intensity", "parallelism_efficiency", "access_pattern", "interface_choice",
    "throughput_utilization", "many_files", "shared_file", "few_targets",
}  # fmt: skip


def test_each_pattern_has_dimensions_and_a_reason():
    assert set(benchmark.dimensions()) <= {pattern.name for pattern in patterns()}
    assert {name for named in benchmark.dimensions().values() for name in named} <= NAMED
    lines = [line for line in benchmark.DIMENSIONS.read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if len(line.partition("#")[2]) < 5] == []


@pytest.mark.skipif(not benchmark.LABELS.is_dir(), reason="the labelled runs are not here")
def test_halves_are_of_similar_size():
    with (benchmark.LABELS / "diobench/labels.csv").open() as file:
        halves = [benchmark.half_of(row["config"]) for row in csv.DictReader(file)]
    assert 0.3 < sum(halves) / len(halves) < 0.7


@pytest.mark.skipif(not benchmark.LABELS.is_dir(), reason="the labelled runs are not here")
def test_a_log_gets_the_names_of_its_diagnosis(tmp_path):
    logs, folder = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    folder.mkdir()
    case = benchmark.LABELS.parents[1] / "cases/ior-fsync-each.txt"
    (logs / "a.txt").write_text(case.read_text())
    (logs / "b.txt").write_text("no log")
    assert benchmark.write_diagnoses(logs, folder) == 1
    assert "flush_after_each_write" in (folder / "a.yaml").read_text()
