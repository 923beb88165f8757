/* open, openat, creat and their 64-bit names. */
#include "place.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

typedef int open_call(const char *, int, ...);
typedef int openat_call(int, const char *, int, ...);
typedef int creat_call(const char *, mode_t);

/* Looked up on first use: constructors of other libraries may run before ours. */
#define REAL(type, name)                                                                                               \
    static type *real;                                                                                                 \
    if (real == NULL && (*(void **)&real = dlsym(RTLD_NEXT, #name)) == NULL)                                           \
        return errno = ENOSYS, -1

static mode_t mode_of(int flags, va_list more)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

static int handed_on(int fd, const char *path, int flags)
{
    return fd >= 0 && vani_doing != NOTHING ? vani_inner_opened(fd, path, flags) : fd;
}

int vani_real_open(const char *path, int flags, mode_t mode)
{
    REAL(open_call, open);
    return real(path, flags, mode);
}

#define OPEN(name)                                                                                                     \
    EXPORTED int name(const char *path, int flags, ...)                                                                \
    {                                                                                                                  \
        REAL(open_call, name);                                                                                         \
        va_list more;                                                                                                  \
        mode_t mode;                                                                                                   \
        int fd;                                                                                                        \
                                                                                                                       \
        va_start(more, flags);                                                                                         \
        mode = mode_of(flags, more);                                                                                   \
        va_end(more);                                                                                                  \
        if ((flags & O_CREAT) && (fd = vani_place(AT_FDCWD, path, flags, mode)) >= 0)                                  \
            return fd;                                                                                                 \
        return handed_on(real(path, flags, mode), path, flags);                                                        \
    }

#define OPENAT(name)                                                                                                   \
    EXPORTED int name(int folder, const char *path, int flags, ...)                                                    \
    {                                                                                                                  \
        REAL(openat_call, name);                                                                                       \
        va_list more;                                                                                                  \
        mode_t mode;                                                                                                   \
        int fd;                                                                                                        \
                                                                                                                       \
        va_start(more, flags);                                                                                         \
        mode = mode_of(flags, more);                                                                                   \
        va_end(more);                                                                                                  \
        if ((flags & O_CREAT) && (fd = vani_place(folder, path, flags, mode)) >= 0)                                    \
            return fd;                                                                                                 \
        return handed_on(real(folder, path, flags, mode), path, flags);                                                \
    }

#define CREAT(name)                                                                                                    \
    EXPORTED int name(const char *path, mode_t mode)                                                                   \
    {                                                                                                                  \
        REAL(creat_call, name);                                                                                        \
        int fd = vani_place(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);                                       \
                                                                                                                       \
        return fd >= 0 ? fd : real(path, mode);                                                                        \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
CREAT(creat)
CREAT(creat64)
