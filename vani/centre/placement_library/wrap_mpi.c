/* MPI_File_open. The MPI library creates the file with open() in a process of its choice, and other files next to
 * it, such as a lock test: within the call, only the file itself gets a layout. */
#include "place.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>

/* Without mpi.h: communicators, infos and files are integers in some libraries and pointers in others, and pass
 * through in the same registers. */
typedef int file_open_call(void *, const char *, int, void *, void *);

enum { MPI_ERR_OTHER = 15 };

/* ROMIO accepts the kind of file system in front of the name. */
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
    const struct mpi_names *outer = vani_mpi_names;
    struct mpi_names names;
    int status;

    if (real == NULL && (*(void **)&real = dlsym(RTLD_NEXT, "MPI_File_open")) == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_File_open");
    if (real == NULL)
        return MPI_ERR_OTHER;
    if (vani_config.database != NULL && path != NULL && vani_name(AT_FDCWD, path, names.whole) &&
        vani_name(AT_FDCWD, without_kind(path), names.without_kind))
        vani_mpi_names = &names;
    status = real(communicator, path, mode, info, file);
    vani_mpi_names = outer;
    return status;
}
