/* Replaces liblustreapi where there is no Lustre: logs its requests in the file STANDIN_LOG, and creates files with
 * open(2) like the real one. STANDIN_FAIL names the step that fails: alloc, extent, before, after.
 * Without STANDIN_LOG, it gives the new file a layout in the form of examples/closed-loop/striped_file_system.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

struct component {
    uint64_t start, end, size, count, osts[2000];
    int listed, on_mdt;
};
struct llapi_layout {
    int count, composite;
    struct component *one;
};

static int fails(const char *where)
{
    const char *told = getenv("STANDIN_FAIL");
    return told != NULL && strcmp(told, where) == 0;
}

static struct component *last(struct llapi_layout *layout)
{
    return &layout->one[layout->count - 1];
}

struct llapi_layout *llapi_layout_alloc(void)
{
    struct llapi_layout *layout = fails("alloc") ? NULL : calloc(1, sizeof *layout);
    if (layout == NULL)
        return NULL;
    layout->count = 1;
    layout->one = calloc(1, sizeof *layout->one);
    layout->one->end = UINT64_MAX;
    return layout;
}

void llapi_layout_free(struct llapi_layout *layout)
{
    free(layout->one);
    free(layout);
}

int llapi_layout_comp_add(struct llapi_layout *layout)
{
    layout->one = realloc(layout->one, (size_t)(layout->count + 1) * sizeof *layout->one);
    layout->count++;
    layout->composite = 1;
    memset(last(layout), 0, sizeof *layout->one);
    return 0;
}

int llapi_layout_comp_extent_set(struct llapi_layout *layout, uint64_t start, uint64_t end)
{
    if (fails("extent") || start >= end)
        return errno = EINVAL, -1;
    last(layout)->start = start;
    last(layout)->end = end;
    layout->composite = 1;
    return 0;
}

int llapi_layout_stripe_count_set(struct llapi_layout *layout, uint64_t count)
{
    last(layout)->count = count;
    return count == 0 || count > 2000 ? (errno = EINVAL, -1) : 0;
}

int llapi_layout_stripe_size_set(struct llapi_layout *layout, uint64_t size)
{
    last(layout)->size = size;
    return size == 0 || size % 65536 || size >= UINT64_C(1) << 32 ? (errno = EINVAL, -1) : 0;
}

int llapi_layout_ost_index_set(struct llapi_layout *layout, int stripe, uint64_t ost)
{
    if (stripe < 0 || stripe >= 2000)
        return errno = EINVAL, -1;
    last(layout)->osts[stripe] = ost;
    last(layout)->listed = stripe + 1;
    return 0;
}

int llapi_layout_pattern_set(struct llapi_layout *layout, uint64_t pattern)
{
    last(layout)->on_mdt = pattern == 2;
    last(layout)->size = 65536;
    return pattern == 0 || pattern == 2 ? 0 : (errno = EINVAL, -1);
}

static void note(const char *path, int flags, mode_t mode, const struct llapi_layout *layout)
{
    const char *log = getenv("STANDIN_LOG");
    char line[65536];
    int length = snprintf(line, sizeof line, "%ld %s %c%c%c %o %s", (long)getpid(), path, flags & O_CREAT ? 'c' : '-',
                          flags & O_EXCL ? 'x' : '-', flags & O_CLOEXEC ? 'e' : '-', (unsigned)mode, layout->composite ? "composite" : "plain");
    int fd;

    for (int i = 0; i < layout->count; i++) {
        const struct component *one = &layout->one[i];
        if (one->on_mdt) {
            length += snprintf(line + length, 100, " mdt[%lu,%ld)", (unsigned long)one->start, (long)one->end);
            continue;
        }
        length += snprintf(line + length, 100, " [%lu,%ld) %lux%lu:",
                           (unsigned long)one->start, (long)one->end, (unsigned long)one->count,
                           (unsigned long)one->size);
        for (int ost = 0; ost < one->listed; ost++)
            length += snprintf(line + length, 30, ost ? ",%lu" : "%lu", (unsigned long)one->osts[ost]);
    }
    line[length++] = '\n';
    if (log == NULL || (fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        return;
    if (write(fd, line, (size_t)length) != length)
        abort();
    close(fd);
}

/* Options of `lfs setstripe`. */
static int set(int fd, const struct llapi_layout *layout)
{
    char words[65536];
    int length = 0;

    for (int i = 0; i < layout->count; i++) {
        const struct component *one = &layout->one[i];
        if (layout->composite)
            length += snprintf(words + length, 40, "-E %ld ", (long)one->end);
        if (one->on_mdt) {
            length += snprintf(words + length, 40, "-L mdt ");
            continue;
        }
        length += snprintf(words + length, 80, "-c %lu -S %lu ", (unsigned long)one->count, (unsigned long)one->size);
        for (int ost = 0; ost < one->listed; ost++)
            length += snprintf(words + length, 30, ost ? ",%lu" : "-o %lu", (unsigned long)one->osts[ost]);
        words[length++] = ' ';
    }
    return fsetxattr(fd, "user.layout", words, (size_t)length, 0);
}

int llapi_layout_file_open(const char *path, int flags, mode_t mode, const struct llapi_layout *layout)
{
    int fd;

    for (int i = 0; i + 1 < layout->count; i++)
        if (layout->one[i].end % layout->one[i].size)
            return errno = EINVAL, -1;
    if (fails("before"))
        return errno = ENOTTY, -1;
    fd = open(path, flags, mode);
    if (fd < 0)
        return -1;
    if (fails("after")) {
        close(fd);
        return errno = ENOTTY, -1;
    }
    if (getenv("STANDIN_LOG") == NULL && set(fd, layout) != 0) {
        int why = errno;
        close(fd);
        return errno = why, -1;
    }
    note(path, flags, mode, layout);
    return fd;
}
