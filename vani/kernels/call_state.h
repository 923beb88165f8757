/* A call by its signature, and what is known of files, handles and calls around while a rank's calls are gone through. */
#ifndef VANI_CALL_STATE_H
#define VANI_CALL_STATE_H

#include "vani.h"

#define NO_VALUE INT64_MIN

/* vani.calls.Layer, Kind and Flag, vani.readers.functions.PositionRule, vani.readers.file_ends: tests hold them equal. */
enum { LAYER_STDIO = 1, LAYER_MPIIO = 2, LAYER_NETCDF = 5, LAYER_MPI = 6 };
enum { KIND_WRITE = 1 };
enum { FLAG_CREATE = 1 << 1, FLAG_TRUNCATE = 1 << 2, FLAG_APPEND = 1 << 3, FLAG_NESTED = 1 << 11 };
enum {
    RULE_NONE, RULE_ADVANCE, RULE_AT, RULE_SEEK_SET, RULE_SEEK_CUR, RULE_SEEK_END, RULE_OPEN, RULE_RESIZE, RULE_GONE,
    RULE_FORGET
};
enum { PAST_USED = 1, PAST_GONE = 2, PAST_ASSUMED = 4 };

/* Positions and ends that go further out, and larger sizes, are left to numpy: with at most 2^21 calls between two
   checks, sums stay below 2^62. */
#define MOST_OFFSET (INT64_C(1) << 60)
#define MOST_BYTES (INT64_C(1) << 40)
#define MOST_CALLS (INT64_C(1) << 21)

struct signature {
    int64_t value, bytes;
    int32_t file, handle; /* slots, -1 for none */
    int32_t thread, thread_slot;
    int32_t renamed; /* slot of the name that the file gets, -1 for none */
    int16_t func, flags, own; /* own: the bit of its layer */
    int8_t layer, kind, depth, rule, binds;
};

/* Each of these is of the rank that it names; of another one nothing is known yet. */
struct file {
    int64_t position, end;
    int32_t rank, code;
    uint8_t alone, known, append, past, touched; /* alone: one process of the trace names it; known: its end is */
};

struct handle {
    int32_t rank, file;
};

/* The last call of a thread and depth, which later ones of the next depth were made in. */
struct outer {
    int32_t rank;
    int16_t within;
    int8_t layer, via, inside;
};

/* The call of a library that reaches furthest so far. */
struct reach {
    int64_t begins, closes, highest;
};

/* What a call moves, and may change. */
struct moved {
    int64_t value, size, offset;
    int16_t flags;
};

#endif
