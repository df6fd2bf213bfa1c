/* Eigenvalues and eigenvectors of symmetric matrices, of which the lower triangle is read. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "matrix.h"

/* Of equal entries of a vector the first one decides its sign; rounding makes no difference. */
#define ALMOST (1 - 16 * DBL_EPSILON)

size_t eigenvalue_numbers(size_t rows, size_t n) {
    (void)rows;
    return (3 * REFLECTIONS + 3) * n;
}
size_t eigenvector_numbers(size_t rows, size_t n) {
    return rows * n + eigenvalue_numbers(rows, n) + n + divide_numbers(n);
}

/* Divides by a power of two, so that no square overflows or loses digits. */
static bool scale(const work *w, int *exponent) {
    size_t n = w->n;
    double greatest = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double x = fabs(w->a[i * n + j]);
            if (!isfinite(x)) return fail(w->c, "expected a matrix of finite numbers");
            greatest = fmax(greatest, x);
        }
    frexp(greatest, exponent);
    double factor = ldexp(1, -*exponent / 2), rest = ldexp(1, -*exponent - -*exponent / 2);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) w->a[i * n + j] = w->a[i * n + j] * factor * rest;
    return true;
}

static int compare(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return u < v ? -1 : u > v;
}

bool matrix_eigenvalues(const work *w) {
    size_t n = w->n;
    int exponent;
    tridiagonal t = {n, w->more, w->more + n};
    double *factors = w->more + 2 * n;
    if (!scale(w, &exponent) || !tridiagonalise(w, t, factors, w->more + 3 * n) ||
        !iterate_tridiagonal(w, t, NULL, 0, 0))
        return false;
    qsort(t.d, n, sizeof(double), compare);
    memset(w->a, 0, n * n * sizeof(double));
    for (size_t i = 0; i < n; i++) w->a[i * (n + 1)] = ldexp(t.d[i], exponent);
    return true;
}

double sign_of(size_t n, const double *vector) {
    size_t greatest = 0;
    for (size_t k = 1; k < n; k++)
        if (fabs(vector[k]) * ALMOST > fabs(vector[greatest])) greatest = k;
    return vector[greatest] < 0 ? -1 : 1;
}

bool matrix_eigenvectors(const work *w) {
    size_t n = w->n;
    int exponent;
    double *v = w->more, *d = v + n * n, *factors = d + 2 * n, *rows = factors + n;
    double *places = rows + 3 * REFLECTIONS * n, *numbers = places + n;
    tridiagonal t = {n, d, d + n};
    if (!scale(w, &exponent) || !tridiagonalise(w, t, factors, rows) ||
        !divide_tridiagonal(w, t, v, numbers) ||
        !undo_tridiagonal(w, factors, rows, (block){v, n, 1}))
        return false;
    size_t *order = (size_t *)(void *)places;
    sort_rows(n, d, order);
    for (size_t j = 0; j < n; j++) {
        const double *vector = v + order[j] * n;
        double sign = sign_of(n, vector);
        for (size_t i = 0; i < n; i++) w->a[i * n + j] = sign * vector[i];
    }
    return true;
}
