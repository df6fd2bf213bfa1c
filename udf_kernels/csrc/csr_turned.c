/* The transpose of a compressed matrix, its product with a dense one, and single rows. */
#include "csr_rows.h"
#include "csr_runs.h"
#include "csr_work.h"

size_t apply_csr_transpose(call *c, size_t row) {
    csr x;
    csr_parts out;
    if (!read_csr(c, 0, row, &x) || !csr_room(c, row, x.cols, x.rows, x.nnz, &out)) return 0;
    if (watch_stops(&c->watch, 8 * x.nnz)) return fail_with(c, INTERRUPTED);
    return csr_turn(c, &x, out.ptr, out.idx, out.values) ? csr_take(c, row, &out) : 0;
}

size_t apply_csr_row(call *c, size_t row) {
    csr x;
    csr_parts out;
    int64_t r = column_integer(c, 1, row);
    if (!read_csr_stored(c, 0, row, &x)) return 0;
    if (r < 0 || (size_t)r >= x.rows)
        return fail(c, "expected a row below %zu, got %lld", x.rows, (long long)r);
    size_t start = x.ptr[r], count = csr_row_length(&x, (size_t)r);
    bool runs = x.ends != NULL;
    if (!(runs ? csr_room_of_runs : csr_room)(c, row, 1, x.cols, count, &out)) return 0;
    out.ptr[0] = 0;
    out.ptr[1] = (u32)count;
    memcpy(out.idx, x.idx + start, count * sizeof(u32));
    if (runs) memcpy(out.ends, x.ends + start, count * sizeof(u32));
    memcpy(out.values, at(c->type, x.values, start), count * c->type->size);
    return csr_take(c, row, &out);
}

/* ---- The transpose times a dense matrix: out (cols x n), ⊕ over the rows ---- */

/* The transpose in the call's memory. */
static bool turned(call *c, const csr *x, csr *t) {
    u32 *ptr = (u32 *)call_work(c, WORK_PLACES, (x->cols + 1) * sizeof(u32));
    u32 *idx = (u32 *)call_work(c, WORK_INDICES, x->nnz * sizeof(u32));
    char *values = call_work(c, WORK_VALUES, x->nnz * c->type->size);
    *t = (csr){.rows = x->cols, .cols = x->rows, .nnz = x->nnz, .ptr = ptr, .idx = idx,
               .values = values};
    return ptr != NULL && idx != NULL && values != NULL && csr_turn(c, x, ptr, idx, values);
}

static trouble by_columns(call *c, const csr *x, const semiring *by, const tensor *d, size_t n,
                          void *out) {
    const element_type *type = c->type;
    csr t;
    fold f;
    if (!turned(c, x, &t) || !fold_open(c, by, d->data, n, &f)) return NO_MEMORY;
    trouble bad = 0;
    for (size_t j = 0; j < t.rows && !bad; j++) {
        size_t start = t.ptr[j], count = csr_row_length(&t, j);
        if (watch_stops(&c->watch, 4 + count * (n / 4 + 1))) bad = INTERRUPTED;
        if (count > 0)
            bad |= fold_entries(&f, count, at(type, t.values, start), t.idx + start,
                                at_out(type, out, j * n));
    }
    return bad;
}

/* Sums of products where they belong: as many terms one by one as the longest column has. */
static trouble by_rows(call *c, const csr *x, const void *d, size_t n, void *out) {
    const element_type *type = c->type;
    trouble bad = 0;
    for (size_t r = 0; r < x->rows && !bad; r++) {
        size_t start = x->ptr[r], count = csr_row_length(x, r);
        if (watch_stops(&c->watch, 4 + count * (n / 4 + 1))) bad = INTERRUPTED;
        if (count > 0)
            bad |= type->csr->add_to_rows(count, at(type, x->values, start), x->idx + start,
                                          at(type, d, r * n), n, out);
    }
    return bad;
}

static bool longest_column(call *c, const csr *x, size_t *longest) {
    u32 *counts = (u32 *)call_work(c, WORK_LIST, x->cols * sizeof(u32));
    if (counts == NULL) return false;
    memset(counts, 0, x->cols * sizeof(u32));
    *longest = 0;
    for (size_t e = 0; e < x->nnz; e++) counts[x->idx[e]]++;
    for (size_t j = 0; j < x->cols; j++)
        if (counts[j] > *longest) *longest = counts[j];
    return true;
}

/* Whether sums go where they belong right away, or column by column. */
static bool goes_by_rows(call *c, const csr *x, const semiring *by, size_t n, bool *rows) {
    size_t terms = 0;
    bool inexact = has_totals(c->type) && c->type->exact == NULL;
    *rows = sums_products(c->type, by);
    if (!*rows || !inexact || n == 0 || x->rows <= NEAR_TERMS) return true;
    if (!longest_column(c, x, &terms)) return false;
    *rows = terms <= NEAR_TERMS;
    return true;
}

size_t apply_csr_t_mat(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr x;
    tensor d;
    size_t n = 0, length = 0;
    bool rows = false;
    if (!read_semiring(c, 0, row, &by) || !read_csr_stored(c, 1, row, &x) ||
        !read_dense(c, 2, row, x.rows, &d, &n) || !result_length(c, x.cols, n, d.length, &length))
        return 0;
    char *out = NULL;
    if (x.ends != NULL) {
        if ((out = writer_room(c, row, length)) == NULL) return 0;
        trouble met = csr_t_runs(c, &x, &by, d.data, n, length, out);
        if (met != OVERFLOWS) return finish(c, row, length, met);
        if (!csr_expand(c, 1, &x)) return 0;
    }
    if (!goes_by_rows(c, &x, &by, n, &rows)) return 0;
    if (out == NULL && (out = writer_room(c, row, length)) == NULL) return 0;
    type->fill(length, &type->identity[by.reduce], out);
    trouble bad = length == 0 ? 0 : rows ? by_rows(c, &x, d.data, n, out)
                                         : by_columns(c, &x, &by, &d, n, out);
    if (rows && bad == OVERFLOWS) {
        memset(out, 0, length * type->size);
        bad = by_columns(c, &x, &by, &d, n, out);
    }
    return finish(c, row, length, bad);
}

/* ---- Its sum over rows ---- */

static const semiring PRODUCTS = {.reduce = REDUCE_sum, .combine = OP_mult};

bool prepare_csr_t_mat(call *c, size_t row, addend *x) {
    csr a;
    if (!read_csr_stored(c, 0, row, &a) || !read_dense(c, 1, row, a.rows, &x->b, &x->n) ||
        !result_length(c, a.cols, x->n, x->b.length, &x->length))
        return false;
    x->start = c->type->identity[REDUCE_sum];
    x->a = (tensor){a.bytes.data, a.bytes.bytes};
    if (a.ends != NULL) { /* totals are accumulators of runs */
        x->terms = has_totals(c->type) ? SIZE_MAX : 0;
        return true;
    }
    bool inexact = has_totals(c->type) && c->type->exact == NULL;
    return !inexact || a.rows <= NEAR_TERMS || x->n == 0 || longest_column(c, &a, &x->terms);
}

trouble add_csr_t_mat(call *c, const addend *x, void *state) {
    csr a = csr_of((view){x->a.data, x->a.length});
    if (a.ends != NULL)
        return has_totals(c->type) ? OVERFLOWS : csr_spread_runs(c, &a, &PRODUCTS, x->b.data, x->n, state);
    return x->n == 0 ? 0 : by_rows(c, &a, x->b.data, x->n, state);
}

trouble csr_t_mat_to_totals(call *c, const addend *x, void *totals) {
    const element_type *type = c->type;
    csr a = csr_of((view){x->a.data, x->a.length}), t;
    fold f;
    if (a.ends != NULL) return csr_spread_runs(c, &a, &PRODUCTS, x->b.data, x->n, totals);
    if (!turned(c, &a, &t) || !fold_open(c, &PRODUCTS, x->b.data, x->n, &f)) return NO_MEMORY;
    char *near = call_zeros(c, WORK_BITS, x->n * type->size);
    if (near == NULL) return NO_MEMORY;
    trouble bad = 0;
    for (size_t j = 0; j < t.rows && !bad; j++) {
        size_t start = t.ptr[j], count = csr_row_length(&t, j);
        if (watch_stops(&c->watch, 4 + count * (x->n + 1))) bad = INTERRUPTED;
        if (count > 0)
            bad |= fold_to_totals(&f, count, at(type, t.values, start), t.idx + start, near,
                                  (char *)totals + j * x->n * type->total_size);
    }
    return bad;
}
