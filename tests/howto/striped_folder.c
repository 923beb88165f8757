/* Stands in for Lustre: writes below STRIPED_FOLDER wait as long as the targets of the file's layout need for their bytes.
   The layout of a new file is what the stand-in for lfs left in STRIPED_FOLDER/.layout: a number of stripes, 1 if it is
   not there. A file keeps the layout with which it was made, in NAME.stripes beside it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int stripes_in(const char *path) {
    FILE *file = fopen(path, "r");
    int stripes = 0;
    if (!file)
        return 0;
    if (fscanf(file, "%d", &stripes) != 1)
        stripes = 0;
    fclose(file);
    return stripes;
}

static int layout_of(const char *file, const char *folder) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.stripes", file);
    int stripes = stripes_in(path);
    if (stripes)
        return stripes;
    char start[PATH_MAX];
    snprintf(start, sizeof start, "%s/.layout", folder);
    stripes = stripes_in(start);
    stripes = stripes ? stripes : 1;
    FILE *made = fopen(path, "w");
    if (made) {
        fprintf(made, "%d\n", stripes);
        fclose(made);
    }
    return stripes;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    const char *folder = getenv("STRIPED_FOLDER");
    char link[64], path[PATH_MAX];
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pwrite");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (folder && length > 0) {
        path[length] = 0;
        if (strncmp(path, folder, strlen(folder)) == 0) {
            double rate = atof(getenv("STRIPED_RATE")) * layout_of(path, folder);
            double seconds = (double)size * atof(getenv("STRIPED_WRITERS")) / rate;
            struct timespec wait = {(time_t)seconds, (long)((seconds - (long)seconds) * 1e9)};
            nanosleep(&wait, NULL);
        }
    }
    return next(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return pwrite(fd, data, size, at);
}
