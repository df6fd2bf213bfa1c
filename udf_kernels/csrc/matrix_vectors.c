/* Loops over vectors, and over rows of matrices that lie `stride` behind each other. */
#include "hot.h"
#include "matrix.h"

HOT double dot_loop(size_t n, const double *x, const double *y) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

HOT void subtract_loop(size_t n, double factor, const double *x, double *restrict y) {
    for (size_t i = 0; i < n; i++) y[i] -= factor * x[i];
}

HOT void subtract_rows_loop(size_t n, size_t count, const double *factors, size_t step,
                            const double *x, size_t stride, double *restrict y) {
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

HOT void multiply_rows_loop(size_t rows, size_t n, const double *a, size_t stride,
                            const double *restrict x, double *restrict out) {
    size_t i = 0;
    for (; i + 4 <= rows; i += 4, a += 4 * stride) {
        const double *a1 = a + stride, *a2 = a1 + stride, *a3 = a2 + stride;
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (size_t j = 0; j < n; j++) {
            s0 += a[j] * x[j];
            s1 += a1[j] * x[j];
            s2 += a2[j] * x[j];
            s3 += a3[j] * x[j];
        }
        out[i] = s0;
        out[i + 1] = s1;
        out[i + 2] = s2;
        out[i + 3] = s3;
    }
    for (; i < rows; i++, a += stride) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t j = 0; j < n; j++) sum += a[j] * x[j];
        out[i] = sum;
    }
}

double dot(size_t n, const double *x, const double *y) { return dot_loop(n, x, y); }

void subtract(size_t n, double factor, const double *x, double *y) { subtract_loop(n, factor, x, y); }

void subtract_rows(size_t n, size_t count, const double *factors, size_t step, const double *x,
                   size_t stride, double *y) {
    subtract_rows_loop(n, count, factors, step, x, stride, y);
}

void multiply_rows(size_t rows, size_t n, const double *a, size_t stride, const double *x,
                   double *out) {
    multiply_rows_loop(rows, n, a, stride, x, out);
}
