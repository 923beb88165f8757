"""The table of functions against the function lists of real traces and the format document.

Layer boundaries in the lists and their lengths come from the document's section 4.
"""

from pathlib import Path

import pytest

from vani.calls import Flag, Kind, Layer
from vani.readers.functions import PositionRule, layer_of, meaning_of
from vani.readers.recorder.reader import RecorderReader

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
LISTS = {"2.5p": "v2-posix-mix-nonmpi", "2.5g": "v25g-posix-mix-nonmpi", "3.0": "v3-posix-mix-nonmpi"}
FILE_SYSTEM = (Layer.POSIX, Layer.STDIO)


def names_of(layout: str) -> tuple[str, ...]:
    return RecorderReader(TRACES / LISTS[layout]).metadata.functions


@pytest.mark.parametrize(("layout", "length"), [("2.5p", 243), ("2.5g", 241), ("3.0", 2162)])
def test_function_list_of_each_layout_is_read_completely(layout, length):
    names = names_of(layout)
    assert len(names) == length and names[0] == "creat"


@pytest.mark.parametrize("layout", LISTS)
def test_first_72_functions_alone_are_file_system_calls(layout):
    names = names_of(layout)
    strays = [n for n in names[:72] if layer_of(n) not in FILE_SYSTEM]
    assert strays == []
    behind = {n for n in names[72:] if layer_of(n) in FILE_SYSTEM}
    # Later lists have additional file-system calls at their ends, which are named here individually.
    assert behind <= {
        "vfprintf",
        "tmpfile",
        "remove",
        "truncate",
        "ftruncate",
        "msync",
        "fseeko",
        "ftello",
        "fflush",
    }


def test_layers_of_3_0_begin_at_the_documented_ids():
    names = names_of("3.0")
    first = {layer: next(i for i, n in enumerate(names) if layer_of(n) == layer) for layer in Layer if layer not in (
        Layer.GPU, Layer.USER, Layer.POSIX, Layer.STDIO, Layer.MPIIO)}  # fmt: skip
    assert first[Layer.HDF5] == 169 and first[Layer.PNETCDF] == 944 and first[Layer.NETCDF] == 1859
    assert names[255] == "user_function" and layer_of(names[255]) == Layer.USER
    for begin, end, layers in (
        (72, 169, {Layer.MPI, Layer.MPIIO}), (169, 944, {Layer.HDF5, Layer.USER}),
        (944, 1859, {Layer.PNETCDF}), (1859, len(names), {Layer.NETCDF}),
    ):  # fmt: skip
        assert {layer_of(n) for n in names[begin:end]} == layers


@pytest.mark.parametrize("layout", LISTS)
def test_mpi_file_calls_alone_are_mpi_io(layout):
    for name in names_of(layout):
        if name.startswith("MPI_"):
            assert (layer_of(name) == Layer.MPIIO) == name.startswith("MPI_File_")


@pytest.mark.parametrize("layout", LISTS)
def test_every_file_system_call_reads_writes_flushes_or_is_metadata(layout):
    kinds = {n: meaning_of(n).kind for n in names_of(layout) if layer_of(n) in FILE_SYSTEM}
    # Counted by hand from the document's table of arguments (section 6).
    assert {n for n, k in kinds.items() if k == Kind.READ} == {"read", "pread", "pread64", "readv", "fread"}
    writes = {"write", "pwrite", "pwrite64", "writev", "fwrite", "vfprintf"}
    assert {n for n, k in kinds.items() if k == Kind.WRITE} == writes & set(kinds)
    flushes = {"fsync", "fdatasync", "fflush", "msync"}
    assert {n for n, k in kinds.items() if k == Kind.SYNC} == flushes & set(kinds)
    assert set(kinds.values()) <= {Kind.READ, Kind.WRITE, Kind.METADATA, Kind.SYNC}


STREAMS = {
    "fopen", "fopen64", "fdopen", "fclose", "fread", "fwrite", "fseek", "fseeko", "ftell", "ftello", "fflush", "tmpfile",
    "fileno", "vfprintf",
}  # fmt: skip


@pytest.mark.parametrize("layout", LISTS)
def test_streams_are_stdio_and_descriptors_posix(layout):
    found = {n for n in names_of(layout) if layer_of(n) == Layer.STDIO}
    assert found == STREAMS & set(names_of(layout))


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("fsync", Layer.POSIX), ("fdatasync", Layer.POSIX), ("fstat", Layer.POSIX), ("faccessat", Layer.POSIX),
        ("fchmod", Layer.POSIX), ("fcntl", Layer.POSIX), ("ftruncate", Layer.POSIX), ("fputs", Layer.STDIO),
        ("fgets", Layer.STDIO), ("fprintf", Layer.STDIO), ("fork", Layer.POSIX), ("copy_file_range", Layer.POSIX),
        ("ncmpi_open", Layer.PNETCDF), ("nc_open", Layer.NETCDF), ("H5Dwrite", Layer.HDF5), ("MPI_Wait", Layer.MPI),
        ("cudaMemcpy", Layer.GPU),
    ],
)  # fmt: skip
def test_functions_of_other_lists_have_a_layer_by_their_name(name, layer):
    assert layer_of(name) == layer


def test_calls_that_move_data_say_how_they_relate_to_the_position():
    for layout in LISTS:
        for name in names_of(layout):
            meaning = meaning_of(name)
            if layer_of(name) in FILE_SYSTEM and meaning.kind in (Kind.READ, Kind.WRITE):
                at = name.startswith(("pread", "pwrite"))
                assert (
                    meaning.rule == (PositionRule.AT if at else PositionRule.ADVANCE) and meaning.size and meaning.path >= 0
                )
                assert (meaning.offset >= 0) == at


def test_calls_with_64_in_their_name_equal_those_without():
    for name in names_of("3.0"):
        if name.endswith("64") and layer_of(name) in FILE_SYSTEM:
            assert meaning_of(name) == meaning_of(name[:-2]), name


def test_collective_mpi_io_is_marked():
    # MPI-3.1, section 13.4, table of data access routines; open, close and the others of section 13.2.
    collective = {
        *(f"MPI_File_{v}{s}" for v in ("read", "write") for s in ("_all", "_at_all", "_ordered")),
        "MPI_File_open", "MPI_File_close", "MPI_File_set_size", "MPI_File_set_view",
    }  # fmt: skip
    independent = {
        f"MPI_File_{i}{v}{s}" for i in ("", "i") for v in ("read", "write") for s in ("", "_at", "_shared")
    }
    assert all(meaning_of(n).flags & Flag.COLLECTIVE for n in collective)
    assert not any(meaning_of(n).flags & Flag.COLLECTIVE for n in independent)
