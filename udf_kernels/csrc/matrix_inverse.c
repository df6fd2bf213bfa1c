/* Inverses. Those of small matrices are computed in place (Gauss and Jordan). A larger one is a lower
 * triangle times a unit upper one, the inverses of which are multiplied. */
#include "matrix_lu.h"

size_t inverse_numbers(size_t rows, size_t columns) { return rows * columns + factor_numbers(rows); }

/* Returns how many columns had a pivot that is not 0, as elimination counts them. */
static size_t invert_in_place(size_t n, double *restrict a, size_t *pivots) {
    for (size_t k = 0; k < n; k++) {
        double *row = a + k * n;
        size_t pivot = k + find_pivot(n - k, row + k, n);
        if (a[pivot * n + k] == 0) return k;
        pivots[k] = pivot;
        if (pivot != k) swap_rows(n, row, a + pivot * n);
        double leading = row[k];
        for (size_t j = 0; j < n; j++) row[j] /= leading;
        row[k] = 1 / leading;
        for (size_t i = 0; i < n; i++) {
            double *other = a + i * n, share = other[k];
            if (i == k || share == 0) continue;
            for (size_t j = 0; j < n; j++) other[j] -= share * row[j];
            other[k] = 0 - share * row[k]; /* last: a load of several entries would wait for it */
        }
    }
    for (size_t k = n; k-- > 0;) {
        size_t pivot = pivots[k];
        if (pivot == k) continue;
        for (size_t i = 0; i < n; i++) swap_rows(1, a + i * n + k, a + i * n + pivot);
    }
    return n;
}

/* The columns of the result are those of v in the order that swaps have made of the rows. */
static void take_back_swaps(const work *w, const factors *f, const double *v) {
    size_t n = w->n, *places = (size_t *)(void *)f->columns;
    for (size_t i = 0; i < n; i++) places[i] = i;
    for (size_t k = 0; k < n; k++) {
        size_t place = places[k];
        places[k] = places[f->pivots[k]];
        places[f->pivots[k]] = place;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) w->a[i * n + places[j]] = v[i * n + j];
}

bool matrix_inverse(const work *w) {
    size_t n = w->n;
    double *v = w->more;
    factors f = factors_in(v + n * n, n);
    block a = {w->a, n, 1}, x = {v, n, 1};
    if (n <= PANEL) {
        if (interrupted(w, n * n * n)) return false;
        return invert_in_place(n, w->a, f.pivots) == n || is_singular(w);
    }
    memset(v, 0, n * n * sizeof(double));
    if (!factor_matrix(w, &f)) return f.singular && is_singular(w);
    if (!invert_lower(w, n, a, x) || !solve_triangle(w, UNIT_UPPER, n, n, a, x)) return false;
    take_back_swaps(w, &f, v);
    return true;
}
