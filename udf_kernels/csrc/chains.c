/* Chains of pointwise functions, block by block: no tensor is made between two steps. */
#include "chain.h"
#include "kernels.h"

typedef struct chain_run {
    call *c;
    const chain *p;
    char *blocks;
    const void *operand[UCLE_CHAIN_OPERANDS];
    size_t length;
} chain_run;

/* The program rarely changes within a batch: it is read again only when it does. */
static const chain *chain_for(call *c, size_t row) {
    view program = column_view(&c->args[0], row);
    if (c->plan_ready && same_bytes(program, c->plan_spec)) return (const chain *)c->scratch.data;
    c->plan_ready = false;
    chain *p = (chain *)call_scratch(c, sizeof *p);
    bool reduces = c->out.type == 'e';
    if (p == NULL || !chain_parse(c, p, program, c->arguments - 1, reduces)) return NULL;
    p = (chain *)call_scratch(c, sizeof *p + p->blocks * CHAIN_BLOCK_BYTES);
    c->plan_spec = program;
    c->plan_ready = p != NULL;
    return p;
}

static bool read_operand(chain_run *r, size_t number, size_t row, size_t *length) {
    call *c = r->c;
    const element_type *type = r->p->operand_type[number];
    view v = column_view(&c->args[number + 1], row);
    if (v.bytes & (type->size - 1))
        return fail(c, "expected a BLOB of %s (a multiple of %zu bytes) as argument %zu, got %zu",
                    type->name, type->size, number + 2, v.bytes);
    r->operand[number] = v.data;
    *length = v.bytes >> type->log_size;
    return true;
}

static bool open_run(call *c, size_t row, chain_run *r) {
    bool first = true;
    *r = (chain_run){.c = c, .p = chain_for(c, row)};
    if (r->p == NULL) return false;
    r->blocks = c->scratch.data + sizeof *r->p;
    for (size_t i = 0; i < r->p->operands; i++) {
        size_t length;
        if (!read_operand(r, i, row, &length)) return false;
        if (r->p->single[i] && length != 1)
            return fail(c, "expected one element as argument %zu, got %zu", i + 2, length);
        if (r->p->single[i]) continue;
        if (!first && length != r->length)
            return fail(c, "expected %zu elements as argument %zu, got %zu", r->length, i + 2,
                        length);
        r->length = length;
        first = false;
    }
    return true;
}

static const void *source(const chain_run *r, const chain_source *x, size_t start) {
    switch (x->from) {
    case FROM_OPERAND:
        return at(x->type, r->operand[x->number], x->single ? 0 : start);
    case FROM_CONSTANT: return &r->p->constant[x->number];
    default: return r->blocks + x->number * CHAIN_BLOCK_BYTES;
    }
}

static trouble run_step(const chain_run *r, const chain_step *s, size_t start, size_t n,
                        void *out) {
    const element_type *type = s->a.type;
    const void *a = source(r, &s->a, start);
    switch (s->action) {
    case CHAIN_MAP: return type->map((enum map_op)s->op, n, a, out);
    case CHAIN_CAST: return type->cast[s->op](n, a, out);
    case CHAIN_COMBINE:
        return type->combine((enum combine_op)s->op, n, a, !s->a.single, source(r, &s->b, start),
                             !s->b.single, out);
    default: type->copy(n, a, 1, out, 1); return 0;
    }
}

/* Entries start to start + n - 1, at most a block of them, where they are then found: in `out`, if
 * there is one. */
static trouble run_block(const chain_run *r, size_t start, size_t n, void *out,
                         const void **result) {
    const chain *p = r->p;
    trouble bad = 0;
    if (watch_stops(&r->c->watch, 2 * n * (p->steps + 1))) return INTERRUPTED;
    for (size_t i = 0; i < p->steps && !bad; i++) {
        const chain_step *s = &p->step[i];
        bool last = out != NULL && i + 1 == p->steps;
        void *to = last ? out : r->blocks + s->result.number * CHAIN_BLOCK_BYTES;
        bad = run_step(r, s, start, s->result.single ? 1 : n, to);
    }
    *result = out != NULL ? out : source(r, &p->result, start);
    return bad;
}

static size_t block_at(const chain_run *r, size_t start) {
    return r->length - start < CHAIN_BLOCK ? r->length - start : CHAIN_BLOCK;
}

size_t apply_chain(call *c, size_t row) {
    chain_run r;
    const void *result;
    if (!open_run(c, row, &r)) return 0;
    char *out = writer_room(c, row, r.length);
    if (out == NULL) return 0;
    trouble bad = 0;
    for (size_t i = 0; i < r.length && !bad; i += CHAIN_BLOCK)
        bad = run_block(&r, i, block_at(&r, i), at_out(c->type, out, i), &result);
    return finish(c, row, r.length, bad);
}

/* ---- Reductions of all entries, in the very order of `ein1` ---- */

/* True if a step may fail for some entries: whatever makes integers, and compares none. */
static bool may_fail(const chain_step *s) {
    if (s->result.type->number != TYPE_i64) return false;
    if (s->action != CHAIN_COMBINE) return s->action != CHAIN_COPY;
    return s->op != OP_less && s->op != OP_less_equal && s->op != OP_equal && s->op != OP_not_equal;
}

/* True if one entry may decide min or max of truth values, and no other one may fail. */
static bool may_end_early(const chain_run *r) {
    bool early = r->c->type->number == TYPE_boolean;
    for (size_t i = 0; i < r->p->steps && early; i++) early = !may_fail(&r->p->step[i]);
    return early;
}

static trouble reduce_plainly(const chain_run *r, void *into) {
    const element_type *type = r->c->type;
    bool early = may_end_early(r);
    /* The extremes of truth values are the identities of each other. */
    const element *decided =
        &type->identity[r->p->reduce == (int)REDUCE_min ? REDUCE_max : REDUCE_min];
    trouble bad = 0;
    for (size_t i = 0; i < r->length && !bad; i += CHAIN_BLOCK) {
        if (early && memcmp(into, decided, type->size) == 0) break;
        const void *block;
        size_t n = block_at(r, i);
        bad = run_block(r, i, n, NULL, &block);
        if (!bad) bad = type->reduce((enum reduce_op)r->p->reduce, n, block, 1, into, 0);
    }
    return bad;
}

enum { LARGEST_TOTAL = 16 };

/* Sums of a few elements, in the wider type that a loop over all of them goes on in. */
static trouble sum_widely(const chain_run *r, void *into) {
    const element_type *type = r->c->type;
    _Alignas(16) char totals[LARGEST_TOTAL] = {0};
    element none = type->identity[REDUCE_sum];
    trouble bad = 0;
    for (size_t i = 0; i < r->length && !bad; i += CHAIN_BLOCK) {
        const void *block;
        size_t n = block_at(r, i);
        bad = run_block(r, i, n, NULL, &block);
        for (size_t j = 0; j < n && !bad; j += SUM_BLOCK) {
            element few = none;
            size_t count = n - j < SUM_BLOCK ? n - j : SUM_BLOCK;
            bad = type->reduce(REDUCE_sum, count, at(type, block, j), 1, &few, 0);
            if (!bad) bad = type->gather(1, &few, totals);
        }
    }
    return bad ? bad : type->narrow(1, totals, &none, into);
}

static trouble sum_without_overflow(const chain_run *r, void *into) {
    const element_type *type = r->c->type;
    _Alignas(16) char totals[LARGEST_TOTAL] = {0};
    element none = type->identity[REDUCE_sum];
    trouble bad = 0;
    for (size_t i = 0; i < r->length && !bad; i += CHAIN_BLOCK) {
        const void *block;
        bad = run_block(r, i, block_at(r, i), NULL, &block);
        if (!bad) bad = type->exact(block_at(r, i), block, 1, NULL, 0, totals, 0);
    }
    return bad ? bad : type->narrow(1, totals, &none, into);
}

/* What overflows in the sum, and not in what is summed, is added up exactly. */
static trouble reduce_all(const chain_run *r, element *into) {
    const element_type *type = r->c->type;
    bool sums = r->p->reduce == (int)REDUCE_sum;
    if (sums && has_totals(type) && type->exact == NULL) return sum_widely(r, into);
    trouble bad = reduce_plainly(r, into);
    return sums && type->exact != NULL && bad == OVERFLOWS ? sum_without_overflow(r, into) : bad;
}

static void divide_by_count(const element_type *type, size_t count, element *value) {
    double length = (double)count;
    element divisor, sum = *value;
    type_f64.cast[type->number](1, &length, &divisor);
    type->combine(OP_div, 1, &sum, 0, &divisor, 0, value);
}

size_t apply_chain_sca(call *c, size_t row) {
    chain_run r;
    if (!open_run(c, row, &r)) return 0;
    if (r.length == 0 && r.p->reduce >= (int)REDUCE_min && c->type->number != TYPE_boolean)
        return fail(c, "expected at least one entry to reduce for min and max, got none");
    element out = c->type->identity[r.p->reduce];
    if (!settle(c, reduce_all(&r, &out))) return 0;
    if (r.p->mean) divide_by_count(c->type, r.length, &out);
    return put_element(c, row, &out);
}
