"""Hints for MPI-IO: their limits, the lines that set them, and the number of aggregators."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.advisors.builders import profile
from vani.advisors.mpiio import buffer_size, cb_nodes, checked, hint_lines, per_host
from vani.schema.dataset_facts import libraries_loaded
from vani.units import GiB, KiB, MiB


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cb_buffer", 1),
        ("cb_nodes", 0),
        ("cb_nodes", "4; rm"),
        ("cb_nodes", "²"),
        ("cb_buffer_size", 2**31),
        ("romio_cb_write", "true"),
        ("romio_no_indep_rw", "enable"),
        ("striping_unit", 100_000),
        ("striping_factor", 2001),
        ("cb_config_list", "*:1 x"),
    ],
)
def test_invalid_hint_is_refused(key, value):
    with pytest.raises(ValueError, match=key):
        checked({key: value})


def test_hints_are_added_to_existing_ones(tmp_path):
    lines = hint_lines({"cb_nodes": 8, "cb_buffer_size": 4 * MiB}, "/lustre/out")
    lines += hint_lines({"romio_cb_write": "enable"}, "/lustre/a file: x, y")
    script = "\n".join(["set -eu", *lines, 'cat "$ROMIO_HINTS"', 'echo "$MPICH_MPIIO_HINTS"'])
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.defpath},
    )
    assert done.stdout.splitlines() == [
        "cb_nodes 8",
        "cb_buffer_size 4194304",
        "romio_cb_write enable",
        "/lustre/out:cb_nodes=8,*:romio_cb_write=enable",
    ]


@pytest.mark.parametrize(
    ("ranks", "targets", "count"),
    [(2**40, 10**9, 2000), (64, 16, 16), (64, 24, 24), (64, 4, 4), (8, 12, 6), (7, 4, 4), (1, 48, 1)],
)
def test_aggregators(ranks, targets, count):
    assert cb_nodes(ranks, targets) == count


@given(ranks=st.integers(1, 3000), targets=st.integers(1, 2000))
def test_aggregators_divide_the_targets_and_do_not_exceed_the_ranks(ranks, targets):
    count = cb_nodes(ranks, targets)
    assert targets % count == 0
    assert count <= min(ranks, targets)


@pytest.mark.parametrize(
    ("count", "nodes", "text"), [(24, 8, "*:3"), (24, 7, "*:4"), (8, 8, None), (4, 8, None)]
)
def test_more_aggregators_than_nodes_are_allowed_by_name(count, nodes, text):
    assert per_host(count, nodes) == text


@given(unit=st.integers(1, 65535).map(lambda n: n * 64 * KiB))
def test_buffer_is_a_multiple_or_an_even_part_of_a_stripe(unit):
    size = buffer_size(unit)
    assert size % unit == 0 or unit % size == 0
    assert checked({"cb_buffer_size": size})


def test_buffers():
    assert [buffer_size(unit) for unit in (64 * KiB, 3 * MiB, 16 * MiB, GiB)] == [
        4 * MiB,
        6 * MiB,
        16 * MiB,
        64 * MiB,
    ]


def with_ompio(**hints):
    return hint_lines(hints, "/lustre/out", profile().model_copy(update={"middleware": middleware("ompio")}))


def middleware(*libraries):
    return profile().middleware.model_copy(update={"libraries": list(libraries)})


def test_open_mpi_gets_the_names_of_its_own_mpi_io():
    lines = with_ompio(cb_nodes=8, cb_buffer_size=4 * MiB, romio_cb_write="enable", romio_ds_write="disable")
    assert [line for line in lines if not line.startswith("#")] == [
        "export OMPI_MCA_io_ompio_num_aggregators=8",
        "export OMPI_MCA_io_ompio_bytes_per_agg=4194304",
        "export OMPI_MCA_fbtl_posix_write_datasieving=false",
    ]


def test_a_hint_without_a_name_in_ompio_needs_romio():
    (_, line) = with_ompio(romio_no_indep_rw="true")
    assert "OMPI_MCA_io=^ompio" in line
    assert with_ompio(romio_cb_write="enable") == [
        "# Open MPI's own MPI-IO joins collective calls without any hint"
    ]


def test_shared_file_pointers_show_the_mpi_io_of_open_mpi():
    paths = ["/tmp/ompi.vm.0/pid.3014/1/all.bin_cid-0-3020.sm", "/data/all.bin"]
    assert libraries_loaded(paths) == ["ompio"]
    assert libraries_loaded(["/usr/lib/openmpi/mca_io_ompio.so", "/data/all.bin"]) == []
