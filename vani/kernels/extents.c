/* Extents of files that calls accessed; consecutive ones are merged (analyzers/batch.py). */
#include "columns.h"

struct extent {
    int64_t side, start, end;
};

enum { PLACES = 1 << 10 };

/* Slots for extents of a side by their start (0) or end (1); later extents overwrite earlier ones. */
static uint32_t slot_of(int32_t side, int64_t at, int ends)
{
    uint64_t h = ((uint64_t)at ^ (uint64_t)(2 * (int64_t)side + ends) << 44) * UINT64_C(0xD6E8FEB86659FD93);
    return (h ^ h >> 32) >> 8 & (PLACES - 1);
}

/* Whether `start` is inside extent number one - 1, or right at its end. */
static int fits(int32_t one, const struct extent *found, int32_t side, int64_t start)
{
    return one && found[one - 1].side == side && start >= found[one - 1].start && start <= found[one - 1].end;
}

/* side: indexed by group, the key below `sides` by which extents are merged; -1 leaves a group out. open: indexed by
   side. The resulting extents are unordered and may overlap. */
KERNEL vani_extents(int64_t n, int64_t groups, int64_t sides, IN(int32_t, codes, n), IN(int64_t, offset, n),
                    IN(int64_t, bytes, n), IN(int32_t, side, groups), ZEROS(int32_t, open, sides),
                    ROWS(struct extent, extents, n))
{
    if (n < 0 || n > INT32_MAX - 1 || groups < 0 || sides < 0)
        return NOT_ME;
    for (int64_t g = 0; g < groups; g++)
        if (side[g] < -1 || side[g] >= sides)
            return NOT_ME;
    int64_t many = 0;
    int32_t at[PLACES] = {0};
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] < 0 || codes[i] >= groups)
            return NOT_ME;
        int32_t s = side[codes[i]];
        int64_t start = offset[i], end;
        if (s < 0 || start == NO_VALUE || bytes[i] == NO_VALUE || bytes[i] == 0)
            continue;
        if (bytes[i] < 0 || __builtin_add_overflow(start, bytes[i], &end))
            return NOT_ME;
        /* Programs continue where they were, or alternate between few places. */
        int32_t one = open[s];
        if (!fits(one, extents, s, start))
            one = at[slot_of(s, start, 1)];
        if (!fits(one, extents, s, start))
            one = at[slot_of(s, start, 0)];
        if (fits(one, extents, s, start)) {
            if (end > extents[one - 1].end) {
                extents[one - 1].end = end;
                at[slot_of(s, end, 1)] = one;
            }
        } else {
            extents[many++] = (struct extent){.side = s, .start = start, .end = end};
            one = (int32_t)many;
            at[slot_of(s, start, 0)] = at[slot_of(s, end, 1)] = one;
        }
        open[s] = one;
    }
    return many;
}
