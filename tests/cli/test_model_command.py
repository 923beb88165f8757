"""`vani model` from a user's view."""

from __future__ import annotations

import json

import pytest

from vani.centre.prediction.schema import Prediction, WriteTimePrediction

TITAN = ("model", "predict", "--system", "titan", "-n", 128, "-m", 8, "-K", "500MB", "-W", 4)


def test_every_term_is_shown_with_the_range_over_placements(run, desk):
    shown = run(*TITAN)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith("128 nodes x 8 processes x 500 MB, 4 stripes per file: 3.49 s to 2 min 12 s")
    assert "s_r*m*K" in shown.out
    assert run(*TITAN, "-o", "p.yaml").status == 0
    assert run(*TITAN, "-o", "p.json").status == 0
    found = Prediction.load(desk / "p.yaml")
    assert isinstance(found, WriteTimePrediction)
    assert [end.placement for end in found.ends] == ["packed", "spread"]
    assert found.high == pytest.approx(131.8045, abs=1e-3)
    assert json.loads((desk / "p.json").read_text())["kind"] == "write_time"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("-n", 1024), "1,024 nodes: the model was tested with at most 512"),
        (("-m", 32), "32 processes per node: there were at most 16"),
        (("-K", "20GB"), "20,000 MB per process: there were 1 to 10,240"),
        (("-W", 100), "100 stripes: there were 1 to 64"),
        (("-n", 1, "-K", "10MB"), "1.82 s at most: the model was made from writes of more than 5 s"),
    ],
)
def test_no_gain_is_promised_outside_the_model(run, asked, why):
    done = run(*TITAN, *asked)
    assert done.status == 0
    assert done.out.startswith(f"Outside of the model: {why}")
    assert "no estimate" in done.out


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (("-n", 0), "--nodes: is 0; give a whole number, 1 to 10,000,000"),
        (("-m", -3), "--processes-per-node: is -3; give a whole number, 1 to 10,000,000"),
        (("-K", "much"), "--bytes-per-process: much is not a size; give one such as 500MB or 512MiB"),
        (("-K", "0"), "--bytes-per-process: is 0; give a whole number, 1 to 1,152,921,504,606,846,976"),
        (("-W", 0), "--stripe-count: is 0; give a whole number, 1 to 10,000,000"),
        (("--system", "lumi"), "--system: no model of 'lumi' is published; there are models of cetus, titan"),
        (("--system", "cetus"), "--stripe-count: cetus has no stripe count; leave it out"),
    ],
)
def test_impossible_write_is_refused(run, asked, line):
    done = run(*TITAN, *asked)
    assert (done.status, done.line) == (2, line)


def test_the_bundled_models_are_listed(run):
    assert [line.split()[0] for line in run("model", "list").out.splitlines()] == ["cetus", "titan"]
