"""`vani tune` with an MPI program and ROMIO's own hints: strided collective writes, on the local disk."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from repository import ROOT

from tests.mpi_compilers import compiles_mpi
from vani.schema.advice import Advice, TunableSetting
from vani.schema.tuned import Tuned

WRITER = """
#include <mpi.h>
#include <string.h>
int main(int argc, char **argv) {
    static char piece[4096];
    int rank, processes;
    MPI_File file;
    MPI_Datatype strided;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    memset(piece, 'a' + rank, sizeof piece);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_Type_vector(64, 64, 64 * processes, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    MPI_File_set_view(file, rank * 64, MPI_BYTE, strided, "native", MPI_INFO_NULL);
    for (int i = 0; i < 2; i++) MPI_File_write_all(file, piece, sizeof piece, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&strided);
    MPI_Finalize();
}
"""


@pytest.mark.slow
def test_mpi_reports_the_hints_it_used(run, desk):
    if not compiles_mpi("mpicc.mpich") or shutil.which("mpirun.mpich") is None:
        pytest.skip("there is no MPICH")
    (desk / "writer.c").write_text(WRITER)
    subprocess.run(["mpicc.mpich", "-o", "writer", "writer.c"], check=True)
    advice = Advice.load(ROOT / "examples" / "tune" / "advice.yaml")
    # Of two aggregators ROMIO uses one, since there is one node and cb_config_list is *:1.
    tunable = TunableSetting(kind="hints", values=[{"cb_nodes": "2", "cb_buffer_size": "1048576"}])
    item = advice.recommendations[0].model_copy(update={"settings": [tunable]})
    advice.model_copy(update={"recommendations": [item]}).save("advice.yaml")
    (desk / "scratch").mkdir()
    line = ["mpirun.mpich", "-n", "2", "./writer", "{data}/out"]
    done = run("tune", "--data", "scratch", "--advice", "advice.yaml", "--budget", "2", "--keep", "--", *line)
    assert done.status == 0
    assert "(MPI took cb_nodes 1)" in done.out
    assert Tuned.load("vani-tune-state/tuned.yaml").runs[1].hints == {"cb_nodes": "1", "cb_buffer_size": "1048576"}
    # The same bytes under both settings.
    outputs = [Path("scratch", f"vani-tune-{number}", "out").read_bytes() for number in (1, 2)]
    assert outputs[0] == outputs[1] != b""
