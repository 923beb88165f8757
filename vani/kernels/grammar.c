/* The terminals that a grammar stands for, in order, some at a time: vani/readers/recorder/grammar.py. */
#include <string.h>

#include "vani.h"

/* Where the walk stands in a rule: the next symbol, the end of the rule, and how many times or ids of the symbol were taken. */
struct place {
    int64_t at, end, taken;
};

struct walk {
    int64_t rules, symbols, names, most_depth;
    const int64_t *bodies;    /* (rules + 1): rule i owns the symbols bodies[i] .. bodies[i + 1] */
    const int64_t *lengths;   /* (rules): calls that each stands for */
    const int64_t *values;    /* (symbols): a name, or -1 - rule */
    const int64_t *exponents; /* (symbols) */
    const int64_t *name;      /* (names) */
    const int64_t *offsets;   /* (rules): where the arena has the rule's ids, -1 for nowhere */
    int32_t *arena;           /* (arena_ids) */
    int64_t arena_ids;
    struct place *places;     /* (most_depth): the walk so far, the start rule in front */
    int64_t depth;
};

static int enter(struct walk *w, int64_t rule)
{
    if (rule < 0 || rule >= w->rules || w->depth < 0 || w->depth >= w->most_depth)
        return NOT_ME;
    int64_t at = w->bodies[rule], end = w->bodies[rule + 1];
    if (at < 0 || at > end || end > w->symbols)
        return NOT_ME;
    w->places[w->depth++] = (struct place){at, end, 0};
    return DONE;
}

static int name_of(const struct walk *w, int64_t value, int32_t *id)
{
    if (value >= w->names || w->name[value] < 0 || w->name[value] > INT32_MAX)
        return NOT_ME;
    *id = (int32_t)w->name[value];
    return DONE;
}

/* Whether all ids of a rule lie in the arena. */
static int in_arena(const struct walk *w, int64_t rule)
{
    return w->offsets[rule] >= 0 && w->lengths[rule] > 0 && w->offsets[rule] <= w->arena_ids
           && w->lengths[rule] <= w->arena_ids - w->offsets[rule];
}

/* Writes the ids of rules into the arena; each comes behind those that it uses. */
KERNEL int vani_grammar_arena(struct walk *w, const int64_t *rules, int64_t count)
{
    for (int64_t r = 0; r < count; r++) {
        int64_t rule = rules[r];
        if (rule < 0 || rule >= w->rules || !in_arena(w, rule))
            return NOT_ME;
        int64_t at = w->bodies[rule], end = w->bodies[rule + 1], left = w->lengths[rule];
        int32_t *out = w->arena + w->offsets[rule];
        if (at < 0 || at > end || end > w->symbols)
            return NOT_ME;
        for (; at < end; at++) {
            int64_t value = w->values[at], exponent = w->exponents[at], length = 1;
            int32_t id;
            const int32_t *ids = &id;
            if (value >= 0) {
                if (name_of(w, value, &id))
                    return NOT_ME;
            } else {
                int64_t child = -1 - value;
                if (child >= w->rules)
                    return NOT_ME;
                length = w->lengths[child];
                if (length == 0)
                    continue;
                if (!in_arena(w, child))
                    return NOT_ME;
                ids = w->arena + w->offsets[child];
            }
            if (exponent < 1 || exponent > left / length)
                return NOT_ME;
            left -= exponent * length;
            for (; exponent > 0; exponent--, out += length)
                memmove(out, ids, (size_t)length * sizeof *ids);
        }
        if (left)
            return NOT_ME;
    }
    return DONE;
}

KERNEL int vani_grammar_start(struct walk *w, int64_t rule)
{
    w->depth = 0;
    return enter(w, rule);
}

/* Writes up to `rows` ids; `written` tells how many, fewer only at the end. */
KERNEL int vani_grammar_next(struct walk *w, int32_t *ids, int64_t rows, int64_t *written)
{
    int64_t n = 0;
    while (n < rows && w->depth > 0) {
        struct place *place = &w->places[w->depth - 1];
        if (place->at >= place->end) {
            w->depth--;
            continue;
        }
        int64_t value = w->values[place->at], exponent = w->exponents[place->at];
        if (value >= 0) {
            int32_t id;
            if (name_of(w, value, &id))
                return NOT_ME;
            int64_t left = exponent - place->taken, some = left < rows - n ? left : rows - n;
            for (int64_t i = 0; i < some; i++)
                ids[n + i] = id;
            n += some > 0 ? some : 0;
            place->taken += some;
            if (place->taken < exponent)
                continue;
        } else {
            int64_t rule = -1 - value;
            if (rule >= w->rules)
                return NOT_ME;
            int64_t length = w->lengths[rule];
            if (in_arena(w, rule)) {
                /* What is left of a repetition that the piece before has begun, then whole ones. */
                int64_t done = place->taken % length, times = place->taken / length;
                while (times < exponent && n < rows) {
                    int64_t some = length - done < rows - n ? length - done : rows - n;
                    memcpy(ids + n, w->arena + w->offsets[rule] + done, (size_t)some * sizeof *ids);
                    n += some;
                    done += some;
                    if (done == length) {
                        times++;
                        done = 0;
                    }
                }
                place->taken = times * length + done;
                if (times < exponent)
                    continue;
            } else if (length > 0 && place->taken < exponent) {
                /* A rule that stands for nothing may be used more often than there is time for. */
                place->taken++;
                if (enter(w, rule))
                    return NOT_ME;
                continue;
            }
        }
        place->at++;
        place->taken = 0;
    }
    *written = n;
    return DONE;
}
