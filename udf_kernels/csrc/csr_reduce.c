/* Reductions of the entries of a compressed tensor. */
#include "csr_runs.h"
#include "csr_work.h"

size_t apply_csr_reduce_rows(call *c, size_t row) {
    const element_type *type = c->type;
    semiring by;
    csr x;
    if (!read_reduction(c, 0, row, &by) || !read_csr_stored(c, 1, row, &x)) return 0;
    char *out = writer_room(c, row, x.rows);
    if (out == NULL) return 0;
    trouble bad = 0;
    for (size_t r = 0; r < x.rows && !bad; r++) {
        size_t count = csr_row_length(&x, r);
        element end = type->identity[by.reduce];
        if (watch_stops(&c->watch, 8 + count)) bad = INTERRUPTED;
        bad |= x.ends != NULL
                   ? csr_fold_runs(c, &by, &x, x.ptr[r], count, &end)
                   : csr_fold_terms(type, &by, count, at(type, x.values, x.ptr[r]), NULL, &end);
        copy_element(type->size, &end, at_out(type, out, r));
    }
    return finish(c, row, x.rows, bad);
}

size_t apply_csr_reduce_cols(call *c, size_t row) {
    const csr_loops *loops = c->type->csr;
    semiring by;
    csr x;
    if (!read_reduction(c, 0, row, &by) || !read_csr_stored(c, 1, row, &x)) return 0;
    char *out = writer_room(c, row, x.cols);
    if (out != NULL && x.ends != NULL)
        return finish(c, row, x.cols, csr_t_runs(c, &x, &by, NULL, 1, x.cols, out));
    void *sums = out == NULL ? NULL : csr_sums(c, by.reduce, x.cols);
    if (sums == NULL) return 0;
    trouble bad = watch_stops(&c->watch, 4 * x.nnz) ? INTERRUPTED : 0;
    if (!bad) bad = loops->spread_reduce(by.reduce, x.nnz, x.idx, x.values, sums);
    if (!bad) bad = loops->collect(by.reduce, x.cols, NULL, sums, out);
    return finish(c, row, x.cols, bad);
}

size_t apply_csr_reduce(call *c, size_t row) {
    semiring by;
    csr x;
    if (!read_reduction(c, 0, row, &by) || !read_csr_stored(c, 1, row, &x)) return 0;
    element end = c->type->identity[by.reduce];
    trouble bad = x.ends != NULL ? csr_fold_runs(c, &by, &x, 0, x.nnz, &end)
                                 : csr_fold_terms(c->type, &by, x.nnz, x.values, NULL, &end);
    return settle(c, bad) && put_element(c, row, &end);
}
