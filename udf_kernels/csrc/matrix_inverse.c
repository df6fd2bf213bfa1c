/* Inverses. Those of small matrices are computed in place (Gauss and Jordan). A larger one, whose rows
 * are swapped as pivots demand, is a lower triangle times a unit upper one (Crout), the inverses of
 * which are multiplied. Columns are factored in halves, the right ones after the left ones.
 *
 * Equal columns have equal entries at every step, whichever blocks they are in, as the same numbers
 * are subtracted from both in the same order. So nothing is left of the second one, and the matrix is
 * found to be singular. */
#include <math.h>

#include "fused.h"
#include "matrix.h"

/* So few columns are factored one by one, in a copy in which each is contiguous. */
enum { PANEL = 16 };

size_t inverse_numbers(size_t n) { return n * n + PANEL * n + n; }

typedef struct factors {
    double *columns; /* PANEL of them, of w->n entries */
    size_t *pivots;  /* of row k, the row that it was swapped with */
} factors;

static bool is_singular(const work *w) {
    return fail(w->c, "expected a matrix with an inverse: it is singular");
}

static void swap_rows(size_t n, double *u, double *v) {
    for (size_t k = 0; k < n; k++) {
        double x = u[k];
        u[k] = v[k];
        v[k] = x;
    }
}

/* Swaps rows of some columns as pivots first to first + count - 1 say. */
static void follow_pivots(const work *w, const factors *f, size_t first, size_t count, size_t column,
                          size_t columns) {
    for (size_t k = first; k < first + count; k++) {
        size_t pivot = f->pivots[k];
        if (pivot != k)
            swap_rows(columns, w->a + k * w->n + column, w->a + pivot * w->n + column);
    }
}

static size_t find_pivot(size_t n, const double *column, size_t step) {
    size_t pivot = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(column[i * step]) > fabs(column[pivot * step])) pivot = i;
    return pivot;
}

/* Returns how many columns had a pivot that is not 0, as factor_columns does. */
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

/* Factors some columns, which follow each other, and writes down the pivots. Returns how many had one
 * that is not 0: all, unless the matrix is singular. */
FUSED_LOOPS size_t factor_columns_loops(size_t rows, size_t columns, double *restrict x,
                                        size_t *pivots) {
    for (size_t k = 0; k < columns; k++) {
        double *column = x + k * rows;
        size_t pivot = k + find_pivot(rows - k, column + k, 1);
        if (column[pivot] == 0) return k;
        pivots[k] = pivot;
        for (size_t j = 0; j < columns && pivot != k; j++) {
            double swapped = x[j * rows + k];
            x[j * rows + k] = x[j * rows + pivot];
            x[j * rows + pivot] = swapped;
        }
        for (size_t j = k + 1; j < columns; j++) {
            double *other = column + (j - k) * rows, factor = other[k] / column[k];
            other[k] = factor;
            for (size_t i = k + 1; i < rows; i++) other[i] -= factor * column[i];
        }
    }
    return columns;
}
FUSED(size_t, factor_columns, (size_t rows, size_t columns, double *restrict x, size_t *pivots),
      (rows, columns, x, pivots))

static bool factor_panel(const work *w, const factors *f, size_t first, size_t columns) {
    size_t n = w->n, rows = n - first;
    double *a = w->a + first * (n + 1);
    if (interrupted(w, rows * columns * columns)) return false;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) f->columns[j * rows + i] = a[i * n + j];
    if (factor_columns(rows, columns, f->columns, f->pivots + first) < columns)
        return is_singular(w);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) a[i * n + j] = f->columns[j * rows + i];
    for (size_t k = first; k < first + columns; k++) f->pivots[k] += first;
    return true;
}

/* Columns first to first + columns - 1, of which the rows above `first` are finished. */
static bool factor(const work *w, const factors *f, size_t first, size_t columns) {
    if (columns <= PANEL) return factor_panel(w, f, first, columns);
    size_t n = w->n, rows = n - first;
    size_t left = (columns / 2 + PANEL - 1) / PANEL * PANEL, right = columns - left;
    block a = {w->a + first * (n + 1), n, 1};
    block low = block_at(a, left, left), beside = block_at(a, 0, left), below = block_at(a, left, 0);
    if (!factor(w, f, first, left)) return false;
    follow_pivots(w, f, first, left, first + left, right);
    if (!solve_triangle(w, LOWER, left, right, a, beside) ||
        !subtract_product(w, rows - left, right, left, below, beside, low) ||
        !factor(w, f, first + left, right))
        return false;
    follow_pivots(w, f, first + left, right, first, left);
    return true;
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
    double *v = w->more, *columns = v + n * n;
    factors f = {columns, (size_t *)(void *)(columns + PANEL * n)};
    block a = {w->a, n, 1}, x = {v, n, 1};
    if (n <= PANEL) {
        if (interrupted(w, n * n * n)) return false;
        return invert_in_place(n, w->a, f.pivots) == n || is_singular(w);
    }
    memset(v, 0, n * n * sizeof(double));
    if (!factor(w, &f, 0, n) || !invert_lower(w, n, a, x) ||
        !solve_triangle(w, UNIT_UPPER, n, n, a, x))
        return false;
    take_back_swaps(w, &f, v);
    return true;
}
