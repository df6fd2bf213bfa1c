/* What kernels of compressed tensors work with: memory of a call, reused from row to row. */
#ifndef UCLE_CSR_WORK_H
#define UCLE_CSR_WORK_H

#include "csr.h"

/* Of call_work; the scratch is for whatever else there is. */
enum { WORK_INDICES, WORK_VALUES, WORK_SUMS, WORK_PLACES, WORK_LIST, WORK_BITS, WORK_RANKS, WORK_RUNS };

/* A result of which nobody knows how long it will be. */
typedef struct csr_built {
    size_t nnz;
    u32 *ptr, *idx;
    char *values;
} csr_built;

/* Room for a result of so many rows, and for more entries in it; then makes it the result. */
bool csr_build(call *c, size_t rows, csr_built *b);
bool csr_build_more(call *c, csr_built *b, size_t entries);
size_t csr_build_end(call *c, size_t row, size_t rows, size_t cols, const csr_built *b);
/* Entries that stand behind the last ones: those that differ from fill become the row's. */
void csr_build_row(call *c, csr_built *b, size_t r, size_t count, const element *fill);

/* The result of x without entries that are equal to fill. */
size_t csr_put_kept(call *c, size_t row, const csr *x, const element *fill);

/* Accumulators for n entries, cleared; whoever uses them leaves them so. NULL after an error. */
void *csr_sums(call *c, enum reduce_op op, size_t n);

/* The first position from `from` on whose index is not below `wanted`, found in leaps. */
static inline size_t csr_leap(size_t n, const u32 *idx, size_t from, uint32_t wanted) {
    size_t step = 1, low = from;
    while (low + step < n && idx[low + step] < wanted) low += step, step *= 2;
    size_t high = low + step < n ? low + step : n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (idx[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Places in both of two rows: where each is, as pairs; returns how many. Leaps where one is 16 times
 * as long. */
size_t csr_intersect(size_t n, const u32 *a, size_t m, const u32 *b, u32 *in_a, u32 *in_b);

/* *out op= the terms a[i] ⊗ b[i], or a[i] if b is NULL; sums with totals. */
trouble csr_fold_terms(const element_type *type, const semiring *by, size_t n, const void *a,
                       const void *b, element *out);

/* The transpose of x: its indices and values, given its ptr; in the call's memory. */
bool csr_turn(call *c, const csr *x, u32 *ptr, u32 *idx, void *values);
bool expect_shape(call *c, const char *what, size_t expected, size_t got);

#endif
