/* Four processes compute a part of a field each, and write it together, eight times. */
#include <mpi.h>
#include <stdlib.h>

enum { CELLS = 32768, STEPS = 8 };

int main(int argc, char **argv)
{
    int rank, processes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    double *part = calloc(CELLS, sizeof *part);
    MPI_File file;
    if (!part || MPI_File_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "field.out",
                               MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < CELLS; i++)
            part[i] = part[i] * 0.5 + rank + step;
        MPI_Offset place = ((MPI_Offset)step * processes + rank) * CELLS * (MPI_Offset)sizeof *part;
        MPI_File_write_at_all(file, place, part, CELLS, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    free(part);
    MPI_Finalize();
    return 0;
}
