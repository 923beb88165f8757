"""The sample of the data set is bounded, and no odd file stops it."""

from __future__ import annotations

import os

import numpy as np
import pytest
from made_files import FITS

from vani.collect.dataset import Bounds, sample_dataset
from vani.errors import InputError


def test_files_are_counted_and_listed_by_name(tmp_path):
    pytest.importorskip("astropy", reason="an extra: pip install 'vani-io[collect]'")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/one.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    (tmp_path / "a.fits").write_bytes(FITS)
    found = sample_dataset(tmp_path)
    assert [(f.path, f.size, f.format, f.dims) for f in found.files] == [
        (f"{tmp_path}/a.fits", len(FITS), "fits", [2, 4, 5]),
        (f"{tmp_path}/b/one.h5", 8, "hdf5", None),
    ]
    assert (found.count, found.total_size, found.formats) == (2, len(FITS) + 8, {"fits": 1, "hdf5": 1})
    assert not found.sampled
    assert found.problems == []


def test_a_single_file_is_a_data_set(tmp_path):
    (tmp_path / "x").write_text("words")
    assert sample_dataset(tmp_path / "x").count == 1
    with pytest.raises(InputError, match="no such data set"):
        sample_dataset(tmp_path / "gone")


def test_bounds_end_the_search(tmp_path):
    for index in range(10):
        (tmp_path / f"{index}.bin").write_bytes(b"\0" * index)
    found = sample_dataset(tmp_path, Bounds(listed=4, opened=2))
    assert (found.count, found.total_size, len(found.files), found.sampled) == (10, 45, 4, True)
    assert [file.format for file in found.files] == ["bin", "bin", None, None]
    found = sample_dataset(tmp_path, Bounds(files=3))
    assert (found.count, found.sampled) == (3, True)
    assert sample_dataset(tmp_path, Bounds(files=10)).sampled is False
    assert sample_dataset(tmp_path, Bounds(seconds=-1)).sampled is True


def test_links_pipes_and_loops_do_no_harm(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").write_text("words")
    (tmp_path / "real/loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "link").symlink_to("real/x")
    (tmp_path / "gone").symlink_to("nowhere")
    os.link(tmp_path / "real/x", tmp_path / "hard")
    os.mkfifo(tmp_path / "pipe")
    found = sample_dataset(tmp_path)
    assert (found.count, found.total_size) == (1, 5)
    assert len(found.problems) == 2
    assert any("gone: No such file" in problem for problem in found.problems)


def test_non_text_names_are_shown_with_escapes(tmp_path):
    os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9", os.O_CREAT))
    assert sample_dataset(tmp_path).files[0].path.endswith("/caf\\xe9")


def test_unreadable_dataset_is_reported(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("words")
    for index in range(3):
        (tmp_path / f"dir{index}").mkdir()

    real = os.scandir

    def scandir(path):
        if str(path) != str(tmp_path):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("vani.collect.dataset.os.scandir", scandir)
    found = sample_dataset(tmp_path, Bounds(problems=2))
    assert found.count == 1
    assert found.problems == [
        f"{tmp_path}/dir0: Permission denied",
        f"{tmp_path}/dir1: Permission denied",
        "and 1 more",
    ]


@pytest.mark.slow
def test_codecs_see_pieces_of_the_whole_file(tmp_path):
    # One part in eight compresses, and it is at the start.
    noise = np.random.default_rng(1).bytes(14 << 20)
    (tmp_path / "x").write_bytes(bytes(2 << 20) + noise)
    sample = sample_dataset(tmp_path).compression
    assert (sample.format, sample.files, sample.value_bytes) == ("bin", 1, None)
    assert 12 << 20 < sample.bytes <= 16 << 20
    ratios = {(codec.name, codec.level): codec.ratio for codec in sample.codecs}
    assert ratios.keys() >= {("gzip", 1), ("gzip", 4), ("zstd", 3), ("lz4", None)}
    assert all(1 < ratio < 1.35 for ratio in ratios.values())
    assert all(codec.compress > 1e6 and codec.decompress > 1e6 for codec in sample.codecs)


@pytest.mark.slow
def test_filters_of_hdf5_are_tried_with_shuffling(tmp_path):
    h5py = pytest.importorskip("h5py", reason="an extra: pip install 'vani-io[collect]'")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        # The upper bytes of neighbours are equal, the lower ones are noise.
        file["x"] = np.random.default_rng(1).integers(0, 1 << 16, 1 << 18, np.int64)
    sample = sample_dataset(tmp_path).compression
    assert (sample.format, sample.value_bytes) == ("hdf5", 8)
    ratios = {(codec.name, codec.level, codec.shuffle): codec.ratio for codec in sample.codecs}
    assert {codec.library for codec in sample.codecs} == {"h5py"}
    assert ratios["gzip", 4, True] == pytest.approx(4, rel=0.1)
    assert ratios["gzip", 4, False] < 3
    assert ratios.keys() >= {("lzf", None, True), ("lzf", None, False)}


def test_type_of_raw_files_matches_their_values(tmp_path):
    # Read as numbers, these bytes are signalling NaNs; warnings are errors here.
    (tmp_path / "x").write_bytes(b"\x01\x00\xa0\x7f" * (1 << 16))
    assert sample_dataset(tmp_path, raw_type=np.dtype("<f4")).compression.value_bytes == 4


def test_time_and_bytes_bound_the_codecs(tmp_path):
    (tmp_path / "x").write_bytes(bytes(64 << 20))
    late = sample_dataset(tmp_path, Bounds(packing_s=-1)).compression
    assert late.bytes == 1 << 20
    few = sample_dataset(tmp_path, Bounds(packed=3 << 20)).compression
    assert (few.pieces, few.bytes) == (3, 3 << 20)


@pytest.mark.parametrize(
    ("size", "bounds", "why"),
    [(1000, Bounds(), "less than 64 KiB"), (1 << 20, Bounds(packed=0), "no sample was requested")],
)
def test_no_compression_has_a_reason(tmp_path, size, bounds, why):
    (tmp_path / "x").write_bytes(bytes(size))
    unknown = {}
    assert sample_dataset(tmp_path, bounds, unknown=unknown).compression is None
    assert why in unknown["dataset.compression"]
