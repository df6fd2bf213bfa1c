/* The first k entries of lanes beside each other, with their positions: lists of pairs (see
 * top_template.h), one for each lane, along an axis of a tensor or over the rows of an aggregate. */
#include "kernels.h"

/* Longer lists are not kept in order while they grow: everything is sorted. */
enum { LONGEST_KEPT = 64 };

static bool read_count(call *c, int arg, size_t row, size_t lanes, size_t *k, size_t *length) {
    size_t most = max_elements(c->type) / 2;
    if (!read_whole(c, arg, row, most, "a number of entries", k)) return false;
    if (lanes > most || *k * lanes > most) /* each fits 32 bits by now */
        return fail(c, "expected lists that fit a BLOB, got %zu lists of %zu entries", lanes, *k);
    *length = 2 * *k * lanes;
    return true;
}

/* What empty pairs are of: the merge of two states reads from it how long their lists are. */
static element empty_pairs(const element_type *type, size_t k) {
    element start = {0};
    if (type->number == TYPE_i64)
        start.i64 = -(int64_t)k;
    else
        start.f64 = -(double)k;
    return start;
}

static size_t listed(const element_type *type, const element *start) {
    return (size_t)(type->number == TYPE_i64 ? -start->i64 : (int64_t)-start->f64);
}

/* ---- Along an axis ---- */

static bool by_insertion(call *c, size_t length, size_t inner, size_t k, const void *from,
                         void *to) {
    size_t step = patient_planes(inner);
    for (size_t first = 0; first < length; first += step) {
        size_t end = length - first < step ? length : first + step;
        if (watch_stops(&c->watch, 8 * (end - first) * inner)) return fail_with(c, INTERRUPTED);
        c->type->top((enum top_order)c->kernel->op, first, end, inner, k,
                     at(c->type, from, first * inner), to);
    }
    return true;
}

static bool by_sorting(call *c, size_t length, size_t inner, size_t k, const void *from, void *to) {
    size_t kept = 2 * k * c->type->size, bytes = 2 * length * c->type->size;
    char *pairs = call_scratch(c, 2 * bytes); /* qsort may take as much again */
    if (pairs == NULL) return false;
    for (size_t lane = 0; lane < inner; lane++) {
        if (watch_stops(&c->watch, 64 * length)) return fail_with(c, INTERRUPTED);
        c->type->top_sort((enum top_order)c->kernel->op, length, at(c->type, from, lane), inner,
                          pairs);
        memcpy((char *)to + lane * kept, pairs, kept);
    }
    return true;
}

size_t apply_top(call *c, size_t row) {
    planes p;
    size_t k, list;
    if (!read_planes(c, row, &p) || !read_count(c, 3, row, 1, &k, &list)) return 0;
    if (k > p.length) return fail(c, "expected at most %zu entries, got %zu", p.length, k);
    size_t outer = p.elements ? p.t.length / p.elements : 0;
    size_t each = outer > 0 ? list * p.inner : 0; /* no longer than the tensor's planes twice */
    char *out = writer_room(c, row, outer * each);
    if (out == NULL) return 0;
    element start = empty_pairs(c->type, k);
    c->type->fill(outer * each, &start, out);
    for (size_t o = 0; o < outer && each > 0; o++)
        if (!(k <= LONGEST_KEPT ? by_insertion : by_sorting)(
                c, p.length, p.inner, k, at(c->type, p.t.data, o * p.elements),
                at_out(c->type, out, o * each)))
            return 0;
    return finish(c, row, outer * each, 0);
}

/* ---- Over rows, each of which has one position ---- */

static bool read_place(call *c, size_t row, addend *x) {
    if (!read_whole(c, 1, row, LARGEST_SIZE - 1, "a position", &x->m) ||
        !read_count(c, 2, row, x->a.length, &x->k, &x->length))
        return false;
    x->start = empty_pairs(c->type, x->k);
    return true;
}

bool prepare_top(call *c, size_t row, addend *x) {
    return read_tensor(c, 0, row, &x->a) && read_place(c, row, x);
}

bool prepare_top_sca(call *c, size_t row, addend *x) {
    x->a = (tensor){&x->c, 1};
    return read_element(c, 0, row, &x->c) && read_place(c, row, x);
}

trouble add_top(call *c, const addend *x, void *state) {
    enum top_order order = c->kernel->op == MERGE_TOP_MAX ? TOP_MAX : TOP_MIN;
    c->type->top(order, x->m, x->m + 1, x->a.length, x->k, x->a.data, state);
    return 0;
}

void merge_tops(const kernel *k, size_t length, const element *start, const void *from,
                void *into) {
    size_t count = listed(k->type, start);
    if (count == 0 || length < 2 * count) return;
    k->type->top_merge(k->op == MERGE_TOP_MAX ? TOP_MAX : TOP_MIN, length / (2 * count), count, from,
                       into);
}
