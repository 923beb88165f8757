/* All processes open a file together and write their part: as MPI-IO programs make shared files. */
#include <mpi.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    MPI_File file;
    int rank, failed = 0;

    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < count; i++) {
        failed |= MPI_File_open(MPI_COMM_WORLD, arguments[i], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        if (failed)
            break;
        failed |= MPI_File_write_at_all(file, rank * 4L, &rank, 4, MPI_BYTE, MPI_STATUS_IGNORE);
        failed |= MPI_File_close(&file);
    }
    MPI_Finalize();
    if (failed)
        fprintf(stderr, "error %d\n", failed);
    return failed != 0;
}
