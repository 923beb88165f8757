/* Unions of intervals by group, where those of a group come in order of their starts (analyzers/intervals.py). */
#include "columns.h"

struct interval {
    int64_t group, start, end;
};

/* first: by group, two more, zeros at first; last: by group, INT64_MIN at first. Room in `sorted`, of starts and ends, and
   in `found` for all intervals. */
KERNEL int vani_merge(const int64_t *group, const int64_t *start, const int64_t *end, int64_t n, int64_t lowest,
                      int64_t groups, int64_t *first, int64_t *last, int64_t (*sorted)[2], struct interval *found,
                      int64_t *count)
{
    if (n < 0 || groups < 0)
        return NOT_ME;
    for (int64_t i = 0; i < n; i++) {
        int64_t g;
        if (__builtin_sub_overflow(group[i], lowest, &g) || g < 0 || g >= groups || start[i] > end[i])
            return NOT_ME;
        if (start[i] == end[i])
            continue;
        if (start[i] < last[g])
            return NOT_ME;
        last[g] = start[i];
        first[g + 2]++;
    }
    for (int64_t g = 0; g < groups; g++)
        first[g + 2] += first[g + 1];
    /* From here on, first[g + 1] is where the next one of group g goes. */
    for (int64_t i = 0; i < n; i++)
        if (start[i] < end[i]) {
            int64_t *at = sorted[first[group[i] - lowest + 1]++];
            at[0] = start[i];
            at[1] = end[i];
        }
    int64_t many = 0;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t i = first[g]; i < first[g + 1]; i++) {
            if (i > first[g] && sorted[i][0] <= found[many - 1].end) {
                if (sorted[i][1] > found[many - 1].end)
                    found[many - 1].end = sorted[i][1];
            } else {
                found[many++] = (struct interval){.group = g + lowest, .start = sorted[i][0], .end = sorted[i][1]};
            }
        }
    *count = many;
    return DONE;
}
