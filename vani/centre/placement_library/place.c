/* libvani_place.so: creates files with the layouts that a plan has for them.
 *
 * On any error, the program's own call is made, and the program gets that result. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct config vani_config;
_Thread_local enum doing vani_doing;
_Thread_local const struct mpi_names *vani_mpi_names;
/* Another descriptor of a file that liblustreapi has created but not yet given a layout. */
static _Thread_local int made __attribute__((tls_model("initial-exec"))) = -1;
static _Thread_local const char *making __attribute__((tls_model("initial-exec")));

enum { HIGH_FD = 900 };

static char *copy_of(const char *text)
{
    return text == NULL || *text == '\0' ? NULL : strdup(text);
}

/* Programs may change their working directory before they create files. */
static char *absolute(const char *path)
{
    char name[PATH_MAX];

    if (path == NULL || *path == '\0')
        return NULL;
    return strdup(vani_name(AT_FDCWD, path, name) ? name : path);
}

/* Libraries are opened here, while there is only one thread: later, another thread could be opening one, or a child of
 * fork() could find the loader's lock taken for ever. */
__attribute__((constructor)) static void begin(void)
{
    int saved = errno;
    char *database = absolute(secure_getenv("VANI_PLACE_DB"));

    if (database == NULL)
        return;
    vani_config.log = absolute(secure_getenv("VANI_PLACE_LOG"));
    vani_config.lustreapi = copy_of(secure_getenv("VANI_PLACE_LIB"));
    if (!vani_layout_begin())
        vani_log("off: no liblustreapi for", database);
    else if (!vani_lookup_begin())
        vani_log("off: no libsqlite3.so.0 for", database);
    else
        vani_config.database = database;
    errno = saved;
}

int vani_inner_opened(int fd, const char *path, int flags)
{
    int other, saved = errno;

    /* Excludes files that a signal handler opens meanwhile. */
    if (vani_doing == CREATING && (flags & O_EXCL) && made < 0 && path != NULL && strcmp(path, making) == 0)
        made = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (vani_doing == CONNECTING && (flags & O_CREAT) == 0) {
        other = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
        if (other >= 0) {
            close(fd);
            fd = other;
        }
        vani_lookup_opened(fd);
    }
    errno = saved;
    return fd;
}

/* Open a file that was created without its layout; its mode does not yet restrict its creator. */
static int reopen(const char *path, int flags)
{
    char name[64];
    struct stat found;
    int fd;

    snprintf(name, sizeof name, "/proc/self/fd/%d", made);
    flags &= ~(O_CREAT | O_EXCL | O_NOFOLLOW);
    fd = vani_real_open(name, flags, 0);
    if (fd < 0 && errno == EACCES && fstat(made, &found) == 0 &&
        fchmod(made, (found.st_mode & 07777) | S_IRUSR | S_IWUSR) == 0) {
        fd = vani_real_open(name, flags, 0);
        fchmod(made, found.st_mode & 07777);
    }
    return fd < 0 ? vani_real_open(path, flags, 0) : fd;
}

static int create(int folder, const char *path, int flags, mode_t mode, const struct extents *layout, const char *name)
{
    char there[PATH_MAX], told[96];
    int fd, why;

    if (folder != AT_FDCWD && path[0] != '/') {
        /* liblustreapi takes no folder descriptors; this names the same folder, even if it was renamed. */
        if ((size_t)snprintf(there, sizeof there, "/proc/self/fd/%d/%s", folder, path) >= sizeof there)
            return -1;
        path = there;
    }
    made = -1;
    making = path;
    vani_doing = CREATING;
    fd = vani_create(path, flags, mode, layout);
    why = errno;
    vani_doing = LOOKING_UP;
    if (fd >= 0)
        snprintf(told, sizeof told, "placed %zu", layout->count);
    else if (why == EEXIST && made < 0)
        snprintf(told, sizeof told, "exists");
    else
        snprintf(told, sizeof told, "default: error %d of liblustreapi;", why);
    if (fd < 0 && made >= 0)
        fd = reopen(path, flags);
    if (made >= 0)
        close(made);
    made = -1;
    vani_log(told, name);
    return fd;
}

/* Probably a signal handler, which may have interrupted a memory allocation. */
static bool handles_signal(void)
{
    stack_t stack;

    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

/* Within MPI_File_open, only the file itself. */
static bool wanted(const char *name)
{
    const struct mpi_names *names = vani_mpi_names;

    return names == NULL || strcmp(names->whole, name) == 0 || strcmp(names->without_kind, name) == 0;
}

int vani_place(int folder, const char *path, int flags, mode_t mode)
{
    char name[PATH_MAX];
    struct extents layout;
    int cancel, fd = -1, saved = errno;

    if (vani_config.database == NULL || vani_doing != NOTHING || path == NULL || (flags & (O_DIRECTORY | O_PATH)) ||
        handles_signal()) {
        errno = saved;
        return -1;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    vani_doing = LOOKING_UP;
    if (vani_name(folder, path, name) && wanted(name) && vani_lookup(name, &layout)) {
        if (layout.count == 0)
            vani_log("unknown", name);
        else
            fd = create(folder, path, flags, mode, &layout, name);
        vani_free(&layout);
    }
    vani_doing = NOTHING;
    pthread_setcancelstate(cancel, &cancel);
    errno = saved;
    return fd;
}
