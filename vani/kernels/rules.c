/* Check stored grammars, and count the calls of each rule (vani/readers/recorder/grammar.py). */
#include "vani.h"

/* Place of a walk through the rules: a rule, and its next symbol. */
struct step {
    int64_t rule, at;
};

struct rules {
    int64_t terminals, most_calls, rules, symbols, deepest;
    const int32_t *stored;
    int64_t *bodies, *values, *exponents, *lengths;
    int32_t *index, *height;
    struct step *steps;
    int64_t *summary;
};

/* Indices in `sizes`, and in `summary`: index of the start rule, number of heights, and highest terminal. */
enum { RULES, SYMBOLS, DEEPEST };
enum { START, LEVELS, HIGHEST };

/* Number of rules and symbols, and the range of ids. */
KERNEL vani_rules_measure(int64_t integers, IN(int32_t, stored, integers), ZEROS(int64_t, sizes, 3))
{
    int64_t at = 1;
    if (integers < 3 || stored[0] < 1 || stored[0] > (integers - 1) / 2)
        return NOT_ME;
    sizes[RULES] = stored[0];
    for (int64_t rule = 0; rule < sizes[RULES]; rule++) {
        if (integers - at < 2)
            return NOT_ME;
        int64_t id = stored[at], count = stored[at + 1];
        if (id >= 0 || count < 0 || count > (integers - at - 2) / 2)
            return NOT_ME;
        sizes[DEEPEST] = -id > sizes[DEEPEST] ? -id : sizes[DEEPEST];
        sizes[SYMBOLS] += count;
        at += 2 + 2 * count;
    }
    /* For ids that are far apart, a table would cost more than the grammar. */
    return at == integers && sizes[DEEPEST] <= 16 * sizes[RULES] + 1024 ? DONE : NOT_ME;
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
    r->summary[HIGHEST] = -1;
    for (symbol = 0; symbol < r->symbols; symbol++) {
        int64_t value = r->values[symbol];
        if (value >= r->terminals || r->exponents[symbol] < 1)
            return NOT_ME;
        if (value < 0) {
            if (-value > r->deepest || r->index[-value] < 0)
                return NOT_ME;
            r->values[symbol] = -1 - (int64_t)r->index[-value];
        } else if (value > r->summary[HIGHEST]) {
            r->summary[HIGHEST] = value;
        }
    }
    r->summary[START] = r->index[1];
    return r->index[1] < 0 ? NOT_ME : DONE;
}

/* Height and length of a rule, once those of the rules that it uses are known. */
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
            /* A repeated empty rule is empty. */
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
    r->summary[LEVELS] = height >= r->summary[LEVELS] ? height + 1 : r->summary[LEVELS];
    return DONE;
}

static int settle_all(struct rules *r)
{
    r->summary[LEVELS] = 0;
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
                /* A rule contains itself. Without that, no walk is deeper than the number of rules. */
                if (r->height[child] == -2 || depth >= r->rules)
                    return NOT_ME;
                r->height[child] = -2;
                r->steps[depth++] = (struct step){child, r->bodies[child]};
            }
        }
    }
    return DONE;
}

/* Takes rules that vani_rules_measure accepted, and their sizes. values: a terminal, or -1 - rule. order: rules by
   height, then by number. level: start of each height in `order`. index: indexed by negated id, the number of the rule.
   height: -1 if unknown, -2 while the walk is inside the rule. */
KERNEL vani_rules(int64_t integers, int64_t terminals, int64_t most_calls, int64_t rules, int64_t symbols,
                  int64_t deepest, IN(int32_t, stored, integers), OUT(int64_t, bodies, rules + 1),
                  OUT(int64_t, values, symbols), OUT(int64_t, exponents, symbols), OUT(int64_t, lengths, rules),
                  OUT(int64_t, order, rules), ZEROS(int64_t, level, rules + 1), OUT(int32_t, index, deepest + 1),
                  OUT(int32_t, height, rules), OUT(struct step, steps, rules), ZEROS(int64_t, summary, 3))
{
    struct rules r = {terminals, most_calls, rules, symbols, deepest, stored, bodies, values, exponents, lengths,
                      index, height, steps, summary};
    if (integers < 1 + 2 * (rules + symbols) || read_symbols(&r) || settle_all(&r))
        return NOT_ME;
    for (int64_t rule = 0; rule < rules; rule++)
        level[height[rule] + 1]++;
    for (int64_t i = 0; i < summary[LEVELS]; i++)
        level[i + 1] += level[i];
    for (int64_t rule = 0; rule < rules; rule++)
        order[level[height[rule]]++] = rule;
    for (int64_t i = summary[LEVELS]; i > 0; i--)
        level[i] = level[i - 1];
    level[0] = 0;
    return DONE;
}

/* Count the occurrences of each terminal, for rules whose numbers, terminals and order were checked. times: indexed by
   rule, its occurrences; on entry 1 for the start rule and 0 for others. */
KERNEL vani_rules_used(int64_t rules, int64_t symbols, int64_t names, IN(int64_t, bodies, rules + 1),
                       IN(int64_t, values, symbols), IN(int64_t, exponents, symbols), IN(int64_t, order, rules),
                       INOUT(uint64_t, times, rules), ZEROS(uint64_t, counts, names))
{
    for (int64_t i = rules - 1; i >= 0; i--) {
        int64_t rule = order[i];
        if (rule < 0 || rule >= rules)
            return NOT_ME;
        if (times[rule] == 0)
            continue;
        int64_t at = bodies[rule], end = bodies[rule + 1];
        if (at < 0 || end > symbols)
            return NOT_ME;
        for (; at < end; at++) {
            int64_t value = values[at];
            if (value >= names || value < -rules)
                return NOT_ME;
            *(value < 0 ? &times[-1 - value] : &counts[value]) += times[rule] * (uint64_t)exponents[at];
        }
    }
    return DONE;
}
