/* Bytes that reads asked for beyond the end of their file, by group (analyzers/measures/past_end.py). */
#include "columns.h"
#include "ends.h"

/* file: by group; -1 leaves a group out. near, beyond, reads: by group, zeros at first. */
KERNEL int vani_past_end(const int32_t *codes, const int64_t *offset, const int64_t *bytes, const int64_t *start,
                         const int64_t *duration, int64_t n, const int64_t *file, int64_t groups,
                         const struct ends *ends, int64_t *near, int64_t *beyond, int64_t *reads)
{
    if (n < 0 || groups < 0 || !ends_are_sound(ends))
        return NOT_ME;
    for (int64_t g = 0; g < groups; g++)
        if (file[g] < -1 || file[g] >= ends->files)
            return NOT_ME;
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] < 0 || codes[i] >= groups)
            return NOT_ME;
        int64_t of = file[codes[i]], begin = offset[i], size = bytes[i], now, wanted;
        if (of < 0 || begin == NO_VALUE || size == NO_VALUE)
            continue;
        if (size < 0 || __builtin_add_overflow(start[i], duration[i], &now)
            || __builtin_add_overflow(begin, size, &wanted))
            return NOT_ME;
        if (now < ends->since[of])
            continue;
        if (now < 0)
            return NOT_ME;
        int64_t end = end_at(ends, of, now, &near[codes[i]]), over = wanted - (end > begin ? end : begin);
        if (over > 0 && __builtin_add_overflow(beyond[codes[i]], over < size ? over : size, &beyond[codes[i]]))
            return NOT_ME;
        reads[codes[i]]++;
    }
    return DONE;
}
