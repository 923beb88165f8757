/* The absolute name of a path, as in the database. */
#include "place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The physical path of an open folder. */
static bool folder_name(int fd, char *name, size_t *length)
{
    char link[64];
    ssize_t size;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size = readlink(link, name, PATH_MAX);
    if (size <= 0 || size >= PATH_MAX || name[0] != '/')
        return false;
    *length = (size_t)size;
    return true;
}

/* Add the components of a path, without empty ones and dots. */
static bool add(char *name, size_t *length, const char *path)
{
    if (*length == 1) /* "/" */
        *length = 0;
    while (*path != '\0') {
        size_t size = strcspn(path, "/");
        if (size != 0 && !(size == 1 && path[0] == '.')) {
            if (*length + size + 2 > PATH_MAX)
                return false;
            name[(*length)++] = '/';
            memcpy(name + *length, path, size);
            *length += size;
        }
        path += size;
        while (*path == '/')
            path++;
    }
    name[*length] = '\0';
    return *length != 0;
}

static bool climbs(const char *path)
{
    for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
        if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

/* The folder of a path with ".." depends on symbolic links, so the system has to resolve it. */
static bool climbed(int folder, const char *path, char *name)
{
    const char *last = strrchr(path, '/');
    char parent[PATH_MAX];
    size_t length;
    bool known;
    int fd;

    if (last == NULL || (size_t)(last - path) >= sizeof parent || climbs(last + 1))
        return false;
    memcpy(parent, path, (size_t)(last - path));
    parent[last - path] = '\0';
    fd = openat(folder, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    known = folder_name(fd, name, &length);
    close(fd);
    return known && add(name, &length, last + 1);
}

bool vani_name(int folder, const char *path, char *name)
{
    size_t length = strlen(path);

    /* A path that ends in a slash is not a file's. */
    if (length == 0 || length >= PATH_MAX || path[length - 1] == '/')
        return false;
    if (climbs(path))
        return climbed(folder, path, name);
    if (path[0] == '/')
        length = 0;
    else if (folder != AT_FDCWD) {
        if (!folder_name(folder, name, &length))
            return false;
    } else {
        if (getcwd(name, PATH_MAX) == NULL || name[0] != '/')
            return false;
        length = strlen(name);
    }
    return add(name, &length, path);
}
