/* Bytes that reads requested beyond the end of their file, by group (analyzers/measures/lengths.py). */
#include "columns.h"
#include "ends.h"

/* file: indexed by group; -1 leaves a group out. near, beyond, reads: indexed by group. For the others see ends.h. */
KERNEL vani_past_end(int64_t n, int64_t groups, int64_t files, int64_t ends, int64_t bucket_ns, int64_t level,
                     int64_t buckets, int64_t moments, IN(int32_t, codes, n), IN(int64_t, offset, n),
                     IN(int64_t, bytes, n), IN(int64_t, start, n), IN(int64_t, duration, n), IN(int64_t, file, groups),
                     IN(uint8_t, known, files), IN(int64_t, since, files), IN(int64_t, keys, ends),
                     IN(int64_t, reach, ends), ZEROS(int64_t, near, groups), ZEROS(int64_t, beyond, groups),
                     ZEROS(int64_t, reads, groups))
{
    const struct ends of_files = {known, since, files, keys, reach, ends, bucket_ns, level, buckets, moments};
    if (n < 0 || groups < 0 || !ends_are_sound(&of_files))
        return NOT_ME;
    for (int64_t g = 0; g < groups; g++)
        if (file[g] < -1 || file[g] >= files)
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
        if (now < since[of])
            continue;
        if (now < 0)
            return NOT_ME;
        int64_t end = end_at(&of_files, of, now, &near[codes[i]]), over = wanted - (end > begin ? end : begin);
        if (over > 0 && __builtin_add_overflow(beyond[codes[i]], over < size ? over : size, &beyond[codes[i]]))
            return NOT_ME;
        reads[codes[i]]++;
    }
    return DONE;
}
