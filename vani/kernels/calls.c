/* Build the columns of calls from their signature ids, in one pass (vani/readers/recorder/batch_builder.py). */
#include "follow.h"

enum { LIBRARIES = LAYER_NETCDF - LAYER_MPIIO + 1 };

_Static_assert(LIBRARIES == 4, "the length of `reach`");

/* Indices in `summary`. */
enum { MOVED, FIRST_START, LAST_END, UNKNOWN_FILES, UNKNOWN_OFFSETS, UNKNOWN_BYTES };

struct columns {
    int32_t *rank, *thread, *file;
    int16_t *func, *within, *flags;
    int8_t *layer, *kind, *depth, *via;
    int64_t *offset, *bytes;
    uint8_t *file_known, *offset_known, *bytes_known;
};

/* The parameters of vani_calls. */
struct batch {
    int64_t signatures, files, handles, threads, depths, functions, by_time;
    const int32_t *ids;
    const struct signature *table;
    const int64_t *value, *start, *duration;
    const int8_t *origin;
    struct file *file;
    struct handle *handle;
    struct outer *outer;
    struct reach *reach;
    struct columns out;
    int64_t *count, *summary;
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

/* By depth: a call was made inside the last earlier call of its thread that is one level up. */
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
        /* MPI completes non-blocking file operations in MPI_Wait, which is not an I/O library call. */
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

/* By time: a call was made inside the library calls whose intervals contain its own; the longest is the outermost. */
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

/* Pending bits of the last calls, until there are eight for a byte. */
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
    if (s->rule < 0 || s->func < -1 || s->func + 1 >= b->functions || moved.size > MAX_BYTES
        || (moved.size < 0 && moved.size != NO_VALUE) || find_file(b, s, rank, &slot) || slot >= b->files)
        return NOT_ME;
    if (s->renamed >= b->files)
        return NOT_ME;
    /* Renaming a file to its own name has no effect. */
    if (s->rule != RULE_NONE && slot >= 0 && (s->renamed < 0 || s->renamed != slot)
        && follow(state_of(b, slot, rank), s, &moved))
        return NOT_ME;
    if (s->renamed >= 0 && s->renamed != slot)
        forget(state_of(b, s->renamed, rank));
    /* The offset of a library call is that of its argument; positions are tracked only for file-system calls. */
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
    b->summary[UNKNOWN_FILES] += !file_known;
    b->summary[UNKNOWN_OFFSETS] += !offset_known;
    b->summary[UNKNOWN_BYTES] += !bytes_known;
    bits->file |= file_known << (i & 7);
    bits->offset |= offset_known << (i & 7);
    bits->bytes |= bytes_known << (i & 7);
    if ((i & 7) == 7)
        flush(b, i, bits);
    b->count[s->func + 1]++;
    b->summary[MOVED] += moved.size == NO_VALUE ? 0 : moved.size;
    b->summary[FIRST_START] = b->start[i] < b->summary[FIRST_START] ? b->start[i] : b->summary[FIRST_START];
    int64_t end = b->start[i] + b->duration[i];
    b->summary[LAST_END] = end > b->summary[LAST_END] ? end : b->summary[LAST_END];
    return DONE;
}

/* run_rank, run_calls: ranks, and the number of calls of each. value: offset, distance or length of each call, which
   replaces that of its signature. origin: source of each call. by_time: find enclosing calls by interval, not by depth.
   The states are those of the first rank on entry and of the last rank on return. bits: length of the columns with one
   bit per call; the bit is 0 where the value is unknown. count: number of calls, indexed by function + 1. */
KERNEL vani_calls(int64_t calls, int64_t runs, int64_t signatures, int64_t files, int64_t handles, int64_t threads,
                  int64_t depths, int64_t functions, int64_t by_time, int64_t bits, IN(int32_t, ids, calls),
                  IN(int32_t, run_rank, runs), IN(int64_t, run_calls, runs), IN(struct signature, table, signatures),
                  MAYBE(int64_t, value, calls), IN(int64_t, start, calls), IN(int64_t, duration, calls),
                  MAYBE(int8_t, origin, calls), INOUT(struct file, file_states, files),
                  INOUT(struct handle, handle_states, handles), INOUT(struct outer, outer, threads * depths),
                  INOUT(struct reach, reach, 4), OUT(int32_t, rank, calls), OUT(int32_t, thread, calls),
                  OUT(int32_t, file, calls), OUT(int16_t, func, calls), OUT(int16_t, within, calls),
                  OUT(int16_t, flags, calls), OUT(int8_t, layer, calls), OUT(int8_t, kind, calls),
                  OUT(int8_t, depth, calls), OUT(int8_t, via, calls), OUT(int64_t, offset, calls),
                  OUT(int64_t, bytes, calls), OUT(uint8_t, file_known, bits), OUT(uint8_t, offset_known, bits),
                  OUT(uint8_t, bytes_known, bits), ZEROS(int64_t, count, functions), ZEROS(int64_t, summary, 6))
{
    struct batch batch = {
        signatures, files, handles, threads, depths, functions, by_time, ids, table, value, start, duration, origin,
        file_states, handle_states, outer, reach,
        {rank, thread, file, func, within, flags, layer, kind, depth, via, offset, bytes, file_known, offset_known,
         bytes_known},
        count, summary};
    struct bits known = {0, 0, 0};
    int64_t i = 0, left = calls;
    if (left < 1 || left > MAX_CALLS || signatures < 1 || runs < 1 || depths < 1 || bits < (calls + 7) / 8)
        return NOT_ME;
    for (int64_t run = 0; run < runs; run++) {
        if (run_calls[run] < 0 || run_calls[run] > left || run_rank[run] < 0)
            return NOT_ME;
        left -= run_calls[run];
    }
    if (left)
        return NOT_ME;
    summary[FIRST_START] = INT64_MAX;
    summary[LAST_END] = INT64_MIN;
    for (int64_t run = 0; run < runs; run++) {
        if (run && run_rank[run] != run_rank[run - 1])
            for (int library = 0; library < LIBRARIES; library++)
                reach[library] = (struct reach){INT64_MAX, INT64_MIN, INT64_MIN};
        for (int64_t end = i + run_calls[run]; i < end; i++)
            if (one(&batch, i, run_rank[run], &known))
                return NOT_ME;
    }
    if (i & 7)
        flush(&batch, i, &known);
    return DONE;
}
