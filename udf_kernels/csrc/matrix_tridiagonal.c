/* From a symmetric matrix to a tridiagonal one, by reflections (Householder), and back.
 *
 * Rows are made 0 beside the diagonal from the last one up, so that what a reflection reads is
 * contiguous. The effect of REFLECTIONS of them on the rows above is kept as vectors v and w, so that
 * it is one product: a -= v w^T + w v^T. Only the lower triangle is read and written.
 */
#include <math.h>

#include "hot.h"
#include "matrix_reflections.h"

/* y = a x for the lower triangle of a symmetric matrix, four rows of which are read at a time. */
HOT void symmetric_vector(size_t n, const double *a, size_t stride, const double *restrict x,
                          double *restrict y) {
    size_t i = 0;
    memset(y, 0, n * sizeof(double));
    for (; i + 4 <= n; i += 4) {
        const double *r0 = a + i * stride, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
        double x0 = x[i], x1 = x[i + 1], x2 = x[i + 2], x3 = x[i + 3], s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (size_t j = 0; j < i; j++) {
            y[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j]);
            s0 += r0[j] * x[j];
            s1 += r1[j] * x[j];
            s2 += r2[j] * x[j];
            s3 += r3[j] * x[j];
        }
        double *sums = y + i, *own = (double[]){s0, s1, s2, s3};
        for (size_t p = 0; p < 4; p++) {
            const double *row = a + (i + p) * stride + i;
            for (size_t q = 0; q < p; q++) {
                own[p] += row[q] * x[i + q];
                own[q] += row[q] * x[i + p];
            }
            own[p] += row[p] * x[i + p];
        }
        for (size_t p = 0; p < 4; p++) sums[p] += own[p];
    }
    for (; i < n; i++) {
        const double *row = a + i * stride;
        double sum = row[i] * x[i];
        for (size_t j = 0; j < i; j++) {
            y[j] += row[j] * x[i];
            sum += row[j] * x[j];
        }
        y[i] += sum;
    }
}

/* The reflection that leaves nothing of x (n entries) but *beside in the last place: x becomes its
 * vector, the last entry of which is 1. Returns its factor, 0 where there is nothing to do. */
static double reflect(size_t n, double *x, double *beside) {
    double last = x[n - 1], others = dot(n - 1, x, x), all = others + last * last;
    *beside = last;
    if (!(others > 0) || all < NEGLIGIBLE * NEGLIGIBLE) {
        memset(x, 0, n * sizeof(double));
        return 0;
    }
    double length = -copysign(sqrt(all), last), scale = 1 / (last - length);
    for (size_t i = 0; i + 1 < n; i++) x[i] *= scale;
    x[n - 1] = 1;
    *beside = length;
    return (length - last) / length;
}

/* The vectors of reflections so far: rows v, then w, then v again, of n entries each. */
typedef struct pairs {
    size_t n, count;
    double *v, *w, *again;
} pairs;

/* Row i of the matrix becomes a reflection, the next of the pairs. */
static void tridiagonalise_row(const work *o, size_t i, tridiagonal t, double *factors, pairs *p) {
    size_t n = p->n, k = p->count;
    double *row = o->a + i * n, *v = p->v + k * n, *w = p->w + k * n;
    double by_w[REFLECTIONS], by_v[REFLECTIONS];
    subtract_rows(i + 1, k, p->v + i, n, p->w, n, row);
    subtract_rows(i + 1, k, p->w + i, n, p->v, n, row);
    t.d[i] = row[i];
    factors[i] = i == 0 ? 0 : reflect(i, row, t.e + i - 1);
    memcpy(v, row, i * sizeof(double));
    memset(v + i, 0, (n - i) * sizeof(double));
    memcpy(p->again + k * n, v, n * sizeof(double));
    memset(w, 0, n * sizeof(double));
    p->count++;
    if (factors[i] == 0) return;
    symmetric_vector(i, o->a, n, v, w);
    for (size_t j = 0; j < k; j++) {
        by_w[j] = dot(i, p->w + j * n, v);
        by_v[j] = dot(i, p->v + j * n, v);
    }
    subtract_rows(i, k, by_w, 1, p->v, n, w);
    subtract_rows(i, k, by_v, 1, p->w, n, w);
    for (size_t j = 0; j < i; j++) w[j] *= factors[i];
    subtract(i, factors[i] / 2 * dot(i, w, v), v, w);
}

bool tridiagonalise(const work *o, tridiagonal t, double *factors, double *rows) {
    size_t n = o->n;
    block a = {o->a, n, 1};
    for (size_t end = n; end > 0;) {
        size_t count = end < 2 * REFLECTIONS ? end < REFLECTIONS ? end : end / 2 : REFLECTIONS;
        pairs p = {n, 0, rows, rows + count * n, rows + 2 * count * n};
        for (size_t k = 0; k < count; k++) {
            if (interrupted(o, end * (end / 8 + 4 * count))) return false;
            tridiagonalise_row(o, --end, t, factors, &p);
        }
        block both = {p.v, 1, n}, turned = {p.w, n, 1};
        if (end > 0 && !subtract_lower_product(o, end, 2 * count, both, turned, a)) return false;
    }
    return true;
}

bool undo_tridiagonal(const work *o, const double *factors, double *rows, block z) {
    size_t n = o->n;
    double s[REFLECTIONS * REFLECTIONS];
    for (size_t first = 1; first < n; first += REFLECTIONS) {
        size_t count = n - first < REFLECTIONS ? n - first : REFLECTIONS, reach = first + count - 1;
        double *v = rows, *by_v = v + count * n;
        for (size_t k = 0; k < count; k++) {
            memset(v + k * n, 0, n * sizeof(double));
            memcpy(v + k * n, o->a + (first + k) * n, (first + k) * sizeof(double));
        }
        join_reflections(n, count, factors + first, v, s);
        if (!multiply_reflections(o, n, reach, (block){v, n, 1}, count, (block){s, 1, count}, z, by_v))
            return false;
    }
    return true;
}
