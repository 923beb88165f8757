/* Extents of files that calls touched, those that follow each other put together (analyzers/batch.py). */
#include "columns.h"

struct extent {
    int64_t side, start, end;
};

/* side: by group, what extents are put together by, below `sides`; -1 leaves a group out. open: by side, zeros at first.
   Room in `found` for all calls. */
KERNEL int vani_extents(const int32_t *codes, const int64_t *offset, const int64_t *bytes, int64_t n,
                        const int32_t *side, int64_t groups, int64_t sides, int32_t *open, struct extent *found,
                        int64_t *count)
{
    if (n < 0 || n > INT32_MAX - 1 || groups < 0 || sides < 0)
        return NOT_ME;
    for (int64_t g = 0; g < groups; g++)
        if (side[g] < -1 || side[g] >= sides)
            return NOT_ME;
    int64_t many = 0;
    for (int64_t i = 0; i < n; i++) {
        if (codes[i] < 0 || codes[i] >= groups)
            return NOT_ME;
        int32_t s = side[codes[i]];
        int64_t start = offset[i], end;
        if (s < 0 || start == NO_VALUE || bytes[i] == NO_VALUE || bytes[i] == 0)
            continue;
        if (bytes[i] < 0 || __builtin_add_overflow(start, bytes[i], &end))
            return NOT_ME;
        struct extent *one = open[s] ? &found[open[s] - 1] : 0;
        /* Within what is open, or behind it without a gap. */
        if (one && start >= one->start && start <= one->end) {
            one->end = end > one->end ? end : one->end;
            continue;
        }
        found[many++] = (struct extent){.side = s, .start = start, .end = end};
        open[s] = (int32_t)many;
    }
    *count = many;
    return DONE;
}
