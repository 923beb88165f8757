"""The last record of a region: truncated, or with impossible counts."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from darshan_logs import changed

from vani.errors import TraceError
from vani.readers.darshan.log import open_log
from vani.readers.darshan.totals import read_totals

LIBRARIES = Path(__file__).parents[1] / "data" / "darshan" / "v3-netcdf-pnetcdf-4r.darshan"


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("H5F", 3),
        ("H5D", 4),
        ("PNETCDF_FILE", 5),
        ("PNETCDF_VAR", 6),
        ("DXT_POSIX", 10),
        ("DXT_MPIIO", 11),
        ("HEATMAP", 15),
    ],
)
@pytest.mark.parametrize("lost", [8, 40])
def test_a_cut_record_of_any_module_is_damage(tmp_path, module, number, lost):
    path = tmp_path / "a.darshan"
    path.write_bytes(changed(LIBRARIES, number + 2, lambda region: region[:-lost]))
    with pytest.raises(TraceError, match=f"{module} has [0-9,]+ bytes, and .* cut"):
        open_log(path)
    # Sums come from other modules, and read only their regions.
    assert replace(read_totals(path), digest="") == replace(read_totals(LIBRARIES), digest="")


def test_record_with_an_impossible_count_is_damage(tmp_path):
    content = changed(LIBRARIES, 17, lambda region: region[:24] + struct.pack("<q", -1) + region[32:])
    (tmp_path / "a.darshan").write_bytes(content)
    with pytest.raises(TraceError, match="HEATMAP has a record that counts -1 of its parts"):
        open_log(tmp_path / "a.darshan")


def test_record_may_span_pieces_of_its_region(tmp_path, monkeypatch):
    for chunk in (1, 7, 50, 105):
        monkeypatch.setattr("vani.readers.darshan.regions._CHUNK", chunk)
        assert open_log(LIBRARIES).version == "3.41"
