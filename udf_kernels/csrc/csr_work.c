#include "csr_work.h"

/* ---- Results ---- */

bool csr_build(call *c, size_t rows, csr_built *b) {
    *b = (csr_built){0};
    b->ptr = (u32 *)call_work(c, WORK_PLACES, (rows + 1) * sizeof(u32));
    if (b->ptr != NULL) b->ptr[0] = 0;
    return b->ptr != NULL && csr_build_more(c, b, 0);
}

bool csr_build_more(call *c, csr_built *b, size_t entries) {
    size_t all = b->nnz + entries;
    b->idx = (u32 *)call_work(c, WORK_INDICES, all * sizeof(u32));
    if (b->idx != NULL) b->values = call_work(c, WORK_VALUES, all * c->type->size);
    return b->idx != NULL && b->values != NULL && csr_fits(c, 0, 0, b->nnz);
}

void csr_build_row(call *c, csr_built *b, size_t r, size_t count, const element *fill) {
    u32 *idx = b->idx + b->nnz;
    void *values = at_out(c->type, b->values, b->nnz);
    b->nnz += c->type->csr->keep(count, values, idx, fill, idx, values);
    b->ptr[r + 1] = (u32)b->nnz;
}

size_t csr_build_end(call *c, size_t row, size_t rows, size_t cols, const csr_built *b) {
    csr_parts out;
    if (!csr_room(c, row, rows, cols, b->nnz, &out)) return 0;
    memcpy(out.ptr, b->ptr, (rows + 1) * sizeof(u32));
    memcpy(out.idx, b->idx, b->nnz * sizeof(u32));
    memcpy(out.values, b->values, b->nnz * c->type->size);
    return csr_take(c, row, &out);
}

/* ---- Terms ---- */

void *csr_sums(call *c, enum reduce_op op, size_t n) {
    size_t size = op == REDUCE_sum ? c->type->csr->sum_size : c->type->size;
    bool ready = c->sums_clear >= n && c->sums_op == op;
    void *sums = call_work(c, WORK_SUMS, n * size);
    if (sums == NULL || ready) return sums;
    c->type->csr->clear(op, n, sums);
    c->sums_clear = n;
    c->sums_op = op;
    return sums;
}

static trouble fold_block(const element_type *type, const semiring *by, size_t n, const void *a,
                          const void *b, element *out) {
    element block[CSR_BLOCK];
    if (b == NULL) return type->reduce(by->reduce, n, a, 1, out, 0);
    if (sums_products(type, by)) return type->dot(n, a, b, out);
    trouble bad = combine_swapped(type, by, n, a, 1, b, 1, block);
    return bad ? bad : type->reduce(by->reduce, n, block, 1, out, 0);
}

/* Integers, one by one. */
static trouble fold_exactly(const element_type *type, const semiring *by, size_t n, const void *a,
                            const void *b, void *total) {
    element block[CSR_BLOCK];
    if (b == NULL || by->combine == OP_mult) return type->exact(n, a, 1, b, 1, total, 0);
    trouble bad = combine_swapped(type, by, n, a, 1, b, 1, block);
    return bad ? bad : type->exact(n, block, 1, NULL, 0, total, 0);
}

trouble csr_fold_terms(const element_type *type, const semiring *by, size_t n, const void *a,
                       const void *b, element *out) {
    bool wide = by->reduce == REDUCE_sum && has_totals(type);
    element zero = {0};
    _Alignas(16) char total[sizeof(element)] = {0};
    trouble bad = 0;
    for (size_t i = 0, count; i < n && !bad; i += count) {
        count = n - i < CSR_BLOCK ? n - i : CSR_BLOCK;
        const void *x = at(type, a, i), *y = b == NULL ? NULL : at(type, b, i);
        if (!wide) {
            bad = fold_block(type, by, count, x, y, out);
            continue;
        }
        element part = zero;
        bad = fold_block(type, by, count, x, y, &part);
        if (bad == OVERFLOWS && type->exact != NULL)
            bad = fold_exactly(type, by, count, x, y, total);
        else if (!bad)
            bad = type->gather(1, &part, total);
    }
    return bad || !wide ? bad : type->narrow(1, total, out, out);
}

/* ---- Places ---- */

static size_t leap_through(size_t n, const u32 *a, size_t m, const u32 *b, u32 *in_a, u32 *in_b) {
    size_t found = 0;
    for (size_t i = 0, j = 0; i < n && j < m; i++) {
        j = csr_leap(m, b, j, a[i]);
        if (j == m || b[j] != a[i]) continue;
        in_a[found] = (u32)i;
        in_b[found++] = (u32)j++;
    }
    return found;
}

enum { LEAPS_PAY = 16 };

size_t csr_intersect(size_t n, const u32 *a, size_t m, const u32 *b, u32 *in_a, u32 *in_b) {
    if (n == 0 || m == 0 || a[n - 1] < b[0] || b[m - 1] < a[0]) return 0;
    if (m / LEAPS_PAY >= n) return leap_through(n, a, m, b, in_a, in_b);
    if (n / LEAPS_PAY >= m) return leap_through(m, b, n, a, in_b, in_a);
    size_t found = 0, i = 0, j = 0, most = n < m ? n : m;
    while (i < n && j < m) { /* without a branch on what is equal */
        uint32_t x = a[i], y = b[j];
        if (x == y) {
            in_a[found] = (u32)i;
            in_b[found++] = (u32)j;
            if (found == most) break;
        }
        i += x <= y;
        j += y <= x;
    }
    return found;
}

bool csr_turn(call *c, const csr *x, u32 *ptr, u32 *idx, void *values) {
    u32 *to = (u32 *)call_work(c, WORK_LIST, (x->nnz + 1) * sizeof(u32));
    if (to == NULL) return false;
    memset(ptr, 0, (x->cols + 1) * sizeof(u32));
    for (size_t e = 0; e < x->nnz; e++) ptr[x->idx[e]]++;
    uint32_t sum = 0;
    for (size_t j = 0; j <= x->cols; j++) { /* where each column begins */
        uint32_t count = ptr[j];
        ptr[j] = sum;
        sum += count;
    }
    for (size_t r = 0; r < x->rows; r++)
        for (size_t e = x->ptr[r]; e < x->ptr[r + 1]; e++) {
            to[e] = ptr[x->idx[e]]++;
            idx[to[e]] = (u32)r;
        }
    for (size_t j = x->cols; j > 0; j--) ptr[j] = ptr[j - 1]; /* each begins where the last ended */
    ptr[0] = 0;
    c->type->csr->place(x->nnz, x->values, to, values);
    return true;
}

bool expect_shape(call *c, const char *what, size_t expected, size_t got) {
    return expected == got || fail(c, "expected %s %zu, got %zu", what, expected, got);
}
