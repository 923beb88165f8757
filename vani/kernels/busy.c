/* When calls were going on but for short pauses, and which processes run calls at the same time (analyzers/measures/
   survey.py, analyzers/threads.py). */
#include "columns.h"

struct calls {
    const int32_t *codes; /* group of each call, process after process */
    const int64_t *start, *duration;
    int64_t calls;
    const int32_t *process; /* by group, its place among the processes of the batch */
    const uint8_t *included; /* by group: these count for what is busy */
    int64_t groups, processes;
};

/* The last call of a process, and the largest end of those before it. */
struct last {
    int64_t process, start, end, reach;
};

struct interval {
    int64_t start, end;
};

/* last: of the process whose calls began before this batch, -1 for none; then of the one at its end. overlaps: by process,
   zeros at first. Room in `found` for all calls. */
KERNEL int vani_busy(const struct calls *calls, int64_t floor, struct last *last, uint8_t *overlaps,
                     struct interval *found, int64_t *count)
{
    if (calls->calls < 0 || calls->groups < 0 || floor < 0)
        return NOT_ME;
    for (int64_t g = 0; g < calls->groups; g++)
        if (calls->process[g] < 0 || calls->process[g] >= calls->processes)
            return NOT_ME;
    int64_t many = 0;
    struct last now = *last;
    struct interval open = {.start = INT64_MAX, .end = INT64_MIN};
    for (int64_t i = 0; i < calls->calls; i++) {
        int32_t g = calls->codes[i];
        if (g < 0 || g >= calls->groups)
            return NOT_ME;
        int64_t start = calls->start[i], end, behind;
        if (calls->duration[i] < 0 || start < 0 || __builtin_add_overflow(start, calls->duration[i], &end)
            || __builtin_add_overflow(end, floor + 1, &behind))
            return NOT_ME;
        int32_t process = calls->process[g];
        if (process != now.process) {
            now = (struct last){.process = process, .start = start, .end = end, .reach = INT64_MIN};
        } else {
            overlaps[process] |= (start < now.start) | (start < now.reach);
            now.reach = now.end > now.reach ? now.end : now.reach;
            now.start = start;
            now.end = end;
        }
        if (!calls->included[g])
            continue;
        end += end == start;
        if (start >= open.start && start <= open.end + floor) {
            open.end = end > open.end ? end : open.end;
            continue;
        }
        if (open.start <= open.end)
            found[many++] = open;
        open = (struct interval){.start = start, .end = end};
    }
    if (open.start <= open.end)
        found[many++] = open;
    *last = now;
    *count = many;
    return DONE;
}
