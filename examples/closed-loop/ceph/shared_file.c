/* Writes one file from all processes with MPI-IO: `shared_file FILE [collective]`.
 *
 * 64 MiB in blocks of 1 MiB, dealt round to the processes in turn, flushed at the end. Process 0 prints the seconds from
 * the open to the close. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, BLOCKS = 64 };

static void check(int status) {
    if (status == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(status, text, &length);
    fprintf(stderr, "shared_file: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char **words) {
    int rank, size;
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count < 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int collective = count > 2 && strcmp(words[2], "collective") == 0;
    char *block = malloc(BLOCK);
    if (block == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(block, 'A' + rank % 26, BLOCK);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    check(MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    for (int round = 0; round < BLOCKS / size; round++) {
        MPI_Offset place = ((MPI_Offset)round * size + rank) * BLOCK;
        if (collective)
            check(MPI_File_write_at_all(file, place, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            check(MPI_File_write_at(file, place, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    check(MPI_File_sync(file));
    check(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.3f\n", MPI_Wtime() - begin);
    free(block);
    MPI_Finalize();
    return 0;
}
