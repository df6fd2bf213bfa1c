/* Products of a compressed matrix and a dense one. */
#include "csr_rows.h"
#include "csr_runs.h"

#include "sums.h"

enum { BLOCK = 256 };

/* Entries of a row from which on a call for it pays off. */
enum { SHORT_ROW = 32 };

/* One entry's row of the matrix, combined and reduced a block of columns at a time. */
static trouble fold_row(const fold *f, const void *value, const void *line, void *out) {
    const element_type *type = f->type;
    element block[BLOCK];
    trouble bad = 0;
    for (size_t j = 0; j < f->n && !bad; j += BLOCK) {
        size_t n = f->n - j < BLOCK ? f->n - j : BLOCK;
        bad = combine_swapped(type, &f->by, n, value, 0, at(type, line, j), 1, block);
        bad |= type->reduce(f->by.reduce, n, block, 1, at_out(type, out, j), 1);
    }
    return bad;
}

/* The same for a matrix of one column: all entries at once. */
static trouble fold_numbers(const fold *f, size_t count, const void *values, const u32 *idx,
                            void *out) {
    const element_type *type = f->type;
    element picked[BLOCK], block[BLOCK];
    trouble bad = 0;
    for (size_t e = 0; e < count && !bad; e += BLOCK) {
        size_t n = count - e < BLOCK ? count - e : BLOCK;
        type->csr->pick(n, f->matrix, idx + e, picked);
        bad = combine_swapped(type, &f->by, n, at(type, values, e), 1, picked, 1, block);
        bad |= type->reduce(f->by.reduce, n, block, 1, out, 0);
    }
    return bad;
}

static trouble fold_near(const fold *f, size_t count, const void *values, const u32 *idx,
                         void *out) {
    const element_type *type = f->type;
    if (sums_products(type, &f->by))
        return type->csr->add_rows(count, values, idx, f->matrix, f->n, out);
    if (f->n == 1) return fold_numbers(f, count, values, idx, out);
    trouble bad = 0;
    for (size_t e = 0; e < count && !bad; e++)
        bad = fold_row(f, at(type, values, e), at(type, f->matrix, idx[e] * f->n), out);
    return bad;
}

/* How many entries fold_near takes while it adds few terms to an entry one by one. */
static size_t near_entries(const fold *f) {
    if (f->n == 1) return sums_products(f->type, &f->by) ? SIZE_MAX : NEAR_TERMS * BLOCK;
    return sums_products(f->type, &f->by) ? NEAR_TERMS * 4 : NEAR_TERMS;
}

static trouble fold_exactly(const fold *f, size_t count, const void *values, const u32 *idx,
                            void *totals) {
    const element_type *type = f->type;
    element block[BLOCK];
    trouble bad = 0;
    for (size_t e = 0; e < count && !bad; e++) {
        const void *value = at(type, values, e), *line = at(type, f->matrix, idx[e] * f->n);
        if (f->by.combine == OP_mult) {
            bad = type->exact(f->n, value, 0, line, 1, totals, 1);
            continue;
        }
        for (size_t j = 0; j < f->n && !bad; j += BLOCK) {
            size_t n = f->n - j < BLOCK ? f->n - j : BLOCK;
            bad = combine_swapped(type, &f->by, n, value, 0, at(type, line, j), 1, block);
            if (!bad) bad = type->gather(n, block, (char *)totals + j * type->total_size);
        }
    }
    return bad;
}

trouble fold_to_totals(const fold *f, size_t count, const void *values, const u32 *idx, void *near,
                       void *totals) {
    const element_type *type = f->type;
    if (type->exact != NULL) return fold_exactly(f, count, values, idx, totals);
    size_t most = near_entries(f);
    trouble bad = 0;
    for (size_t e = 0, n; e < count && !bad; e += n) {
        n = count - e < most ? count - e : most;
        bad = fold_near(f, n, at(type, values, e), idx + e, near);
        if (!bad) bad = type->gather(f->n, near, totals);
        memset(near, 0, f->n * type->size);
    }
    return bad;
}

/* Sums of many terms, or of integers that overflow on their way, into zeros. */
static trouble fold_far(const fold *f, size_t count, const void *values, const u32 *idx,
                        void *out) {
    const element_type *type = f->type;
    memset(f->totals, 0, f->n * type->total_size);
    trouble bad = fold_to_totals(f, count, values, idx, out, f->totals);
    return bad ? bad : type->narrow(f->n, f->totals, out, out);
}

trouble fold_entries(const fold *f, size_t count, const void *values, const u32 *idx, void *out) {
    const element_type *type = f->type;
    bool wide = f->by.reduce == REDUCE_sum && has_totals(type);
    if (wide && type->exact == NULL && count > near_entries(f))
        return fold_far(f, count, values, idx, out);
    trouble bad = fold_near(f, count, values, idx, out);
    if (bad != OVERFLOWS || !wide || type->exact == NULL) return bad;
    memset(out, 0, f->n * type->size);
    return fold_far(f, count, values, idx, out);
}

bool fold_open(call *c, const semiring *by, const void *matrix, size_t n, fold *f) {
    *f = (fold){.type = c->type, .by = *by, .matrix = matrix, .n = n};
    if (by->reduce != REDUCE_sum || !has_totals(c->type)) return true;
    f->totals = call_scratch(c, n * c->type->total_size);
    return f->totals != NULL;
}

bool read_dense(call *c, int arg, size_t row, size_t lines, tensor *d, size_t *n) {
    return read_whole(c, arg + 1, row, LARGEST_SIZE, "n", n) &&
           read_lines(c, arg, row, lines, *n, d);
}

bool result_length(call *c, size_t rows, size_t n, size_t operand, size_t *length) {
    if (__builtin_mul_overflow(rows, n, length)) *length = SIZE_MAX;
    if (*length > max_elements(c->type))
        return fail(c, "expected a result of at most %zu elements, got %zu x %zu",
                    max_elements(c->type), rows, n);
    return operand > 0 || expect_something(c, *length, 0);
}

/* So much work is done before somebody who waits is asked. */
enum { PATIENT_WORK = 1 << 16 };

static trouble fold_rows(call *c, const fold *f, const csr *x, void *out) {
    const element_type *type = c->type;
    trouble bad = 0;
    for (size_t r = 0; r < x->rows && !bad; r++) {
        size_t start = x->ptr[r], count = csr_row_length(x, r);
        if (count == 0) continue;
        if (watch_stops(&c->watch, 4 + count * (f->n / 4 + 1))) return INTERRUPTED;
        bad = fold_entries(f, count, at(type, x->values, start), x->idx + start,
                           at_out(type, out, r * f->n));
    }
    return bad;
}

/* Rows of few entries and a matrix of one column, many rows at a time: a call for each row would take
 * longer than what it does. */
static trouble fold_short_rows(call *c, const fold *f, const csr *x, void *out) {
    const element_type *type = c->type;
    element picked[BLOCK], block[BLOCK];
    u32 row_of[BLOCK];
    size_t r = 0, end = x->ptr[x->rows];
    trouble bad = 0;
    for (size_t e = x->ptr[0]; e < end && !bad; e += BLOCK) {
        size_t n = end - e < BLOCK ? end - e : BLOCK;
        if (watch_stops(&c->watch, n)) return INTERRUPTED;
        for (size_t i = 0; i < n; i++) {
            while (x->ptr[r + 1] <= e + i) r++;
            row_of[i] = (u32)r;
        }
        type->csr->pick(n, f->matrix, x->idx + e, picked);
        bad = combine_swapped(type, &f->by, n, at(type, x->values, e), 1, picked, 1, block);
        bad |= type->csr->spread_reduce(f->by.reduce, n, row_of, block, out);
    }
    return bad;
}

/* Sums of products of short rows, many rows at a time. */
static trouble multiply_rows(call *c, const fold *f, const csr *x, void *out) {
    const element_type *type = c->type;
    trouble bad = 0;
    for (size_t r = 0, end; r < x->rows && !bad; r = end) {
        size_t work = 0;
        for (end = r; end < x->rows && work < PATIENT_WORK; end++)
            work += 4 + csr_row_length(x, end) * (f->n / 4 + 1);
        if (watch_stops(&c->watch, work)) return INTERRUPTED;
        bad = type->csr->multiply_rows(end - r, x->ptr + r, x->idx, x->values, f->matrix, f->n,
                                       at_out(type, out, r * f->n));
    }
    return bad;
}

static bool has_short_rows(const fold *f, const csr *x) {
    size_t most = near_entries(f), longest = 0;
    if (!has_totals(f->type) || f->type->exact != NULL || x->nnz <= most) return true;
    for (size_t r = 0; r < x->rows; r++)
        if (csr_row_length(x, r) > longest) longest = csr_row_length(x, r);
    return longest <= most;
}

static trouble multiply_all(call *c, const fold *f, const csr *x, size_t length, void *out) {
    bool many = sums_products(f->type, &f->by) && has_short_rows(f, x);
    trouble bad = many ? multiply_rows(c, f, x, out) : 0;
    if (many && (bad != OVERFLOWS || f->type->exact == NULL)) return bad;
    if (many) memset(out, 0, length * f->type->size);
    if (f->n == 1 && f->by.reduce != REDUCE_sum && x->rows > 0 && x->nnz / SHORT_ROW < x->rows)
        return fold_short_rows(c, f, x, out);
    return fold_rows(c, f, x, out);
}

size_t apply_csr_mat(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr x;
    tensor d;
    size_t n = 0, length = 0;
    fold f;
    if (!read_semiring(c, 0, row, &by) || !read_csr_stored(c, 1, row, &x) ||
        !read_dense(c, 2, row, x.cols, &d, &n) || !result_length(c, x.rows, n, d.length, &length) ||
        (length > 0 && !fold_open(c, &by, d.data, n, &f)))
        return 0;
    char *out = writer_room(c, row, length);
    if (out == NULL) return 0;
    if (x.ends != NULL) {
        trouble met = csr_multiply_runs(c, &x, &by, d.data, n, length, out);
        if (met != OVERFLOWS) return finish(c, row, length, met);
        if (!csr_expand(c, 1, &x)) return 0;
    }
    type->fill(length, &type->identity[by.reduce], out);
    return finish(c, row, length, length == 0 ? 0 : multiply_all(c, &f, &x, length, out));
}
