/* Reflections (Householder): the identity less factor v v^T, of which v begins with a 1. */
#ifndef UCLE_MATRIX_REFLECTIONS_H
#define UCLE_MATRIX_REFLECTIONS_H

#include "matrix.h"

/* Reflections of a matrix whose columns lie as rows, `stride` behind each other and `length` long. The
 * entries of row k behind entry k are those of vector k behind its 1. */
typedef struct reflections {
    size_t count, length, stride;
    double *data, *factors;
} reflections;

/* The reflection that leaves nothing of x (n entries) but *first, which stood or comes in the first
 * place: x becomes its vector. Returns its factor, 0 where there is nothing to do. As LAPACK's, *first
 * has the other sign than what stood there. */
double reflect_first(size_t n, double *x, double *first);

/* Reflections, one after the other, are the identity less v^T s v, where the rows of v (n entries) are
 * their vectors and s (count x count, lower triangular) is computed here. */
void join_reflections(size_t n, size_t count, const double *factors, const double *v, double *s);

/* z (rows x reach) -= z v^T s v, where the rows of v are `count` vectors. `numbers` has space for
 * 2 * count * rows. */
bool multiply_reflections(const work *w, size_t rows, size_t reach, block vectors, size_t count,
                          block s, block z, double *numbers);

/* Numbers that the following functions need for vectors of this length and for `rows` columns, or rows of
 * z, of which there are no fewer than reflections. */
size_t reflection_numbers(size_t length, size_t rows);

/* An upper bidiagonal matrix: n entries on its diagonal and n - 1 beside it. */
typedef struct bidiagonal {
    double *d, *e, *factors; /* of the reflections of rows */
} bidiagonal;

/* Turns a (n x n) into b. The entries of row i behind the diagonal become the vector of the reflection
 * of rows i + 1 and those behind it, as reflections are stored; those of columns are not kept. */
bool bidiagonalise(const work *w, size_t n, double *a, bidiagonal b, double *numbers);
size_t bidiagonal_numbers(size_t n);

/* Turns `columns` columns into a triangle, which stands where they were, and reflections. */
bool reduce_columns(const work *w, const reflections *r, size_t columns, double *numbers);

/* The product of the reflections, the first of them outermost, with each row of z. If rows i of z are
 * those of the identity, `identity` saves half of the work. */
bool apply_reflections(const work *w, const reflections *r, size_t rows, bool identity, block z,
                       double *numbers);

#endif
