/* Group calls that share every attribute except offset, size and time. Calls that count are summed by group; of the
   others, only their number and bytes are (analyzers/batch.py). */
#include "columns.h"

/* Columns of calls. */
struct calls {
    const int32_t *rank, *file;
    const int16_t *func, *within, *flags;
    const int8_t *layer, *kind, *via;
    const int64_t *offset, *bytes, *start, *duration;
    struct known file_known, offset_known, bytes_known;
};

/* A row of the group table; numpy reads it as columns of 64 bits. */
struct group {
    int64_t row; /* index of its last call, among those that count or among all */
    int64_t phase, count, bytes, time, unsized, placeless, displaced, first, last, end;
    int64_t what, how;
    int64_t counts; /* 1 if its calls count */
    int64_t code;   /* number among the groups that count, or among the others */
};

/* The results of vani_signatures. */
struct found {
    int32_t *slots;
    int64_t slot_count;
    struct group *groups;
    int64_t most_groups, group_count;
    int64_t of_side[2]; /* number of groups that do not count, and of those that do */
    int32_t *codes, *rows;
    int64_t *offset, *bytes, *start, *duration;
};

/* Indices in `summary`. */
enum { COUNTED, OTHERS, GROUPS };

enum { FEW = 255, BLOCK = 512 };

static uint64_t mixed(uint64_t what, uint64_t how)
{
    uint64_t h = (what ^ (how * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xD6E8FEB86659FD93);
    h ^= h >> 32;
    return h * UINT64_C(0xD6E8FEB86659FD93);
}

static inline int is_of(const struct group *group, uint64_t what, uint64_t how, int64_t phase)
{
    return (((uint64_t)group->what ^ what) | ((uint64_t)group->how ^ how) | (uint64_t)(group->phase ^ phase)) == 0;
}

/* Slot of a group, or the free slot for it, among the first `mask` + 1. */
static inline uint64_t slot_of(const struct found *found, uint64_t mask, uint64_t what, uint64_t how, int64_t phase)
{
    uint64_t slot = mixed(what, how ^ (uint64_t)phase << 20) >> 20 & mask;
    while (found->slots[slot] && !is_of(&found->groups[found->slots[slot] - 1], what, how, phase))
        slot = (slot + 1) & mask;
    return slot;
}

/* Spread groups over four times as many slots, and return the new mask. There are enough slots for all groups; few are
   used at first, so that they stay in the cache. */
static uint64_t spread(struct found *found, int64_t groups, uint64_t mask)
{
    mask = 4 * mask + 3;
    if (mask > (uint64_t)found->slot_count - 1)
        mask = (uint64_t)found->slot_count - 1;
    memset(found->slots, 0, (size_t)(mask + 1) * sizeof(int32_t));
    for (int64_t g = 0; g < groups; g++) {
        const struct group *one = &found->groups[g];
        found->slots[slot_of(found, mask, (uint64_t)one->what, (uint64_t)one->how, one->phase)] = (int32_t)g + 1;
    }
    return mask;
}

/* Add a call to its group. Returns nonzero if a sum or the call is implausible. */
static inline int add(struct group *group, int kind, int64_t offset, int64_t size, int64_t start, int64_t took)
{
    int64_t end, known = size == NO_VALUE ? 0 : size;
    int odd = (took < 0) | (known < 0);
    odd |= __builtin_add_overflow(start, took, &end);
    odd |= __builtin_add_overflow(group->time, took, &group->time);
    odd |= __builtin_add_overflow(group->bytes, known, &group->bytes);
    group->count++;
    group->unsized += (size == NO_VALUE) & (kind <= WRITE);
    group->placeless += offset == NO_VALUE;
    group->displaced += (offset == NO_VALUE) & (size > 0);
    group->first = start < group->first ? start : group->first;
    group->last = start > group->last ? start : group->last;
    group->end = end > group->end ? end : group->end;
    return odd;
}

/* Columns that were not copied so far, because all calls up to here count. */
static void catch_up(const struct calls *calls, int64_t shift, int64_t n, struct found *found)
{
    size_t size = (size_t)n * sizeof(int64_t);
    if (!calls->offset_known.bits)
        memcpy(found->offset, calls->offset, size);
    if (!calls->bytes_known.bits)
        memcpy(found->bytes, calls->bytes, size);
    if (!shift)
        memcpy(found->start, calls->start, size);
    memcpy(found->duration, calls->duration, size);
    for (int64_t i = 0; i < n; i++)
        found->rows[i] = (int32_t)i;
}

/* Results of look-ups for a block of calls, made before any call is added, so that they need not wait for each other.
   */
struct block {
    uint64_t what[BLOCK], how[BLOCK];
    int64_t phase[BLOCK];
    int32_t group[BLOCK];
};

/* Group the calls from `first` on. Returns the mask of the slots, or 0 if numpy decides or there are too many groups.
   */
static uint64_t find(const struct calls *calls, int64_t most_layer, int64_t nested, struct found *found, int64_t first,
                     int64_t n, struct block *block, uint64_t mask)
{
    int odd = 0;
    for (int64_t b = 0; b < n; b++) {
        int64_t i = first + b;
        int kind = calls->kind[i], layer = calls->layer[i], via = calls->via[i];
        int32_t file = is_known(calls->file_known, i) ? calls->file[i] : -1;
        odd |= ((unsigned)kind > 7) | ((unsigned)layer > 15) | ((unsigned)via > 15);
        block->what[b] = (uint64_t)(uint32_t)file << 32 | (uint32_t)calls->rank[i];
        block->how[b] = (uint64_t)(uint16_t)calls->func[i] << 48 | (uint64_t)(uint16_t)calls->within[i] << 32
                        | (uint64_t)(uint16_t)calls->flags[i] << 16 | (uint64_t)via << 8 | (uint64_t)layer << 4
                        | (uint64_t)kind;
    }
    if (odd)
        return 0;
    for (int64_t b = 0; b < n; b++) {
        uint64_t what = block->what[b], how = block->how[b];
        uint64_t slot = slot_of(found, mask, what, how, block->phase[b]);
        if (!found->slots[slot]) {
            if (2 * found->group_count > (int64_t)mask && mask < (uint64_t)found->slot_count - 1) {
                mask = spread(found, found->group_count, mask);
                slot = slot_of(found, mask, what, how, block->phase[b]);
            }
            if (found->group_count == found->most_groups)
                return 0;
            int64_t counts = calls->layer[first + b] <= most_layer && !(calls->flags[first + b] & nested);
            found->groups[found->group_count] = (struct group){
                .phase = block->phase[b], .first = INT64_MAX, .last = INT64_MIN, .end = INT64_MIN,
                .what = (int64_t)what, .how = (int64_t)how, .counts = counts, .code = found->of_side[counts]++};
            found->slots[slot] = (int32_t)++found->group_count;
        }
        block->group[b] = found->slots[slot] - 1;
    }
    return mask;
}

/* Group calls. NAME_known: one bit per call, starting at NAME_first, NAME_bytes bytes long; a null pointer if all
   values are known. Calls of layers up to `most_layer` count unless they have the flag `nested`. slots: their number is
   a power of two, at least 2 most_groups. codes, rows: group and index of each call that counts; NAME_counted: its
   columns, written only if some calls do not count; other_codes, other_rows: the same for the other calls. summary:
   numbers of calls that count and that do not, and of groups; -1 if there are more than fit. */
KERNEL vani_signatures(int64_t n, int64_t phases, int64_t shift, int64_t most_layer, int64_t nested, int64_t most_groups,
                       int64_t slot_count, int64_t file_first, int64_t file_bytes, int64_t offset_first,
                       int64_t offset_bytes, int64_t bytes_first, int64_t bytes_bytes, IN(int32_t, rank, n),
                       IN(int32_t, file, n), IN(int16_t, func, n), IN(int16_t, within, n), IN(int16_t, flags, n),
                       IN(int8_t, layer, n), IN(int8_t, kind, n), IN(int8_t, via, n), IN(int64_t, offset, n),
                       IN(int64_t, bytes, n), IN(int64_t, start_ns, n), IN(int64_t, duration_ns, n),
                       MAYBE(uint8_t, file_known, file_bytes), MAYBE(uint8_t, offset_known, offset_bytes),
                       MAYBE(uint8_t, bytes_known, bytes_bytes), IN(int64_t, phase_starts, phases),
                       OUT(int32_t, slots, slot_count), OUT(struct group, groups, most_groups), OUT(int32_t, codes, n),
                       OUT(int32_t, rows, n), OUT(int64_t, offset_counted, n), OUT(int64_t, bytes_counted, n),
                       OUT(int64_t, start_ns_counted, n), OUT(int64_t, duration_ns_counted, n),
                       OUT(int32_t, other_codes, n), OUT(int32_t, other_rows, n), ZEROS(int64_t, summary, 3))
{
    const struct calls calls = {rank, file, func, within, flags, layer, kind, via, offset, bytes, start_ns, duration_ns,
                                {file_known, file_first}, {offset_known, offset_first}, {bytes_known, bytes_first}};
    struct found found = {slots, slot_count, groups, most_groups, 0, {0, 0}, codes, rows,
                          offset_counted, bytes_counted, start_ns_counted, duration_ns_counted};
    int64_t at = 0, other = 0, phase = 0;
    if (n < 0 || n > INT32_MAX / 4 || phases < 0 || phases > UINT16_MAX || most_groups < 1
        || most_groups > INT32_MAX / 4 || slot_count < 2 * most_groups || (slot_count & (slot_count - 1))
        || !has_bits_of(&calls.file_known, file_bytes, n) || !has_bits_of(&calls.offset_known, offset_bytes, n)
        || !has_bits_of(&calls.bytes_known, bytes_bytes, n))
        return NOT_ME;
    struct block block;
    uint64_t mask = spread(&found, 0, FEW);
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t many = n - first < BLOCK ? n - first : BLOCK;
        for (int64_t b = 0; b < many; b++) {
            int64_t start;
            if (__builtin_add_overflow(start_ns[first + b], shift, &start))
                return NOT_ME;
            if (phases > 1)
                phase = phase_at(start, phase_starts, phases, phase);
            block.phase[b] = phase;
        }
        mask = find(&calls, most_layer, nested, &found, first, many, &block, mask);
        if (!mask) {
            summary[GROUPS] = -1;
            return found.group_count == most_groups ? DONE : NOT_ME;
        }
        for (int64_t b = 0; b < many; b++) {
            int64_t i = first + b, start = start_ns[i] + shift, took = duration_ns[i];
            int64_t place = is_known(calls.offset_known, i) ? offset[i] : NO_VALUE;
            int64_t size = is_known(calls.bytes_known, i) ? bytes[i] : NO_VALUE;
            struct group *group = &groups[block.group[b]];
            if (!group->counts) {
                if (!other)
                    catch_up(&calls, shift, i, &found);
                int64_t known = size == NO_VALUE ? 0 : size;
                if (known < 0 || __builtin_add_overflow(group->bytes, known, &group->bytes))
                    return NOT_ME;
                group->unsized += (size == NO_VALUE) & (kind[i] <= WRITE);
                group->row = i;
                group->count++;
                other_codes[other] = (int32_t)group->code;
                other_rows[other++] = (int32_t)i;
                continue;
            }
            if (add(group, kind[i], place, size, start, took))
                return NOT_ME;
            group->row = at;
            codes[at] = (int32_t)group->code;
            if (offset_known || other)
                offset_counted[at] = place;
            if (bytes_known || other)
                bytes_counted[at] = size;
            if (shift || other)
                start_ns_counted[at] = start;
            if (other) {
                rows[at] = (int32_t)i;
                duration_ns_counted[at] = took;
            }
            at++;
        }
    }
    summary[COUNTED] = at;
    summary[OTHERS] = other;
    summary[GROUPS] = found.group_count;
    return DONE;
}
