"""Values of known laws, drawn with a fixed seed, and the law that is recognised in their sample."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from vani.collect import collect
from vani.collect.arrays import Array, raw_array
from vani.collect.dataset import ENOUGH, FEWEST, Bounds, Drawn, draw, law_of, sample_dataset, type_of_values
from vani.errors import InputError
from vani.schema.dataset_facts import FormatAttributes
from vani.schema.document import dumps, loads
from vani.schema.job import Job

LAWS = {
    "uniform": (lambda r, n: r.uniform(-2, 6, n), {"low": -2, "high": 6}),
    "normal": (lambda r, n: r.normal(300, 15, n), {"mean": 300, "standard_deviation": 15}),
    "lognormal": (lambda r, n: r.lognormal(1, 0.7, n), {"log_mean": 1, "log_standard_deviation": 0.7}),
    "exponential": (lambda r, n: r.exponential(4, n), {"mean": 4}),
    "gamma": (lambda r, n: r.gamma(2.5, 3, n), {"shape": 2.5, "scale": 3}),
}


@pytest.fixture
def scipy():
    return pytest.importorskip("scipy", reason="an extra: pip install 'vani-io[collect]'")


def drawn(values, files=1):
    return Drawn(np.random.default_rng(5).permutation(np.asarray(values, float)), files, [])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", range(3))
def test_values_of_a_law_are_of_that_law(scipy, law, seed):
    make, parameters = LAWS[law]
    found = law_of(drawn(make(np.random.default_rng(seed), 8192)))
    assert (found.name, found.closest) == (law, law)
    assert found.parameters == pytest.approx(parameters, rel=0.1)
    assert found.statistic <= ENOUGH
    assert (found.values, found.files) == (8192, 1)
    assert "Kolmogorov-Smirnov" in found.test


@pytest.mark.parametrize(
    "values",
    [
        lambda r: np.concatenate((r.normal(0, 1, 2000), r.normal(30, 1, 2000))),
        lambda r: np.concatenate((np.zeros(2000), r.normal(30, 1, 2000))),
        lambda r: np.where(r.random(4000) < 0.5, r.uniform(0, 1, 4000), 1e6),
        lambda r: r.standard_cauchy(4000),
    ],
)
def test_values_without_a_law_are_reported_with_the_distance(scipy, values):
    found = law_of(drawn(values(np.random.default_rng(1))))
    assert found.name is None
    assert found.closest in LAWS
    assert found.statistic > ENOUGH
    assert found.p_value < 0.05


def test_integers_are_tested_as_well(scipy):
    random = np.random.default_rng(2)
    found = law_of(drawn(random.integers(0, 256, 8192)))
    assert (found.name, found.parameters) == ("uniform", {"low": 0, "high": 255})
    assert law_of(drawn(np.floor(random.gamma(3, 8, 8192)))).name == "gamma"
    found = law_of(drawn(np.rint(random.normal(1000, 40, 8192))))
    assert found.name == "normal"
    assert found.parameters["mean"] == pytest.approx(1000, abs=3)


def test_simpler_of_equally_good_laws_is_used(scipy):
    # A gamma distribution with shape 10,000 looks normal, also to the criterion; with shape 1 it is
    # exponential.
    random = np.random.default_rng(8)
    assert law_of(drawn(random.gamma(10_000, 0.03, 8192))).name == "normal"
    assert law_of(drawn(random.gamma(1, 3, 8192))).name == "exponential"


def test_equal_values_need_no_test():
    found = law_of(drawn(np.full(1000, 7.5)))
    assert (found.name, found.parameters, found.statistic, found.p_value) == ("constant", {"value": 7.5}, None, None)


def test_few_values_give_no_law():
    assert str(FEWEST) in law_of(drawn(np.arange(FEWEST - 1.0)))
    assert law_of(drawn([])).startswith("0 values")


def test_law_is_tested_on_the_half_it_was_not_fitted_on(scipy):
    # Values that differ between the halves: a law fitted to one is refused by the other.
    values = np.empty(2000)
    random = np.random.default_rng(3)
    values[::2], values[1::2] = random.normal(0, 1, 1000), random.normal(2, 1, 1000)
    found = law_of(Drawn(values, 1, []))
    assert found.name is None
    assert found.parameters["mean"] == pytest.approx(0, abs=0.2)
    assert found.statistic > 0.5


def test_missing_scipy_is_the_reported_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert "pip install 'vani-io[collect]'" in law_of(drawn(np.arange(1000.0)))


def array_of(values, *, fails=False):
    def read(places, ends_at):
        if fails:
            raise OSError("Input/output error")
        return np.asarray(values, float)[places]

    return Array((len(values),), FormatAttributes(), len(values), read)


def test_the_sample_is_spread_over_all_values(tmp_path):
    parts = [array_of(np.full(size, number)) for number, size in enumerate((10_000, 0, 30_000, 60_000))]
    found = draw([(tmp_path / str(n), part) for n, part in enumerate(parts)], 1000, 60)
    values, counts = np.unique(found.values, return_counts=True)
    # The number drawn from each array is proportional to its values; it is the same each time, in random
    # order.
    assert (values.tolist(), counts.tolist()) == ([0, 2, 3], [100, 300, 600])
    assert found.files == 3
    assert len(set(found.values[:20].tolist())) > 1
    assert draw([(tmp_path / str(n), part) for n, part in enumerate(parts)], 1000, 60).values.tolist() == (
        found.values.tolist()
    )


def test_each_part_of_an_array_is_in_the_sample(tmp_path):
    found = np.sort(draw([(tmp_path, array_of(np.arange(100_000)))], 100, 60).values)
    assert (found // 1000).tolist() == list(range(100))
    assert set((found % 1000).tolist()) != {0.0}


def test_few_values_are_used_unchanged(tmp_path):
    found = draw([(tmp_path, array_of([3, np.nan, 1, np.inf, 2]))], 100, 60)
    assert sorted(found.values.tolist()) == [1, 2, 3]
    assert draw([], 100, 60).values.tolist() == []


def test_unreadable_array_is_reported_and_skipped(tmp_path):
    found = draw([(tmp_path / "bad", array_of([1, 2], fails=True)), (tmp_path / "good", array_of([3, 4]))], 9, 60)
    assert (sorted(found.values.tolist()), found.files) == ([3, 4], 1)
    assert found.problems == [f"{tmp_path / 'bad'}: Input/output error"]


def test_time_ends_the_sample(tmp_path):
    found = draw([(tmp_path, array_of(np.arange(10)))], 10, -1)
    assert found.values.tolist() == []
    assert "0 of 10 values of the sample were read" in found.problems[0]


def test_sizes_that_no_file_has_do_not_overflow(tmp_path):
    size = 1 << 49
    parts = [(tmp_path, raw_array(tmp_path, size * 8, np.dtype("f8"))) for _ in range(4)]
    assert draw(parts, 10, -1).values.tolist() == []


@pytest.mark.parametrize("name", ["float32", ">f4", "i2", "u1"])
def test_types_are_named_as_numpy_does(name):
    assert type_of_values(name) == np.dtype(name)


@pytest.mark.parametrize("name", ["words", "complex64", "S4", "f4,i4", ""])
def test_non_numeric_type_is_wrong_usage(name):
    with pytest.raises(InputError, match="no number type is called"):
        type_of_values(name)


def test_the_law_of_a_data_set_is_found(scipy, tmp_path):
    random = np.random.default_rng(4)
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", random.normal(5, 1, (50, 40)).astype("f4"))
    (tmp_path / "readme.txt").write_text("words")
    found = sample_dataset(tmp_path)
    assert (found.distribution.name, found.distribution.files, found.distribution.values) == ("normal", 3, 6000)
    assert [f.attributes and f.attributes.dims for f in found.files] == [2, 2, 2, None]
    few = sample_dataset(tmp_path, Bounds(values=300, read=2))
    assert (few.distribution.files, few.distribution.values) == (2, 300)


def test_raw_files_are_read_as_the_type_that_the_user_names(scipy, tmp_path):
    np.random.default_rng(4).gamma(2, 3, 5000).astype(">f4").tofile(tmp_path / "a.raw")
    unknown = {}
    assert sample_dataset(tmp_path, unknown=unknown).distribution is None
    assert "--dtype" in unknown["dataset.distribution"]
    found = sample_dataset(tmp_path, raw_type=np.dtype(">f4"))
    assert found.distribution.name == "gamma"
    assert (found.files[0].dims, found.files[0].attributes) == (None, None)


def test_reason_is_given_if_no_law_is_known(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("words")
    (tmp_path / "in/b.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    monkeypatch.setitem(sys.modules, "h5py", None)
    job = collect({}, tmp_path, tmp_path / "in")
    assert job.dataset.distribution is None
    assert "no file contains numbers of a known type" in job.unknown["dataset.distribution"]
    assert job.unknown["dataset.attributes"].startswith("1 file was not examined: h5py is not installed")
    assert "h5py" in job.unknown["dataset.distribution"]
    assert loads(dumps(job), Job) == job
    none = collect({}, tmp_path, tmp_path / "in", bounds=Bounds(values=0))
    assert none.unknown["dataset.distribution"].startswith("no values were requested")
