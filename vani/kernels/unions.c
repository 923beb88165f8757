/* Unions of intervals that come in about the order of their starts, by something that calls share
   (analyzers/running_union.py). */
#include "columns.h"

enum { KEYS = 16, LOOK_BACK = 4096 };

/* One of several that do not touch; `before` is the one before it, or -1. */
struct interval {
    int64_t start, end, before;
};

struct calls {
    const int32_t *codes, *rows; /* group of each call, and its row; a null pointer where all have one */
    int64_t calls;
    const int64_t *start, *duration; /* by row */
    int64_t rows_count, shift;
    const uint16_t *keys; /* by group, as the next one: a bit for each union that its calls are in */
    const int32_t *slot;
    int64_t groups;
};

struct unions {
    struct interval *intervals;
    int64_t count, most;
    int64_t *last; /* by slot and key: the last one, or -1 */
    int64_t slots;
};

/* 0 where numpy decides: it began long ago, or there is no room. */
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
        if (unions->count == unions->most)
            return 0;
        all[unions->count] = (struct interval){.start = start, .end = end, .before = at};
        *(behind < 0 ? last : &all[behind].before) = unions->count++;
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

static int is_sound(const struct calls *calls, const struct unions *unions)
{
    if (calls->calls < 0 || calls->groups < 0 || unions->slots < 0 || unions->count < 0
        || unions->most < unions->count || (!calls->rows && calls->rows_count < calls->calls))
        return 0;
    for (int64_t g = 0; g < calls->groups; g++)
        if (calls->slot[g] < 0 || calls->slot[g] >= unions->slots)
            return 0;
    for (int64_t k = 0; k < KEYS * unions->slots; k++)
        if (unions->last[k] < -1 || unions->last[k] >= unions->count)
            return 0;
    return 1;
}

/* Put calls into the unions that they are in. */
KERNEL int vani_unions_add(const struct calls *calls, struct unions *unions)
{
    if (!is_sound(calls, unions))
        return NOT_ME;
    for (int64_t i = 0; i < calls->calls; i++) {
        int32_t g = calls->codes[i];
        if (g < 0 || g >= calls->groups)
            return NOT_ME;
        if (!calls->keys[g])
            continue;
        int64_t row = calls->rows ? calls->rows[i] : i, start, end;
        if (row < 0 || row >= calls->rows_count || calls->duration[row] < 0
            || __builtin_add_overflow(calls->start[row], calls->shift, &start)
            || __builtin_add_overflow(start, calls->duration[row], &end))
            return NOT_ME;
        if (start == end)
            continue;
        int64_t *last = &unions->last[KEYS * (int64_t)calls->slot[g]];
        for (unsigned left = calls->keys[g]; left; left &= left - 1)
            if (!join(unions, &last[__builtin_ctz(left)], start, end))
                return NOT_ME;
    }
    return DONE;
}

/* Add up what is complete, by slot and key: all but that of the slot `going_on` (-1: none) that ends at `until` or later,
   which goes to `left`, one key after the other and in order. */
KERNEL int vani_unions_settle(const struct unions *unions, int64_t going_on, int64_t until, int64_t *times,
                              struct unions *left)
{
    if (left->most < unions->count || left->slots < 1)
        return NOT_ME;
    left->count = 0;
    for (int64_t k = 0; k < KEYS; k++)
        left->last[k] = -1;
    for (int64_t k = 0; k < KEYS * unions->slots; k++) {
        int64_t first = left->count;
        for (int64_t at = unions->last[k]; at >= 0; at = unions->intervals[at].before) {
            const struct interval *one = &unions->intervals[at];
            if (k / KEYS != going_on || one->end < until) {
                if (__builtin_add_overflow(times[k], one->end - one->start, &times[k]))
                    return NOT_ME;
            } else {
                left->intervals[left->count++] = (struct interval){.start = one->start, .end = one->end};
            }
        }
        /* They came last first. */
        for (int64_t a = first, b = left->count - 1; a < b; a++, b--) {
            struct interval one = left->intervals[a];
            left->intervals[a] = left->intervals[b];
            left->intervals[b] = one;
        }
        for (int64_t i = first; i < left->count; i++)
            left->intervals[i].before = i > first ? i - 1 : -1;
        if (left->count > first)
            left->last[k % KEYS] = left->count - 1;
    }
    return DONE;
}
