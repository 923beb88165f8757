/* Eight small MPI programs that do I/O in eight ways.  mpicc programs.c -o programs; mpiexec -n 4 ./programs KIND FOLDER
 *
 * Each process passes for a node of its own: ROMIO asks for names of nodes to choose its aggregators. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KiB 1024L
#define MiB (1024 * KiB)
#define PART (16 * MiB) /* bytes of a process */

static int rank, size;
static char path[4096], *data;

int gethostname(char *name, size_t length) {
  const char *number = getenv("PMI_RANK");
  snprintf(name, length, "node%s", number ? number : "0");
  return 0;
}

/* MPICH asks UCX for messages until one comes. Here more processes wait than there are processors: so they sleep a little. */
unsigned ucp_worker_progress(void *worker) {
  static unsigned (*ask)(void *);
  static int in_vain;
  if (!ask) ask = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
  unsigned count = ask(worker);
  in_vain = count ? 0 : in_vain + 1;
  if (in_vain > 100) usleep(50);
  return count;
}

static void check(int failed, const char *what) {
  if (failed) {
    fprintf(stderr, "rank %d: %s failed\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* One file of all processes, a part each, in requests of so many bytes. */
static void shared(const char *folder, long request) {
  MPI_File file;
  snprintf(path, sizeof path, "%s/shared.dat", folder);
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
  for (long at = 0; at < PART; at += request)
    check(MPI_File_write_at(file, rank * PART + at, data, request, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  check(MPI_File_sync(file), "sync");
  MPI_File_close(&file);
}

/* Every fourth piece of 64 KiB, in collective calls of 4 MiB per process. */
static void strided(const char *folder) {
  const long piece = 64 * KiB, step = 4 * MiB;
  MPI_File file;
  MPI_Datatype pieces;
  snprintf(path, sizeof path, "%s/strided.dat", folder);
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
  MPI_Type_vector(PART / piece, piece, piece * size, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  MPI_File_set_view(file, rank * piece, MPI_BYTE, pieces, "native", MPI_INFO_NULL);
  for (long at = 0; at < PART; at += step)
    check(MPI_File_write_at_all(file, at, data, step, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  check(MPI_File_sync(file), "sync");
  MPI_File_close(&file);
}

static int begun(const char *folder, const char *name, int number) {
  snprintf(path, sizeof path, "%s/%s.%d.%d", folder, name, rank, number);
  int file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
  check(file < 0, "open");
  return file;
}

static void put(int file, long bytes, long request) {
  for (long at = 0; at < bytes; at += request) check(write(file, data, request) != request, "write");
}

/* A file of each process, three times. */
static void alone(const char *folder) {
  for (int step = 0; step < 3; step++) {
    int file = begun(folder, "own", step);
    put(file, PART, MiB);
    check(fsync(file), "fsync");
    close(file);
  }
}

/* 128 files of 16 KiB. */
static void small(const char *folder) {
  for (int number = 0; number < 32; number++) {
    int file = begun(folder, "small", number);
    put(file, 16 * KiB, 16 * KiB);
    close(file);
  }
}

/* Each process reads twice what all others have written. */
static void again(const char *folder) {
  int file = begun(folder, "again", 0);
  put(file, PART, MiB);
  check(fsync(file), "fsync");
  close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < 2 * (size - 1); turn++) {
    snprintf(path, sizeof path, "%s/again.%d.0", folder, (rank + 1 + turn % (size - 1)) % size);
    check((file = open(path, O_RDONLY)) < 0, "open");
    for (long at = 0; at < PART; at += MiB) check(pread(file, data, MiB, at) != MiB, "read");
    close(file);
  }
}

/* Records of 4 KiB, each flushed. */
static void flushed(const char *folder) {
  int file = begun(folder, "log", 0);
  for (int record = 0; record < 300; record++) {
    put(file, 4 * KiB, 4 * KiB);
    check(fsync(file), "fsync");
  }
  close(file);
}

/* One second of thought, and a result of 64 KiB. */
static void compute(const char *folder) {
  usleep(1000000);
  int file = begun(folder, "result", 0);
  put(file, 64 * KiB, 64 * KiB);
  close(file);
}

/* Times are those of the model only where nobody waits for a processor. On a busy machine root may go first. */
static void go_first(void) {
  int file = open("/proc/self/autogroup", O_WRONLY);
  if (file < 0) return;
  if (write(file, "-10", 3) < 0) errno = 0;
  close(file);
}

int main(int argc, char **argv) {
  go_first();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  data = malloc(4 * MiB);
  check(argc != 3 || !data, "start: programs KIND FOLDER");
  memset(data, 'a' + rank, 4 * MiB);
  const char *kind = argv[1], *folder = argv[2];
  if (!strcmp(kind, "small-requests")) shared(folder, 128 * KiB);
  else if (!strcmp(kind, "large-requests")) shared(folder, 4 * MiB);
  else if (!strcmp(kind, "strided-collective")) strided(folder);
  else if (!strcmp(kind, "file-per-process")) alone(folder);
  else if (!strcmp(kind, "small-files")) small(folder);
  else if (!strcmp(kind, "read-again")) again(folder);
  else if (!strcmp(kind, "flush-bound")) flushed(folder);
  else if (!strcmp(kind, "compute")) compute(folder);
  else check(1, "start: this kind is not known");
  MPI_Finalize();
  return 0;
}
