/* Effect of one call on the position in its file and on the known end of the file: the same as
 * vani/readers/positions.py, call by call. */
#ifndef VANI_FOLLOW_H
#define VANI_FOLLOW_H

#include "call_state.h"

static void opened(struct file *file, int16_t flags)
{
    int empties = (flags & FLAG_TRUNCATE) || ((flags & FLAG_CREATE) && (file->past & PAST_GONE));
    file->position = 0;
    file->append = (flags & FLAG_APPEND) != 0;
    file->past &= (uint8_t)~PAST_GONE;
    if (!file->alone)
        return;
    if (empties) {
        file->known = 1;
        file->end = 0;
        file->past &= (uint8_t)~PAST_ASSUMED;
    } else if ((flags & FLAG_CREATE) && !(file->past & PAST_USED) && !file->known) {
        /* O_CREAT is evidence only if there is no other, and only until the file is read before it is written. */
        file->known = 1;
        file->end = 0;
        file->past |= PAST_ASSUMED;
    }
}

static void used(struct file *file, int writes)
{
    if ((file->past & PAST_ASSUMED) && !writes)
        file->known = 0;
    file->past = (uint8_t)((file->past & ~PAST_ASSUMED) | PAST_USED);
}

static void forget_end(struct file *file)
{
    file->known = 0;
    file->past = (uint8_t)((file->past & ~PAST_ASSUMED) | PAST_USED);
}

/* From here on, neither the position nor the length of the file is known. */
static void forget(struct file *file)
{
    file->position = NO_VALUE;
    forget_end(file);
}

static void advance(struct file *file, int writes, struct moved *moved)
{
    int64_t size = moved->size;
    if (writes && file->append) {
        moved->flags |= FLAG_APPEND;
        moved->offset = file->known ? file->end : NO_VALUE;
        file->position = file->known ? file->end + size : NO_VALUE;
    } else if (size == NO_VALUE) {
        file->position = NO_VALUE;
    } else if (file->position != NO_VALUE) {
        moved->offset = file->position;
        if (!writes && file->known) {
            int64_t room = file->end - file->position;
            size = room < 0 ? 0 : room < size ? room : size;
        }
        file->position += size;
    }
    if (writes && file->position != NO_VALUE && file->position > file->end)
        file->end = file->position;
}

/* Sets moved->offset (NO_VALUE if unknown), and may add to moved->flags. */
static int follow(struct file *file, const struct signature *call, struct moved *moved)
{
    int64_t value = moved->value;
    int writes = call->kind == KIND_WRITE;
    if (value != NO_VALUE && (value >= MAX_OFFSET || value <= -MAX_OFFSET))
        return NOT_ME;
    switch (call->rule) {
    case RULE_ADVANCE:
        if (moved->size == NO_VALUE && writes && file->append)
            return NOT_ME;
        used(file, writes);
        advance(file, writes, moved);
        break;
    case RULE_AT:
        used(file, writes);
        if (writes && value != NO_VALUE && moved->size != NO_VALUE && value + moved->size > file->end)
            file->end = value + moved->size;
        moved->offset = value;
        break;
    case RULE_SEEK_SET:
        moved->offset = file->position = value;
        break;
    case RULE_SEEK_CUR:
        /* The largest possible number of such calls cannot overflow 64 bits. */
        if (value != NO_VALUE && (value > MAX_BYTES || value < -MAX_BYTES))
            return NOT_ME;
        if (value == NO_VALUE)
            file->position = NO_VALUE;
        else if (file->position != NO_VALUE)
            file->position += value;
        moved->offset = file->position;
        break;
    case RULE_SEEK_END:
        moved->offset = file->position = file->known && value != NO_VALUE ? file->end + value : NO_VALUE;
        break;
    case RULE_OPEN:
        opened(file, moved->flags);
        break;
    case RULE_RESIZE:
        moved->offset = value;
        if (value == NO_VALUE) {
            forget_end(file);
        } else {
            file->past &= (uint8_t)~PAST_ASSUMED;
            file->known = file->alone;
            file->end = value < 0 ? 0 : value;
        }
        break;
    case RULE_GONE:
        file->past |= PAST_GONE;
        break;
    case RULE_FORGET:
        forget(file);
        break;
    default:
        return NOT_ME;
    }
    /* A seek to before the start fails; what its caller did next is unknown. */
    if (moved->offset < 0)
        moved->offset = NO_VALUE;
    if (file->end >= MAX_OFFSET
        || (file->position != NO_VALUE && (file->position >= MAX_OFFSET || file->position <= -MAX_OFFSET)))
        return NOT_ME;
    return DONE;
}

#endif
