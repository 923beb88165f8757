/* Lists the calls of a program that go to files, with their times: `LD_PRELOAD=./calls.so CALLS=list program`.
 *
 * One line per call: function, start and end in nanoseconds of a steady clock, then the arguments. Only what the
 * example calls is here; a program that does more needs a real tracer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static FILE *list;
static char *names[1024];

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CALLS");
    list = path ? fopen(path, "w") : NULL;
    if (!list) {
        fprintf(stderr, "calls.so: set CALLS to a file that can be written\n");
        _exit(2);
    }
}

__attribute__((destructor)) static void end(void)
{
    if (list)
        fclose(list);
}

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    long long start = now();
    int file = real(path, flags, mode);
    long long stop = now();
    char whole[PATH_MAX];
    if (!realpath(path, whole))
        snprintf(whole, sizeof whole, "%s", path);
    if (file >= 0 && file < 1024) {
        free(names[file]);
        names[file] = realpath(path, NULL);
    }
    if (flags & O_CREAT)
        fprintf(list, "open\t%lld\t%lld\t%s\t%d\t%u\n", start, stop, whole, flags, (unsigned)mode);
    else
        fprintf(list, "open\t%lld\t%lld\t%s\t%d\n", start, stop, whole, flags);
    return file;
}

static const char *name(int file)
{
    return file >= 0 && file < 1024 && names[file] ? names[file] : "unknown";
}

ssize_t write(int file, const void *bytes, size_t count)
{
    ssize_t (*real)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    long long start = now();
    ssize_t done = real(file, bytes, count);
    long long stop = now();
    fprintf(list, "write\t%lld\t%lld\t%s\t%%p\t%zu\n", start, stop, name(file), count);
    return done;
}

int close(int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    long long start = now();
    int done = real(file);
    long long stop = now();
    fprintf(list, "close\t%lld\t%lld\t%s\n", start, stop, name(file));
    if (file >= 0 && file < 1024) {
        free(names[file]);
        names[file] = NULL;
    }
    return done;
}
