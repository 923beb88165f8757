/* Starts and durations in ns of one rank's calls, from two 32-bit numbers each (vani/readers/recorder/batches.py).
   */
#include "vani.h"

enum { PREVIOUS, REPAIRED, SPENT };

/* deltas: shape (n, 2); values from `threshold` on are negative. No time may be further than `most` ticks from 0.
   state: start of the last call in ticks; number of calls repaired so far, which began before the previous call or
   ended before they began; and total duration of this batch's calls in ticks. */
KERNEL vani_times(int64_t n, int64_t threshold, int64_t ns_per_tick, int64_t most, IN(uint32_t, deltas, 2 * n),
                  OUT(int64_t, start, n), OUT(int64_t, duration, n), INOUT(int64_t, state, 3))
{
    if (n < 0 || n > INT32_MAX || ns_per_tick < 1 || most < 0 || most > INT64_MAX / 4 / ns_per_tick
        || threshold < 0 || state[PREVIOUS] > most || state[PREVIOUS] < -most)
        return NOT_ME;
    int64_t now = state[PREVIOUS], repaired = 0, spent = 0;
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
    state[PREVIOUS] = now;
    state[REPAIRED] += repaired;
    state[SPENT] = spent;
    return DONE;
}
