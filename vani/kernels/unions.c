/* Unions of intervals by an attribute of the calls; intervals come roughly in order of their starts
   (analyzers/intervals.py). */
#include "columns.h"

enum { KEYS = 16, LOOK_BACK = 4096 };

/* One of several disjoint intervals; `before` is the previous one, or -1. */
struct interval {
    int64_t start, end, before;
};

struct unions {
    struct interval *intervals;
    int64_t *count, most; /* their number, and its limit */
};

/* Returns 0 if numpy decides: the call began long ago, or there is no room. */
static int join(struct unions *unions, int64_t *last, int64_t start, int64_t end)
{
    struct interval *all = unions->intervals;
    int64_t at = *last, behind = -1;
    for (int steps = 0; at >= 0 && all[at].start > end; at = all[at].before) {
        if (++steps > LOOK_BACK)
            return 0;
        behind = at;
    }
    if (at < 0 || all[at].end < start) {
        if (*unions->count == unions->most)
            return 0;
        all[*unions->count] = (struct interval){.start = start, .end = end, .before = at};
        *(behind < 0 ? last : &all[behind].before) = (*unions->count)++;
        return 1;
    }
    struct interval *one = &all[at];
    one->end = end > one->end ? end : one->end;
    one->start = start < one->start ? start : one->start;
    while (one->before >= 0 && all[one->before].end >= one->start) {
        const struct interval *other = &all[one->before];
        one->start = other->start < one->start ? other->start : one->start;
        one->before = other->before;
    }
    return 1;
}

/* Add calls to their unions. codes, rows: group and row of each call; rows is a null pointer if each call has one.
   keys, slot: indexed by group, one bit for each union of its calls, and the owner of these unions. last: indexed by
   slot and key, the last interval, or -1. */
KERNEL vani_unions_add(int64_t n, int64_t n_rows, int64_t groups, int64_t slots, int64_t most, int64_t shift,
                       IN(int32_t, codes, n), MAYBE(int32_t, rows, n), IN(int64_t, start, n_rows),
                       IN(int64_t, duration, n_rows), IN(int32_t, keys, groups), IN(int32_t, slot, groups),
                       INOUT(struct interval, intervals, most), INOUT(int64_t, count, 1),
                       INOUT(int64_t, last, 16 * slots))
{
    struct unions unions = {intervals, count, most};
    if (n < 0 || groups < 0 || slots < 0 || *count < 0 || most < *count || (!rows && n_rows < n))
        return NOT_ME;
    for (int64_t g = 0; g < groups; g++)
        if (slot[g] < 0 || slot[g] >= slots || keys[g] < 0 || keys[g] >= 1 << KEYS)
            return NOT_ME;
    for (int64_t k = 0; k < KEYS * slots; k++)
        if (last[k] < -1 || last[k] >= *count)
            return NOT_ME;
    for (int64_t i = 0; i < n; i++) {
        int32_t g = codes[i];
        if (g < 0 || g >= groups)
            return NOT_ME;
        if (!keys[g])
            continue;
        int64_t row = rows ? rows[i] : i, begin, end;
        if (row < 0 || row >= n_rows || duration[row] < 0
            || __builtin_add_overflow(start[row], shift, &begin)
            || __builtin_add_overflow(begin, duration[row], &end))
            return NOT_ME;
        if (begin == end)
            continue;
        int64_t *of_slot = &last[KEYS * (int64_t)slot[g]];
        for (unsigned left = (unsigned)keys[g]; left; left &= left - 1)
            if (!join(&unions, &of_slot[__builtin_ctz(left)], begin, end))
                return NOT_ME;
    }
    return DONE;
}

/* Sum the complete intervals by slot and key. Those of the slot `going_on` (-1: none) that end at `until` or later are
   left, ordered by key and start. */
KERNEL vani_unions_settle(int64_t most, int64_t slots, int64_t count, int64_t going_on, int64_t until,
                          IN(struct interval, intervals, most), IN(int64_t, last, 16 * slots),
                          ZEROS(int64_t, times, 16 * slots), ROWS(struct interval, left, count),
                          OUT(int64_t, left_last, 16))
{
    int64_t many = 0;
    if (count < 0 || most < count || slots < 1)
        return NOT_ME;
    for (int64_t k = 0; k < KEYS; k++)
        left_last[k] = -1;
    for (int64_t k = 0; k < KEYS * slots; k++) {
        int64_t first = many;
        for (int64_t at = last[k]; at >= 0; at = intervals[at].before) {
            const struct interval *one = &intervals[at];
            if (k / KEYS != going_on || one->end < until) {
                if (__builtin_add_overflow(times[k], one->end - one->start, &times[k]))
                    return NOT_ME;
            } else {
                left[many++] = (struct interval){.start = one->start, .end = one->end};
            }
        }
        /* They were linked from last to first. */
        for (int64_t a = first, b = many - 1; a < b; a++, b--) {
            struct interval one = left[a];
            left[a] = left[b];
            left[b] = one;
        }
        for (int64_t i = first; i < many; i++)
            left[i].before = i > first ? i - 1 : -1;
        if (many > first)
            left_last[k % KEYS] = many - 1;
    }
    return many;
}
