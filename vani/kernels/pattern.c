/* Access classes of data operations by their offsets, stream by stream (analyzers/measures/access_pattern.py). */
#include "columns.h"
#include "ends.h"

enum { CONSECUTIVE, SEQUENTIAL, STRIDED, RANDOM, CLASSES, LARGE = 1 << 20 };

/* Attributes shared by all calls of a group. */
enum { IS_DATA = 1, IS_WRITE = 2, IS_SEEK = 4, IS_OPEN = 8, IS_APPEND = 16, FOLLOWS = 32, GOES_ON = 64, LISTED = 128 };

/* Attributes of a single operation. */
enum { JUMPED = 1, FIRST = 2, COUNTED = 4, APPENDED = 8, FROM_POSITION = 16 };

/* An operation in its stream. `source`: its call, or -1 - its number among the held operations. */
struct operation {
    int64_t begin, size, start, seeks, source, bits;
};

/* Consecutive operations at the same distance. */
struct stride {
    int64_t file, delta, count;
};

/* The parameters of vani_pattern. */
struct batch {
    int64_t calls, groups, held_count, places;
    const int32_t *codes;
    const int64_t *offset, *bytes, *start;
    const uint8_t *bits;
    const int32_t *place;
    const struct operation *held;
    const int32_t *held_stream;
    const int32_t *file;
    const uint8_t *of;
};

struct found {
    uint8_t *jumps, *opens;
    int64_t *first, *next, *seeks;
    struct operation *run;
    uint8_t *work;
    int64_t *counts, *ordered;
    int8_t *held_class;
    struct stride *strides;
    int64_t stride_count;
};

static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int is_sound(const struct batch *batch, const struct ends *ends)
{
    if (batch->calls < 0 || batch->calls > INT32_MAX || batch->groups < 0 || batch->places < 0
        || batch->places > INT32_MAX / 2 || batch->held_count < 0 || batch->held_count > INT32_MAX
        || !ends_are_sound(ends))
        return 0;
    for (int64_t g = 0; g < batch->groups; g++)
        if (batch->place[g] < -1 || batch->place[g] >= batch->places)
            return 0;
    for (int64_t h = 0; h < batch->held_count; h++)
        if (batch->held_stream[h] < 0 || batch->held_stream[h] >= 2 * batch->places
            || (h && batch->held_stream[h] < batch->held_stream[h - 1]))
            return 0;
    for (int64_t p = 0; p < batch->places; p++)
        if (batch->file[p] < 0 || (ends->files && batch->file[p] >= ends->files))
            return 0;
    return 1;
}

/* Order operations by stream, held ones first. */
static int arrange(const struct batch *batch, struct found *found)
{
    int64_t streams = 2 * batch->places;
    for (int64_t h = 0; h < batch->held_count; h++)
        found->first[batch->held_stream[h] + 1]++;
    for (int64_t i = 0; i < batch->calls; i++) {
        int32_t g = batch->codes[i];
        if (g < 0 || g >= batch->groups)
            return 0;
        if ((batch->bits[g] & IS_DATA) && batch->place[g] >= 0)
            found->first[2 * batch->place[g] + !!(batch->bits[g] & IS_WRITE) + 1]++;
    }
    for (int64_t s = 0; s < streams; s++) {
        found->first[s + 1] += found->first[s];
        found->next[s] = found->first[s];
    }
    for (int64_t h = 0; h < batch->held_count; h++) {
        struct operation *one = &found->run[found->next[batch->held_stream[h]]++];
        *one = batch->held[h];
        one->source = -1 - h;
    }
    for (int64_t i = 0; i < batch->calls; i++) {
        int32_t g = batch->codes[i], place = batch->place[g];
        unsigned bits = batch->bits[g];
        if (place < 0) {
            if (bits & IS_DATA)
                found->counts[CLASSES * g + CONSECUTIVE]++;
            continue;
        }
        if (bits & IS_SEEK) {
            found->seeks[place]++;
            if (batch->offset[i] == NO_VALUE)
                found->jumps[2 * place] = found->jumps[2 * place + 1] = 1;
        }
        if (bits & IS_OPEN)
            found->opens[2 * place] = found->opens[2 * place + 1] = 1;
        if (!(bits & IS_DATA))
            continue;
        int64_t s = 2 * (int64_t)place + !!(bits & IS_WRITE), size = batch->bytes[i];
        if ((size < 0 && size != NO_VALUE) || batch->start[i] < 0)
            return 0;
        int is_first = found->next[s] == found->first[s] || found->opens[s];
        found->run[found->next[s]++] = (struct operation){
            .begin = batch->offset[i],
            .size = size == NO_VALUE ? 0 : size,
            .start = batch->start[i],
            .seeks = found->seeks[place],
            .source = i,
            .bits = (found->jumps[s] ? JUMPED : 0) | (is_first ? FIRST : 0) | (bits & IS_APPEND ? APPENDED : 0)
                    | (bits & FOLLOWS ? FROM_POSITION : 0),
        };
        found->jumps[s] = found->opens[s] = 0;
    }
    return 1;
}

/* Whether an operation begins where the end of the file cut off the previous one of its stream. */
static int behind_cut(const struct operation *one, int64_t file, int reads, const struct ends *ends,
                      int64_t *near)
{
    const struct operation *before = one - 1;
    if ((one->bits & FIRST) || before->begin == NO_VALUE || one->begin < before->begin
        || one->begin >= plus(before->begin, before->size))
        return 0;
    if ((one->bits & before->bits & FROM_POSITION) && one->seeks == before->seeks)
        return 1;
    return reads && ends->files && ends->known[file] && one->start >= ends->since[file]
           && one->begin == end_at(ends, file, one->start, near);
}

enum { PAIRED = 1, CONTINUES = 2, BACK = 4, AGAIN = 8, BEYOND = 16 };

/* Class of each operation of a stream, compared with the previous one. */
static void compare(const struct operation *run, uint8_t *work, int64_t n, int64_t file, int reads,
                    const struct ends *ends)
{
    int64_t before = 0, near = 0;
    work[0] = 0;
    for (int64_t i = 1; i < n; i++) {
        const struct operation *one = &run[i];
        work[i] = 0;
        if ((one->bits & FIRST) || one->begin == NO_VALUE || one[-1].begin == NO_VALUE)
            continue;
        int64_t delta = minus(one->begin, one[-1].begin), expected = plus(one[-1].begin, one[-1].size);
        unsigned how = PAIRED;
        if (one->begin == expected || behind_cut(one, file, reads, ends, &near))
            how |= CONTINUES;
        else
            how |= one->begin < expected ? BACK : BEYOND;
        if ((work[i - 1] & PAIRED) && delta == before && !(how & CONTINUES) && !(one->bits & APPENDED) && delta)
            how |= AGAIN;
        work[i] = (uint8_t)how;
        before = delta;
    }
}

static int class_of(const struct operation *run, const uint8_t *work, int64_t n, int64_t i)
{
    unsigned how = work[i];
    if ((how | (i + 1 < n ? work[i + 1] : 0) | (i + 2 < n ? work[i + 2] : 0)) & AGAIN)
        return STRIDED;
    if (run[i].bits & APPENDED)
        return CONSECUTIVE;
    if (!(how & PAIRED))
        return run[i].bits & JUMPED ? SEQUENTIAL : CONSECUTIVE;
    if (how & CONTINUES)
        return CONSECUTIVE;
    int starts = i == 0 || (run[i].bits & FIRST);
    int beside = (!starts && (work[i - 1] & BACK)) || (i + 1 < n && (work[i + 1] & BACK));
    return (how & BEYOND) && !beside ? SEQUENTIAL : RANDOM;
}

static void count_stream(const struct batch *batch, struct found *found, int64_t s, const struct ends *ends)
{
    struct operation *run = found->run + found->first[s];
    uint8_t *work = found->work + found->first[s];
    int64_t n = found->first[s + 1] - found->first[s], file = batch->file[s / 2];
    int goes_on = batch->of[s / 2] & GOES_ON, listed = batch->of[s / 2] & LISTED;
    compare(run, work, n, file, s % 2 == READ, ends);
    struct stride *stride = 0;
    for (int64_t i = 0; i < n; i++) {
        struct operation *one = &run[i];
        int first = !!(one->bits & FIRST);
        if ((one->bits & COUNTED) || (goes_on && n - 1 - i < 2 + first))
            continue;
        int is = class_of(run, work, n, i);
        /* The first operation gets the class of its successor. */
        if (first && is != STRIDED && !(one->bits & APPENDED) && i + 1 < n && !(run[i + 1].bits & FIRST))
            is = class_of(run, work, n, i + 1);
        if (one->source >= 0) {
            int64_t g = batch->codes[one->source];
            found->counts[CLASSES * g + is]++;
            found->ordered[g] = plus(found->ordered[g], is == RANDOM && one->size < LARGE ? 0 : one->size);
        } else
            found->held_class[-1 - one->source] = (int8_t)is;
        int64_t delta = work[i] & PAIRED ? minus(one->begin, one[-1].begin) : NO_VALUE;
        if (is == STRIDED && listed && delta != NO_VALUE) {
            if (!stride || stride->delta != delta) {
                stride = &found->strides[found->stride_count++];
                *stride = (struct stride){.file = file, .delta = delta};
            }
            stride->count++;
        }
        one->bits |= COUNTED;
    }
}

/* codes: group of each call. bits, place: indexed by group; place numbers the pairs of process and file of the batch,
   -1 without a file. held: operations of earlier batches, one stream after another; held_stream: 2 * place + direction.
   file, of: indexed by place, its file and the bits of its process. For the others see ends.h. jumps, opens: indexed by
   stream, whether such a call came after its last operation. first: indexed by stream, its start in `run`. next, work:
   scratch space. seeks: indexed by place. counts: by group and class; ordered: by group, bytes of operations that are
   not random or large. held_class: class of each held operation that is counted now, or -1. kept: number of operations
   that are held now, the first ones of `run`; kept_stream: their streams. */
KERNEL vani_pattern(int64_t n, int64_t groups, int64_t held_count, int64_t places, int64_t files, int64_t ends,
                    int64_t bucket_ns, int64_t level, int64_t buckets, int64_t moments, IN(int32_t, codes, n),
                    IN(int64_t, offset, n), IN(int64_t, bytes, n), IN(int64_t, start, n), IN(uint8_t, bits, groups),
                    IN(int32_t, place, groups), IN(struct operation, held, held_count),
                    IN(int32_t, held_stream, held_count), IN(int32_t, file, places), IN(uint8_t, of, places),
                    IN(uint8_t, known, files), IN(int64_t, since, files), IN(int64_t, keys, ends),
                    IN(int64_t, reach, ends), INOUT(uint8_t, jumps, 2 * places), INOUT(uint8_t, opens, 2 * places),
                    ZEROS(int64_t, first, 2 * places + 1), OUT(int64_t, next, 2 * places), ZEROS(int64_t, seeks, places),
                    OUT(struct operation, run, n + held_count), OUT(uint8_t, work, n + held_count),
                    ZEROS(int64_t, counts, 4 * groups), ZEROS(int64_t, ordered, groups),
                    OUT(int8_t, held_class, held_count), ROWS(struct stride, strides, n + held_count),
                    OUT(int32_t, kept_stream, n + held_count), ZEROS(int64_t, kept, 1))
{
    const struct ends of_files = {known, since, files, keys, reach, ends, bucket_ns, level, buckets, moments};
    const struct batch batch = {n, groups, held_count, places, codes, offset, bytes, start, bits, place, held,
                                held_stream, file, of};
    struct found found = {jumps, opens, first, next, seeks, run, work, counts, ordered, held_class, strides, 0};
    if (!is_sound(&batch, &of_files))
        return NOT_ME;
    memset(held_class, -1, (size_t)held_count);
    if (!arrange(&batch, &found))
        return NOT_ME;
    for (int64_t s = 0; s < 2 * places; s++) {
        int64_t begin = first[s], end = first[s + 1];
        if (begin == end)
            continue;
        count_stream(&batch, &found, s, &of_files);
        if (!(of[s / 2] & GOES_ON))
            continue;
        for (int64_t i = end - begin > 4 ? end - 4 : begin; i < end; i++) {
            struct operation one = run[i];
            one.seeks -= seeks[s / 2];
            kept_stream[*kept] = (int32_t)s;
            run[(*kept)++] = one;
        }
    }
    return found.stride_count;
}
