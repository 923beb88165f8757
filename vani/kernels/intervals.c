/* When calls took place and in which group, of those that lie in a stretch of time (analyzers/measures/busy_time.py). */
#include "columns.h"

struct columns {
    const int8_t *layer, *kind;
    const int16_t *flags;
    const int32_t *file; /* -1 where none is known */
    const int64_t *start, *duration;
    int64_t calls;
};

/* What is known of files and phases beforehand. */
struct places {
    const int32_t *number; /* by file, the last one that of no file: number of a listed file + 1, 0 for others */
    const uint8_t *included;
    int64_t files; /* without the last one */
    int64_t width; /* numbers are below */
    const int64_t *phase_starts;
    int64_t phases;      /* of them */
    int64_t first_phase; /* number of the first one */
    int64_t excluded;    /* number that stands for the phase of other calls: the largest one */
    int64_t most_layer, nested; /* calls of layers up to this one count, but for those that have this flag */
};

struct found {
    int32_t *code; /* ((phase * width) + number) * 4 + kind; room for all calls, as in the next two */
    int64_t *start, *end;
    int64_t count;
    int64_t falls; /* how many of them begin before the one before */
};

KERNEL int vani_intervals(const struct columns *columns, const struct places *places, int64_t shift, int64_t low,
                          int64_t high, struct found *found)
{
    int64_t phases = places->phases, n = columns->calls;
    if (n < 0 || n > INT32_MAX || places->files < 0 || places->width < 1 || phases < 0 || places->first_phase < 0
        || places->excluded < places->first_phase + (phases > 1 ? phases : 1) - 1
        || places->excluded >= INT32_MAX / 4 / places->width - 1)
        return NOT_ME;
    int64_t count = 0, falls = 0, phase = 0, before = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        if (columns->layer[i] > places->most_layer || (columns->flags[i] & places->nested))
            continue;
        int64_t start, end, file = columns->file[i];
        unsigned kind = (unsigned)columns->kind[i];
        if (kind > 3 || file >= places->files || file < -1 || columns->duration[i] < 0
            || __builtin_add_overflow(columns->start[i], shift, &start)
            || __builtin_add_overflow(start, columns->duration[i], &end))
            return NOT_ME;
        file = file < 0 ? places->files : file;
        if (phases > 1)
            phase = phase_at(start, places->phase_starts, phases, phase);
        start = start > low ? start : low;
        end = end < high ? end : high;
        if (start >= end)
            continue;
        int64_t number = places->number[file];
        if (number < 0 || number >= places->width)
            return NOT_ME;
        int64_t of = places->included[file] ? places->first_phase + phase : places->excluded;
        found->code[count] = (int32_t)((of * places->width + number) * 4 + kind);
        found->start[count] = start;
        found->end[count] = end;
        falls += start < before;
        before = start;
        count++;
    }
    found->count = count;
    found->falls = falls;
    return DONE;
}
