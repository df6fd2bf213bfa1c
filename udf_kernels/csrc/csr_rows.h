/* What the rows of a dense matrix come to at the places of some entries: ⊕ of value ⊗ row. */
#ifndef UCLE_CSR_ROWS_H
#define UCLE_CSR_ROWS_H

#include "csr.h"

typedef struct fold {
    const element_type *type;
    semiring by;
    const void *matrix;
    size_t n; /* its columns */
    char *totals; /* n of them, of types that have some: the call's scratch */
} fold;

/* The dense matrix in an argument, of n columns: the next argument. */
bool read_dense(call *c, int arg, size_t row, size_t lines, tensor *d, size_t *n);
/* The length of a result of rows x n, which of an operand of nothing is not large. */
bool result_length(call *c, size_t rows, size_t n, size_t operand, size_t *length);

bool fold_open(call *c, const semiring *by, const void *matrix, size_t n, fold *f);
/* Into `out` (n), which holds the identity. */
trouble fold_entries(const fold *f, size_t count, const void *values, const u32 *idx, void *out);
/* Sums, added to totals by way of zeros that become zeros again. */
trouble fold_to_totals(const fold *f, size_t count, const void *values, const u32 *idx, void *near,
                       void *totals);

#endif
