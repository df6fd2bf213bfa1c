/* Functions of small dense matrices: square ones that follow each other in a tensor, row-major. They
 * compute in float64, whatever they are handed. What has no answer, as the inverse of a singular
 * matrix, is an error, as in NumPy. */
#include <float.h>
#include <math.h>

#include "kernels.h"

/* A rotation of Jacobi's makes one pair of entries 0; after so many rounds of all pairs nothing is
 * left of any matrix of finite numbers. */
enum { MOST_SWEEPS = 60 };

/* Scratch: what a function works on, and for some another matrix and a number for each row. */
typedef struct room {
    double *a, *v, *w;
} room;

static bool paused(call *c, size_t work) { return watch_stops(&c->watch, work); }

static void swap_rows(size_t n, double *u, double *v) {
    for (size_t k = 0; k < n; k++) {
        double x = u[k];
        u[k] = v[k];
        v[k] = x;
    }
}

/* The lower triangle of which a symmetric matrix is made, whatever stands above it. */
static bool cholesky(call *c, size_t n, double *a) {
    for (size_t i = 0; i < n; i++) {
        double *row = a + i * n;
        if (paused(c, i * i)) return fail_with(c, INTERRUPTED);
        for (size_t j = 0; j <= i; j++) {
            const double *other = a + j * n;
            double rest = row[j];
            for (size_t k = 0; k < j; k++) rest -= row[k] * other[k];
            if (j < i) {
                row[j] = rest / other[j];
            } else {
                if (!(rest > 0)) return fail(c, "expected a positive definite matrix");
                row[j] = sqrt(rest);
            }
        }
        for (size_t j = i + 1; j < n; j++) row[j] = 0;
    }
    return true;
}

static void take_off(size_t n, double share, const double *from, double *row) {
    if (share == 0) return;
    for (size_t k = 0; k < n; k++) row[k] -= share * from[k];
}

/* Gauss and Jordan: a becomes the identity by steps that make v, which begins as that, the inverse. */
static bool invert(call *c, size_t n, double *a, double *v) {
    for (size_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    for (size_t k = 0; k < n; k++) {
        if (paused(c, 2 * n * n)) return fail_with(c, INTERRUPTED);
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (a[pivot * n + k] == 0) return fail(c, "expected a matrix with an inverse: it is singular");
        if (pivot != k) {
            swap_rows(n, a + k * n, a + pivot * n);
            swap_rows(n, v + k * n, v + pivot * n);
        }
        double leading = a[k * n + k];
        for (size_t j = 0; j < n; j++) {
            a[k * n + j] /= leading;
            v[k * n + j] /= leading;
        }
        for (size_t i = 0; i < n; i++) {
            if (i == k) continue;
            double share = a[i * n + k];
            take_off(n - k, share, a + k * n + k, a + i * n + k);
            take_off(n, share, v + k * n, v + i * n);
        }
    }
    return true;
}

static void rotate(size_t n, double cosine, double sine, double *p, double *q, size_t step) {
    for (size_t k = 0; k < n; k++, p += step, q += step) {
        double u = *p, w = *q;
        *p = cosine * u - sine * w;
        *q = sine * u + cosine * w;
    }
}

/* Rotates until all beside the diagonal of a is below `least`; the rows of v are turned likewise. */
static bool diagonalise(call *c, size_t n, double *a, double *v, double least) {
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        bool turned = false;
        for (size_t p = 0; p + 1 < n; p++) {
            if (paused(c, 12 * n * n)) return fail_with(c, INTERRUPTED);
            for (size_t q = p + 1; q < n; q++) {
                double beside = a[p * n + q];
                if (!(fabs(beside) > least)) continue;
                turned = true;
                double half = (a[q * n + q] - a[p * n + p]) / (2 * beside);
                double tangent = copysign(1, half) / (fabs(half) + hypot(half, 1));
                double cosine = 1 / hypot(tangent, 1), sine = tangent * cosine;
                rotate(n, cosine, sine, a + p, a + q, n);
                rotate(n, cosine, sine, a + p * n, a + q * n, 1);
                a[p * n + q] = a[q * n + p] = 0;
                rotate(n, cosine, sine, v + p * n, v + q * n, 1);
            }
        }
        if (!turned) return true;
    }
    return fail(c, "expected a matrix whose eigenvalues are found in %d rounds", MOST_SWEEPS);
}

/* The greatest entry of an eigenvector is positive, the first one of them if there are several. */
static void choose_sign(size_t n, double *vector) {
    size_t greatest = 0;
    for (size_t k = 1; k < n; k++)
        if (fabs(vector[k]) > fabs(vector[greatest])) greatest = k;
    if (vector[greatest] < 0)
        for (size_t k = 0; k < n; k++) vector[k] = -vector[k];
}

/* Of a symmetric matrix, of which the lower triangle is read: w has the eigenvalues, from the least
 * on, and the rows of v the vectors. */
static bool eigen(call *c, size_t n, const room *r) {
    double *a = r->a, *v = r->v, *w = r->w, greatest = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double x = a[i >= j ? i * n + j : j * n + i];
            a[i * n + j] = x;
            v[i * n + j] = i == j;
            if (!isfinite(x)) return fail(c, "expected a matrix of finite numbers");
            greatest = fmax(greatest, fabs(x));
        }
    if (!diagonalise(c, n, a, v, greatest * DBL_EPSILON / 4)) return false;
    for (size_t i = 0; i < n; i++) w[i] = a[i * n + i];
    for (size_t i = 0; i < n; i++) {
        size_t least = i;
        for (size_t j = i + 1; j < n; j++)
            if (w[j] < w[least]) least = j;
        if (least != i) {
            swap_rows(1, w + i, w + least);
            swap_rows(n, v + i * n, v + least * n);
        }
        choose_sign(n, v + i * n);
    }
    return true;
}

/* What a function makes of the matrix in r->a, there. */
static bool map_matrix(call *c, size_t n, const room *r) {
    switch ((enum matrix_map)c->kernel->op) {
    case MATRIX_cholesky: return cholesky(c, n, r->a);
    case MATRIX_inv:
        if (!invert(c, n, r->a, r->v)) return false;
        memcpy(r->a, r->v, n * n * sizeof(double));
        return true;
    case MATRIX_eigenvalues:
        if (!eigen(c, n, r)) return false;
        for (size_t i = 0; i < n * n; i++) r->a[i] = i % (n + 1) == 0 ? r->w[i / n] : 0;
        return true;
    case MATRIX_eigenvectors:
        if (!eigen(c, n, r)) return false;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) r->a[i * n + j] = r->v[j * n + i];
        return true;
    }
    return fail(c, "unknown function of matrices");
}

static void widen(const call *c, size_t n, const void *from, double *to) {
    if (c->type->number == TYPE_f64) {
        memcpy(to, from, n * sizeof(double));
        return;
    }
    const float *x = from;
    for (size_t i = 0; i < n; i++) to[i] = (double)x[i];
}

static void narrow_to(const call *c, size_t n, const double *from, void *to) {
    if (c->type->number == TYPE_f64) {
        memcpy(to, from, n * sizeof(double));
        return;
    }
    float *x = to;
    for (size_t i = 0; i < n; i++) x[i] = (float)from[i];
}

size_t apply_matrix(call *c, size_t row) {
    planes p;
    if (!read_planes(c, row, &p)) return 0;
    size_t n = p.length, bytes;
    if (p.inner != n)
        return fail(c, "expected square matrices, got %zu rows of %zu", p.length, p.inner);
    if (p.elements > max_elements(c->type))
        return fail(c, "expected matrices that fit a BLOB, got one of %zu rows", n);
    if (p.t.length == 0) return writer_put(c, row, NULL, 0); /* of nothing, whatever its shape */
    bytes = (2 * p.elements + n) * sizeof(double);
    void *out = writer_room(c, row, p.t.length);
    char *scratch = out == NULL ? NULL : call_scratch(c, bytes);
    if (scratch == NULL) return 0;
    room r = {(double *)scratch, (double *)scratch + p.elements,
              (double *)scratch + 2 * p.elements};
    for (size_t first = 0; first < p.t.length; first += p.elements) {
        widen(c, p.elements, at(c->type, p.t.data, first), r.a);
        if (!map_matrix(c, n, &r)) return 0;
        narrow_to(c, p.elements, r.a, at_out(c->type, out, first));
    }
    return finish(c, row, p.t.length, 0);
}
