/* Lustre layouts, set with llapi_layout_*(3) of liblustreapi, which is opened when the program starts. */
#include "place.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* From lustreapi.h and lustre_user.h. */
#define LUSTRE_EOF UINT64_MAX
#define PATTERN_MDT UINT64_C(2)
struct llapi_layout;

static struct {
    struct llapi_layout *(*alloc)(void);
    void (*free)(struct llapi_layout *);
    int (*comp_add)(struct llapi_layout *);
    int (*comp_extent_set)(struct llapi_layout *, uint64_t, uint64_t);
    int (*stripe_count_set)(struct llapi_layout *, uint64_t);
    int (*stripe_size_set)(struct llapi_layout *, uint64_t);
    int (*ost_index_set)(struct llapi_layout *, int, uint64_t);
    int (*pattern_set)(struct llapi_layout *, uint64_t); /* NULL before Lustre 2.10 */
    int (*file_open)(const char *, int, mode_t, const struct llapi_layout *);
} lustre;

bool vani_layout_begin(void)
{
    void *library;

    if (vani_config.lustreapi != NULL)
        library = dlopen(vani_config.lustreapi, RTLD_NOW | RTLD_LOCAL);
    else if ((library = dlopen("liblustreapi.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
        library = dlopen("liblustreapi.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
#define FIND(name) ((*(void **)&lustre.name = dlsym(library, "llapi_layout_" #name)) != NULL)
    (void)FIND(pattern_set);
    return FIND(alloc) && FIND(free) && FIND(comp_add) && FIND(comp_extent_set) && FIND(stripe_count_set) &&
           FIND(stripe_size_set) && FIND(ost_index_set) && FIND(file_open);
#undef FIND
}

static bool set_osts(struct llapi_layout *layout, const struct extent *extent)
{
    const char *at = extent->osts;
    uint64_t stripe;
    char *end;

    for (stripe = 0; *at != '\0'; stripe++) {
        unsigned long ost = strtoul(at, &end, 10);
        if (end == at || stripe >= extent->stripe_count)
            return false;
        if (lustre.ost_index_set(layout, (int)stripe, ost) != 0)
            return false;
        for (at = end; *at == ' '; at++) {
        }
    }
    return stripe == 0 || stripe == extent->stripe_count;
}

static bool fill(struct llapi_layout *layout, const struct extents *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const struct extent *extent = &wanted->extent[i];
        /* To the end of the file, so that a file can grow beyond its expected size. */
        uint64_t end = i + 1 == wanted->count ? LUSTRE_EOF : extent->end;

        if (i != 0 && lustre.comp_add(layout) != 0)
            return false;
        if (wanted->count != 1 && lustre.comp_extent_set(layout, extent->start, end) != 0)
            return false;
        /* No stripes means data on the metadata target, as large as the component. */
        if (extent->stripe_count == 0) {
            if (lustre.pattern_set == NULL || lustre.pattern_set(layout, PATTERN_MDT) != 0)
                return false;
            continue;
        }
        if (lustre.stripe_count_set(layout, extent->stripe_count) != 0 ||
            lustre.stripe_size_set(layout, extent->stripe_size) != 0 || !set_osts(layout, extent))
            return false;
    }
    return true;
}

int vani_create(const char *path, int flags, mode_t mode, const struct extents *wanted)
{
    struct llapi_layout *layout;
    int fd = -1, why;

    if ((layout = lustre.alloc()) == NULL)
        return -1;
    errno = EINVAL;
    if (fill(layout, wanted))
        fd = lustre.file_open(path, flags | O_CREAT | O_EXCL, mode, layout);
    why = errno;
    lustre.free(layout);
    errno = why;
    return fd;
}
