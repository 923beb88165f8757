/* How often each size occurs in each group of calls (analyzers/batch.py). */
#include "columns.h"

struct size {
    int64_t group, bytes, count;
};

/* data: by group. slots: power of two, at least 2 n; zeros. Room in `found` for all calls. */
KERNEL int vani_size_counts(const int32_t *codes, const int64_t *bytes, int64_t n, const uint8_t *data,
                            int64_t groups, int32_t *slots, int64_t slot_count, struct size *found, int64_t *count)
{
    if (n < 0 || n > INT32_MAX / 4 || groups < 0 || slot_count < 2 * n || slot_count < 2
        || (slot_count & (slot_count - 1)))
        return NOT_ME;
    int64_t many = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t g = codes[i];
        if (g < 0 || g >= groups)
            return NOT_ME;
        if (!data[g] || bytes[i] == NO_VALUE)
            continue;
        uint64_t h = ((uint64_t)bytes[i] ^ (uint64_t)g << 40) * UINT64_C(0xD6E8FEB86659FD93);
        h = (h ^ h >> 32) * UINT64_C(0xD6E8FEB86659FD93);
        uint64_t slot = h >> 20 & (uint64_t)(slot_count - 1);
        while (slots[slot] && (found[slots[slot] - 1].group != g || found[slots[slot] - 1].bytes != bytes[i]))
            slot = (slot + 1) & (uint64_t)(slot_count - 1);
        if (!slots[slot]) {
            found[many++] = (struct size){.group = g, .bytes = bytes[i]};
            slots[slot] = (int32_t)many;
        }
        found[slots[slot] - 1].count++;
    }
    *count = many;
    return DONE;
}
