/* Matrix products: blocked and packed where that pays, else plain loops. */
#ifndef UCLE_GEMM_H
#define UCLE_GEMM_H

#include "element.h"

/* Whether a product of this size is worth packing. */
bool gemm_pays(const element_type *type, size_t m, size_t n, size_t k);

/* c (m x n) += a (m x k) b (k x n), with any strides, where it pays. */
trouble gemm_add(const element_type *type, size_t m, size_t n, size_t k, matrix a, matrix b,
                 void *c, size_t c_row, size_t c_column, watch *w);

/* Bytes of panels for any product with at most n rows, columns and terms. */
size_t gemm_bytes(const element_type *type, size_t n);

/* How many terms it adds to each entry one by one: as many are summed up in registers. */
enum { GEMM_TERMS = 256 };

/* The same for dense row-major matrices of any type but bool, by whatever works. */
trouble gemm_dense(const element_type *type, size_t m, size_t n, size_t k, const void *a,
                   const void *b, void *c, watch *w);

#endif
