/* Cholesky factors: the lower triangle of which a symmetric matrix is made, whatever stands above
 * the diagonal. The first half of the columns is finished before the second one is looked at. */
#include <math.h>

#include "matrix.h"

/* Matrices of at most so many rows are not split. */
enum { UNSPLIT = 24 };

static bool factor_small(const work *w, size_t n, block a) {
    for (size_t i = 0; i < n; i++) {
        double *row = a.data + i * a.row;
        for (size_t j = 0; j <= i; j++) {
            const double *other = a.data + j * a.row;
            double rest = row[j];
            for (size_t k = 0; k < j; k++) rest -= row[k] * other[k];
            if (j < i) {
                row[j] = rest / other[j];
            } else {
                if (!(rest > 0)) return fail(w->c, "expected a positive definite matrix");
                row[j] = sqrt(rest);
            }
        }
    }
    return true;
}

static bool factor(const work *w, size_t n, block a) {
    if (n <= UNSPLIT) return !interrupted(w, n * n * n) && factor_small(w, n, a);
    size_t half = n < 2 * TRIANGLE ? TRIANGLE : n / 2 / TRIANGLE * TRIANGLE;
    block below = block_at(a, half, 0), low = block_at(a, half, half);
    return factor(w, half, a) &&
           solve_triangle(w, LOWER, half, n - half, a, transpose(below)) &&
           subtract_lower_product(w, n - half, half, below, transpose(below), low) &&
           factor(w, n - half, low);
}

bool matrix_cholesky(const work *w) {
    if (!factor(w, w->n, (block){w->a, w->n, 1})) return false;
    for (size_t i = 0; i < w->n; i++)
        for (size_t j = i + 1; j < w->n; j++) w->a[i * w->n + j] = 0;
    return true;
}
