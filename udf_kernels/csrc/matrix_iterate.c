/* Eigenvalues of tridiagonal matrices by the implicit QL iteration with Wilkinson's shift. */
#include <float.h>
#include <math.h>

#include "hot.h"
#include "matrix.h"

/* Eigenvalues take two rounds on average; no matrix of finite numbers needs so many on average. */
enum { MOST_ROUNDS = 60 };

HOT void rotate(size_t n, double cosine, double sine, double *restrict p, double *restrict q) {
    for (size_t k = 0; k < n; k++) {
        double u = p[k], v = q[k];
        p[k] = cosine * u - sine * v;
        q[k] = sine * u + cosine * v;
    }
}

void rotate_rows(size_t n, double cosine, double sine, double *p, double *q) {
    rotate(n, cosine, sine, p, q);
}

/* The last row of the block that begins with this one: behind it, the matrix falls apart. */
static size_t end_of_block(tridiagonal t, size_t first) {
    for (size_t i = first; i + 1 < t.n; i++) {
        double beside = fabs(t.e[i]);
        if (beside > DBL_EPSILON * (fabs(t.d[i]) + fabs(t.d[i + 1])) && beside >= NEGLIGIBLE) continue;
        t.e[i] = 0;
        return i;
    }
    return t.n - 1;
}

static double length(double x, double y) {
    double square = x * x + y * y;
    return square < NEGLIGIBLE * NEGLIGIBLE ? hypot(x, y) : sqrt(square);
}

/* One round over rows first to last of t. */
static void round_of(tridiagonal t, size_t first, size_t last, double *v, size_t stride,
                     size_t columns) {
    double *d = t.d, *e = t.e;
    double half = (d[first + 1] - d[first]) / (2 * e[first]);
    double g = d[last] - d[first] + e[first] / (half + copysign(length(half, 1), half));
    double sine = 1, cosine = 1, shift = 0;
    for (size_t i = last; i-- > first;) {
        double f = sine * e[i], b = cosine * e[i], r = length(f, g);
        if (i + 1 < last) e[i + 1] = r;
        if (r == 0) { /* the matrix falls apart here */
            d[i + 1] -= shift;
            return;
        }
        sine = f / r;
        cosine = g / r;
        g = d[i + 1] - shift;
        r = (d[i] - g) * sine + 2 * cosine * b;
        shift = sine * r;
        d[i + 1] = g + shift;
        g = cosine * r - b;
        if (v != NULL) rotate(columns, cosine, sine, v + i * stride, v + (i + 1) * stride);
    }
    d[first] -= shift;
    e[first] = g;
}

static void swap(double *x, double *y) {
    double kept = *x;
    *x = *y;
    *y = kept;
}

/* Turns rows first to last upside down if the smaller entries are at the end: a round finds the
 * eigenvalues at the beginning, and small ones would be found slowly behind large ones. */
static void put_small_first(tridiagonal t, size_t first, size_t last, double *v, size_t stride,
                            size_t columns) {
    if (fabs(t.d[first]) <= fabs(t.d[last])) return;
    for (size_t i = first, j = last; i < j; i++, j--) {
        swap(t.d + i, t.d + j);
        for (size_t k = 0; v != NULL && k < columns; k++) swap(v + i * stride + k, v + j * stride + k);
        if (i < j - 1) swap(t.e + i, t.e + j - 1);
    }
}

bool iterate_tridiagonal(const work *w, tridiagonal t, double *v, size_t stride, size_t columns) {
    size_t rounds = 0;
    for (size_t first = 0; first < t.n; first++)
        for (bool begins = true;; begins = false) {
            size_t last = end_of_block(t, first);
            if (last == first) break;
            if (rounds++ == MOST_ROUNDS * t.n)
                return fail(w->c, "expected a matrix whose eigenvalues are found in %d rounds each",
                            MOST_ROUNDS);
            if (interrupted(w, (last - first) * (16 + (v == NULL ? 0 : columns)))) return false;
            if (begins) put_small_first(t, first, last, v, stride, columns);
            round_of(t, first, last, v, stride, columns);
        }
    return true;
}
