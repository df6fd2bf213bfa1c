/* Factors of square matrices by elimination, whose rows are swapped as pivots demand: a lower triangle
 * times a unit upper one (Crout). */
#ifndef UCLE_MATRIX_LU_H
#define UCLE_MATRIX_LU_H

#include <math.h>

#include "matrix.h"

/* So few columns are factored one by one, in a copy in which each is contiguous. */
enum { PANEL = 16 };

typedef struct factors {
    double *columns; /* PANEL of them, of w->n entries */
    size_t *pivots;  /* of row k, the row that it was swapped with */
    bool singular;   /* a pivot was 0 */
} factors;

/* Numbers that the factors need beside the matrix, and the factors that lie there. */
static inline size_t factor_numbers(size_t n) { return PANEL * n + n; }
static inline factors factors_in(double *numbers, size_t n) {
    return (factors){numbers, (size_t *)(void *)(numbers + PANEL * n), false};
}

/* w->a becomes both triangles. False after an error, or if the matrix is singular, which is no error
 * yet. */
bool factor_matrix(const work *w, factors *f);

/* w->more, right-hand sides (n x sides) followed by the numbers of factors, becomes the solutions; w->a
 * becomes both triangles. False after an error: the matrix may be singular. */
bool solve_systems(const work *w, size_t sides);

/* The error of a matrix that is singular. */
bool is_singular(const work *w);

/* Swaps rows of a matrix as pivots first to first + count - 1 say; `columns` of each row, which begin
 * `stride` behind each other. */
void follow_pivots(const factors *f, size_t first, size_t count, double *a, size_t stride,
                   size_t columns);

static inline void swap_rows(size_t n, double *u, double *v) {
    for (size_t k = 0; k < n; k++) {
        double x = u[k];
        u[k] = v[k];
        v[k] = x;
    }
}

static inline size_t find_pivot(size_t n, const double *column, size_t step) {
    size_t pivot = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(column[i * step]) > fabs(column[pivot * step])) pivot = i;
    return pivot;
}

#endif
