"""Call sites: their tables, the libraries and programs behind them, and what they reveal about callers."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from invented import examples
from reading import Reading, read_trace
from test_quick_callers import grammars

import vani
from tests.traces.recorder_writer import UNKNOWN_SITE, Call, encode_call_sites, write_trace
from vani.calls import Layer
from vani.errors import TraceError
from vani.readers.nesting import LIBRARIES, Nesting
from vani.readers.recorder.call_sites import decode_call_sites, executable_of, is_interpreter, library_of
from vani.readers.recorder.occurrences import Callers
from vani.readers.recorder.reader import RecorderReader
from vani.schema.job import Job

# ---------------------------------------------------------------- tables

PATHS = st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\0", b"")), max_size=5)


@st.composite
def tables(draw) -> tuple[list[bytes], list[tuple[int, int]]]:
    modules = draw(PATHS)
    site = st.tuples(st.integers(0, len(modules) - 1), st.integers(0, 2**64 - 1))
    return modules, draw(st.lists(site, max_size=8)) if modules else []


@given(tables())
@example(([], []))
@example(([b"", b"\xff/a"], [(1, 2**64 - 1)]))
def test_encoded_call_sites_are_decoded(table):
    modules, sites = table
    found = decode_call_sites(encode_call_sites(modules, sites), where="here")
    assert found.modules == tuple(m.decode("utf-8", "replace") for m in modules)
    assert list(zip(found.module.tolist(), found.offset.tolist(), strict=True)) == sites


@given(
    tables(),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(-3, 3),
)
def test_damage_is_refused_or_gives_a_table_that_agrees_with_itself(table, changes, length):
    content = bytearray(encode_call_sites(*table))
    for at, value in changes:
        content[at % len(content)] = value
    content = content[:length] if length < 0 else content + bytes(length)
    try:
        found = decode_call_sites(bytes(content), where="here")
    except TraceError as error:
        assert str(error).startswith("here: ") and str(error).isprintable()
        return
    assert len(found.module) == len(found.offset) == len(found)
    assert not len(found) or found.module.max() < len(found.modules)


# ---------------------------------------------------------------- modules


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        # MPICH, Cray MPICH, Intel MPI, Open MPI with OMPIO and ROMIO as components, Spectrum MPI, their Fortran parts.
        ("/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2", Layer.MPIIO), ("/opt/cray/pe/lib64/libmpi_cray.so.12", Layer.MPIIO),
        ("/opt/intel/mpi/lib/release/libmpi.so.12.0.5", Layer.MPIIO), ("/usr/lib/libmpi.so.40", Layer.MPIIO),
        ("/usr/lib/openmpi/mca_io_romio321.so", Layer.MPIIO), ("/usr/lib/openmpi/mca_fbtl_posix.so", Layer.MPIIO),
        ("/usr/lib/openmpi/mca_fs_lustre.so", Layer.MPIIO), ("/usr/lib/openmpi/mca_sharedfp_sm.so", Layer.MPIIO),
        ("/usr/lib/openmpi/mca_fcoll_vulcan.so", Layer.MPIIO), ("/usr/lib/libmca_common_ompio.so.41", Layer.MPIIO),
        ("/opt/ibm/lib/libmpi_ibm.so.3", Layer.MPIIO), ("/usr/lib/libmpifort.so.12", Layer.MPIIO),
        ("/usr/lib/libpmpi.so.12", Layer.MPIIO), ("/usr/lib/libmpichfort.so.12", Layer.MPIIO),
        # HDF5 of distributions, of Cray and within Python packages; its high-level part.
        ("/usr/lib/libhdf5_mpich.so.103.3.1", Layer.HDF5), ("/opt/cray/lib/libhdf5_parallel_gnu_82.so.200", Layer.HDF5),
        ("/x/h5py.libs/libhdf5-5f2d6d9b.so.200.1.0", Layer.HDF5), ("/usr/lib/libhdf5_hl.so.100", Layer.HDF5),
        ("/usr/lib/libpnetcdf.so.4", Layer.PNETCDF), ("/usr/lib/libnetcdf.so.19", Layer.NETCDF), ("libnetcdff.so.7", Layer.NETCDF),
        # Not MPI: other transports, an integer library, the C library; a program with a library's name.
        ("/usr/lib/openmpi/mca_btl_vader.so", None), ("/usr/lib/libmpir.so.23", None), ("/usr/lib/libc.so.6", None),
        ("/usr/lib/libgfortran.so.5", None), ("/home/u/libmpi_test", None), ("/home/u/bin/hdf5_bench", None), ("", None),
        ("[vdso]", None), ("/lib64/ld-linux-x86-64.so.2", None),
    ],
)  # fmt: skip
def test_libraries_are_recognised_by_name(path, layer):
    assert library_of(path) == layer


@pytest.mark.parametrize(
    ("modules", "program"),
    [
        (["/home/u/bin/cm1.exe"], "cm1.exe"), (["./a.out", "/usr/lib/libmpich.so.12"], "a.out"), (["ior"], "ior"),
        # Called by a library first.
        (["/usr/lib/libhdf5.so.103", "/opt/my code/sim"], "sim"),
        # Other modules without an ending, loaded by the program later.
        (["/opt/sim", "/opt/plugins/physics"], "sim"),
        (["/usr/lib/libpython3.11.so.1.0", "/x/h5py/h5fd.cpython-311-x86_64-linux-gnu.so"], None), ([], None), (["", "[vdso]"], None),
        (["/lib/libc-2.31.so", "/lib64/ld-2.31.so"], None), (["/home/u/my.solver"], "my.solver"), (["/opt/x.sow"], "x.sow"),
    ],
)  # fmt: skip
def test_executable_is_the_first_module_that_is_not_a_shared_library(modules, program):
    assert executable_of(modules) == program


def test_interpreters_are_distinguished_from_programs():
    for name in (
        "python3",
        "python3.11",
        "python",
        "bash",
        "R",
        "Rscript",
        "julia",
        "java",
        "perl5.34",
        "sh",
    ):
        assert is_interpreter(name)
    for name in ("ior", "shock", "pythonic", "R2", "nodal", "javac", "perlbench_run", "mix", ""):
        assert not is_interpreter(name)


# ---------------------------------------------------------------- whole traces

PROGRAM, MPI, HDF5, OTHER = (
    "/opt/bin/sim",
    "/usr/lib/libmpich.so.12",
    "/usr/lib/libhdf5.so.103",
    "/usr/lib/libstdc++.so.6",
)
MODULES = [PROGRAM, MPI, HDF5, OTHER]
FUNCTIONS = [
    "creat",
    "open",
    "write",
    "pwrite",
    "fwrite",
    "MPI_File_write_at",
    "H5Dwrite",
    "MPI_Wait",
    "MPI_Barrier",
]
ARGUMENTS = {
    "write": ("/s/a", "%p", "10"),
    "pwrite": ("/s/a", "%p", "10", "0"),
    "fwrite": ("%p", "1", "10", "/s/a"),
    "MPI_File_write_at": ("0-0", "0", "%p", "10", "MPI_BYTE", "[0_0]"),
    "H5Dwrite": tuple("012345"),
    "MPI_Wait": ("1", "[0_0]"),
    "MPI_Barrier": ("MPI_COMM_WORLD",),
}
FROM = {"program": 0, "mpi": 1, "hdf5": 2, "other": 3, "unknown": UNKNOWN_SITE}
"""Numbers of the places in `sites`, one in each module."""


def sites(order: list[int] | None = None, modules: list[str] | None = None) -> bytes:
    return encode_call_sites(
        modules or MODULES, [(m, 0x1000 + m) for m in order or range(len(modules or MODULES))]
    )


def call(
    function: str, place: str = "unknown", depth: int = 0, start: int = 0, end: int = 0, thread: int = 0
) -> Call:
    return Call(function, ARGUMENTS[function], depth, thread, start, end, FROM[place])


def written(folder: Path, ranks: list[list[Call]], tables: list[bytes] | None = None, **settings_) -> Reading:
    tables = tables or [sites()] * len(ranks)
    write_trace(folder, ranks, layout="3.x-dat2", functions=FUNCTIONS, call_sites=tables, **settings_)
    reading = read_trace(folder)
    assert reading.problems == []
    return reading


def layers(reading: Reading) -> list[tuple[str, Layer, set[Layer]]]:
    """(function, via, within) of every call."""
    within = [{Layer(i) for i in range(9) if w >> i & 1} for w in reading.column("within").tolist()]
    return list(zip(reading.names(), map(Layer, reading.column("via").tolist()), within, strict=True))


def test_untraced_library_is_recognised_by_its_code(tmp_path):
    calls = [
        call("pwrite", "mpi"),
        call("fwrite", "hdf5"),
        call("write", "program"),
        call("write", "other"),
        call("write"),
    ]
    assert layers(written(tmp_path, [calls])) == [
        ("pwrite", Layer.MPIIO, {Layer.POSIX, Layer.MPIIO}), ("fwrite", Layer.HDF5, {Layer.STDIO, Layer.HDF5}),
        *[("write", Layer.POSIX, {Layer.POSIX})] * 3,
    ]  # fmt: skip


def test_outermost_traced_call_is_still_outermost(tmp_path):
    # MPI-IO is not traced: HDF5 by depth, MPI-IO by the place of the call. Then HDF5 is not traced: it called MPI-IO.
    calls = [call("H5Dwrite", "program"), call("pwrite", "mpi", 1)]
    calls += [call("MPI_File_write_at", "hdf5"), call("pwrite", "mpi", 1)]
    every = {Layer.POSIX, Layer.MPIIO, Layer.HDF5}
    assert layers(written(tmp_path, [calls])) == [
        ("H5Dwrite", Layer.HDF5, {Layer.HDF5}), ("pwrite", Layer.HDF5, every),
        ("MPI_File_write_at", Layer.HDF5, every - {Layer.POSIX}), ("pwrite", Layer.HDF5, every),
    ]  # fmt: skip


def test_writes_during_an_mpi_wait_belong_to_mpi_io(tmp_path):
    calls = [
        call("MPI_Wait", "program"),
        call("pwrite", "mpi", 1),
        call("MPI_Wait", "program"),
        call("pwrite", "program", 1),
    ]
    found = layers(written(tmp_path, [calls]))
    assert found[1] == ("pwrite", Layer.MPIIO, {Layer.POSIX, Layer.MPIIO, Layer.MPI})
    assert found[3] == ("pwrite", Layer.MPI, {Layer.POSIX, Layer.MPI})


@pytest.mark.parametrize("interprocess", [True, False])
def test_equal_numbers_of_two_ranks_are_not_the_same_place(interprocess, tmp_path):
    # Place 1 is in MPI in rank 0, in HDF5 in rank 1, in the program in rank 2; rank 3 has only two places.
    ranks = [[call("pwrite", "mpi"), call("pwrite", "hdf5")]] * 4
    tables = [sites(), sites([0, 2, 1]), sites([0, 0, 1]), sites([0, 1])]
    reading = written(tmp_path, ranks, tables, interprocess=interprocess)
    via = [layer for _, layer, _ in layers(reading)]
    assert via == [
        Layer.MPIIO, Layer.HDF5, Layer.HDF5, Layer.MPIIO, Layer.POSIX, Layer.MPIIO, Layer.MPIIO, Layer.POSIX,
    ]  # fmt: skip
    full, quick = vani.profile(tmp_path), vani.profile(tmp_path, quick=True)
    assert {i.layer: i.bytes.written for i in full.interfaces} == {"posix": 80, "mpiio": 40, "hdf5": 20}
    assert {i.layer: i.bytes for i in quick.interfaces} == {i.layer: i.bytes for i in full.interfaces}


def test_the_cause_names_the_place_that_makes_most_of_its_calls(tmp_path):
    # Rank 1 takes longest.
    short = [call("write", "other", 0, 10 * i, 10 * i + 1) for i in range(30)]
    long = [call("write", "mpi", 0, 10 * i, 10 * i + 9) for i in range(2)]
    long += [call("write", "program", 0, 100 * i, 100 * i + 90) for i in range(1, 4)]
    written(tmp_path, [short, [*long, call("fwrite", "mpi", 0, 500, 501)]])
    cause = vani.profile(tmp_path).verdict.cause
    assert (cause.call, cause.caller) == ("write", "sim+0x1000 in rank 1")
    assert cause.sentence.endswith(" Most come from sim+0x1000 in rank 1.")


def test_a_place_in_one_of_several_traces_is_not_named_for_all(tmp_path):
    for name in ("a", "b"):
        written(tmp_path / name, [[call("write", "program", 0, 0, 9)]])
    assert vani.profile(tmp_path / "a").verdict.cause.caller == "sim+0x1000"
    assert vani.profile(tmp_path / "a", tmp_path / "b", together=True).verdict.cause.caller is None


def test_without_a_call_of_the_program_the_cause_names_no_place(tmp_path):
    written(tmp_path, [[call("write", "mpi", 0, 0, 9), call("write", "program", 0, 10, 11)]])
    profile = vani.profile(tmp_path)
    assert profile.verdict.cause.caller is None and "caller" not in profile.to_yaml()


def without_depth(folder: Path, calls: list[Call]) -> list[tuple[str, Layer, set[Layer]]]:
    return layers(written(folder, [calls], store_depth=False))


def test_places_replace_times_if_no_depth_is_stored(tmp_path):
    # A thread of the program writes while another is in H5Dwrite: by time alone it would be HDF5's.
    calls = [
        call("H5Dwrite", "program", 0, 0, 100),
        call("MPI_File_write_at", "hdf5", 1, 10, 90),
        call("pwrite", "mpi", 2, 20, 80),
        call("write", "program", 0, 30, 40),
        call("write", "unknown", 0, 50, 60),
        call("fwrite", "hdf5", 1, 70, 75),
    ]
    every = {Layer.POSIX, Layer.MPIIO, Layer.HDF5}
    assert without_depth(tmp_path, calls) == [
        ("H5Dwrite", Layer.HDF5, {Layer.HDF5}), ("MPI_File_write_at", Layer.HDF5, every - {Layer.POSIX}),
        ("pwrite", Layer.HDF5, every), ("write", Layer.POSIX, {Layer.POSIX}), ("write", Layer.HDF5, every),
        ("fwrite", Layer.HDF5, {Layer.STDIO, Layer.HDF5}),
    ]  # fmt: skip


def test_library_call_is_resolved_by_the_previous_library_call(tmp_path):
    # The same places, first under HDF5, then under MPI-IO that the program calls itself.
    calls = [
        call("pwrite", "mpi", 1, 0, 5),
        call("H5Dwrite", "program", 0, 10, 40),
        call("MPI_File_write_at", "hdf5", 1, 15, 35),
        call("pwrite", "mpi", 2, 20, 30),
        call("MPI_File_write_at", "program", 0, 50, 90),
        call("pwrite", "mpi", 1, 60, 80),
    ]
    via = [layer for _, layer, _ in without_depth(tmp_path, calls)]
    assert via == [Layer.MPIIO, Layer.HDF5, Layer.HDF5, Layer.HDF5, Layer.MPIIO, Layer.MPIIO]


def test_profile_without_times_gives_only_advice_from_call_sites(tmp_path):
    known = [
        call("H5Dwrite", "program", 0, 0, 100),
        call("MPI_File_write_at", "hdf5", 1, 10, 90),
        call("pwrite", "mpi", 2, 20, 80),
        call("pwrite", "mpi", 2, 81, 85),
        call("write", "program", 0, 110, 120),
    ]
    written(tmp_path / "known", [known] * 2, store_depth=False)
    full, quick = (vani.profile(tmp_path / "known", quick=q) for q in (False, True))
    assert full.apps[0].interface == quick.apps[0].interface == "hdf5"
    wanted = {"posix": 60, "mpiio": 40, "hdf5": 40}
    assert {i.layer: i.bytes.written for i in full.interfaces} == wanted
    assert {i.layer: i.bytes.written for i in quick.interfaces} == wanted
    assert quick.files[0].interface == full.files[0].interface is not None
    # One call with an unknown place next to library calls: only times can decide.
    written(tmp_path / "unknown", [[*known, call("write", "unknown", 0, 30, 35)]] * 2, store_depth=False)
    full, quick = (vani.profile(tmp_path / "unknown", quick=q) for q in (False, True))
    assert full.apps[0].interface == "hdf5" and quick.apps[0].interface is None


def test_trace_without_depth_states_that_call_sites_decided(tmp_path):
    with_sites = written(tmp_path / "with", [[call("write", "program")]], store_depth=False).reader
    assert any("where its call site does not show it" in limit.why for limit in with_sites.limits)
    write_trace(
        tmp_path / "without", [[call("write")]], layout="3.x-dat2", functions=FUNCTIONS, store_depth=False
    )
    assert not any("call site" in limit.why for limit in RecorderReader(tmp_path / "without").limits)


# ---------------------------------------------------------------- on the grammar as call by call

ORIGINS = st.sampled_from([-1, -1, Layer.USER, *LIBRARIES])
WITH_ORIGIN = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([0, 7]),
        st.sampled_from([Layer.POSIX, Layer.STDIO, Layer.MPIIO, Layer.HDF5, Layer.NETCDF, Layer.MPI]),
        ORIGINS,
    ),
    min_size=1,
    max_size=6,
)


@st.composite
def traces(draw) -> list:
    """Grammars with the columns of their signatures: depth, thread, layer, origin."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        signatures = draw(WITH_ORIGIN)
        types = (np.int8, np.int32, np.int8, np.int8)
        columns = [np.array(c, t) for c, t in zip(zip(*signatures, strict=True), types, strict=True)]
        made.append((draw(grammars(len(signatures))), *columns))
    return made


@settings(max_examples=examples(200), deadline=None)
@given(traces(), st.booleans(), st.lists(st.integers(0, 1000), max_size=3))
@pytest.mark.slow
def test_counts_on_the_grammar_are_those_of_the_expanded_calls(made, by_origin, cuts):
    resolver, wanted = Callers(by_origin=by_origin), Counter()
    for number, (grammar, stored, thread, layer, origin) in enumerate(made):
        depth = np.zeros_like(stored) if by_origin else stored
        names = grammar.names
        resolver.add(number, grammar, depth[names], thread[names], layer[names], origin[names])
        nesting, ids = Nesting(by_time=by_origin), grammar.whole
        bounds = [0, *sorted(cut % (len(ids) + 1) for cut in cuts), len(ids)]
        for part in (ids[a:b] for a, b in pairwise(bounds) if a < b):
            flags, times = np.zeros(len(part), np.int16), np.zeros(len(part), np.int64)
            via, within = nesting.resolve(
                np.zeros(len(part), np.int32),
                thread[part],
                depth[part],
                layer[part],
                times,
                times,
                flags,
                origin[part],
            )
            rows = zip(part.tolist(), via.tolist(), within.tolist(), strict=True)
            wanted.update((number, *row) for row in rows)
    found = resolver.resolve("test")
    columns = (found.group, found.terminal, found.via, found.within)
    counted: Counter = Counter()
    unknown: Counter = Counter()
    for *row, often in zip(*(c.tolist() for c in columns), found.often.tolist(), strict=True):
        if row[2] < 0:
            assert by_origin and row[3] == -1
            unknown[row[0], row[1]] += often
        else:
            counted[tuple(row)] += often
    # Everything that the grammar states is right; the calls it does not cover are the rest.
    assert all(wanted[row] >= often for row, often in counted.items())
    rest: Counter = Counter()
    for (number, terminal, _, _), often in (wanted - counted).items():
        rest[number, terminal] += often
    assert rest == unknown


# ---------------------------------------------------------------- the app


def app_of(folder: Path, programs: list[str]) -> RecorderReader:
    ranks = [[call("write", "program")] for _ in programs]
    return written(folder, ranks, [sites(modules=[p, MPI]) for p in programs]).reader


def test_most_common_executable_names_the_app_and_others_are_mentioned(tmp_path):
    reader = app_of(
        tmp_path / "03-step", ["/opt/ocean", "/opt/atmosphere", "/opt/atmosphere", "/opt/coupler"]
    )
    assert reader.app == "atmosphere"
    (limit,) = [one for one in reader.limits if one.attribute == "apps.name"]
    assert "atmosphere (2), ocean (1), coupler (1)" in limit.why
    profile = vani.profile(tmp_path / "03-step")
    assert [a.name for a in profile.apps] == ["atmosphere"] and profile.traces[0].complete
    assert any("ocean (1)" in reason for reason in profile.provenance.values())
    assert app_of(tmp_path / "tie", ["/opt/b", "/opt/a", "/opt/a", "/opt/b"]).app == "b"


def test_job_yaml_overrides_the_executable_which_overrides_the_directory(tmp_path):
    app_of(tmp_path / "003-mProject", ["/opt/bin/project"])
    assert vani.profile(tmp_path / "003-mProject").apps[0].name == "project"
    job = Job.model_validate({"schema": "vani.job/1", "apps": {"003-mProject": "reproject"}})
    assert vani.profile(tmp_path / "003-mProject", job=job).apps[0].name == "reproject"


@pytest.mark.parametrize("program", ["/usr/bin/python3.11", "/usr/lib/libpython3.11.so.1.0", "/usr/bin/bash"])
def test_interpreter_does_not_name_its_script(program, tmp_path):
    assert app_of(tmp_path / "02-train", [program]).app == "train"
