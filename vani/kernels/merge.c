/* Unions of intervals by group, where those of a group come in few runs in order of their starts (analyzers/intervals.py). */
#include <string.h>

#include "columns.h"

enum { IN_A_RUN = 16, CROWDED = 16 };

/* Merge two runs that lie side by side. */
static void merge_two(int64_t (*from)[2], int64_t middle, int64_t end, int64_t (*into)[2])
{
    int64_t a = 0, b = middle, at = 0;
    while (a < middle && b < end) {
        int later = from[b][0] < from[a][0];
        int64_t one = later ? b : a;
        into[at][0] = from[one][0];
        into[at++][1] = from[one][1];
        b += later;
        a += !later;
    }
    memcpy(into[at], from[a], (size_t)(middle - a) * sizeof *from);
    memcpy(into[at + middle - a], from[b], (size_t)(end - b) * sizeof *from);
}

/* Sort by starts, two runs at a time. */
static void sort(int64_t (*pairs)[2], int64_t (*spare)[2], int64_t n)
{
    for (;;) {
        int64_t at = 0, merged = 0;
        while (at < n) {
            int64_t middle = at + 1, end;
            while (middle < n && pairs[middle][0] >= pairs[middle - 1][0])
                middle++;
            if (middle == n)
                break;
            for (end = middle + 1; end < n && pairs[end][0] >= pairs[end - 1][0]; end++)
                ;
            merge_two(pairs + at, middle - at, end - at, spare + at);
            memcpy(pairs[at], spare[at], (size_t)(end - at) * sizeof *pairs);
            at = end;
            merged = 1;
        }
        if (!merged)
            return;
    }
}

/* Put pairs into as many buckets of time as there are pairs: where buckets end. Runs stay in their order within one. */
static int64_t spread(int64_t (*pairs)[2], int64_t (*into)[2], int64_t n, int32_t *ends)
{
    int64_t low = pairs[0][0], high = low;
    for (int64_t i = 1; i < n; i++) {
        low = pairs[i][0] < low ? pairs[i][0] : low;
        high = pairs[i][0] > high ? pairs[i][0] : high;
    }
    int shift = 0;
    while (((uint64_t)high - (uint64_t)low) >> shift >= (uint64_t)n)
        shift++;
    int64_t buckets = (int64_t)(((uint64_t)high - (uint64_t)low) >> shift) + 1;
    memset(ends, 0, (size_t)(buckets + 1) * sizeof *ends);
    for (int64_t i = 0; i < n; i++)
        ends[(((uint64_t)pairs[i][0] - (uint64_t)low) >> shift) + 1]++;
    for (int64_t b = 1; b < buckets; b++)
        ends[b] += ends[b - 1];
    for (int64_t i = 0; i < n; i++) {
        int64_t *at = into[ends[((uint64_t)pairs[i][0] - (uint64_t)low) >> shift]++];
        at[0] = pairs[i][0];
        at[1] = pairs[i][1];
    }
    return buckets;
}

/* Sort by starts, into the second array: calls of many ranks at the same time are many short runs. */
static void sort_spread(int64_t (*pairs)[2], int64_t (*sorted)[2], int64_t n, int32_t *ends)
{
    int64_t buckets = spread(pairs, sorted, n, ends);
    for (int64_t b = 0, begin = 0; b < buckets; begin = ends[b++])
        if (ends[b] - begin > CROWDED)
            sort(sorted + begin, pairs, ends[b] - begin);
    for (int64_t i = 1; i < n; i++) {
        int64_t start = sorted[i][0], end = sorted[i][1], at = i;
        for (; at > 0 && sorted[at - 1][0] > start; at--) {
            sorted[at][0] = sorted[at - 1][0];
            sorted[at][1] = sorted[at - 1][1];
        }
        sorted[at][0] = start;
        sorted[at][1] = end;
    }
}

/* first: by group, two more, zeros at first; last: by group, INT64_MIN at first. Room for all intervals in `sorted` and
   `spare`, of starts and ends, and in what is found: `of`, `from` and `until`. */
KERNEL int vani_merge(const int64_t *group, const int64_t *start, const int64_t *end, int64_t n, int64_t lowest,
                      int64_t groups, int64_t *first, int64_t *last, int64_t (*sorted)[2],
                      int64_t (*spare)[2], int64_t *of, int64_t *from, int64_t *until, int64_t *count)
{
    if (n < 0 || n > INT32_MAX || groups < 0)
        return NOT_ME;
    int64_t falls = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t g;
        if (__builtin_sub_overflow(group[i], lowest, &g) || g < 0 || g >= groups || start[i] > end[i])
            return NOT_ME;
        if (start[i] == end[i])
            continue;
        falls += start[i] < last[g];
        last[g] = start[i];
        first[g + 2]++;
    }
    /* numpy sorts what is in no order faster. */
    if (falls * IN_A_RUN > n)
        return NOT_ME;
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
    for (int64_t g = 0; g < groups; g++) {
        int64_t n_of = first[g + 1] - first[g], (*own)[2] = sorted + first[g];
        if (falls && n_of > 1) {
            /* No more are found than came before, so what is behind is free. */
            sort_spread(own, spare, n_of, (int32_t *)(until + first[g]));
            own = spare;
        }
        for (int64_t i = 0; i < n_of; i++) {
            if (i > 0 && own[i][0] <= until[many - 1]) {
                if (own[i][1] > until[many - 1])
                    until[many - 1] = own[i][1];
            } else {
                of[many] = g + lowest;
                from[many] = own[i][0];
                until[many++] = own[i][1];
            }
        }
    }
    *count = many;
    return DONE;
}
