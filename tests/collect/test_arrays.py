"""Arrays in files: what headers say about them, and the values at the stated places."""

from __future__ import annotations

import os
import sys
import time
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_files import FITS, fits_cards, fits_data, fits_header, netcdf

from vani.collect.arrays import NotExamined, array_of, raw_array, stored_array

SOON = time.monotonic() + 3600


def every(array):
    """All values of an array."""
    return array.read(np.arange(array.count), SOON).tolist()


def attributes(array):
    found = array.attributes
    return found.datasets, found.dims, found.type, found.encoding, found.chunks


def test_a_numpy_array_is_read(tmp_path):
    values = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    np.save(tmp_path / "a.npy", values)
    found = array_of(tmp_path / "a.npy", "npy")
    assert found.shape == (2, 3, 4)
    assert attributes(found) == (1, 3, "float32", "npy, little-endian", [])
    assert every(found) == values.ravel().tolist()
    assert found.read(np.array([0, 5, 23]), SOON).tolist() == [0, 5, 23]


def test_headers_of_python_2_are_read(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }\n".ljust(70)
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\0" + bytes([len(header), 0]) + header + bytes(16))
    assert every(array_of(tmp_path / "a.npy", "npy")) == [0, 0]


def test_order_of_bytes_and_axes_is_reported(tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)))
    found = array_of(tmp_path / "a.npy", "npy")
    assert attributes(found) == (1, 2, "int16", "npy, big-endian, Fortran order", [])
    assert sorted(every(found)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("value", "type_name"),
    [(np.array(["ab"]), "str64"), (np.array([1 + 2j]), "complex128"), (np.array([(1, 2.0)], "i4,f8"), "structured")],
)
def test_non_numeric_array_has_attributes_but_no_values(tmp_path, value, type_name):
    np.save(tmp_path / "a.npy", value)
    found = array_of(tmp_path / "a.npy", "npy")
    assert (found.attributes.type, found.count) == (type_name, 0)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_largest_array_of_an_npz_file_is_read(tmp_path, save):
    values = np.linspace(0, 1, 1000).reshape(10, 100)
    save(tmp_path / "a.npz", small=np.arange(3), large=values)
    found = array_of(tmp_path / "a.npz", "npz")
    packed = ", deflate" if save is np.savez_compressed else ""
    assert attributes(found) == (2, 2, "float64", f"npz, little-endian{packed}", [])
    assert every(found) == values.ravel().tolist()
    assert found.read(np.array([999]), SOON).tolist() == [1.0]


def test_only_the_beginning_of_a_compressed_array_is_read(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(3 << 20))
    found = array_of(tmp_path / "a.npz", "npz")
    assert (found.shape, found.count) == ((3 << 20,), 2 << 20)


def test_a_damaged_npz_file_has_no_values(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.random.default_rng(0).random(1 << 17))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[600_000:600_100] = bytes(100)
    (tmp_path / "a.npz").write_bytes(content)
    found = array_of(tmp_path / "a.npz", "npz")
    with pytest.raises(ValueError, match="cannot be inflated"):
        every(found)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("readme.txt", "no array")
    assert array_of(tmp_path / "b.npz", "npz") is None


@pytest.mark.parametrize("version", [1, 2])
def test_record_variable_is_read_at_its_records(tmp_path, version):
    pytest.importorskip("scipy")
    (tmp_path / "a.nc").write_bytes(netcdf(version))
    found = array_of(tmp_path / "a.nc", "netcdf")
    kind = {1: "classic", 2: "64-bit offset"}[version]
    assert found.shape == (7, 3, 4)
    assert attributes(found) == (2, 3, "float64", f"netcdf ({kind}), big-endian", [])
    # v[0, 0, 0] is the fill value, which means no value.
    assert every(found) == [100.0 * r + 10 * y + x for r in range(7) for y in range(3) for x in range(4)][1:]
    assert found.read(np.array([12, 83]), SOON).tolist() == [100.0, 623.0]


def test_fill_values_are_ignored(tmp_path):
    pytest.importorskip("scipy")
    content = netcdf(1).replace(np.array(623.0, ">f8").tobytes(), np.array(9.9692099683868690e36, ">f8").tobytes())
    (tmp_path / "a.nc").write_bytes(content)
    assert max(every(array_of(tmp_path / "a.nc", "netcdf"))) == 622.0


def test_integers_of_a_fits_file_are_scaled(tmp_path):
    pytest.importorskip("astropy")
    stored = np.array([[-32768, 0, 32767], [5, -1, 7]])
    header = fits_header(*fits_cards((2, 3), 16), "BZERO   =              32768.0 / unsigned", "BSCALE  = 1.0")
    (tmp_path / "a.fits").write_bytes(header + fits_data(stored, ">i2"))
    found = array_of(tmp_path / "a.fits", "fits")
    assert attributes(found) == (1, 2, "uint16", "fits, big-endian", [])
    assert every(found) == (stored.ravel() + 32768.0).tolist()


def test_image_after_an_empty_primary_array_is_found(tmp_path):
    pytest.importorskip("astropy")
    primary = fits_header("SIMPLE  =                    T", "BITPIX  = 8", "NAXIS   = 0")
    table = fits_header(
        "XTENSION= 'BINTABLE'", "BITPIX  = 8", "NAXIS   = 2", "NAXIS1  = 10", "NAXIS2  = 1000", "PCOUNT  = 0", "GCOUNT  = 1"
    ) + bytes(-(-10_000 // 2880) * 2880)
    image = np.arange(12, dtype="f4").reshape(3, 4)
    blank = np.array([[1, -9], [3, 4]])
    cards = (*fits_cards((2, 2), 32, "XTENSION= 'IMAGE   '"), "PCOUNT  = 0", "GCOUNT  = 1", "BLANK   = -9")
    (tmp_path / "a.fits").write_bytes(
        primary
        + table
        + fits_header(*cards)
        + fits_data(blank, ">i4")
        + fits_header(*fits_cards((3, 4), -32, "XTENSION= 'IMAGE   '"))
        + fits_data(image, ">f4")
    )
    found = array_of(tmp_path / "a.fits", "fits")
    assert found.shape == (3, 4)
    assert attributes(found) == (2, 2, "float32", "fits, big-endian", [])
    assert every(found) == image.ravel().tolist()
    (tmp_path / "b.fits").write_bytes(primary + fits_header(*cards) + fits_data(blank, ">i4"))
    assert every(array_of(tmp_path / "b.fits", "fits")) == [1, 3, 4]


def test_raw_file_has_the_type_the_user_states(tmp_path):
    np.arange(100, dtype=">i2").tofile(tmp_path / "a.bin")
    found = raw_array(tmp_path / "a.bin", 201, np.dtype(">i2"))
    assert found.shape == (100,)
    assert every(found) == list(range(100))
    # A file that was shortened has fewer values, not wrong ones.
    (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:101])
    assert every(found) == list(range(50))


def test_distant_values_are_read_individually_in_bounded_time(tmp_path):
    path = tmp_path / "a.bin"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        for place in (0, 1 << 20, (1 << 27) - 1):
            file.seek(8 * place)
            file.write(np.array([place], "f8").tobytes())
    found = raw_array(path, 1 << 30, np.dtype("f8"))
    places = np.array([0, 1 << 20, (1 << 27) - 1])
    assert found.read(places, SOON).tolist() == places.tolist()
    assert found.read(places, time.monotonic() - 1).tolist() == []


def test_hdf5_files_are_read_by_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    values = np.arange(60, dtype="<i4").reshape(3, 4, 5)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["unit"] = np.arange(2)
        made = file.create_group("g").create_dataset(
            "large", data=values, chunks=(1, 4, 5), compression="gzip", shuffle=True
        )
        made.attrs["_FillValue"] = np.array([7], "<i4")
        file["text"] = "words"
    found = array_of(tmp_path / "a.h5", "hdf5")
    assert attributes(found) == (3, 3, "int32", "hdf5, little-endian, gzip, shuffle", [1, 4, 5])
    assert every(found) == [value for value in range(60) if value != 7]
    # NetCDF-4 uses HDF5 inside.
    (tmp_path / "a.h5").rename(tmp_path / "a.nc")
    assert array_of(tmp_path / "a.nc", "netcdf").attributes.encoding.startswith("netcdf (hdf5)")


def test_an_hdf5_file_in_one_piece_has_no_chunks(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4, dtype=">f4")
    assert attributes(array_of(tmp_path / "a.h5", "hdf5")) == (1, 1, "float32", "hdf5, big-endian", [])
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:600])
    assert array_of(tmp_path / "a.h5", "hdf5") is None


def test_without_h5py_an_hdf5_file_is_not_looked_into(tmp_path, monkeypatch):
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(NotExamined, match=r"pip install 'vani-io\[collect\]'"):
        array_of(tmp_path / "a.h5", "hdf5")


def test_formats_without_arrays_show_no_arrays(tmp_path):
    (tmp_path / "x").write_text("words")
    assert array_of(tmp_path / "x", "text") is None
    assert array_of(tmp_path / "x", "npy") is None


@pytest.mark.slow
@pytest.mark.parametrize("whole", [FITS, netcdf(1), netcdf(2), b"\x93NUMPY\x01\0\x05\0{'a'}"])
def test_damaged_headers_have_no_shape_and_do_no_harm(tmp_path, whole):
    path = tmp_path / "x"
    for at in range(0, min(len(whole), 700), 3):
        for content in (whole[:at] + b"\xff" + whole[at + 1 :], whole[:at]):
            path.write_bytes(content)
            for kind in ("fits", "netcdf", "npy", "npz"):
                described(path, kind)


@given(st.binary(max_size=80))
def test_any_header_is_read_or_refused(tmp_path_factory, body):
    path = tmp_path_factory.getbasetemp() / "odd"
    for head, kind in (
        (b"CDF\x05", "netcdf"),
        (b"CDF\x01", "netcdf"),
        (b"\x93NUMPY\x02\0", "npy"),
        (b"BITPIX  = 8".ljust(80) + b"NAXIS   = ", "fits"),
        (b"PK\x03\x04", "npz"),
    ):
        path.write_bytes(head + body)
        described(path, kind)


def described(path, kind):
    """The array, or None; no error but the one that goes into `unknown`."""
    with suppress(NotExamined):
        return array_of(path, kind)


def test_header_that_claims_more_than_the_file_contains_has_no_values(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10, 10)))
    content = (tmp_path / "a.npy").read_bytes()
    assert stored_array(tmp_path / "a.npy", "npy").begin == 128
    (tmp_path / "a.npy").write_bytes(content.replace(b"(10, 10)", b"(99, 99)"))
    found = array_of(tmp_path / "a.npy", "npy")
    assert (found.shape, found.count, found.attributes.type) == ((99, 99), 0, None)


def test_netcdf_file_shorter_than_its_header_states_has_no_array(tmp_path):
    pytest.importorskip("scipy")
    (tmp_path / "a.nc").write_bytes(netcdf(1)[:-100])
    assert array_of(tmp_path / "a.nc", "netcdf") is None


def test_header_of_the_64_bit_data_format_of_netcdf_is_not_read(tmp_path):
    (tmp_path / "a.nc").write_bytes(netcdf(5))
    with pytest.raises(NotExamined, match="CDF-5"):
        array_of(tmp_path / "a.nc", "netcdf")


@pytest.mark.parametrize(
    ("content", "kind", "module"),
    [(FITS, "fits", "astropy.io.fits"), (netcdf(1), "netcdf", "scipy.io")],
)
def test_format_without_its_library_names_the_extra(tmp_path, monkeypatch, content, kind, module):
    (tmp_path / "x").write_bytes(content)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotExamined, match=rf"^{module.partition('.')[0]} is not installed .*vani-io\[collect\]"):
        array_of(tmp_path / "x", kind)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (FITS.replace(b"END", b"   "), "fits"),
        (b"CDF\x01" + bytes(4) + b"\0\0\0\x0a\0\0\0\x01\x7f\xff\xff\xff", "netcdf"),
        (b"\x93NUMPY\x02\0\xff\xff\xff\x7f", "npy"),
    ],
)
def test_memory_for_headers_is_bounded(tmp_path, head, kind):
    pytest.importorskip({"fits": "astropy", "netcdf": "scipy", "npy": "numpy"}[kind])
    path = tmp_path / "x"
    path.write_bytes(head)
    os.truncate(path, 1 << 30)
    tracemalloc.start()
    assert array_of(path, kind) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 160 << 20


def test_large_netcdf_file_is_not_read_into_memory(tmp_path):
    pytest.importorskip("scipy")
    path, records = tmp_path / "a.nc", 5_000_000
    small = netcdf(1, records=1)
    path.write_bytes(small[:4] + records.to_bytes(4, "big") + small[8:])
    os.truncate(path, len(small) + 100 * (records - 1))
    tracemalloc.start()
    found = array_of(path, "netcdf")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.shape, found.count) == ((records, 3, 4), 12 * records)
    assert peak < 64 << 20
