/* Runs of one value in the rows of a compressed tensor (csr.h): what reads them without their entries. */
#ifndef UCLE_CSR_RUNS_H
#define UCLE_CSR_RUNS_H

#include "csr.h"

/* How many entries there are, of runs as well. */
size_t csr_entries(const csr *x);

/* Row r of the dense matrix, at the places of its runs. */
void csr_fill_runs(const element_type *type, const csr *x, size_t r, void *out);

/* *out op= what `count` runs from `first` on stand for. */
trouble csr_fold_runs(call *c, const semiring *by, const csr *x, size_t first, size_t count,
                      element *out);

/* The product with a dense matrix of n columns, as csr_mat makes it. OVERFLOWS where the sum of a run
 * leaves the type, or would lose digits: then the entries have to be multiplied one by one. */
trouble csr_multiply_runs(call *c, const csr *x, const semiring *by, const void *matrix, size_t n,
                          size_t length, void *out);

/* The product of the transpose with such a matrix, as csr_t_mat makes it; the values themselves, of
 * one column, if `matrix` is NULL. Into `out`; or added to accumulators (csr_loops.h). OVERFLOWS as
 * above. */
trouble csr_t_runs(call *c, const csr *x, const semiring *by, const void *matrix, size_t n,
                   size_t length, void *out);
trouble csr_spread_runs(call *c, const csr *x, const semiring *by, const void *matrix, size_t n,
                        void *sums);

#endif
