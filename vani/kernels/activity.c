/* Activity of each process over time (analyzers/activity.py). */
#include "columns.h"

enum { COUNTED = 1, READS = 2, WRITES = 4, OPENS = 8 };

struct cell {
    int64_t process, moment, start, end, read, written, data, opens, calls;
};

/* process, what: indexed by group. A moment covers 2 ** level pieces of `length` ns; `most` is the last moment. A
   process and moment may have several cells. */
KERNEL vani_activity(int64_t n, int64_t groups, int64_t length, int64_t most, int64_t level, IN(int32_t, codes, n),
                     IN(int64_t, bytes, n), IN(int64_t, start, n), IN(int64_t, duration, n),
                     IN(int64_t, process, groups), IN(int32_t, what, groups), ROWS(struct cell, cells, n))
{
    if (n < 0 || groups < 0 || length < 1 || most < 0 || level < 0 || level > 62)
        return NOT_ME;
    int64_t many = 0, low = 0, high = 0, moment = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t g = codes[i];
        if (g < 0 || g >= groups)
            return NOT_ME;
        int32_t is = what[g];
        if (!(is & COUNTED))
            continue;
        int64_t end, size = bytes[i] > 0 ? bytes[i] : 0;
        if (start[i] < 0 || __builtin_add_overflow(start[i], duration[i], &end))
            return NOT_ME;
        if (start[i] < low || start[i] >= high) {
            moment = start[i] / length;
            low = moment * length;
            high = low > INT64_MAX - length ? INT64_MAX : low + length;
            moment = (moment < most ? moment : most) >> level;
        }
        struct cell *cell = many ? &cells[many - 1] : 0;
        if (!cell || cell->moment != moment || cell->process != process[g]) {
            cell = &cells[many++];
            *cell = (struct cell){.process = process[g], .moment = moment, .start = start[i], .end = end};
        }
        cell->start = start[i] < cell->start ? start[i] : cell->start;
        cell->end = end > cell->end ? end : cell->end;
        int64_t *moved = is & READS ? &cell->read : &cell->written;
        if ((is & (READS | WRITES)) && __builtin_add_overflow(*moved, size, moved))
            return NOT_ME;
        cell->data += (is & (READS | WRITES)) != 0;
        cell->opens += (is & OPENS) != 0;
        cell->calls++;
    }
    return many;
}
