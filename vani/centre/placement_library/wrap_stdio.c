/* fopen, freopen and their 64-bit names: inside libc they do not call open. */
#include "place.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef FILE *fopen_call(const char *, const char *);
typedef FILE *freopen_call(const char *, const char *, FILE *);

#define REAL(type, name)                                                                                               \
    static type *real;                                                                                                 \
    if (real == NULL && (*(void **)&real = dlsym(RTLD_NEXT, #name)) == NULL)                                           \
        return errno = ENOSYS, NULL

/* Flags of open(2) for a mode that creates files; otherwise 0, also with a character set, which fdopen rejects. */
static int flags_of(const char *mode)
{
    int flags;

    if (mode == NULL || (mode[0] != 'w' && mode[0] != 'a') || strchr(mode, ',') != NULL)
        return 0;
    flags = O_CREAT | (mode[0] == 'w' ? O_TRUNC : O_APPEND) | (strchr(mode, '+') ? O_RDWR : O_WRONLY);
    return flags | (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
}

static FILE *placed(const char *path, const char *mode)
{
    int flags = flags_of(mode), fd = flags ? vani_place(AT_FDCWD, path, flags, 0666) : -1, saved = errno;
    FILE *stream;

    if (fd < 0)
        return NULL;
    stream = fdopen(fd, mode);
    if (stream == NULL)
        close(fd);
    errno = saved;
    return stream;
}

/* libc opens the stream again, so the file is only created here; one that must not exist is not created in advance. */
static int made_ahead(const char *path, const char *mode)
{
    int flags = path == NULL ? 0 : flags_of(mode);

    return flags == 0 || (flags & O_EXCL) ? -1 : vani_place(AT_FDCWD, path, flags | O_CLOEXEC, 0666);
}

static FILE *reopened(freopen_call *real, const char *path, const char *mode, FILE *stream)
{
    int fd = made_ahead(path, mode), saved;
    struct stat found;
    bool denied;

    if (fd < 0)
        return real(path, mode, stream);
    /* With some masks a program can create a file that it cannot open again. */
    denied = fstat(fd, &found) == 0 && (found.st_mode & 0600) != 0600;
    if (denied && fchmod(fd, (found.st_mode & 07777) | 0600) != 0)
        denied = false;
    stream = real(path, mode, stream);
    saved = errno;
    if (denied)
        fchmod(fd, found.st_mode & 07777);
    close(fd);
    errno = saved;
    return stream;
}

EXPORTED FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen_call, fopen);
    FILE *stream = placed(path, mode);

    return stream != NULL ? stream : real(path, mode);
}

EXPORTED FILE *fopen64(const char *path, const char *mode)
{
    REAL(fopen_call, fopen64);
    FILE *stream = placed(path, mode);

    return stream != NULL ? stream : real(path, mode);
}

EXPORTED FILE *freopen(const char *path, const char *mode, FILE *stream)
{
    REAL(freopen_call, freopen);
    return reopened(real, path, mode, stream);
}

EXPORTED FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
    REAL(freopen_call, freopen64);
    return reopened(real, path, mode, stream);
}
