/* Expand a grammar into its terminals, in order and in pieces (vani/readers/recorder/grammar.py). */
#include "vani.h"

/* Place of the walk in a rule: the next symbol, the end of the rule, and the repetitions or ids of the symbol so far.
   */
struct place {
    int64_t at, end, taken;
};

struct walk {
    int64_t rules, symbols, names, most_depth, arena_ids;
    const int64_t *bodies, *lengths, *values, *exponents, *name, *offsets;
    int32_t *arena;
    struct place *places;
    int64_t *depth;
};

static int enter(const struct walk *w, int64_t rule)
{
    if (rule < 0 || rule >= w->rules || *w->depth < 0 || *w->depth >= w->most_depth)
        return NOT_ME;
    int64_t at = w->bodies[rule], end = w->bodies[rule + 1];
    if (at < 0 || at > end || end > w->symbols)
        return NOT_ME;
    w->places[(*w->depth)++] = (struct place){at, end, 0};
    return DONE;
}

static int name_of(const struct walk *w, int64_t value, int32_t *id)
{
    if (value >= w->names || w->name[value] < 0 || w->name[value] > INT32_MAX)
        return NOT_ME;
    *id = (int32_t)w->name[value];
    return DONE;
}

/* Whether the arena has all ids of a rule. */
static int in_arena(const struct walk *w, int64_t rule)
{
    return w->offsets[rule] >= 0 && w->lengths[rule] > 0 && w->offsets[rule] <= w->arena_ids
           && w->lengths[rule] <= w->arena_ids - w->offsets[rule];
}

/* Write the ids of rules into the arena, each rule after those that it uses. Rule i has the symbols bodies[i] ..
   bodies[i + 1]. lengths: indexed by rule, number of calls that it expands to. values: indexed by symbol, a terminal,
   or -1 - rule. offsets: indexed by rule, the offset of its ids in the arena, or -1. */
KERNEL vani_grammar_arena(int64_t rules, int64_t symbols, int64_t names, int64_t arena_ids, int64_t count,
                          IN(int64_t, bodies, rules + 1), IN(int64_t, lengths, rules), IN(int64_t, values, symbols),
                          IN(int64_t, exponents, symbols), IN(int64_t, name, names), IN(int64_t, offsets, rules),
                          IN(int64_t, order, count), OUT(int32_t, arena, arena_ids))
{
    const struct walk walk = {rules, symbols, names, 0, arena_ids, bodies, lengths, values, exponents, name, offsets,
                              arena, 0, 0};
    const struct walk *w = &walk;
    for (int64_t r = 0; r < count; r++) {
        int64_t rule = order[r];
        if (rule < 0 || rule >= rules || !in_arena(w, rule))
            return NOT_ME;
        int64_t at = bodies[rule], end = bodies[rule + 1], left = lengths[rule];
        int32_t *out = arena + offsets[rule];
        if (at < 0 || at > end || end > symbols)
            return NOT_ME;
        for (; at < end; at++) {
            int64_t value = values[at], exponent = exponents[at], length = 1;
            int32_t id;
            const int32_t *ids = &id;
            if (value >= 0) {
                if (name_of(w, value, &id))
                    return NOT_ME;
            } else {
                int64_t child = -1 - value;
                if (child >= rules)
                    return NOT_ME;
                length = lengths[child];
                if (length == 0)
                    continue;
                if (!in_arena(w, child))
                    return NOT_ME;
                ids = arena + offsets[child];
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

/* Write up to `rows` ids, fewer only at the end. places: the stack of the walk, with the rule `start` at the bottom;
   depth: its length, -1 before the first ids. For the other parameters see above. */
KERNEL vani_grammar(int64_t rules, int64_t symbols, int64_t names, int64_t arena_ids, int64_t most_depth, int64_t start,
                    int64_t rows, IN(int64_t, bodies, rules + 1), IN(int64_t, lengths, rules),
                    IN(int64_t, values, symbols), IN(int64_t, exponents, symbols), IN(int64_t, name, names),
                    IN(int64_t, offsets, rules), INOUT(int32_t, arena, arena_ids),
                    INOUT(struct place, places, most_depth), INOUT(int64_t, depth, 1), ROWS(int32_t, ids, rows))
{
    const struct walk walk = {rules, symbols, names, most_depth, arena_ids, bodies, lengths, values, exponents, name,
                              offsets, arena, places, depth};
    const struct walk *w = &walk;
    if (*depth < 0) {
        *depth = 0;
        if (enter(w, start))
            return NOT_ME;
    }
    int64_t n = 0;
    while (n < rows && *depth > 0) {
        struct place *place = &places[*depth - 1];
        if (place->at >= place->end) {
            (*depth)--;
            continue;
        }
        int64_t value = values[place->at], exponent = exponents[place->at];
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
            if (rule >= rules)
                return NOT_ME;
            int64_t length = lengths[rule];
            if (in_arena(w, rule)) {
                /* The rest of a repetition that began in the previous piece, then whole repetitions. */
                int64_t done = place->taken % length, times = place->taken / length;
                while (times < exponent && n < rows) {
                    int64_t some = length - done < rows - n ? length - done : rows - n;
                    memcpy(ids + n, arena + offsets[rule] + done, (size_t)some * sizeof *ids);
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
                /* A rule that expands to nothing may be used so often that visiting each use would take too long. */
                place->taken++;
                if (enter(w, rule))
                    return NOT_ME;
                continue;
            }
        }
        place->at++;
        place->taken = 0;
    }
    return n;
}
