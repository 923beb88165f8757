"""`vani collect` and its options."""

from __future__ import annotations

import numpy as np
import pytest
import yaml


def test_values_of_the_data_set_are_read(run, desk):
    np.save(desk / "a.npy", np.zeros((10, 100)))
    done = run("collect", "--dataset", ".")
    assert done.status == 0
    dataset = yaml.safe_load(done.out)["dataset"]
    assert dataset["distribution"]["name"] == "constant"
    assert dataset["files"][0]["attributes"] == {
        "datasets": 1,
        "dims": 2,
        "type": "float64",
        "encoding": "npy, little-endian",
        "chunks": [],
    }
    done = run("collect", "--dataset", ".", "--sample", "0")
    dataset = yaml.safe_load(done.out)["dataset"]
    assert (dataset["distribution"], dataset["compression"]) == (None, None)


def test_raw_files_have_the_named_type(run, desk):
    np.zeros(1000, ">f4").tofile(desk / "a.bin")
    done = run("collect", "--dataset", "a.bin", "--dtype", ">f4")
    assert yaml.safe_load(done.out)["dataset"]["distribution"]["values"] == 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sample", "9"], "need --dataset"),
        (["--dtype", "f4"], "need --dataset"),
        (["--dataset", ".", "--dtype", "words"], "no number type is called 'words'"),
        (["--dataset", ".", "--sample", "-1"], "--sample"),
        (["--dataset", "gone"], "no such data set"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(run, desk, arguments, said):
    done = run("collect", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.line
