/* The union of two lists of intervals by group, each in order and without overlaps (analyzers/intervals.py). */
#include "columns.h"

struct intervals {
    const int64_t *group, *start, *end;
    int64_t count;
};

struct interval {
    int64_t group, start, end;
};

/* What was put together: the last interval, which what comes next may reach into, and where the one before began. */
struct joined {
    int64_t *group, *start, *end;
    int64_t last, before;
    struct interval open;
    int is_out_of_order;
};

static inline struct interval at(const struct intervals *of, int64_t i)
{
    return (struct interval){of->group[i], of->start[i], of->end[i]};
}

static inline int is_before(int64_t group, int64_t start, int64_t of_other, int64_t start_of_other)
{
    return (group < of_other) | ((group == of_other) & (start < start_of_other));
}

static inline int64_t either(int64_t one, int64_t other, int is_other)
{
    return one ^ ((one ^ other) & -(int64_t)is_other);
}

/* Whether intervals touch is as good as random: what has no branches is never guessed wrong. */
static inline void add(struct joined *to, struct interval next)
{
    struct interval open = to->open;
    /* Lists that are not in order do not leave one in order. */
    to->is_out_of_order |= is_before(next.group, next.start, open.group, to->before) | (next.start >= next.end);
    int touches = (to->last >= 0) & (next.group == open.group) & (next.start <= open.end);
    to->last += !touches;
    to->open.group = to->group[to->last] = next.group;
    to->open.start = to->start[to->last] = either(next.start, open.start, touches);
    to->open.end = to->end[to->last] = either(next.end, open.end, touches & (open.end > next.end));
    to->before = next.start;
}

/* Room for all intervals of both in `group`, `start` and `end`; how many there are goes to `count`. */
KERNEL int vani_join(const struct intervals *one, const struct intervals *other, int64_t *group, int64_t *start,
                     int64_t *end, int64_t *count)
{
    if (one->count < 0 || other->count < 0)
        return NOT_ME;
    struct joined to = {group, start, end, -1, INT64_MIN, {INT64_MIN, 0, 0}, 0};
    int64_t i = 0, j = 0;
    while (i < one->count && j < other->count) {
        struct interval mine = at(one, i), its = at(other, j);
        int of_other = is_before(its.group, its.start, mine.group, mine.start);
        add(&to, (struct interval){either(mine.group, its.group, of_other), either(mine.start, its.start, of_other),
                                   either(mine.end, its.end, of_other)});
        i += !of_other;
        j += of_other;
    }
    while (i < one->count)
        add(&to, at(one, i++));
    while (j < other->count)
        add(&to, at(other, j++));
    *count = to.last + 1;
    return to.is_out_of_order ? NOT_ME : DONE;
}
