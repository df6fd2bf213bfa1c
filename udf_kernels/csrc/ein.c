#include "ein.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gemm.h"

enum { BLOCK = 256 };

/* ---- The text ---- */

typedef struct parser {
    const char *at, *end;
    char *message;
    size_t message_size;
    char labels[MAX_LABELS]; /* in order of first appearance */
    size_t count;
} parser;

__attribute__((format(printf, 2, 3))) static bool refuse(parser *p, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(p->message, p->message_size, format, values);
    va_end(values);
    return false;
}

static bool take(parser *p, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static size_t find_label(const parser *p, char label) {
    size_t i = 0;
    while (i < p->count && p->labels[i] != label) i++;
    return i;
}

/* The labels of one operand, as indexes into p->labels; only inputs may bring new ones. */
static bool take_labels(parser *p, bool input, size_t *operand, size_t *rank) {
    for (*rank = 0; p->at < p->end && is_label(*p->at); p->at++) {
        size_t l = find_label(p, *p->at);
        if (*rank == UCLE_MOST_LABELS)
            return refuse(p, "expected at most %d labels per tensor, got more", UCLE_MOST_LABELS);
        if (l == p->count) {
            if (!input)
                return refuse(p, "expected output labels that an operand has, got '%c'", *p->at);
            p->labels[p->count++] = *p->at;
        }
        if (!input)
            for (size_t i = 0; i < *rank; i++)
                if (operand[i] == l)
                    return refuse(p, "expected different output labels, got '%c' twice", *p->at);
        operand[(*rank)++] = l;
    }
    return true;
}

#define WORD(name) #name,
const char *const reduce_names[REDUCES] = {EACH_REDUCE(WORD)};
const char *const combine_names[COMBINES] = {EACH_COMBINE(WORD)};

/* Takes one of the words that are in the set, up to and with the character behind it. */
static int take_word(parser *p, const char *const *words, int count, uint64_t set, char behind) {
    const char *end = memchr(p->at, behind, (size_t)(p->end - p->at));
    size_t length = end == NULL ? 0 : (size_t)(end - p->at);
    for (int i = 0; i < count && end != NULL; i++)
        if (set >> i & 1 && strlen(words[i]) == length && memcmp(words[i], p->at, length) == 0) {
            p->at = end + 1;
            return i;
        }
    return -1;
}

static void list_words(const char *const *words, int count, uint64_t set, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < count && used < size; i++)
        if (set >> i & 1)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", words[i]);
}

void ein_list_operations(const element_type *type, char *reduces, size_t reduces_size,
                         char *combines, size_t combines_size) {
    list_words(reduce_names, REDUCES, type->reduces, reduces, reduces_size);
    list_words(combine_names, COMBINES, type->combines, combines, combines_size);
}

static bool refuse_prefix(parser *p, const ein_plan *plan) {
    char reduces[40], combines[EIN_WORDS];
    ein_list_operations(plan->type, reduces, sizeof reduces, combines, sizeof combines);
    if (plan->unary)
        return refuse(p, "expected a prefix like 'max ' for %s (%s)", plan->type->name, reduces);
    return refuse(p, "expected a prefix like 'max.add ' for %s (%s; %s)", plan->type->name, reduces,
                  combines);
}

/* `reduce.combine `, or `reduce ` of one operand; sum.mult without one, if the type has sums. */
static bool take_prefix(parser *p, ein_plan *plan) {
    int reduce = REDUCE_sum, combine = OP_mult;
    if (p->at < p->end && memchr(p->at, ' ', (size_t)(p->end - p->at)) != NULL) {
        reduce = take_word(p, reduce_names, REDUCES, plan->type->reduces, plan->unary ? ' ' : '.');
        if (!plan->unary)
            combine = take_word(p, combine_names, COMBINES, plan->type->combines, ' ');
    } else if (!(plan->type->reduces >> REDUCE_sum & 1)) {
        reduce = -1;
    }
    if (reduce < 0 || combine < 0) return refuse_prefix(p, plan);
    plan->reduce = (enum reduce_op)reduce;
    plan->combine = (enum combine_op)combine;
    return true;
}

/* ---- The loops ---- */

/* Row-major strides of an operand, added up where a label repeats (the diagonal). */
static bool add_strides(const size_t *operand, size_t rank, axis *axes, size_t which,
                        size_t *length) {
    size_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
        axis *x = &axes[operand[i]];
        size_t *slot = which == 0 ? &x->a : which == 1 ? &x->b : &x->out;
        *slot += stride;
        if (__builtin_mul_overflow(stride, x->size, &stride) || stride > SIZE_MAX >> 4)
            return false;
    }
    *length = stride;
    return true;
}

static bool fuses(const axis *outer, const axis *inner) {
    return outer->a == inner->a * inner->size && outer->b == inner->b * inner->size &&
           outer->out == inner->out * inner->size;
}

static void remove_axis(ein_plan *plan, size_t i) {
    memmove(&plan->axis[i], &plan->axis[i + 1], (--plan->axes - i) * sizeof(axis));
}

/* Fewer, longer loops: size 1 needs none, and two axes that are one in every operand become one. */
static void simplify(ein_plan *plan) {
    for (size_t i = plan->axes; i-- > 0;)
        if (plan->axis[i].size == 1) remove_axis(plan, i);
    for (size_t i = 0; i < plan->axes; i++)
        for (size_t j = 0; j < plan->axes; j++)
            if (i != j && fuses(&plan->axis[i], &plan->axis[j])) {
                plan->axis[j].size *= plan->axis[i].size;
                remove_axis(plan, i);
                i = (size_t)-1; /* start again: a longer axis may fuse once more */
                break;
            }
    if (plan->axes == 0) plan->axis[plan->axes++] = (axis){1, 0, 0, 0};
}

static bool sums_products(const ein_plan *plan) {
    return !plan->unary && plan->reduce == REDUCE_sum && plan->combine == OP_mult;
}

static void move_to_end(ein_plan *plan, size_t i) {
    axis moved = plan->axis[i];
    remove_axis(plan, i);
    plan->axis[plan->axes++] = moved;
}

enum role { ROLE_OTHER, ROLE_M, ROLE_N, ROLE_K };

static enum role role_of(const axis *x) {
    if (x->out && x->a && !x->b) return ROLE_M;
    if (x->out && !x->a && x->b) return ROLE_N;
    if (!x->out && x->a && x->b) return ROLE_K;
    return ROLE_OTHER;
}

/* Looks for axes m, n, k that make a matrix product and moves them innermost; the others stay
 * outside, as batches or partial sums. Of several candidates the longest product wins. */
static void find_product(ein_plan *plan) {
    double best = 0;
    axis chosen[3];
    for (size_t m = 0; m < plan->axes; m++)
        for (size_t n = 0; n < plan->axes; n++)
            for (size_t k = 0; k < plan->axes; k++) {
                const axis *x = &plan->axis[m], *y = &plan->axis[n], *z = &plan->axis[k];
                if (role_of(x) != ROLE_M || role_of(y) != ROLE_N || role_of(z) != ROLE_K) continue;
                double work = (double)x->size * (double)y->size * (double)z->size;
                if (gemm_pays(plan->type, x->size, y->size, z->size) && work > best) {
                    best = work;
                    chosen[0] = *x, chosen[1] = *z, chosen[2] = *y;
                }
            }
    if (best == 0) return;
    plan->product = true;
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < plan->axes; i++)
            if (memcmp(&plan->axis[i], &chosen[c], sizeof(axis)) == 0) {
                move_to_end(plan, i);
                break;
            }
}

/* The innermost loop should step by 0 or 1 everywhere, and be long. */
static size_t badness(const axis *x) {
    return (x->a > 1) + (x->b > 1) + 2 * (x->out > 1) + (x->size < 4);
}

static void choose_innermost(ein_plan *plan) {
    size_t best = plan->axes - 1;
    for (size_t i = plan->axes; i-- > 0;) {
        size_t new = badness(&plan->axis[i]), old = badness(&plan->axis[best]);
        if (new < old || (new == old && plan->axis[i].size > plan->axis[best].size)) best = i;
    }
    move_to_end(plan, best);
}

/* How many terms a summed axis adds one by one: loops and products sum up parts on their own. */
static size_t terms_of(const ein_plan *plan, size_t i) {
    const axis *x = &plan->axis[i];
    bool last = i + 1 == plan->axes;
    size_t at_once = 1;
    if (x->out != 0 || x->size <= 1) return 1;
    if (plan->product && i + 2 == plan->axes)
        at_once = GEMM_TERMS;
    else if (last && (plan->unary || (sums_products(plan) && x->a == 1 && x->b == 1)))
        at_once = x->size;
    else if (last)
        at_once = BLOCK;
    return (x->size + at_once - 1) / at_once;
}

void ein_count_terms(ein_plan *plan) {
    plan->terms = 1;
    for (size_t i = 0; i < plan->axes; i++)
        if (__builtin_mul_overflow(plan->terms, terms_of(plan, i), &plan->terms))
            plan->terms = SIZE_MAX;
}

axis *ein_longest_sum(ein_plan *plan) {
    size_t best = 0;
    for (size_t i = 1; i < plan->axes; i++)
        if (terms_of(plan, i) > terms_of(plan, best)) best = i;
    return &plan->axis[best];
}

static void order_loops(ein_plan *plan) {
    simplify(plan);
    if (sums_products(plan)) find_product(plan);
    if (!plan->product) choose_innermost(plan);
    ein_count_terms(plan);
}

bool ein_parse(ein_plan *plan, const element_type *type, bool unary, const char *spec,
               size_t spec_length, const i64 *sizes, size_t size_count, char *message,
               size_t message_size) {
    parser p = {.at = spec, .end = spec + spec_length, .message = message,
                .message_size = message_size};
    size_t a[UCLE_MOST_LABELS], b[UCLE_MOST_LABELS], out[UCLE_MOST_LABELS], rank_a, rank_b = 0, rank_out;
    memset(plan, 0, sizeof *plan);
    plan->type = type;
    plan->unary = unary;
    if (!take_prefix(&p, plan) || !take_labels(&p, true, a, &rank_a)) return false;
    if (!unary) {
        if (!take(&p, ",")) return refuse(&p, "expected a spec like 'ij,jk->ik'");
        if (!take_labels(&p, true, b, &rank_b)) return false;
    }
    if (!take(&p, "->"))
        return refuse(&p, "expected a spec like '%s'", unary ? "ij->i" : "ij,jk->ik");
    if (!take_labels(&p, false, out, &rank_out)) return false;
    if (p.at != p.end) return refuse(&p, "expected only letters after '->'");
    if (size_count != p.count)
        return refuse(&p, "expected %zu sizes, one per label, got %zu", p.count, size_count);
    plan->axes = p.count;
    for (size_t i = 0; i < p.count; i++) {
        if (sizes[i] < 0 || (uint64_t)sizes[i] > LARGEST_SIZE)
            return refuse(&p, "expected sizes from 0 to 2^53, got %lld", (long long)sizes[i]);
        plan->axis[i].size = (size_t)sizes[i];
        plan->empty |= sizes[i] == 0;
    }
    if (!add_strides(a, rank_a, plan->axis, 0, &plan->length_a) ||
        !add_strides(b, rank_b, plan->axis, 1, &plan->length_b) ||
        !add_strides(out, rank_out, plan->axis, 2, &plan->length_out))
        return refuse(&p, "expected sizes whose product fits 60 bits, got more");
    plan->terms = 1;
    if (plan->empty) {
        /* Of truth values these are any and all, which are defined of nothing. */
        if (plan->length_out > 0 && plan->reduce >= REDUCE_min &&
            type->number != TYPE_boolean)
            return refuse(&p, "expected at least one entry to reduce for min and max, got none");
        return true;
    }
    order_loops(plan);
    return true;
}

ein_plan ein_plan_of(const element_type *type, bool unary, const axis *axes, size_t count) {
    ein_plan plan = {.type = type, .unary = unary, .reduce = REDUCE_sum, .combine = OP_mult,
                     .terms = 1, .axes = count};
    for (size_t i = 0; i < count; i++) {
        plan.axis[i] = axes[i];
        plan.empty |= axes[i].size == 0;
    }
    if (!plan.empty) order_loops(&plan);
    return plan;
}

static trouble innermost(const ein_plan *plan, const axis *x, const void *a, const void *b,
                         void *out, watch *w) {
    const element_type *type = plan->type;
    if (watch_stops(w, x->size + 8)) return INTERRUPTED;
    if (plan->unary) return type->reduce(plan->reduce, x->size, a, x->a, out, x->out);
    if (sums_products(plan)) {
        if (x->out == 0 && x->a == 1 && x->b == 1) return type->dot(x->size, a, b, out);
        if (x->out == 1 && x->a == 0 && x->b == 1) return type->axpy(x->size, a, b, out);
        if (x->out == 1 && x->a == 1 && x->b == 0) return type->axpy(x->size, b, a, out);
    }
    element block[BLOCK]; /* combine, then reduce, while the block is in the first cache */
    trouble bad = 0;
    for (size_t i = 0; i < x->size; i += BLOCK) {
        size_t n = x->size - i < BLOCK ? x->size - i : BLOCK;
        if (watch_stops(w, 8 * n)) return INTERRUPTED;
        bad |= type->combine(plan->combine, n, at(type, a, i * x->a), x->a, at(type, b, i * x->b),
                             x->b, block);
        bad |= type->reduce(plan->reduce, n, block, 1, at_out(type, out, i * x->out), x->out);
    }
    return bad;
}

static const void *step(const ein_plan *plan, const void *x, size_t i) {
    return x == NULL ? NULL : at(plan->type, x, i);
}

/* k by k x n: a loop of its own takes four rows of b at a time. */
static bool is_vector_matrix(const ein_plan *plan, const axis *x) {
    return sums_products(plan) && x[0].out == 0 && x[0].a == 1 && x[0].b == x[1].size &&
           x[1].a == 0 && x[1].b == 1 && x[1].out == 1;
}

/* Whether an entry of `a` alone decides if anything is added by the loops inside: so a selection of
 * few rows takes the time of these rows. */
static bool decides(const ein_plan *plan, size_t depth) {
    if (plan->unary || plan->combine != OP_when || plan->reduce != REDUCE_sum) return false;
    for (size_t i = depth + 1; i < plan->axes; i++)
        if (plan->axis[i].a != 0) return false;
    return true;
}

static bool is_nothing(const void *entry, size_t size) {
    static const char nothing[sizeof(element)] = {0};
    return memcmp(entry, nothing, size) == 0;
}

static trouble nest(const ein_plan *plan, size_t depth, const void *a, const void *b, void *out,
                    watch *w) {
    const element_type *type = plan->type;
    const axis *x = &plan->axis[depth];
    if (plan->product && depth + 3 == plan->axes)
        return gemm_add(type, x[0].size, x[2].size, x[1].size, (matrix){a, x[0].a, x[1].a},
                        (matrix){b, x[1].b, x[2].b}, out, x[0].out, x[2].out, w);
    if (depth + 1 == plan->axes) return innermost(plan, x, a, b, out, w);
    if (depth + 2 == plan->axes && is_vector_matrix(plan, x)) {
        if (watch_stops(w, x[0].size * x[1].size / 4)) return INTERRUPTED;
        return type->vector_matrix(x[1].size, x[0].size, a, b, out);
    }
    bool conditional = decides(plan, depth);
    trouble bad = 0;
    for (size_t i = 0; i < x->size && !bad; i++) {
        const void *own = step(plan, a, i * x->a);
        if (conditional && is_nothing(own, type->size)) continue;
        bad = nest(plan, depth + 1, own, step(plan, b, i * x->b), at_out(type, out, i * x->out), w);
    }
    return bad;
}

trouble ein_run(const ein_plan *plan, const void *a, const void *b, void *out, watch *w) {
    return plan->empty ? 0 : nest(plan, 0, a, b, out, w);
}

/* ---- Exact sums ---- */

static trouble innermost_exactly(const ein_plan *plan, const axis *x, const void *a, const void *b,
                                 char *totals, watch *w) {
    const element_type *type = plan->type;
    if (watch_stops(w, 4 * x->size + 8)) return INTERRUPTED;
    if (plan->unary || plan->combine == OP_mult)
        return type->exact(x->size, a, x->a, b, x->b, totals, x->out);
    element block[BLOCK];
    trouble bad = 0;
    for (size_t i = 0; i < x->size && !bad; i += BLOCK) {
        size_t n = x->size - i < BLOCK ? x->size - i : BLOCK;
        bad = type->combine(plan->combine, n, at(type, a, i * x->a), x->a, at(type, b, i * x->b),
                            x->b, block);
        bad |= type->exact(n, block, 1, NULL, 0, totals + i * x->out * type->total_size, x->out);
    }
    return bad;
}

static trouble nest_exactly(const ein_plan *plan, size_t depth, const void *a, const void *b,
                            char *totals, watch *w) {
    const axis *x = &plan->axis[depth];
    if (depth + 1 == plan->axes) return innermost_exactly(plan, x, a, b, totals, w);
    trouble bad = 0;
    for (size_t i = 0; i < x->size && !bad; i++)
        bad = nest_exactly(plan, depth + 1, step(plan, a, i * x->a), step(plan, b, i * x->b),
                           totals + i * x->out * plan->type->total_size, w);
    return bad;
}

trouble ein_run_exactly(const ein_plan *plan, const void *a, const void *b, void *totals,
                        watch *w) {
    return plan->empty ? 0 : nest_exactly(plan, 0, a, b, totals, w);
}
