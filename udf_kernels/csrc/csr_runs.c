#include "csr_runs.h"

#include "csr_work.h"

static size_t run_length(const csr *x, size_t e) { return x->ends[e] - x->idx[e]; }

size_t csr_entries(const csr *x) {
    if (x->ends == NULL) return x->nnz;
    size_t entries = 0;
    for (size_t e = 0; e < x->nnz; e++) entries += run_length(x, e);
    return entries;
}

/* ---- Entries in the place of runs ---- */

/* Copies of one value of any size. */
static void repeat(size_t size, size_t n, const char *value, char *out) {
    for (size_t i = 0; i < n; i++) copy_element(size, value, out + i * size);
}

/* The bytes of the entries; 0 after an error. */
static size_t expanded_bytes(call *c, const csr *x) {
    size_t entries = csr_entries(x);
    if (!csr_fits(c, x->rows, x->cols, entries)) return 0;
    return csr_values_at(x->rows, entries) + entries * c->type->size;
}

static bool write_entries(call *c, const csr *x, char *bytes) {
    size_t size = c->type->size, used = 0;
    csr_parts out;
    csr_begin(bytes, x->rows, x->cols, csr_entries(x), false, &out);
    out.ptr[0] = 0;
    for (size_t r = 0; r < x->rows; r++) {
        if (watch_stops(&c->watch, 8 + 2 * (used - out.ptr[r]))) return fail_with(c, INTERRUPTED);
        for (size_t e = x->ptr[r]; e < x->ptr[r + 1]; e++) {
            size_t n = run_length(x, e), first = x->idx[e];
            for (size_t i = 0; i < n; i++) out.idx[used + i] = (u32)(first + i);
            repeat(size, n, x->values + e * size, out.values + used * size);
            used += n;
        }
        out.ptr[r + 1] = (u32)used;
    }
    return true;
}

bool csr_expand(call *c, int arg, csr *x) {
    size_t bytes = c->expanded[arg];
    bool ready = bytes > 0;
    if (!ready && (bytes = expanded_bytes(c, x)) == 0) return false;
    char *data = call_work(c, WORK_RUNS + arg, bytes);
    if (data == NULL || (!ready && !write_entries(c, x, data))) return false;
    if (!ready) c->narrowed = (view){NULL, 0}; /* which may have been other entries there */
    c->expanded[arg] = bytes;
    *x = csr_of((view){data, bytes});
    return true;
}

bool csr_expand_tail(call *c, size_t number, csr *x) {
    size_t bytes = expanded_bytes(c, x);
    char *data = bytes == 0 ? NULL : call_tail_work(c, number, bytes);
    if (data == NULL || !write_entries(c, x, data)) return false;
    *x = csr_of((view){data, bytes});
    return true;
}

void csr_fill_runs(const element_type *type, const csr *x, size_t r, void *out) {
    for (size_t e = x->ptr[r]; e < x->ptr[r + 1]; e++)
        type->fill(run_length(x, e), at(type, x->values, e), at_out(type, out, x->idx[e]));
}

/* ---- Reductions ---- */

/* Integers, whose products with lengths may not fit, though the sum does. */
static trouble fold_exactly(const element_type *type, const csr *x, size_t first, size_t count,
                            element *out) {
    _Alignas(16) char total[sizeof(element)] = {0};
    trouble bad = 0;
    for (size_t e = first; e < first + count && !bad; e++) {
        element length = {.i64 = (int64_t)run_length(x, e)};
        bad = type->exact(1, at(type, x->values, e), 1, &length, 1, total, 1);
    }
    return bad ? bad : type->narrow(1, total, out, out);
}

trouble csr_fold_runs(call *c, const semiring *by, const csr *x, size_t first, size_t count,
                      element *out) {
    const element_type *type = c->type;
    if (by->reduce == REDUCE_sum) {
        if (type->exact != NULL) return fold_exactly(type, x, first, count, out);
        return type->csr->sum_runs(count, at(type, x->values, first), x->idx + first,
                                   x->ends + first, out);
    }
    bool once = by->reduce == REDUCE_min || by->reduce == REDUCE_max;
    if (once) return type->reduce(by->reduce, count, at(type, x->values, first), 1, out, 0);
    trouble bad = 0;
    for (size_t e = first; e < first + count && !bad; e++) {
        if (watch_stops(&c->watch, 4 + run_length(x, e))) return INTERRUPTED;
        bad = type->reduce(by->reduce, run_length(x, e), at(type, x->values, e), 0, out, 0);
    }
    return bad;
}

/* ---- Products ---- */

/* Value ⊗ row for the rows of a run, ⊕ of them into a line of n. */
static trouble fold_lines(const element_type *type, const semiring *by, const void *value,
                          size_t lines, const void *matrix, size_t n, void *out) {
    element block[CSR_BLOCK];
    trouble bad = 0;
    if (n == 1) {
        for (size_t l = 0, some; l < lines && !bad; l += some) {
            some = lines - l < CSR_BLOCK ? lines - l : CSR_BLOCK;
            bad = combine_swapped(type, by, some, value, 0, at(type, matrix, l), 1, block);
            bad |= type->reduce(by->reduce, some, block, 1, out, 0);
        }
        return bad;
    }
    for (size_t l = 0; l < lines && !bad; l++)
        for (size_t j = 0; j < n && !bad; j += CSR_BLOCK) {
            size_t some = n - j < CSR_BLOCK ? n - j : CSR_BLOCK;
            bad = combine_swapped(type, by, some, value, 0, at(type, matrix, l * n + j), 1, block);
            bad |= type->reduce(by->reduce, some, block, 1, at_out(type, out, j), 1);
        }
    return bad;
}

trouble csr_multiply_runs(call *c, const csr *x, const semiring *by, const void *matrix, size_t n,
                          size_t length, void *out) {
    const element_type *type = c->type;
    bool sums = sums_products(type, by);
    if (by->reduce == REDUCE_sum && has_totals(type) && !sums) return OVERFLOWS;
    type->fill(length, &type->identity[by->reduce], out);
    trouble bad = 0;
    for (size_t r = 0; length > 0 && r < x->rows && !bad; r++) {
        size_t first = x->ptr[r], count = csr_row_length(x, r);
        void *line = at_out(type, out, r * n);
        for (size_t e = first; e < first + count && !bad; e += sums ? count : 1) {
            size_t some = sums ? count : 1, work = 4;
            for (size_t k = e; k < e + some; k++) work += 4 + run_length(x, k) * (n / 4 + 1);
            if (watch_stops(&c->watch, work)) return INTERRUPTED;
            const void *value = at(type, x->values, e);
            bad = sums ? type->csr->add_runs(some, value, x->idx + e, x->ends + e, matrix, n, line)
                       : fold_lines(type, by, value, run_length(x, e),
                                    at(type, matrix, x->idx[e] * n), n, line);
        }
    }
    return bad;
}

/* ---- Into the columns of runs ---- */

static size_t sum_size(const element_type *type, enum reduce_op op) {
    return op == REDUCE_sum ? type->csr->sum_size : type->size;
}

/* A value, or its products with a line of n, into each row of a run: accumulators of n each. */
static trouble spread_run(const element_type *type, const semiring *by, const void *value,
                          const void *line, size_t lines, size_t n, char *sums) {
    const csr_loops *loops = type->csr;
    if (line == NULL) return loops->spread_line(by->reduce, lines, 1, 1, NULL, value, sums);
    bool products = sums_products(type, by);
    element block[CSR_BLOCK];
    trouble bad = 0;
    for (size_t j = 0; j < n && !bad; j += CSR_BLOCK) {
        size_t some = n - j < CSR_BLOCK ? n - j : CSR_BLOCK;
        const void *from = at(type, line, j), *factor = products ? value : NULL;
        if (!products) bad = combine_swapped(type, by, some, value, 0, from, 1, block);
        if (!products) from = block;
        char *to = sums + j * sum_size(type, by->reduce);
        if (!bad) bad = loops->spread_line(by->reduce, lines, n, some, factor, from, to);
    }
    return bad;
}

trouble csr_spread_runs(call *c, const csr *x, const semiring *by, const void *matrix, size_t n,
                        void *sums) {
    const element_type *type = c->type;
    size_t pitch = n * sum_size(type, by->reduce);
    trouble bad = 0;
    for (size_t r = 0; r < x->rows && n > 0 && !bad; r++)
        for (size_t e = x->ptr[r]; e < x->ptr[r + 1] && !bad; e++) {
            size_t lines = run_length(x, e);
            if (watch_stops(&c->watch, 8 + lines * (n / 4 + 1))) return INTERRUPTED;
            const void *line = matrix == NULL ? NULL : at(type, matrix, r * n);
            bad = spread_run(type, by, at(type, x->values, e), line, lines, n,
                             (char *)sums + x->idx[e] * pitch);
        }
    return bad;
}

trouble csr_t_runs(call *c, const csr *x, const semiring *by, const void *matrix, size_t n,
                   size_t length, void *out) {
    const element_type *type = c->type;
    bool in_place = sum_size(type, by->reduce) == type->size;
    void *sums = in_place ? out : csr_sums(c, by->reduce, length);
    if (sums == NULL) return NO_MEMORY;
    if (in_place) type->fill(length, &type->identity[by->reduce], out);
    trouble bad = csr_spread_runs(c, x, by, matrix, n, sums);
    if (in_place) return bad;
    trouble end = type->csr->collect(by->reduce, length, NULL, sums, out); /* clears them */
    return bad ? bad : end;
}
