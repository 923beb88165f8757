/* MPI_File_open. The MPI library makes the file by open(), on the process that it chooses, and other files beside it,
 * such as one to test locks: within the call, only the file itself gets a layout. */
#include "place.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* Without mpi.h: communicators, infos and files are integers in some libraries and pointers in others, and pass
 * through in the same registers. */
typedef int file_open_call(void *, const char *, int, void *, void *);

enum { MPI_ERR_OTHER = 15 };

/* ROMIO takes the kind of file system in front of the name. */
static const char *without_kind(const char *path)
{
    static const char *const kinds[] = {"ufs:", "nfs:", "lustre:", "gpfs:", "xfs:", "panfs:", "testfs:", "daos:", "ime:"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(path, kinds[i], strlen(kinds[i])) == 0)
            return path + strlen(kinds[i]);
    return path;
}

EXPORTED int MPI_File_open(void *communicator, const char *path, int mode, void *info, void *file)
{
    static file_open_call *real;
    const char *outer = vani_mpi_name;
    char name[PATH_MAX];
    int status;

    if (real == NULL && (*(void **)&real = dlsym(RTLD_NEXT, "MPI_File_open")) == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_File_open");
    if (real == NULL)
        return MPI_ERR_OTHER;
    if (vani_config.database != NULL && path != NULL && vani_name(AT_FDCWD, without_kind(path), name))
        vani_mpi_name = name;
    status = real(communicator, path, mode, info, file);
    vani_mpi_name = outer;
    return status;
}
