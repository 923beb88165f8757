"""Measured writes from IOR output, CSV and runs of a history, and which means have converged."""

from __future__ import annotations

import numpy as np
import pytest
from history.ior_output import json_40, text_30, text_33
from history.test_story import a_run

from vani.centre.write_time.samples import Writes, converged, read_samples, read_writes, sampled, writes_of
from vani.errors import InputError

GiB = 1 << 30


def written(folder, text: str, name: str = "ior"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "numbers", "layout"),
    [
        (text_30([3.0, 4.0]), {"nodes": 3, "processes": 48, "bytes": 3 * GiB, "request": 1 << 20}, "single-shared-file"),
        (text_33([87.13, 90.0]), {"nodes": 8, "processes": 256, "bytes": 6400 * GiB, "request": 1 << 20}, "file-per-process"),
        (json_40([0.1, 0.2]), {"nodes": 2, "processes": 8, "bytes": 16 << 20, "request": 1 << 18, "stripe_count": 4}, "file-per-process"),
        (json_40([0.1, 0.2], nested=True), {"nodes": 2, "processes": 8, "bytes": 16 << 20, "request": 1 << 18, "stripe_count": 4}, "file-per-process"),
    ],
    ids=["text of 3.0", "text of 3.3", "JSON", "JSON of 3.2"],
)  # fmt: skip
def test_ior_output_gives_its_writes_and_no_reads(tmp_path, text, numbers, layout):
    found = read_writes(written(tmp_path, text))
    assert len(found) == 2
    assert {name: column.tolist() for name, column in found.numbers.items()} == {
        name: [value, value] for name, value in numbers.items()
    }
    assert set(found.words["layout"]) == {layout}
    assert len(sampled(found)) == 1


def test_repetitions_in_several_files_are_one_sample(tmp_path):
    paths = [written(tmp_path, text_33([time]), f"{n}.out") for n, time in enumerate((80.0, 90.0, 100.0))]
    found = read_samples(paths)
    assert found.seconds == pytest.approx([90.0])
    assert found.standard_error == pytest.approx([10 / 3**0.5 / 90])


def test_write_ended_by_a_deadline_has_the_size_of_the_moved_bytes(tmp_path):
    lines = text_33([87.13]).splitlines(keepends=True)
    row = next(n for n, line in enumerate(lines) if line.startswith("write"))
    cells = lines[row].split()
    lines[row] = " ".join([cells[0], "1000", *cells[2:]]) + "\n"
    whole = "".join(lines)
    with pytest.raises(InputError, match=r"87.13 s at 1000 MiB/s are 91.4 GB, its file has 6.87 TB"):
        read_writes(written(tmp_path, whole))
    stopped = whole.replace("\nResults:", "stonewallingTime    : 60\n\nResults:")
    assert read_writes(written(tmp_path, stopped)).numbers["bytes"] == pytest.approx([87130 * 2**20])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (text_33([87.13])[:300], "ends before its results: it is cut off"),
        (text_33([87.13]).split("87.13")[0] + "\n", "figures where IOR prints 11: it is cut off or damaged"),
        (
            text_33([87.13]).replace("tasks               : 256", ""),
            "IOR's options are damaged or missing ('tasks')",
        ),
        (text_33([87.13]).replace("1 MiB", "1 MoB"), "IOR's options are damaged or missing"),
        (text_33([87.13]).replace("total(s)", "total"), "the titles of its results are damaged"),
        (text_33([87.13]).replace("write  ", "read   "), "has no write"),
        (text_33([87.13]).replace("87.13", "nan  "), "a write of nan s"),
        (text_33([87.13]).replace("87.13 ", "8x.13 "), "'8x.13' is not a number"),
        (json_40([0.1])[:-40], "is not complete JSON"),
        (json_40([0.1]).replace('"tests"', '"test"'), "is not IOR's JSON (KeyError"),
        (json_40([0.1]).replace('"tasks": 8', '"tasks": -1'), "-1 tasks on"),
        ("{" * 100_000, "is no"),
        ("[]", "neither a column"),
    ],
)
def test_damaged_output_of_ior_is_refused_in_one_line(tmp_path, text, part):
    with pytest.raises(InputError) as refused:
        read_writes(written(tmp_path, text))
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_differ_in_their_columns_are_not_joined(tmp_path):
    one = written(tmp_path, "nodes,bytes,seconds\n1,2,3\n", "one.csv")
    two = written(tmp_path, "nodes,seconds\n1,3\n", "two.csv")
    three = written(tmp_path, "nodes,bytes,seconds\nmany,2,3\n", "three.csv")
    with pytest.raises(InputError, match=r"two.csv: has no column 'bytes' as .*one.csv has"):
        read_samples([one, two])
    with pytest.raises(InputError, match="nodes is 'many'"):
        read_samples([one, three])


def test_two_columns_with_times_are_refused(tmp_path):
    with pytest.raises(InputError, match="has two times of writes, 'seconds' and as 'bandwidth'"):
        read_writes(written(tmp_path, "nodes,bytes,bandwidth,seconds\n1,2,2,1\n"))


def test_mean_has_converged_if_it_is_known_to_a_tenth():
    # Nine repetitions, the paper's maximum: at 0.9, 1.645 * deviation / 3 must be a tenth of the mean.
    limit = 10 * 0.1 * 3 / 1.6449
    for deviation, known in ((0.99 * limit, True), (1.01 * limit, False)):
        times = 10 + np.array([1.0, -1.0] * 4 + [0.0]) * deviation  # with this standard deviation
        samples = sampled(Writes({"nodes": np.ones(9)}, {}, times))
        assert converged(samples, 0.9).tolist() == [known]
        assert converged(samples, 0.98).tolist() == [False]


def test_single_measurements_are_used_unchanged():
    samples = sampled(Writes({"nodes": np.array([1.0, 2.0, 2.0])}, {}, np.array([1.0, 1.0, 100.0])))
    assert converged(samples, 0.9).tolist() == [True, False]


def test_runs_of_a_history_that_write_and_hardly_read_are_writes():
    runs = [
        a_run(0, bytes_written=1_000_000, writes=10, stripes=4),
        a_run(1, bytes_written=1_003_000, writes=10, stripes=4, slowest_s=12.0),
        a_run(2, bytes_written=4_000_000, writes=10, stripes=4),
        a_run(3, bytes_written=1000, bytes_read=1000, writes=1, stripes=4),
        a_run(4, bytes_written=0, writes=0, stripes=4),
        a_run(5, bytes_written=1000, slowest_s=None, writes=1, stripes=4),
    ]
    found = writes_of(runs, "runs of app")
    assert found.seconds.tolist() == [10, 12, 10]
    assert sorted(found.numbers) == ["bytes", "processes", "request", "stripe_count"]
    samples = sampled(found)
    assert samples.seconds.tolist() == [11, 10]  # 0.3 % more bytes do not make a different write
    with pytest.raises(
        InputError, match="runs of app: none of 2 runs writes, hardly reads, and has its time"
    ):
        writes_of(runs[3:5], "runs of app")
