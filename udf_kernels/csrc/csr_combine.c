/* Each entry of a compressed tensor combined with something at its place. */
#include "csr_work.h"

/* The vector of a row, of one element for each row or column. */
static bool read_scales(call *c, size_t row, size_t length, tensor *v) {
    return read_tensor(c, 2, row, v) && expect_length(c, "argument 3", length, v->length);
}

size_t apply_csr_scale_rows(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr x;
    tensor v;
    csr_parts out;
    if (!read_combination(c, 0, row, &by) || !read_csr_stored(c, 1, row, &x) ||
        !read_scales(c, row, x.rows, &v) || !csr_room_like(c, row, &x, &out))
        return 0;
    trouble bad = 0;
    for (size_t r = 0; r < x.rows && !bad; r++) {
        size_t start = x.ptr[r], count = csr_row_length(&x, r);
        if (watch_stops(&c->watch, 8 + 4 * count)) bad = INTERRUPTED;
        if (count > 0)
            bad |= combine_swapped(type, &by, count, at(type, x.values, start), 1,
                                   at(type, v.data, r), 0, at_out(type, out.values, start));
    }
    return settle(c, bad) ? csr_take(c, row, &out) : 0;
}

/* Entries `start` to `start + count - 1`, each combined with that of a line at its index. */
static trouble combine_picked(call *c, const semiring *by, const csr *x, size_t start, size_t count,
                              const void *line, void *out) {
    const element_type *type = c->type;
    element picked[CSR_BLOCK];
    trouble bad = watch_stops(&c->watch, 8 + 8 * count) ? INTERRUPTED : 0;
    for (size_t e = start, end = start + count, n; e < end && !bad; e += n) {
        n = end - e < CSR_BLOCK ? end - e : CSR_BLOCK;
        type->csr->pick(n, line, x->idx + e, picked);
        bad = combine_swapped(type, by, n, at(type, x->values, e), 1, picked, 1,
                              at_out(type, out, e));
    }
    return bad;
}

size_t apply_csr_scale_cols(call *c, size_t row) {
    semiring by;
    csr x;
    tensor v;
    csr_parts out;
    if (!read_combination(c, 0, row, &by) || !read_csr(c, 1, row, &x) ||
        !read_scales(c, row, x.cols, &v) || !csr_room_like(c, row, &x, &out))
        return 0;
    trouble bad = combine_picked(c, &by, &x, 0, x.nnz, v.data, out.values);
    return settle(c, bad) ? csr_take(c, row, &out) : 0;
}

size_t apply_csr_at(call *c, size_t row) {
    semiring by;
    csr x;
    tensor a;
    csr_parts out;
    if (!read_combination(c, 0, row, &by) || !read_csr(c, 1, row, &x) ||
        !read_tensor(c, 2, row, &a) || !expect_length(c, "argument 3", x.rows * x.cols, a.length) ||
        !csr_room_like(c, row, &x, &out))
        return 0;
    trouble bad = 0;
    for (size_t r = 0; r < x.rows && !bad; r++)
        bad = combine_picked(c, &by, &x, x.ptr[r], csr_row_length(&x, r),
                             at(c->type, a.data, r * x.cols), out.values);
    return settle(c, bad) ? csr_take(c, row, &out) : 0;
}

/* Pairs of values at positions of two rows. */
static trouble combine_pairs(const element_type *type, const semiring *by, size_t count,
                             const void *a, const u32 *in_a, const void *b, const u32 *in_b,
                             void *out) {
    element x[CSR_BLOCK], y[CSR_BLOCK];
    trouble bad = 0;
    for (size_t e = 0, n; e < count && !bad; e += n) {
        n = count - e < CSR_BLOCK ? count - e : CSR_BLOCK;
        type->csr->pick(n, a, in_a + e, x);
        type->csr->pick(n, b, in_b + e, y);
        bad = combine_swapped(type, by, n, x, 1, y, 1, at_out(type, out, e));
    }
    return bad;
}

/* Operations and two compressed matrices of one shape. */
static bool read_two(call *c, size_t row, semiring *by, csr *a, csr *b) {
    return read_combination(c, 0, row, by) && read_csr(c, 1, row, a) && read_csr(c, 2, row, b) &&
           expect_shape(c, "as many rows in argument 3 as in argument 2:", a->rows, b->rows) &&
           expect_shape(c, "as many columns in argument 3 as in argument 2:", a->cols, b->cols);
}

/* Whether two rows have entries at the same places. */
static bool same_places(size_t n, const u32 *a, size_t m, const u32 *b) {
    return n == m && (n == 0 || memcmp(a, b, n * sizeof(u32)) == 0);
}

size_t apply_csr_csr_at(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr a, b;
    csr_built out;
    if (!read_two(c, row, &by, &a, &b) || !csr_build(c, a.rows, &out)) return 0;
    trouble bad = 0;
    for (size_t r = 0; r < a.rows && !bad; r++) {
        size_t s = a.ptr[r], t = b.ptr[r], n = csr_row_length(&a, r), m = csr_row_length(&b, r);
        size_t most = n < m ? n : m;
        u32 *pairs = (u32 *)call_work(c, WORK_LIST, 2 * most * sizeof(u32));
        if (pairs == NULL || !csr_build_more(c, &out, most)) return 0;
        if (watch_stops(&c->watch, 8 + 4 * (n + m))) return fail_with(c, INTERRUPTED);
        size_t found = csr_intersect(n, a.idx + s, m, b.idx + t, pairs, pairs + most);
        for (size_t e = 0; e < found; e++) out.idx[out.nnz + e] = a.idx[s + pairs[e]];
        bad = combine_pairs(type, &by, found, at(type, a.values, s), pairs, at(type, b.values, t),
                            pairs + most, at_out(type, out.values, out.nnz));
        out.nnz += found;
        out.ptr[r + 1] = (u32)out.nnz;
    }
    return settle(c, bad) ? csr_build_end(c, row, a.rows, a.cols, &out) : 0;
}

/* The values of a row of b at the n places of a row of a, fill where b has none; NULL after an error. */
static void *values_at(call *c, size_t n, const u32 *places, const csr *b, size_t r,
                       const element *fill) {
    const element_type *type = c->type;
    size_t t = b->ptr[r], m = csr_row_length(b, r), most = n < m ? n : m;
    u32 *pairs = (u32 *)call_work(c, WORK_LIST, 2 * most * sizeof(u32));
    char *line = (char *)call_work(c, WORK_VALUES, n * type->size);
    if (pairs == NULL || line == NULL) return NULL;
    type->fill(n, fill, line);
    size_t found = csr_intersect(n, places, m, b->idx + t, pairs, pairs + most);
    element picked[CSR_BLOCK];
    for (size_t e = 0, k; e < found; e += k) {
        k = found - e < CSR_BLOCK ? found - e : CSR_BLOCK;
        type->csr->pick(k, at(type, b->values, t), pairs + most + e, picked);
        type->csr->place(k, picked, pairs + e, line);
    }
    return line;
}

/* The places that one or the other of two rows has, in order, and in two lines the values there. */
static size_t unite(const element_type *type, size_t n, const u32 *a, const void *x,
                    const element *no_x, size_t m, const u32 *b, const void *y,
                    const element *no_y, u32 *idx, char *of_x, char *of_y) {
    size_t i = 0, j = 0, count = 0;
    for (; i < n || j < m; count++) {
        bool first = j == m || (i < n && a[i] <= b[j]), second = i == n || (j < m && b[j] <= a[i]);
        idx[count] = first ? a[i] : b[j];
        copy_element(type->size, first ? at(type, x, i) : no_x, at_out(type, of_x, count));
        copy_element(type->size, second ? at(type, y, j) : no_y, at_out(type, of_y, count));
        i += first;
        j += second;
    }
    return count;
}

size_t apply_csr_csr_union(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr a, b;
    element no_a, no_b;
    csr_built out;
    if (!read_two(c, row, &by, &a, &b) || !read_element(c, 3, row, &no_a) ||
        !read_element(c, 4, row, &no_b) || !csr_build(c, a.rows, &out))
        return 0;
    trouble bad = 0;
    for (size_t r = 0; r < a.rows && !bad; r++) {
        size_t s = a.ptr[r], t = b.ptr[r], n = csr_row_length(&a, r), m = csr_row_length(&b, r);
        const void *x = at(type, a.values, s), *y = at(type, b.values, t);
        if (!csr_build_more(c, &out, n + m)) return 0;
        if (watch_stops(&c->watch, 8 + 4 * (n + m))) return fail_with(c, INTERRUPTED);
        u32 *idx = out.idx + out.nnz;
        size_t count = n;
        if (same_places(n, a.idx + s, m, b.idx + t)) {
            if (n > 0) memcpy(idx, a.idx + s, n * sizeof(u32));
        } else {
            char *lines = call_work(c, WORK_LIST, 2 * (n + m) * type->size);
            if (lines == NULL) return 0;
            char *of_y = at_out(type, lines, n + m);
            count = unite(type, n, a.idx + s, x, &no_a, m, b.idx + t, y, &no_b, idx, lines, of_y);
            x = lines;
            y = of_y;
        }
        bad = combine_swapped(type, &by, count, x, 1, y, 1, at_out(type, out.values, out.nnz));
        out.nnz += count;
        out.ptr[r + 1] = (u32)out.nnz;
    }
    return settle(c, bad) ? csr_build_end(c, row, a.rows, a.cols, &out) : 0;
}

size_t apply_csr_csr_filled(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr a, b;
    element fill;
    csr_parts out;
    if (!read_two(c, row, &by, &a, &b) || !read_element(c, 3, row, &fill) ||
        !csr_room_like(c, row, &a, &out))
        return 0;
    trouble bad = 0;
    for (size_t r = 0; r < a.rows && !bad; r++) {
        size_t s = a.ptr[r], t = b.ptr[r], n = csr_row_length(&a, r), m = csr_row_length(&b, r);
        if (watch_stops(&c->watch, 8 + 4 * (n + m))) return fail_with(c, INTERRUPTED);
        const void *other = at(type, b.values, t);
        if (!same_places(n, a.idx + s, m, b.idx + t)) other = values_at(c, n, a.idx + s, &b, r, &fill);
        if (other == NULL) return 0;
        bad = combine_swapped(type, &by, n, at(type, a.values, s), 1, other, 1,
                              at_out(type, out.values, s));
    }
    return settle(c, bad) ? csr_take(c, row, &out) : 0;
}
