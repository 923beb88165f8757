/* Intervals and groups of the calls within a range of time (analyzers/measures/busy_time.py). */
#include "columns.h"

/* file: -1 if unknown. number: indexed by file, with one more entry for no file: number of a listed file + 1, or 0 for
   other files; below `width`. included: indexed like it. first_phase: number of the first phase. excluded: the number,
   larger than all others, that replaces the phase for calls that are not included. Calls of layers up to `most_layer`
   count unless they have the flag `nested`. code: ((phase * width) + number) * 4 + kind. falls: number of calls that
   begin before the previous one. */
KERNEL vani_intervals(int64_t n, int64_t files, int64_t width, int64_t phases, int64_t first_phase, int64_t excluded,
                      int64_t most_layer, int64_t nested, int64_t shift, int64_t low, int64_t high,
                      IN(int8_t, layer, n), IN(int8_t, kind, n), IN(int16_t, flags, n), IN(int32_t, file, n),
                      IN(int64_t, start_ns, n), IN(int64_t, duration_ns, n), IN(int32_t, number, files + 1),
                      IN(uint8_t, included, files + 1), IN(int64_t, phase_starts, phases), ROWS(int32_t, code, n),
                      ROWS(int64_t, start, n), ROWS(int64_t, end, n), OUT(int64_t, falls, 1))
{
    if (n < 0 || n > INT32_MAX || files < 0 || width < 1 || phases < 0 || first_phase < 0
        || excluded < first_phase + (phases > 1 ? phases : 1) - 1 || excluded >= INT32_MAX / 4 / width - 1)
        return NOT_ME;
    int64_t count = 0, phase = 0, before = INT64_MIN;
    *falls = 0;
    for (int64_t i = 0; i < n; i++) {
        if (layer[i] > most_layer || (flags[i] & nested))
            continue;
        int64_t begin, stop, of = file[i];
        unsigned is = (unsigned)kind[i];
        if (is > 3 || of >= files || of < -1 || duration_ns[i] < 0
            || __builtin_add_overflow(start_ns[i], shift, &begin)
            || __builtin_add_overflow(begin, duration_ns[i], &stop))
            return NOT_ME;
        of = of < 0 ? files : of;
        if (phases > 1)
            phase = phase_at(begin, phase_starts, phases, phase);
        begin = begin > low ? begin : low;
        stop = stop < high ? stop : high;
        if (begin >= stop)
            continue;
        if (number[of] < 0 || number[of] >= width)
            return NOT_ME;
        int64_t in = included[of] ? first_phase + phase : excluded;
        code[count] = (int32_t)((in * width + number[of]) * 4 + is);
        start[count] = begin;
        end[count] = stop;
        *falls += begin < before;
        before = begin;
        count++;
    }
    return count;
}
