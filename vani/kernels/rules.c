/* Grammars as they are stored, checked, and the calls that each rule stands for: vani/readers/recorder/grammar.py. */
#include "vani.h"

/* Where a walk through the rules stands: a rule, and the next of its symbols. */
struct step {
    int64_t rule, at;
};

struct rules {
    int64_t integers, terminals, most_calls, rules, symbols, deepest, start, levels, highest;
    const int32_t *stored; /* (integers) */
    int64_t *bodies;       /* (rules + 1) */
    int64_t *values;       /* (symbols): a terminal, or -1 - rule */
    int64_t *exponents;    /* (symbols) */
    int64_t *lengths;      /* (rules) */
    int64_t *order;        /* (rules): by height, and where it is the same by number */
    int64_t *level;        /* (rules + 1): where each height begins in `order` */
    int32_t *index;        /* (deepest + 1): of each id, negated, the number of the rule */
    int32_t *height;       /* (rules): -1 where it is not known, -2 where the walk is in it */
    struct step *steps;    /* (rules) */
};

/* Counts symbols, and finds how far ids go; the arrays have room for as many afterwards. */
KERNEL int vani_rules_measure(struct rules *r)
{
    const int32_t *stored = r->stored;
    int64_t at = 1;
    if (r->integers < 3 || stored[0] < 1 || stored[0] > (r->integers - 1) / 2)
        return NOT_ME;
    r->rules = stored[0];
    r->symbols = r->deepest = 0;
    for (int64_t rule = 0; rule < r->rules; rule++) {
        if (r->integers - at < 2)
            return NOT_ME;
        int64_t id = stored[at], count = stored[at + 1];
        if (id >= 0 || count < 0 || count > (r->integers - at - 2) / 2)
            return NOT_ME;
        r->deepest = -id > r->deepest ? -id : r->deepest;
        r->symbols += count;
        at += 2 + 2 * count;
    }
    /* Of ids that lie far apart a table would cost more than the grammar. */
    return at == r->integers && r->deepest <= 16 * r->rules + 1024 ? DONE : NOT_ME;
}

static int read_symbols(struct rules *r)
{
    int64_t at = 1, symbol = 0;
    for (int64_t i = 0; i <= r->deepest; i++)
        r->index[i] = -1;
    for (int64_t rule = 0; rule < r->rules; rule++) {
        int64_t id = r->stored[at], count = r->stored[at + 1];
        if (r->index[-id] >= 0)
            return NOT_ME;
        r->index[-id] = (int32_t)rule;
        r->bodies[rule] = symbol;
        at += 2;
        for (int64_t i = 0; i < count; i++, at += 2, symbol++) {
            r->values[symbol] = r->stored[at];
            r->exponents[symbol] = r->stored[at + 1];
        }
    }
    r->bodies[r->rules] = symbol;
    r->highest = -1;
    for (symbol = 0; symbol < r->symbols; symbol++) {
        int64_t value = r->values[symbol];
        if (value >= r->terminals || r->exponents[symbol] < 1)
            return NOT_ME;
        if (value < 0) {
            if (-value > r->deepest || r->index[-value] < 0)
                return NOT_ME;
            r->values[symbol] = -1 - (int64_t)r->index[-value];
        } else if (value > r->highest) {
            r->highest = value;
        }
    }
    r->start = r->index[1];
    return r->start < 0 ? NOT_ME : DONE;
}

/* Height and length of a rule whose own rules are known. */
static int settle(struct rules *r, int64_t rule)
{
    int64_t calls = 0;
    int32_t height = 0;
    for (int64_t at = r->bodies[rule]; at < r->bodies[rule + 1]; at++) {
        int64_t value = r->values[at], length = 1;
        if (value < 0) {
            int64_t child = -1 - value;
            length = r->lengths[child];
            height = r->height[child] >= height ? r->height[child] + 1 : height;
            /* Nothing is nothing, however often. */
            if (length == 0) {
                r->exponents[at] = 1;
                continue;
            }
        }
        if (r->exponents[at] > (r->most_calls - calls) / length)
            return NOT_ME;
        calls += length * r->exponents[at];
    }
    r->lengths[rule] = calls;
    r->height[rule] = height;
    r->levels = height >= r->levels ? height + 1 : r->levels;
    return DONE;
}

static int settle_all(struct rules *r)
{
    r->levels = 0;
    for (int64_t rule = 0; rule < r->rules; rule++)
        r->height[rule] = -1;
    for (int64_t root = 0; root < r->rules; root++) {
        if (r->height[root] != -1)
            continue;
        int64_t depth = 1;
        r->steps[0] = (struct step){root, r->bodies[root]};
        r->height[root] = -2;
        while (depth > 0) {
            struct step *step = &r->steps[depth - 1];
            int64_t child = -1;
            while (child < 0 && step->at < r->bodies[step->rule + 1]) {
                int64_t value = r->values[step->at++];
                if (value >= 0 || r->height[-1 - value] >= 0)
                    continue;
                child = -1 - value;
            }
            if (child < 0) {
                if (settle(r, step->rule))
                    return NOT_ME;
                depth--;
            } else {
                /* A rule within itself; so no walk is deeper than there are rules. */
                if (r->height[child] == -2 || depth >= r->rules)
                    return NOT_ME;
                r->height[child] = -2;
                r->steps[depth++] = (struct step){child, r->bodies[child]};
            }
        }
    }
    return DONE;
}

/* Takes the arrays that have the room which `vani_rules_measure` found necessary. */
KERNEL int vani_rules(struct rules *r)
{
    if (read_symbols(r) || settle_all(r))
        return NOT_ME;
    for (int64_t i = 0; i <= r->rules; i++)
        r->level[i] = 0;
    for (int64_t rule = 0; rule < r->rules; rule++)
        r->level[r->height[rule] + 1]++;
    for (int64_t i = 0; i < r->levels; i++)
        r->level[i + 1] += r->level[i];
    for (int64_t rule = 0; rule < r->rules; rule++)
        r->order[r->level[r->height[rule]]++] = rule;
    for (int64_t i = r->levels; i > 0; i--)
        r->level[i] = r->level[i - 1];
    r->level[0] = 0;
    return DONE;
}

/* How often each rule and each name occurs, of rules whose numbers, names and order were checked: (rules), (names). */
KERNEL int vani_rules_used(const struct rules *r, int64_t names, uint64_t *times, uint64_t *counts)
{
    for (int64_t i = r->rules - 1; i >= 0; i--) {
        int64_t rule = r->order[i];
        if (rule < 0 || rule >= r->rules)
            return NOT_ME;
        if (times[rule] == 0)
            continue;
        int64_t at = r->bodies[rule], end = r->bodies[rule + 1];
        if (at < 0 || end > r->symbols)
            return NOT_ME;
        for (; at < end; at++) {
            int64_t value = r->values[at];
            if (value >= names || value < -r->rules)
                return NOT_ME;
            *(value < 0 ? &times[-1 - value] : &counts[value]) += times[rule] * (uint64_t)r->exponents[at];
        }
    }
    return DONE;
}
