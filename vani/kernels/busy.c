/* Busy intervals, in which calls run with only short pauses, and processes that run calls at the same time
   (analyzers/measures/survey.py). */
#include "columns.h"

/* The last call of a process, and the largest end of its earlier calls. */
struct last {
    int64_t process, start, end, reach;
};

struct interval {
    int64_t start, end;
};

/* codes: group of each call, one process after another. process: indexed by group, the process's index in the batch.
   included: indexed by group, whether its calls count as busy. last: state of the process whose calls began before this
   batch (-1 for none) on entry, and of the last process on return. overlaps: indexed by process. */
KERNEL vani_busy(int64_t n, int64_t groups, int64_t processes, int64_t floor, IN(int32_t, codes, n),
                 IN(int64_t, start, n), IN(int64_t, duration, n), IN(int32_t, process, groups),
                 IN(uint8_t, included, groups), INOUT(struct last, last, 1), ZEROS(uint8_t, overlaps, processes),
                 ROWS(struct interval, busy, n))
{
    if (n < 0 || groups < 0 || floor < 0)
        return NOT_ME;
    for (int64_t g = 0; g < groups; g++)
        if (process[g] < 0 || process[g] >= processes)
            return NOT_ME;
    int64_t many = 0;
    struct last now = *last;
    struct interval open = {.start = INT64_MAX, .end = INT64_MIN};
    for (int64_t i = 0; i < n; i++) {
        int32_t g = codes[i];
        if (g < 0 || g >= groups)
            return NOT_ME;
        int64_t begin = start[i], end, behind;
        if (duration[i] < 0 || begin < 0 || __builtin_add_overflow(begin, duration[i], &end)
            || __builtin_add_overflow(end, floor + 1, &behind))
            return NOT_ME;
        int32_t of = process[g];
        if (of != now.process) {
            now = (struct last){.process = of, .start = begin, .end = end, .reach = INT64_MIN};
        } else {
            overlaps[of] |= (begin < now.start) | (begin < now.reach);
            now.reach = now.end > now.reach ? now.end : now.reach;
            now.start = begin;
            now.end = end;
        }
        if (!included[g])
            continue;
        end += end == begin;
        if (begin >= open.start && begin <= open.end + floor) {
            open.end = end > open.end ? end : open.end;
            continue;
        }
        if (open.start <= open.end)
            busy[many++] = open;
        open = (struct interval){.start = begin, .end = end};
    }
    if (open.start <= open.end)
        busy[many++] = open;
    *last = now;
    return many;
}
