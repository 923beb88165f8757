/* Start and duration of the calls of one rank in ns, of two 32-bit numbers each (vani/readers/recorder/timestamps.py). */
#include "vani.h"

/* What one batch must know of those before, and adds. */
struct clock {
    int64_t previous; /* ticks at which the last call began */
    int64_t repaired; /* calls whose start lay before that of the call before, or that ended before they began */
    int64_t spent;    /* ticks that all calls of this batch took */
};

/* deltas: (n, 2). Deltas from `threshold` on are negative ones. No time may lie further than `most` ticks from 0. */
KERNEL int vani_times(const uint32_t *deltas, int64_t n, int64_t threshold, int64_t ns_per_tick, int64_t most,
                      int64_t *start, int64_t *duration, struct clock *clock)
{
    if (n < 0 || n > INT32_MAX || ns_per_tick < 1 || most < 0 || most > INT64_MAX / 4 / ns_per_tick
        || threshold < 0 || clock->previous > most || clock->previous < -most)
        return NOT_ME;
    int64_t now = clock->previous, repaired = 0, spent = 0;
    int64_t earliest = 0, latest = 0, longest = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = deltas[2 * i], end = deltas[2 * i + 1];
        if (begin >= threshold) {
            begin -= INT64_C(1) << 32;
            repaired++;
        }
        if (end >= threshold)
            end -= INT64_C(1) << 32;
        int64_t took = end - begin;
        if (took < 0) {
            took = 0;
            repaired++;
        }
        now += begin;
        if (now > most || now < -most)
            return NOT_ME;
        earliest = now < earliest ? now : earliest;
        latest = now > latest ? now : latest;
        longest = took > longest ? took : longest;
        spent += took;
        start[i] = now * ns_per_tick;
        duration[i] = took * ns_per_tick;
    }
    if ((latest > -earliest ? latest : -earliest) + longest > most)
        return NOT_ME;
    clock->previous = now;
    clock->repaired += repaired;
    clock->spent = spent;
    return DONE;
}
