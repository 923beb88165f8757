"""The sample of the data set is bounded, and no odd file stops it."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.collect.dataset import Bounds, sample_dataset
from vani.collect.shapes import dims_of, fits_dims, netcdf_dims, npy_dims
from vani.errors import InputError


def card(text):
    return text.ljust(80).encode()


FITS = (
    card("SIMPLE  =                    T")
    + card("BITPIX  =                  -32")
    + card("NAXIS   =                    3")
    + b"".join(card(f"NAXIS{axis}  = {size:>20}") for axis, size in ((1, 5), (2, 4), (3, 2)))
    + card("END")
)


def netcdf(version):
    """Dimensions time (record), y = 3, x = 4; variables t(time), v(time, y, x): after the specification."""

    def number(value):
        return struct.pack(">q" if version == 5 else ">i", value)

    def name(text):
        return number(len(text)) + text.encode().ljust(-(-len(text) // 4) * 4, b"\0")

    def tag(value):
        return struct.pack(">i", value)

    absent = tag(0) + number(0)
    attribute = tag(12) + number(1) + name("title") + tag(2) + number(3) + b"abc\0"
    offset = struct.pack(">i", 0) if version == 1 else struct.pack(">q", 0)
    tail = absent + tag(6) + number(8) + offset
    dims = tag(10) + number(3) + name("time") + number(0) + name("y") + number(3) + name("x") + number(4)
    variables = (
        tag(11)
        + number(2)
        + name("t")
        + number(1)
        + number(0)
        + tail
        + name("v")
        + number(3)
        + b"".join(map(number, (0, 1, 2)))
        + tail
    )
    return b"CDF" + bytes([version]) + number(7) + dims + attribute + variables


def test_shapes_are_read_from_headers(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 1, 2), dtype="f4"))
    assert npy_dims((tmp_path / "a.npy").read_bytes()) == [3, 1, 2]
    assert dims_of(tmp_path / "a.npy", "npy") == [3, 1, 2]
    assert dims_of(tmp_path / "a.npy", "hdf5") is None
    assert fits_dims(FITS) == [2, 4, 5]
    assert [netcdf_dims(netcdf(version)) for version in (1, 2, 5)] == [[7, 3, 4]] * 3


@pytest.mark.parametrize("whole", [FITS, netcdf(1), netcdf(2), netcdf(5), b"\x93NUMPY\x01\0\x05\0{'a'}"])
def test_damaged_headers_have_no_shape_and_do_no_harm(tmp_path, whole):
    path = tmp_path / "x"
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        for kind in ("fits", "netcdf", "npy"):
            dims_of(path, kind)
        path.write_bytes(whole[:at])
        for kind in ("fits", "netcdf", "npy"):
            dims_of(path, kind)


@given(st.binary(max_size=80))
def test_no_header_is_too_odd(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / "odd"
    for head, kind in (
        (b"CDF\x05", "netcdf"),
        (b"CDF\x01", "netcdf"),
        (b"\x93NUMPY\x02\0", "npy"),
        (b"NAXIS   = ", "fits"),
    ):
        path.write_bytes(head + body)
        dims_of(path, kind)


def test_files_are_counted_and_listed_by_name(tmp_path):
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


def test_names_that_are_no_text_are_shown_with_escapes(tmp_path):
    os.close(os.open(os.fsencode(tmp_path) + b"/caf\xe9", os.O_CREAT))
    assert sample_dataset(tmp_path).files[0].path.endswith("/caf\\xe9")


def test_what_cannot_be_read_is_told(tmp_path, monkeypatch):
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
