/* Programs that do I/O the costly way (before) and as the advice of a rule asks (after), for tracers of libraries.

     mpiexec -n N recorded PAIR before|after FOLDER

   The traces in recorded.tar.xz are those of Recorder (c1c3dcb, layout 2.5) with MPICH 4.0.2 and HDF5 1.10.8, on
   `python -m vani.demo.slow_file_system MOUNT FOLDER 0.001 300e6`: each request waits for a millisecond, as on a busy
   parallel file system. One process for chunking, parts, past_end and stdio_data, 64 for own_files, else four. */
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, after;
static char path[4096];
static char block[8 << 20];

/* A file of HDF5 in one piece for all processes, or for this one. */
static hid_t create(const char *name, int shared, hid_t access) {
    char file[4200];
    snprintf(file, sizeof file, "%s/%s", path, name);
    if (shared) H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    return H5Fcreate(file, H5F_ACC_TRUNC, H5P_DEFAULT, access);
}

static hid_t reopen(const char *name, int shared, hid_t access) {
    char file[4200];
    snprintf(file, sizeof file, "%s/%s", path, name);
    if (shared) H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    return H5Fopen(file, H5F_ACC_RDWR, access);
}

static hid_t dataset(hid_t file, const char *name, hsize_t rows, hsize_t columns, hid_t creation) {
    hsize_t shape[2] = {rows, columns};
    hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t data = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    return data;
}

static void move(hid_t data, hsize_t row, hsize_t column, hsize_t rows, hsize_t columns, hid_t transfer, int reads) {
    hsize_t start[2] = {row, column}, count[2] = {rows, columns};
    hid_t space = H5Dget_space(data), memory = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    if (reads) H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, transfer, block);
    else H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, transfer, block);
    H5Sclose(memory);
    H5Sclose(space);
}

/* HD5001: 24 fields of 1,000 x 1,000 in a chunk for each process, behind one another or on stripes of 1 MiB. */
static void aligned(void) {
    char name[16];
    hsize_t chunk[2] = {250, 1000};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    if (after) H5Pset_alignment(access, 524288, 1048576);
    hid_t file = create("fields.h5", 1, access);
    for (int i = 0; i < 24; i++) {
        snprintf(name, sizeof name, "d%03d", i);
        hid_t data = dataset(file, name, 250 * size, 1000, creation);
        move(data, 250 * rank, 0, 250, 1000, H5P_DEFAULT, 0);
        H5Dclose(data);
    }
    H5Fclose(file);
}

/* HD5002: a field in chunks of 8 KiB, or of 1 MiB. */
static void chunking(void) {
    hsize_t small[2] = {32, 32}, large[2] = {256, 512};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, after ? large : small);
    hid_t file = create("field.h5", 0, H5P_DEFAULT), data = dataset(file, "t", 512, 512, creation);
    move(data, 0, 0, 512, 512, H5P_DEFAULT, 0);
    H5Dclose(data);
    H5Fclose(file);
}

/* HD5003: every process looks up 100 data sets for itself, or one does for all. */
static void metadata(void) {
    char name[16];
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    if (after) {
        H5Pset_all_coll_metadata_ops(access, 1);
        H5Pset_coll_metadata_write(access, 1);
    }
    hid_t file = create("many.h5", 0, access);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "d%03d", i);
        H5Dclose(dataset(file, name, 4, 64, H5P_DEFAULT));
    }
    H5Fclose(file);
    file = reopen("many.h5", 0, access);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "d%03d", i);
        H5Dclose(H5Dopen2(file, name, H5P_DEFAULT));
    }
    H5Fclose(file);
}

/* HD5005: each process writes a quarter of each row, independently or together. */
static void transfer(void) {
    hid_t way = H5Pcreate(H5P_DATASET_XFER);
    if (after) H5Pset_dxpl_mpio(way, H5FD_MPIO_COLLECTIVE);
    hid_t file = create("rows.h5", 1, H5Pcreate(H5P_FILE_ACCESS)), data = dataset(file, "t", 64, 512 * size, H5P_DEFAULT);
    for (int i = 0; i < (after ? 1 : 64); i++) move(data, i, 512 * rank, after ? 64 : 1, 512, way, 0);
    H5Dclose(data);
    H5Fclose(file);
}

/* HD5006: each process writes 300 rows one after another, a call for each or one for all. */
static void selections(void) {
    hid_t file = create("rows.h5", 1, H5Pcreate(H5P_FILE_ACCESS)), data = dataset(file, "t", 1200, 256, H5P_DEFAULT);
    for (int i = 0; i < 300; i += after ? 300 : 1) move(data, 300 * rank + i, 0, after ? 300 : 1, 256, H5P_DEFAULT, 0);
    H5Dclose(data);
    H5Fclose(file);
}

/* HD5008: a row into chunks of 64 rows, compressed, with HDF5's cache of 1 MiB or one that fits them. */
static void parts(void) {
    hsize_t chunk[2] = {64, 8192};
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_chunk(creation, 2, chunk);
    H5Pset_deflate(creation, 1);
    if (after) H5Pset_cache(access, 0, 12421, 16777216, 1.0);
    for (size_t i = 0; i < sizeof block / 4; i++) ((int *)block)[i] = rand();
    hid_t file = create("steps.h5", 0, access), data = dataset(file, "t", 64, 8192, creation);
    for (int i = 0; i < 64; i++) move(data, i, 0, 1, 8192, H5P_DEFAULT, 0);
    H5Dclose(data);
    H5Fclose(file);
}

static MPI_File opened(const char *name, MPI_Info hints) {
    char full[4200];
    MPI_File file;
    snprintf(full, sizeof full, "%s/%s", path, name);
    MPI_File_open(MPI_COMM_WORLD, full, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file);
    return file;
}

/* MIO003: collective writes that leave holes, which ROMIO reads first, or not. */
static void sieving(void) {
    MPI_Info hints = MPI_INFO_NULL;
    if (after) {
        MPI_Info_create(&hints);
        MPI_Info_set(hints, "romio_ds_write", "disable");
        MPI_Info_set(hints, "romio_cb_write", "disable");
    }
    MPI_File file = opened("holes", hints);
    MPI_Datatype pieces;
    MPI_Type_vector(64, 65536, 65536 * size * 2, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    MPI_File_set_size(file, (MPI_Offset)64 * 65536 * size * 2);
    MPI_File_set_view(file, (MPI_Offset)65536 * 2 * rank, MPI_BYTE, pieces, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, block, 64 * 65536, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* MIO005: all processes open 64 files that collective calls fill, or only aggregators do. */
static void deferred(void) {
    char name[32];
    MPI_Info hints = MPI_INFO_NULL;
    if (after) {
        MPI_Info_create(&hints);
        MPI_Info_set(hints, "romio_no_indep_rw", "true");
    }
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "plot%02d", i);
        MPI_File file = opened(name, hints);
        MPI_File_write_at_all(file, (MPI_Offset)rank * 4096, block, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
}

/* MIO006: a file of 2 kB for each process, or one that all fill together. */
static void own_files(void) {
    char name[4200];
    if (after) {
        MPI_Info hints;
        MPI_Info_create(&hints);
        MPI_Info_set(hints, "romio_cb_write", "enable");
        MPI_File file = opened("part", hints);
        MPI_File_write_at_all(file, (MPI_Offset)rank * 2000, block, 2000, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
        return;
    }
    snprintf(name, sizeof name, "%s/part%03d", path, rank);
    int file = open(name, O_WRONLY | O_CREAT, 0644);
    write(file, block, 2000);
    close(file);
}

/* POS008: a buffer of 8 KiB asks again and again for what comes after 100 bytes, or the program asks for the size. */
static void past_end(void) {
    char name[4200];
    snprintf(name, sizeof name, "%s/table", path);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    pwrite(file, block, 100, 0);
    for (int i = 0; i < (after ? 1 : 1000); i++) pread(file, block, after ? 100 : 8192, 0);
    close(file);
}

/* POS012: particles through stdio in pieces of 256 KiB, or by write in pieces of 4 MiB. */
static void stdio_data(void) {
    char name[4200];
    snprintf(name, sizeof name, "%s/particles", path);
    if (after) {
        int file = open(name, O_WRONLY | O_CREAT, 0644);
        for (int i = 0; i < 16; i++) write(file, block, 4 << 20);
        close(file);
        return;
    }
    FILE *file = fopen(name, "w");
    for (int i = 0; i < 256; i++) fwrite(block, 1, 256 << 10, file);
    fclose(file);
}

static const struct {
    const char *name;
    void (*run)(void);
} pairs[] = {
    {"aligned", aligned},       {"chunking", chunking}, {"metadata", metadata},     {"transfer", transfer},
    {"selections", selections}, {"parts", parts},       {"sieving", sieving},       {"deferred", deferred},
    {"own_files", own_files},   {"past_end", past_end}, {"stdio_data", stdio_data},
};

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    after = count > 2 && !strcmp(words[2], "after");
    snprintf(path, sizeof path, "%s", count > 3 ? words[3] : ".");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (count > 1 && !strcmp(words[1], pairs[i].name)) pairs[i].run();
    MPI_Finalize();
    return 0;
}
