/* A call's signature, and the state of files, handles and enclosing calls while a rank's calls are processed in order.
   */
#ifndef VANI_CALL_STATE_H
#define VANI_CALL_STATE_H

#include "vani.h"

#define NO_VALUE INT64_MIN

/* As in vani.calls (Layer, Kind, Flag), vani.readers.functions (PositionRule) and vani.readers.file_ends; tests
   compare. */
enum { LAYER_STDIO = 1, LAYER_MPIIO = 2, LAYER_NETCDF = 5, LAYER_MPI = 6 };
enum { KIND_WRITE = 1 };
enum { FLAG_CREATE = 1 << 1, FLAG_TRUNCATE = 1 << 2, FLAG_APPEND = 1 << 3, FLAG_NESTED = 1 << 11 };
enum {
    RULE_NONE, RULE_ADVANCE, RULE_AT, RULE_SEEK_SET, RULE_SEEK_CUR, RULE_SEEK_END, RULE_OPEN, RULE_RESIZE, RULE_GONE,
    RULE_FORGET
};
enum { PAST_USED = 1, PAST_GONE = 2, PAST_ASSUMED = 4 };

/* Larger positions, ends and sizes are left to numpy: with at most 2^21 calls between two checks, sums stay below
   2^62. */
#define MAX_OFFSET (INT64_C(1) << 60)
#define MAX_BYTES (INT64_C(1) << 40)
#define MAX_CALLS (INT64_C(1) << 21)

struct signature {
    int64_t value, bytes;
    int32_t file, handle; /* slots, -1 for none */
    int32_t thread, thread_slot;
    int32_t renamed; /* slot of the name that the file gets, -1 for none */
    int16_t func, flags, own; /* own: the bit of the call's layer */
    int8_t layer, kind, depth, rule, binds;
};

/* A state is valid only for the rank that it names; for other ranks, nothing is known yet. */
struct file {
    int64_t position, end;
    int32_t rank, code;
    uint8_t alone, known, append, past, touched; /* alone: one process alone uses it; known: its end is known */
};

struct handle {
    int32_t rank, file;
};

/* The last call of a thread at a depth; later calls at the next depth were made inside it. */
struct outer {
    int32_t rank;
    int16_t within;
    int8_t layer, via, inside;
};

/* The library call with the latest end so far. */
struct reach {
    int64_t begins, closes, highest;
};

/* The bytes that a call moves, and the state that it may change. */
struct moved {
    int64_t value, size, offset;
    int16_t flags;
};

#endif
