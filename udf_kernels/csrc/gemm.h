/* Matrix products: blocked and packed where that pays, else plain loops. */
#ifndef UCLE_GEMM_H
#define UCLE_GEMM_H

#include "loops.h"

/* A matrix in memory; element (i, j) lies at data[i * row + j * column]. */
typedef struct matrix {
    const f64 *data;
    size_t row, column;
} matrix;

/* Whether a product of this size is worth packing. */
bool gemm_pays(size_t m, size_t n, size_t k);

/* c (m x n) += a (m x k) b (k x n), with any strides. False, and nothing done, if there is no
 * memory for the packed panels. */
bool gemm_add(size_t m, size_t n, size_t k, matrix a, matrix b, f64 *c, size_t c_row,
              size_t c_column);

/* The same for dense row-major matrices, by whatever works. */
void gemm_dense(size_t m, size_t n, size_t k, const f64 *a, const f64 *b, f64 *c);

#endif
