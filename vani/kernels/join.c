/* The union of two lists of intervals by group, each in order and without overlaps (analyzers/intervals.py). */
#include "columns.h"

struct intervals {
    const int64_t *group, *start, *end;
    int64_t count;
};

static inline int is_before(const struct intervals *a, int64_t i, const struct intervals *b, int64_t j)
{
    return a->group[i] < b->group[j] || (a->group[i] == b->group[j] && a->start[i] < b->start[j]);
}

/* Room for all intervals of both in `group`, `start` and `end`; how many there are goes to `count`. */
KERNEL int vani_join(const struct intervals *one, const struct intervals *other, int64_t *group, int64_t *start,
                     int64_t *end, int64_t *count)
{
    if (one->count < 0 || other->count < 0)
        return NOT_ME;
    int64_t last = -1;
    for (int64_t i = 0, j = 0; i < one->count || j < other->count;) {
        int of_other = i == one->count || (j < other->count && is_before(other, j, one, i));
        const struct intervals *from = of_other ? other : one;
        int64_t at = of_other ? j++ : i++;
        int64_t g = from->group[at], s = from->start[at], e = from->end[at];
        /* Two lists in order leave one in order. */
        if (s >= e || (at > 0 && !is_before(from, at - 1, from, at)))
            return NOT_ME;
        if (last >= 0 && group[last] == g && s <= end[last]) {
            end[last] = e > end[last] ? e : end[last];
        } else {
            last++;
            group[last] = g;
            start[last] = s;
            end[last] = e;
        }
    }
    *count = last + 1;
    return DONE;
}
