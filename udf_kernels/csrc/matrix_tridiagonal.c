/* From a symmetric matrix to a tridiagonal one, by reflections (Householder), and back.
 *
 * Rows are made 0 beside the diagonal from the last one up, so that what a reflection reads is
 * contiguous. The effect of REFLECTIONS of them on the rows above is kept as vectors v and w, so that
 * it is one product: a -= v w^T + w v^T. Only the lower triangle is read and written.
 */
#include <math.h>

#include "hot.h"
#include "matrix.h"

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

HOT double dot(size_t n, const double *x, const double *y) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

HOT void subtract(size_t n, double factor, const double *x, double *restrict y) {
    for (size_t i = 0; i < n; i++) y[i] -= factor * x[i];
}

/* y -= factors (count) times rows of x, which lie `stride` behind each other. */
HOT void subtract_rows(size_t n, size_t count, const double *factors, size_t step, const double *x,
                       size_t stride, double *restrict y) {
    size_t k = 0;
    for (; k + 4 <= count; k += 4, x += 4 * stride) {
        double f0 = factors[k * step], f1 = factors[(k + 1) * step], f2 = factors[(k + 2) * step],
               f3 = factors[(k + 3) * step];
        const double *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        for (size_t i = 0; i < n; i++)
            y[i] -= (f0 * x[i] + f1 * x1[i]) + (f2 * x2[i] + f3 * x3[i]);
    }
    for (; k < count; k++, x += stride)
        for (size_t i = 0; i < n; i++) y[i] -= factors[k * step] * x[i];
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

/* The reflections of rows first to first + count - 1, one after the other, are the identity less
 * v^T s v, where the rows of v are their vectors and s (lower triangular) is computed here. */
static void join_reflections(size_t n, size_t count, const double *factors, const double *v,
                             double *s) {
    memset(s, 0, count * count * sizeof(double));
    for (size_t k = 0; k < count; k++) {
        double *row = s + k * count;
        for (size_t l = 0; l < k; l++)
            subtract(k, factors[k] * dot(n, v + k * n, v + l * n), s + l * count, row);
        row[k] = factors[k];
    }
}

bool undo_tridiagonal(const work *o, const double *factors, double *rows, block z) {
    size_t n = o->n;
    double s[REFLECTIONS * REFLECTIONS];
    for (size_t first = 1; first < n; first += REFLECTIONS) {
        size_t count = n - first < REFLECTIONS ? n - first : REFLECTIONS, reach = first + count - 1;
        double *v = rows, *by_v = v + count * n, *by_s = by_v + count * n;
        for (size_t k = 0; k < count; k++) {
            memset(v + k * n, 0, n * sizeof(double));
            memcpy(v + k * n, o->a + (first + k) * n, (first + k) * sizeof(double));
        }
        join_reflections(n, count, factors + first, v, s);
        block vectors = {v, n, 1}, product = {by_v, count, 1}, scaled = {by_s, count, 1};
        memset(by_v, 0, 2 * count * n * sizeof(double));
        if (!add_product(o, n, count, reach, z, transpose(vectors), product) ||
            !add_product(o, n, count, count, product, (block){s, 1, count}, scaled) ||
            !subtract_product(o, n, reach, count, scaled, vectors, z))
            return false;
    }
    return true;
}
