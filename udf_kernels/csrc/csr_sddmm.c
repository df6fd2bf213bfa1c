/* Inner products of dense rows at the places of a mask. */
#include "csr_work.h"

/* The inner products of one row of q with those of k that the mask names. */
static trouble dots(call *c, const semiring *by, size_t count, const u32 *idx, size_t d,
                    const void *q, const void *k, void *out) {
    const element_type *type = c->type;
    trouble bad = 0;
    if (sums_products(type, by)) {
        bad = type->csr->dots(count, idx, d, q, k, out);
        if (bad != OVERFLOWS || type->exact == NULL) return bad;
        bad = 0;
    }
    for (size_t e = 0; e < count && !bad; e++) {
        element sum = type->identity[by->reduce];
        bad = csr_fold_terms(type, by, d, q, at(type, k, idx[e] * d), &sum);
        copy_element(type->size, &sum, at_out(type, out, e));
    }
    return bad;
}

/* All of them, one after the other. */
static trouble all_dots(call *c, const semiring *by, const csr *mask, size_t d, const void *q,
                        const void *k, void *out) {
    const element_type *type = c->type;
    trouble bad = 0;
    for (size_t r = 0; r < mask->rows && !bad; r++) {
        size_t start = mask->ptr[r], count = csr_row_length(mask, r);
        if (watch_stops(&c->watch, 8 + count * (d / 2 + 4))) return INTERRUPTED;
        if (count > 0)
            bad = dots(c, by, count, mask->idx + start, d, at(type, q, r * d), k,
                       at_out(type, out, start));
    }
    return bad;
}

size_t apply_csr_sddmm(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr mask;
    tensor q, k;
    size_t d = 0;
    if (!read_whole(c, 4, row, LARGEST_SIZE, "d", &d) || !read_semiring(c, 0, row, &by) || !read_csr(c, 1, row, &mask) ||
        !read_lines(c, 2, row, mask.rows, d, &q) || !read_lines(c, 3, row, mask.cols, d, &k))
        return 0;
    const element *none = &type->identity[by.reduce];
    char *sums = call_work(c, WORK_SUMS, mask.nnz * type->size);
    char *values = call_work(c, WORK_VALUES, mask.nnz * type->size);
    if (sums == NULL || values == NULL) return 0;
    csr product = mask;
    product.values = values;
    if (d == 0) { /* of nothing, nothing */
        type->fill(mask.nnz, none, values);
        return csr_put_kept(c, row, &product, none);
    }
    trouble bad = all_dots(c, &by, &mask, d, q.data, k.data, sums);
    if (!bad) bad = combine_swapped(type, &by, mask.nnz, mask.values, 1, sums, 1, values);
    return settle(c, bad) ? csr_put_kept(c, row, &product, none) : 0;
}
