/* Ends of files after writes and truncations over time, by group of calls (analyzers/measures/lengths.py). */
#include "columns.h"

enum { LEFT_OUT = 0, WRITES = 1, CUTS = 2 };

struct reach {
    int64_t group, moment, end, last; /* furthest end, latest start */
};

/* what: indexed by group; the offset of a truncation is the new length. A moment covers 2 ** level pieces of `length`
   ns; `most` is the last moment. With `empty`, writes of 0 bytes count, with an end of 0. after: indexed by group,
   earlier calls are left out. open: indexed by group. A group and moment may have several rows. */
KERNEL vani_reach(int64_t n, int64_t groups, int64_t length, int64_t most, int64_t level, int64_t empty,
                  IN(int32_t, codes, n), IN(int64_t, offset, n), IN(int64_t, bytes, n), IN(int64_t, start, n),
                  IN(int32_t, what, groups), MAYBE(int64_t, after, groups), ZEROS(int32_t, open, groups),
                  ROWS(struct reach, reached, n))
{
    if (n < 0 || n > INT32_MAX - 1 || groups < 0 || length < 1 || most < 0 || level < 0 || level > 62)
        return NOT_ME;
    int64_t many = 0, low = 0, high = 0, moment = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t g = codes[i];
        if (g < 0 || g >= groups)
            return NOT_ME;
        if (what[g] == LEFT_OUT || offset[i] == NO_VALUE || (after && i < after[g]))
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
        struct reach *one = open[g] ? &reached[open[g] - 1] : 0;
        if (!one || one->moment != moment) {
            one = &reached[many++];
            open[g] = (int32_t)many;
            *one = (struct reach){.group = g, .moment = moment, .end = end, .last = start[i]};
            continue;
        }
        one->end = end > one->end ? end : one->end;
        one->last = start[i] > one->last ? start[i] : one->last;
    }
    return many;
}
