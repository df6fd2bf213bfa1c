/* QR: orthonormal columns times an upper triangle, both of which stand where the matrix has its place,
 * one behind the other, with zeros for the rest. */
#include <math.h>

#include "matrix_reflections.h"

size_t qr_numbers(size_t rows, size_t columns) {
    size_t count = rows < columns ? rows : columns;
    return rows * (columns + count) + count + reflection_numbers(rows, columns);
}

bool matrix_qr(const work *w) {
    size_t m = w->rows, n = w->n, count = m < n ? m : n;
    double *x = w->more, *q = x + m * n, *factors = q + m * count, *numbers = factors + count;
    reflections r = {count, m, m, x, factors};
    int exponent;
    if (!scale_matrix(w, &exponent)) return false;
    turn(m, n, w->a, x);
    if (!reduce_columns(w, &r, n, numbers)) return false;
    set_identity(count, m, q);
    if (!apply_reflections(w, &r, count, true, (block){q, m, 1}, numbers)) return false;
    double *orthonormal = w->a, *triangle = w->a + m * n;
    memset(orthonormal, 0, 2 * m * n * sizeof(double));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < count; j++) orthonormal[i * n + j] = q[j * m + i];
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i <= j && i < count; i++)
            triangle[i * n + j] = ldexp(x[j * m + i], exponent);
    return true;
}
