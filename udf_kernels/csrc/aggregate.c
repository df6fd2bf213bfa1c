/* The aggregate kernels: `prepare` checks a row and says how long its state is, `add` accumulates.
 * Nothing is materialised per row. */
#include "kernels.h"

#include "gemm.h"

/* Every sum starts from here: 0 has no bits in any type. */
static const element ZERO;

static bool read_operands(call *c, size_t row, addend *x) {
    x->start = ZERO;
    return read_tensor(c, 0, row, &x->a) && read_tensor(c, 1, row, &x->b);
}

bool prepare_vec(call *c, size_t row, addend *x) {
    if (!read_tensor(c, 0, row, &x->a)) return false;
    x->length = x->a.length;
    x->start = c->type->identity[c->kernel->op];
    return true;
}
trouble add_vec(call *c, const addend *x, void *state) {
    return c->type->reduce((enum reduce_op)c->kernel->op, x->length, x->a.data, 1, state, 1);
}

ein_plan plan_vec(const call *c, const addend *x) {
    return ein_plan_of(c->type, true, &(axis){x->length, 1, 0, 1}, 1);
}

bool prepare_vec_sca_mult(call *c, size_t row, addend *x) {
    if (!read_tensor(c, 0, row, &x->a)) return false;
    x->length = x->a.length;
    x->start = ZERO;
    x->b = (tensor){&x->c, 1};
    return read_element(c, 1, row, &x->c);
}
trouble add_vec_sca_mult(call *c, const addend *x, void *state) {
    return c->type->axpy(x->length, &x->c, x->a.data, state);
}

ein_plan plan_vec_sca_mult(const call *c, const addend *x) {
    return ein_plan_of(c->type, false, &(axis){x->length, 1, 0, 1}, 1);
}

bool prepare_outer_prod(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x)) return false;
    x->length = x->a.length * x->b.length;
    return true;
}
trouble add_outer_prod(call *c, const addend *x, void *state) {
    const element_type *type = c->type;
    size_t n = x->b.length;
    trouble bad = 0;
    for (size_t i = 0; i < x->a.length && n > 0; i++) {
        if (watch_stops(&c->watch, n)) return INTERRUPTED;
        bad |= type->axpy(n, at(type, x->a.data, i), x->b.data, at_out(type, state, i * n));
    }
    return bad;
}
ein_plan plan_outer_prod(const call *c, const addend *x) {
    return matrix_plan(c->type, x->a.length, x->b.length, 1);
}

bool prepare_vec_mult(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x)) return false;
    x->length = x->a.length;
    return expect_length(c, "argument 2", x->a.length, x->b.length);
}
trouble add_vec_mult(call *c, const addend *x, void *state) {
    return c->type->multiply_add(x->length, x->a.data, x->b.data, state);
}

ein_plan plan_vec_mult(const call *c, const addend *x) {
    return ein_plan_of(c->type, false, &(axis){x->length, 1, 1, 1}, 1);
}

bool prepare_vec_mat(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x) || !expect_multiple(c, x->a.length, x->b.length)) return false;
    x->k = x->a.length;
    x->length = x->n = x->k ? x->b.length / x->k : 0;
    x->terms = x->k / 4 + 1;
    return true;
}
ein_plan plan_vec_mat(const call *c, const addend *x) { return matrix_plan(c->type, 1, x->n, x->k); }
trouble add_vec_mat(call *c, const addend *x, void *state) {
    return c->type->vector_matrix(x->n, x->k, x->a.data, x->b.data, state);
}

bool prepare_mat_vec(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x) || !expect_multiple(c, x->b.length, x->a.length)) return false;
    x->k = x->b.length;
    x->length = x->m = x->k ? x->a.length / x->k : 0;
    return true;
}
trouble add_mat_vec(call *c, const addend *x, void *state) {
    return c->type->matrix_vector(x->m, x->k, x->a.data, x->b.data, state);
}

ein_plan plan_mat_vec(const call *c, const addend *x) { return matrix_plan(c->type, x->m, 1, x->k); }

bool prepare_mat_mat(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x) || !matrix_shape(c, row, x->a, x->b, &x->m, &x->n, &x->k))
        return false;
    x->length = x->m * x->n;
    x->terms = matrix_terms(c->type, x->m, x->n, x->k);
    return true;
}
trouble add_mat_mat(call *c, const addend *x, void *state) {
    return gemm_dense(c->type, x->m, x->n, x->k, x->a.data, x->b.data, state, &c->watch);
}
ein_plan plan_mat_mat(const call *c, const addend *x) {
    return matrix_plan(c->type, x->m, x->n, x->k);
}

bool prepare_ein(call *c, size_t row, addend *x) {
    if (!prepare_ein_operands(c, row, &x->a, &x->b)) return false;
    if ((int)c->plan.reduce != c->kernel->op)
        return fail(c, "expected a spec that reduces by %s, got %s",
                    reduce_names[c->kernel->op], reduce_names[c->plan.reduce]);
    x->length = c->plan.length_out;
    x->terms = c->plan.terms;
    x->start = c->type->identity[c->plan.reduce];
    return expect_ein_result(c, &c->plan);
}
trouble add_ein(call *c, const addend *x, void *state) {
    return ein_run(&c->plan, x->a.data, x->b.data, state, &c->watch);
}
ein_plan plan_ein(const call *c, const addend *x) {
    (void)x;
    return c->plan;
}

/* ---- Sums with totals ---- */

/* Integers that overflowed: takes the row back from the near part, where numbers have wrapped
 * around, and adds it exactly. */
static trouble add_exactly(call *c, const addend *x, sum *s) {
    char *added = call_scratch(c, s->length * c->type->size);
    if (added == NULL) return NO_MEMORY;
    memset(added, 0, s->length * c->type->size);
    trouble bad = c->kernel->add(c, x, added) & ~OVERFLOWS;
    if (bad) return bad;
    sum_retract(s, added);
    bad = sum_gather(s);
    if (c->kernel->plan == NULL) return bad ? bad : c->kernel->add_to_totals(c, x, s->totals);
    ein_plan plan = c->kernel->plan(c, x);
    return bad ? bad : sum_exactly(s, &plan, x->a.data, x->b.data, &c->watch);
}

trouble add_to_sum(call *c, const addend *x, sum *s) {
    if (c->type->exact != NULL) {
        trouble bad = c->kernel->add(c, x, s->near);
        return bad == OVERFLOWS ? add_exactly(c, x, s) : bad;
    }
    if (x->terms > NEAR_TERMS && c->kernel->plan == NULL) {
        trouble bad = sum_gather(s);
        return bad ? bad : c->kernel->add_to_totals(c, x, s->totals);
    }
    if (x->terms > NEAR_TERMS) {
        ein_plan plan = c->kernel->plan(c, x);
        return sum_contraction(s, &plan, x->a.data, x->b.data, &c->watch);
    }
    trouble bad = sum_expect(s, x->terms);
    return bad ? bad : c->kernel->add(c, x, s->near);
}

/* ---- Stacks: scatter into a tensor of `total` elements that are `fill` elsewhere ---- */

static bool read_total(call *c, size_t row, int total, addend *x) {
    return read_whole(c, total, row, max_elements(c->type), "a total", &x->length) &&
           read_element(c, total + 1, row, &x->start);
}

/* `count` elements in a row from an offset on: a strided place of rank one. */
static bool place_at(call *c, size_t row, size_t count, addend *x) {
    int64_t offset = column_integer(c, 1, row);
    if (offset < 0 || (uint64_t)offset > x->length || count > x->length - (size_t)offset)
        return fail(c, "expected positions within %zu elements, got %zu from offset %lld",
                    x->length, count, (long long)offset);
    x->place.rank = 1;
    x->place.offset = offset;
    x->place.count = count;
    x->place.size[0] = (int64_t)count;
    x->place.stride[0] = 1;
    return true;
}

bool prepare_stack_sca(call *c, size_t row, addend *x) {
    x->a = (tensor){&x->c, 1};
    return read_element(c, 0, row, &x->c) && read_total(c, row, 2, x) && place_at(c, row, 1, x);
}

bool prepare_stack(call *c, size_t row, addend *x) {
    return read_tensor(c, 0, row, &x->a) && read_total(c, row, 2, x) &&
           place_at(c, row, x->a.length, x);
}

bool prepare_stack_strided(call *c, size_t row, addend *x) {
    return read_tensor(c, 0, row, &x->a) && read_total(c, row, 4, x) &&
           read_strided(c, row, 1, 2, 3, x->length, &x->place) &&
           expect_length(c, "argument 1", x->place.count, x->a.length);
}

trouble add_stack(call *c, const addend *x, void *state) {
    strided_scatter(c->type, &x->place, x->a.data, state);
    return 0;
}

trouble merge_states(const kernel *k, size_t length, const element *start, const void *from,
                     void *into) {
    switch (k->op) {
    case MERGE_STACK: /* by bits: a NaN fill equals itself */
        k->type->overlay(length, start, from, into);
        return 0;
    case MERGE_TOP_MAX:
    case MERGE_TOP_MIN: merge_tops(k, length, start, from, into); return 0;
    default: return k->type->reduce((enum reduce_op)k->op, length, from, 1, into, 1);
    }
}
