#include "sums.h"

#include <stdlib.h>
#include <string.h>

static void clear(sum *s) {
    memset(s->near, 0, s->length * s->type->size);
    s->terms = 0;
}

static bool make_totals(sum *s) {
    if (s->totals != NULL) return true;
    size_t bytes = s->length * s->type->total_size;
    s->totals = memory_hold(s->account, bytes);
    if (s->totals != NULL) memset(s->totals, 0, bytes);
    return s->totals != NULL;
}

trouble sum_gather(sum *s) {
    if (!make_totals(s)) return NO_MEMORY;
    trouble bad = s->type->gather(s->length, s->near, s->totals);
    clear(s);
    return bad;
}

trouble sum_expect(sum *s, size_t terms) {
    trouble bad = s->terms > 0 && s->terms + terms > NEAR_TERMS ? sum_gather(s) : 0;
    s->terms += terms;
    return bad;
}

trouble sum_copy(sum *into, const sum *from) {
    into->terms = from->terms;
    if (from->totals == NULL) return 0;
    if (!make_totals(into)) return NO_MEMORY;
    return into->type->join_totals(into->length, from->totals, into->totals);
}

trouble sum_merge(sum *into, const sum *from) {
    const element_type *type = into->type;
    trouble bad = 0;
    if (from->totals != NULL) {
        if (!make_totals(into)) return NO_MEMORY;
        bad |= type->join_totals(into->length, from->totals, into->totals);
    }
    bad |= sum_expect(into, 1);
    if (bad) return bad;
    bad = type->reduce(REDUCE_sum, into->length, from->near, 1, into->near, 1);
    if (!(bad & OVERFLOWS)) return bad;
    bad = sum_retract(into, from->near);
    if (!bad) bad = sum_gather(into);
    return bad ? bad : type->gather(into->length, from->near, into->totals);
}

trouble sum_retract(sum *s, const void *added) {
    s->type->retract(s->length, added, s->near);
    return 0;
}

trouble sum_finish(const sum *s, void *out) {
    if (s->totals != NULL) return s->type->narrow(s->length, s->totals, s->near, out);
    if (out != s->near) memcpy(out, s->near, s->length * s->type->size);
    return 0;
}

void sum_release(sum *s) {
    memory_release(s->totals);
    s->totals = NULL;
}

/* ---- Contractions ---- */

/* Halves the longest summed axis until few terms are left for each entry. */
static trouble add_in_parts(sum *s, ein_plan *plan, const void *a, const void *b, watch *w) {
    if (plan->terms <= NEAR_TERMS) {
        trouble bad = sum_expect(s, plan->terms);
        return bad ? bad : ein_run(plan, a, b, s->near, w);
    }
    axis *x = ein_longest_sum(plan);
    size_t size = x->size, half = size / 2;
    if (half == 0) return ein_run(plan, a, b, s->near, w);
    x->size = half;
    ein_count_terms(plan);
    trouble bad = add_in_parts(s, plan, a, b, w);
    a = at(plan->type, a, half * x->a);
    if (b != NULL) b = at(plan->type, b, half * x->b);
    x->size = size - half;
    ein_count_terms(plan);
    if (!bad) bad = add_in_parts(s, plan, a, b, w);
    x->size = size;
    ein_count_terms(plan);
    return bad;
}

trouble sum_exactly(sum *s, const ein_plan *plan, const void *a, const void *b, watch *w) {
    if (!make_totals(s)) return NO_MEMORY;
    return ein_run_exactly(plan, a, b, s->totals, w);
}

trouble sum_contraction(sum *s, const ein_plan *plan, const void *a, const void *b, watch *w) {
    if (plan->type->exact != NULL) {
        trouble bad = ein_run(plan, a, b, s->near, w);
        if (!(bad & OVERFLOWS)) return bad;
        clear(s);
        return sum_exactly(s, plan, a, b, w);
    }
    ein_plan parts = *plan;
    return add_in_parts(s, &parts, a, b, w);
}
