/* Ends of files over time: `Ends` of analyzers/workload.py. */
#ifndef VANI_ENDS_H
#define VANI_ENDS_H

#include "columns.h"

/* keys: file and moment (width `moments`), ascending, each with the largest end so far. */
struct ends {
    const uint8_t *known; /* indexed by file, like `since` */
    const int64_t *since;
    int64_t files;
    const int64_t *keys, *reach;
    int64_t count, bucket_ns, level, buckets, moments;
};

static inline int ends_are_sound(const struct ends *ends)
{
    return ends->files >= 0 && ends->count >= 0 && ends->bucket_ns >= 1 && ends->level >= 0 && ends->level < 63
           && ends->buckets >= 0 && ends->moments > ends->buckets && ends->files < INT64_MAX / ends->moments;
}

/* End of a file, 0 <= file < ends->files, at a moment >= 0; 0 before the first write. near: index of the key that the
   last look-up for this file returned, or 0. */
static inline int64_t end_at(const struct ends *ends, int64_t file, int64_t now, int64_t *near)
{
    int64_t moment = now / ends->bucket_ns;
    moment = (moment < ends->buckets ? moment : ends->buckets) >> ends->level;
    int64_t wanted = file * ends->moments + moment, low = -1, high = ends->count;
    if (*near >= 0 && *near < high && ends->keys[*near] <= wanted) {
        low = *near;
        if (low + 1 < high && ends->keys[low + 1] <= wanted)
            low++;
        if (low + 1 == high || ends->keys[low + 1] > wanted)
            high = low + 1;
    }
    /* The last key that is not larger. */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (ends->keys[middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    *near = low;
    return low >= 0 && ends->keys[low] >= file * ends->moments ? ends->reach[low] : 0;
}

#endif
