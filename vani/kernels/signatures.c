/* Calls in groups that share every attribute but place, size and time, and what is added up of each group
   (analyzers/signatures.py). */
#include <string.h>

#include "columns.h"

/* Columns of calls, shape (n,) each. */
struct calls {
    const int32_t *rank, *file; /* file: -1 where none is known */
    const int16_t *func, *within, *flags;
    const int8_t *layer, *kind, *via;
    const int64_t *offset, *bytes, *start, *duration;
};

/* A row of the table of groups; numpy sees columns of 64 bits. */
struct group {
    int64_t row; /* the last one */
    int64_t phase, count, bytes, time, unsized, placeless, displaced, first, last, end;
    int64_t what, how;
};

static uint64_t mixed(uint64_t what, uint64_t how)
{
    uint64_t h = (what ^ (how * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xD6E8FEB86659FD93);
    h ^= h >> 32;
    return h * UINT64_C(0xD6E8FEB86659FD93);
}

/* slots: power of two, at least 2 n; zeros. Of `groups` there is room for `most`; `found` says how many there are. */
KERNEL int vani_signatures(const struct calls *calls, int64_t n, const int64_t *phase_starts, int64_t phases,
                           int64_t shift, int32_t *slots, int64_t slot_count, struct group *groups, int64_t most,
                           int32_t *codes, int64_t *found)
{
    if (n < 0 || n > INT32_MAX / 4 || phases < 0 || phases > UINT16_MAX || most < 0 || slot_count < 2 * n
        || slot_count < 2 || (slot_count & (slot_count - 1)))
        return NOT_ME;
    int64_t count = 0, phase = 0, before = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t size = calls->bytes[i], took = calls->duration[i], start = calls->start[i], end;
        int kind = calls->kind[i];
        if (took < 0 || (size < 0 && size != NO_VALUE) || __builtin_add_overflow(start, shift, &start)
            || __builtin_add_overflow(start, took, &end))
            return NOT_ME;
        if (phases > 1)
            phase = phase_at(start, phase_starts, phases, phase);
        uint64_t what = (uint64_t)(uint32_t)calls->file[i] << 32 | (uint32_t)calls->rank[i];
        uint64_t how = (uint64_t)(uint16_t)calls->func[i] << 48 | (uint64_t)(uint16_t)calls->within[i] << 32
                       | (uint64_t)(uint16_t)calls->flags[i] << 16;
        if ((unsigned)kind > 7 || (unsigned)calls->layer[i] > 15 || (unsigned)calls->via[i] > 15)
            return NOT_ME;
        how |= (uint64_t)kind | (uint64_t)calls->layer[i] << 4 | (uint64_t)calls->via[i] << 8;
        int64_t code = before;
        if (before < 0 || groups[before].what != (int64_t)what || groups[before].how != (int64_t)how
            || groups[before].phase != phase) {
            uint64_t slot = mixed(what, how ^ (uint64_t)phase << 20) >> 20 & (uint64_t)(slot_count - 1);
            for (;;) {
                code = slots[slot] - 1;
                if (code < 0 || (groups[code].what == (int64_t)what && groups[code].how == (int64_t)how
                                 && groups[code].phase == phase))
                    break;
                slot = (slot + 1) & (uint64_t)(slot_count - 1);
            }
            if (code < 0) {
                if (count == most)
                    return NOT_ME;
                code = count++;
                slots[slot] = (int32_t)count;
                groups[code] = (struct group){.phase = phase, .first = INT64_MAX, .last = INT64_MIN,
                                              .end = INT64_MIN, .what = (int64_t)what, .how = (int64_t)how};
            }
            before = code;
        }
        struct group *group = &groups[code];
        codes[i] = (int32_t)code;
        group->row = i;
        group->count++;
        if (size == NO_VALUE)
            group->unsized += kind <= WRITE;
        else if (__builtin_add_overflow(group->bytes, size, &group->bytes))
            return NOT_ME;
        if (calls->offset[i] == NO_VALUE) {
            group->placeless++;
            group->displaced += size > 0;
        }
        if (__builtin_add_overflow(group->time, took, &group->time))
            return NOT_ME;
        group->first = start < group->first ? start : group->first;
        group->last = start > group->last ? start : group->last;
        group->end = end > group->end ? end : group->end;
    }
    *found = count;
    return DONE;
}
