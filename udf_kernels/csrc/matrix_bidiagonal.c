/* From a square matrix to an upper bidiagonal one, by reflections of columns and of rows in turn.
 *
 * The effect of REFLECTIONS pairs of them on the rest of the matrix is kept as vectors v, y, x and u, so
 * that it is one product: a -= v y^T + x u^T. The two products of the matrix and a vector that each pair
 * takes read all that is left of it, and most of the time goes there. */
#include "matrix_reflections.h"

/* The vectors of the pairs so far, in rows of n entries each. */
typedef struct sides {
    size_t n, count;
    double *v, *x, *y, *u;
} sides;

size_t bidiagonal_numbers(size_t n) { return 4 * REFLECTIONS * n; }

/* Takes off the share of all pairs in column g, or in row g, from entry `first` on: what the rows of
 * `own` and of `more` are multiplied by stands at place g of the rows of `other` and of `last`. */
static void subtract_pairs(const sides *p, size_t g, size_t first, const double *own,
                           const double *other, const double *more, const double *last, double *out) {
    subtract_rows(p->n - first, p->count, other + g, p->n, own + first, p->n, out + first);
    subtract_rows(p->n - first, p->count, last + g, p->n, more + first, p->n, out + first);
}

/* out -= own^T (other z), for `count` rows of both: z from entry `first` on, out from `next` on. */
static void subtract_products(const sides *p, size_t count, const double *own, const double *other,
                              size_t first, const double *z, size_t next, double *out) {
    double shares[REFLECTIONS];
    multiply_rows(count, p->n - first, other + first, p->n, z + first, shares);
    subtract_rows(p->n - next, count, shares, 1, own + next, p->n, out + next);
}

static void multiply_by(size_t n, double factor, double *x) {
    for (size_t i = 0; i < n; i++) x[i] *= factor;
}

/* Column and row g of the matrix become a pair of reflections. */
static void reduce_pair(double *a, size_t g, bidiagonal b, sides *p) {
    size_t n = p->n, k = p->count, next = g + 1, rest = n - next;
    double *v = p->v + k * n, *x = p->x + k * n, *y = p->y + k * n, *u = p->u + k * n;
    double *row = a + g * n;
    memset(v, 0, n * sizeof(double));
    memset(x, 0, n * sizeof(double));
    memset(y, 0, n * sizeof(double));
    memset(u, 0, n * sizeof(double));
    for (size_t i = g; i < n; i++) v[i] = a[i * n + g];
    subtract_pairs(p, g, g, p->v, p->y, p->x, p->u, v);
    double factor = reflect_first(n - g, v + g, b.d + g);
    if (rest == 0) return;
    subtract_rows(rest, n - g, v + g, 1, row + next, n, y + next);
    multiply_by(rest, -1, y + next);
    subtract_products(p, k, p->y, p->v, g, v, next, y);
    subtract_products(p, k, p->u, p->x, g, v, next, y);
    multiply_by(rest, factor, y + next);
    memcpy(u + next, row + next, rest * sizeof(double));
    subtract_pairs(p, g, next, p->y, p->v, p->u, p->x, u);
    subtract(rest, v[g], y + next, u + next);
    factor = b.factors[g] = reflect_first(rest, u + next, b.e + g);
    memcpy(row + next, u + next, rest * sizeof(double));
    multiply_rows(rest, rest, row + n + next, n, u + next, x + next);
    subtract_products(p, k + 1, p->v, p->y, next, u, next, x);
    subtract_products(p, k, p->x, p->u, next, u, next, x);
    multiply_by(rest, factor, x + next);
}

bool bidiagonalise(const work *w, size_t n, double *a, bidiagonal b, double *numbers) {
    for (size_t first = 0; first < n;) {
        size_t count = n - first < REFLECTIONS ? n - first : REFLECTIONS;
        sides p = {n, 0, numbers, numbers + count * n, numbers + 2 * count * n, numbers + 3 * count * n};
        for (; p.count < count; p.count++, first++) {
            if (interrupted(w, (n - first) * (n - first + 8 * count))) return false;
            reduce_pair(a, first, b, &p);
        }
        block left = {p.v + first, 1, n}, right = {p.y + first, n, 1};
        if (first < n && !subtract_product(w, n - first, n - first, 2 * count, left, right,
                                           (block){a + first * (n + 1), n, 1}))
            return false;
    }
    return true;
}
