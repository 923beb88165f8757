/* Lengths of unions of intervals, for several groupings at once (analyzers/measures/busy_time.py). */
#include <string.h>

#include "columns.h"

enum { DIGIT = 11, BINS = 1 << DIGIT, KINDS = 4, WRITE_OR_SYNC = KINDS, ALL = KINDS + 1, WIDTH = KINDS + 2 };
/* Intervals within a range of time; they are sorted in place. */
enum { FEW = 1 << 12 };

/* Groups: phases up to `excluded`; the workload; listed files from number 1 on; apps. */
struct groups {
    int64_t width, excluded;
    const int32_t *app; /* indexed by phase below `excluded` */
    int64_t workload;   /* measure the workload, too */
};

struct interval {
    int64_t start, end, code;
};

struct found {
    int64_t *times;  /* indexed by group and kind, `WRITE_OR_SYNC` or `ALL` */
    int64_t *reach;  /* same length: latest end so far of each */
    int64_t *finest; /* the same, indexed by code */
    uint64_t *keys, *spare;
};

static int bits_of(uint64_t value)
{
    return value ? 64 - __builtin_clzll(value) : 0;
}

/* Sort by the digits from `low` to `high`; returns which of the two arrays has the result. */
static uint64_t *sorted(uint64_t *keys, uint64_t *spare, int64_t n, int low, int high)
{
    for (int shift = low; shift < high; shift += DIGIT) {
        int64_t at[BINS] = {0}, sum = 0;
        for (int64_t i = 0; i < n; i++)
            at[keys[i] >> shift & (BINS - 1)]++;
        for (int b = 0; b < BINS; b++) {
            int64_t here = at[b];
            at[b] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < n; i++)
            spare[at[keys[i] >> shift & (BINS - 1)]++] = keys[i];
        uint64_t *other = keys;
        keys = spare;
        spare = other;
    }
    return keys;
}

static inline void cover(struct found *found, int64_t at, int64_t start, int64_t end)
{
    int64_t reach = found->reach[at];
    if (end > reach) {
        found->times[at] += end - (start > reach ? start : reach);
        found->reach[at] = end;
    }
}

static inline void cover_kinds(struct found *found, int64_t group, int kind, int64_t start, int64_t end)
{
    cover(found, group * WIDTH + kind, start, end);
    cover(found, group * WIDTH + ALL, start, end);
    if (kind == WRITE || kind == SYNC)
        cover(found, group * WIDTH + WRITE_OR_SYNC, start, end);
}

static inline void sweep(const struct groups *groups, struct found *found, int64_t start, int64_t end, uint32_t code)
{
    /* An interval covered within its finest group is covered in every other group, too. */
    if (end <= found->finest[code])
        return;
    found->finest[code] = end;
    uint32_t width = (uint32_t)groups->width;
    int64_t excluded = groups->excluded, number = code / KINDS % width, phase = code / KINDS / width;
    int kind = code % KINDS;
    cover_kinds(found, phase, kind, start, end);
    if (number > 0)
        cover_kinds(found, excluded + 1 + number, kind, start, end);
    if (phase == excluded)
        return;
    cover_kinds(found, excluded + 1 + width + groups->app[phase], kind, start, end);
    if (groups->workload)
        cover_kinds(found, excluded + 1, kind, start, end);
}

/* Intervals, in any order, that start within 2 ** `bits` ns after `low`. */
static void sweep_stretch(const struct groups *groups, struct found *found, const struct interval *some, int64_t n,
                          int64_t low, int bits)
{
    int index = bits_of((uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        found->keys[i] = (uint64_t)(some[i].start - low) << index | (uint64_t)i;
    const uint64_t *keys = sorted(found->keys, found->spare, n, index, index + bits);
    uint64_t mask = (UINT64_C(1) << index) - 1;
    for (int64_t i = 0; i < n; i++) {
        const struct interval *one = some + (keys[i] & mask);
        sweep(groups, found, one->start, one->end, (uint32_t)one->code);
    }
}

/* Times by group and kind of the intervals between `low` and `high`. code: ((phase * width) + number) * 4 + kind. app:
   indexed by phase. workload: measure the workload, too. The other arrays are scratch space. */
KERNEL vani_sweep(int64_t n, int64_t low, int64_t high, int64_t width, int64_t excluded, int64_t apps,
                  int64_t workload, IN(int32_t, code, n), IN(int64_t, start, n), IN(int64_t, end, n),
                  IN(int32_t, app, excluded), ZEROS(int64_t, times, 6 * excluded + 6 + 6 * width + 6 * apps),
                  OUT(int64_t, reach, 6 * excluded + 6 + 6 * width + 6 * apps),
                  OUT(int64_t, finest, 4 * excluded * width + 4 * width), OUT(struct interval, room, n),
                  OUT(uint64_t, keys, n), OUT(uint64_t, spare, n))
{
    const struct groups groups = {width, excluded, app, workload};
    struct found found = {times, reach, finest, keys, spare};
    if (n < 0 || n > INT32_MAX || low < 0 || high < low || width < 1 || excluded < 0 || apps < 0
        || excluded >= INT32_MAX / 4 / width - 1)
        return NOT_ME;
    for (int64_t p = 0; p < excluded; p++)
        if (app[p] < 0 || app[p] >= apps)
            return NOT_ME;
    int64_t codes = (excluded + 1) * width * KINDS;
    for (int64_t g = 0; g < (excluded + 1 + width + apps) * WIDTH; g++)
        reach[g] = INT64_MIN;
    for (int64_t c = 0; c < codes; c++)
        finest[c] = INT64_MIN;
    int bits = bits_of((uint64_t)(high - low)), stretches = 0;
    while (stretches < DIGIT && stretches < bits && n >> stretches > FEW)
        stretches++;
    bits -= stretches;
    if (bits_of((uint64_t)n) + bits > 63)
        return NOT_ME;
    int64_t at[BINS + 1] = {0};
    int falls = 0;
    for (int64_t i = 0; i < n; i++) {
        if (start[i] < low || end[i] > high || end[i] < start[i] || code[i] < 0 || code[i] >= codes)
            return NOT_ME;
        at[((start[i] - low) >> bits) + 1]++;
        falls |= i && start[i] < start[i - 1];
    }
    if (!falls) {
        for (int64_t i = 0; i < n; i++)
            sweep(&groups, &found, start[i], end[i], (uint32_t)code[i]);
        return DONE;
    }
    for (int64_t s = 0; s < INT64_C(1) << stretches; s++)
        at[s + 1] += at[s];
    for (int64_t i = 0; i < n; i++)
        room[at[(start[i] - low) >> bits]++] = (struct interval){start[i], end[i], code[i]};
    /* Each is now the start of the next one. */
    for (int64_t s = 0, begin = 0; s < INT64_C(1) << stretches; begin = at[s++])
        sweep_stretch(&groups, &found, room + begin, at[s] - begin, low + (s << bits), bits);
    return DONE;
}
