/* Shared by kernels that measure calls; see vani/calls.py and analyzers/int_table.py. */
#ifndef VANI_COLUMNS_H
#define VANI_COLUMNS_H

#include "vani.h"

/* Represents null. */
#define NO_VALUE INT64_MIN

/* Kinds of file-system calls. */
enum { READ = 0, WRITE = 1, METADATA = 2, SYNC = 3 };

/* Validity of a column: one bit per call, starting at bit `first`; a null pointer if all values are known. */
struct known {
    const uint8_t *bits;
    int64_t first;
};

static inline int is_known(struct known known, int64_t i)
{
    return !known.bits || (known.bits[(known.first + i) >> 3] >> ((known.first + i) & 7) & 1);
}

static inline int has_bits_of(const struct known *known, int64_t bytes, int64_t n)
{
    return !known->bits || (known->first >= 0 && known->first <= INT64_MAX / 8 - n && known->first + n <= 8 * bytes);
}

/* Phase at a moment: the last one that has begun, or the first phase. hint: a likely answer, 0 <= hint < phases. */
static inline int64_t phase_at(int64_t now, const int64_t *starts, int64_t phases, int64_t hint)
{
    if ((hint == 0 || starts[hint] <= now) && (hint + 1 >= phases || starts[hint + 1] > now))
        return hint;
    int64_t low = 0, high = phases;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (starts[middle] <= now)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
