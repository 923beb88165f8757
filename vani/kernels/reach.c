/* How far writes and cuts reached from moment to moment, by group of calls (analyzers/reach.py). */
#include "columns.h"

enum { LEFT_OUT = 0, WRITES = 1, CUTS = 2 };

struct reach {
    int64_t group, moment, end, last; /* furthest end, latest start */
};

/* what: by group. Moments are pieces of `length` ns, the last one `most`, put together by 2 ** level. Writes of nothing
   count, with an end of 0, if `empty`. after: by group, calls before this one are left out. open: by group, zeros at
   first. Room in `found` for all calls. */
KERNEL int vani_reach(const int32_t *codes, const int64_t *offset, const int64_t *bytes, const int64_t *start,
                      int64_t n, const uint8_t *what, const int64_t *after, int64_t groups, int64_t length,
                      int64_t most, int64_t level, int64_t empty, int32_t *open, struct reach *found, int64_t *count)
{
    if (n < 0 || n > INT32_MAX - 1 || groups < 0 || length < 1 || most < 0 || level < 0 || level > 62)
        return NOT_ME;
    int64_t many = 0, low = 0, high = 0, moment = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t g = codes[i];
        if (g < 0 || g >= groups)
            return NOT_ME;
        if (what[g] == LEFT_OUT || offset[i] == NO_VALUE || i < after[g])
            continue;
        int64_t end = offset[i], size = bytes[i];
        if (what[g] == WRITES) {
            if (size == NO_VALUE || (size == 0 && !empty))
                continue;
            if (size < 0 || __builtin_add_overflow(end, size, &end))
                return NOT_ME;
            end = size ? end : 0;
        }
        if (start[i] < 0)
            return NOT_ME;
        if (start[i] < low || start[i] >= high) {
            moment = start[i] / length;
            low = moment * length;
            high = low > INT64_MAX - length ? INT64_MAX : low + length;
            moment = (moment < most ? moment : most) >> level;
        }
        struct reach *one = open[g] ? &found[open[g] - 1] : 0;
        if (!one || one->moment != moment) {
            one = &found[many++];
            open[g] = (int32_t)many;
            *one = (struct reach){.group = g, .moment = moment, .end = end, .last = start[i]};
            continue;
        }
        one->end = end > one->end ? end : one->end;
        one->last = start[i] > one->last ? start[i] : one->last;
    }
    *count = many;
    return DONE;
}
