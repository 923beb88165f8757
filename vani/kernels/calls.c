/* From signature ids of calls to their columns, in one pass: vani/readers/recorder/batch_builder.py. */
#include "follow.h"

enum { LIBRARIES = LAYER_NETCDF - LAYER_MPIIO + 1 };

struct columns {
    int32_t *rank, *thread, *file;
    int16_t *func, *within, *flags;
    int8_t *layer, *kind, *depth, *via;
    int64_t *offset, *bytes;
    uint8_t *file_known, *offset_known, *bytes_known; /* a bit per call */
};

struct batch {
    int64_t calls, runs, signatures, files, handles, threads, depths, functions, by_time;
    const int32_t *ids;
    const int32_t *run_rank; /* ranks, each with as many calls as run_calls says */
    const int64_t *run_calls;
    const struct signature *table;
    const int64_t *value; /* by call in place of by signature, or null */
    const int64_t *start, *duration;
    const int8_t *origin; /* what made each call, or null */
    struct file *file;
    struct handle *handle;
    struct outer *outer;  /* (threads, depths) */
    struct reach *reach;  /* one for each library, of the first rank's calls so far */
    struct columns out;
    int64_t *count;       /* by function + 1, all 0 before */
    int64_t moved, first_start, last_end, unknown_files, unknown_offsets, unknown_bytes;
};

static int find_file(struct batch *b, const struct signature *s, int32_t rank, int32_t *slot)
{
    *slot = s->file;
    if (s->handle < 0)
        return DONE;
    if (s->handle >= b->handles)
        return NOT_ME;
    struct handle *handle = &b->handle[s->handle];
    if (handle->rank != rank) {
        handle->rank = rank;
        handle->file = -1;
    }
    if (s->binds)
        handle->file = s->file;
    else
        *slot = handle->file;
    return DONE;
}

static struct file *state_of(struct batch *b, int32_t slot, int32_t rank)
{
    struct file *file = &b->file[slot];
    if (file->rank != rank) {
        file->rank = rank;
        file->position = NO_VALUE;
        file->end = 0;
        file->known = file->append = file->past = 0;
    }
    file->touched = 1;
    return file;
}

/* By depth: a call was made in the last one before it, on its thread, of the depth above its own. */
static int around_by_depth(struct batch *b, const struct signature *s, int32_t rank, int64_t i, struct moved *moved)
{
    if (s->depth < 0 || s->depth >= b->depths || s->thread_slot < 0 || s->thread_slot >= b->threads)
        return NOT_ME;
    struct outer *self = &b->outer[s->thread_slot * b->depths + s->depth];
    struct outer mine = {rank, s->own, s->layer, s->layer, 0};
    int8_t origin = b->origin ? b->origin[i] : -1;
    int made = origin > s->layer && origin >= LAYER_MPIIO && origin <= LAYER_NETCDF;
    if (made) {
        mine.via = origin;
        mine.within = (int16_t)(mine.within | 1 << origin);
    }
    if (s->depth > 0 && self[-1].rank == rank) {
        /* MPI finishes its non-blocking file operations in MPI_Wait, which is no library of files. */
        if (!(made && self[-1].via == LAYER_MPI))
            mine.via = self[-1].via;
        mine.within = (int16_t)(mine.within | self[-1].within);
        mine.inside = self[-1].layer <= LAYER_STDIO || self[-1].inside;
        if (mine.inside && s->layer <= LAYER_STDIO)
            moved->flags |= FLAG_NESTED;
    }
    *self = mine;
    b->out.via[i] = mine.via;
    b->out.within[i] = mine.within;
    return DONE;
}

/* By time: a call is in those calls of libraries whose intervals contain its own; the longest is the outermost. */
static void around_by_time(struct batch *b, const struct signature *s, int64_t i)
{
    int64_t start = b->start[i], end = start + b->duration[i], widest = -1;
    int16_t within = s->own;
    int8_t via = s->layer;
    if (s->layer >= LAYER_MPIIO && s->layer <= LAYER_NETCDF) {
        struct reach *reach = &b->reach[s->layer - LAYER_MPIIO];
        if (end > reach->highest) {
            reach->begins = start;
            reach->closes = reach->highest = end;
        }
    }
    for (int library = 0; library < LIBRARIES; library++) {
        const struct reach *reach = &b->reach[library];
        if (start < reach->begins || end > reach->closes)
            continue;
        within = (int16_t)(within | 1 << (library + LAYER_MPIIO));
        if (reach->closes - reach->begins > widest) {
            widest = reach->closes - reach->begins;
            via = (int8_t)(library + LAYER_MPIIO);
        }
    }
    b->out.via[i] = via;
    b->out.within[i] = within;
}

/* Bits of the last calls, eight of which make a byte. */
struct bits {
    unsigned file, offset, bytes;
};

static void flush(struct batch *b, int64_t i, struct bits *bits)
{
    b->out.file_known[i >> 3] = (uint8_t)bits->file;
    b->out.offset_known[i >> 3] = (uint8_t)bits->offset;
    b->out.bytes_known[i >> 3] = (uint8_t)bits->bytes;
    *bits = (struct bits){0, 0, 0};
}

static int one(struct batch *b, int64_t i, int32_t rank, struct bits *bits)
{
    if (b->ids[i] < 0 || b->ids[i] >= b->signatures)
        return NOT_ME;
    const struct signature *s = &b->table[b->ids[i]];
    struct columns *out = &b->out;
    struct moved moved = {b->value ? b->value[i] : s->value, s->bytes, NO_VALUE, s->flags};
    int32_t slot;
    if (s->rule < 0 || s->func < -1 || s->func + 1 >= b->functions || moved.size > MOST_BYTES
        || (moved.size < 0 && moved.size != NO_VALUE) || find_file(b, s, rank, &slot) || slot >= b->files)
        return NOT_ME;
    if (s->renamed >= b->files)
        return NOT_ME;
    /* Who gives a file its own name does nothing to it. */
    if (s->rule != RULE_NONE && slot >= 0 && (s->renamed < 0 || s->renamed != slot)
        && follow(state_of(b, slot, rank), s, &moved))
        return NOT_ME;
    if (s->renamed >= 0 && s->renamed != slot)
        forget(state_of(b, s->renamed, rank));
    /* A library's own offset is what its call says; positions are followed below it only. */
    if (s->layer == LAYER_MPIIO && moved.value != NO_VALUE)
        moved.offset = moved.value;
    if (b->by_time)
        around_by_time(b, s, i);
    else if (around_by_depth(b, s, rank, i, &moved))
        return NOT_ME;
    out->rank[i] = rank;
    out->thread[i] = s->thread;
    out->file[i] = slot < 0 ? -1 : b->file[slot].code;
    out->func[i] = s->func;
    out->flags[i] = moved.flags;
    out->layer[i] = s->layer;
    out->kind[i] = s->kind;
    out->depth[i] = s->depth;
    out->offset[i] = moved.offset;
    out->bytes[i] = moved.size;
    unsigned file_known = slot >= 0, offset_known = moved.offset != NO_VALUE, bytes_known = moved.size != NO_VALUE;
    b->unknown_files += !file_known;
    b->unknown_offsets += !offset_known;
    b->unknown_bytes += !bytes_known;
    bits->file |= file_known << (i & 7);
    bits->offset |= offset_known << (i & 7);
    bits->bytes |= bytes_known << (i & 7);
    if ((i & 7) == 7)
        flush(b, i, bits);
    b->count[s->func + 1]++;
    b->moved += moved.size == NO_VALUE ? 0 : moved.size;
    b->first_start = b->start[i] < b->first_start ? b->start[i] : b->first_start;
    int64_t end = b->start[i] + b->duration[i];
    b->last_end = end > b->last_end ? end : b->last_end;
    return DONE;
}

KERNEL int vani_calls(struct batch *b)
{
    int64_t i = 0, left = b->calls;
    struct bits bits = {0, 0, 0};
    if (left < 1 || left > MOST_CALLS || b->signatures < 1 || b->runs < 1 || b->depths < 1)
        return NOT_ME;
    for (int64_t run = 0; run < b->runs; run++) {
        if (b->run_calls[run] < 0 || b->run_calls[run] > left || b->run_rank[run] < 0)
            return NOT_ME;
        left -= b->run_calls[run];
    }
    if (left)
        return NOT_ME;
    b->moved = b->unknown_files = b->unknown_offsets = b->unknown_bytes = 0;
    b->first_start = INT64_MAX;
    b->last_end = INT64_MIN;
    for (int64_t run = 0; run < b->runs; run++) {
        int32_t rank = b->run_rank[run];
        if (run && rank != b->run_rank[run - 1])
            for (int library = 0; library < LIBRARIES; library++)
                b->reach[library] = (struct reach){INT64_MAX, INT64_MIN, INT64_MIN};
        for (int64_t end = i + b->run_calls[run]; i < end; i++)
            if (one(b, i, rank, &bits))
                return NOT_ME;
    }
    if (i & 7)
        flush(b, i, &bits);
    return DONE;
}
