/* Factors of square matrices by elimination, and what needs nothing but them: solutions of systems, and
 * the pivots, of which the determinant is the product. Columns are factored in halves, the right ones
 * after the left ones.
 *
 * Equal columns have equal entries at every step, whichever blocks they are in, as the same numbers
 * are subtracted from both in the same order. So nothing is left of the second one, and the matrix is
 * found to be singular. */
#include "fused.h"
#include "matrix_lu.h"

bool is_singular(const work *w) {
    return fail(w->c, "expected a matrix with an inverse: it is singular");
}

void follow_pivots(const factors *f, size_t first, size_t count, double *a, size_t stride,
                   size_t columns) {
    for (size_t k = first; k < first + count; k++) {
        size_t pivot = f->pivots[k];
        if (pivot != k) swap_rows(columns, a + k * stride, a + pivot * stride);
    }
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

static bool factor_panel(const work *w, factors *f, size_t first, size_t columns) {
    size_t n = w->n, rows = n - first;
    double *a = w->a + first * (n + 1);
    if (interrupted(w, rows * columns * columns)) return false;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) f->columns[j * rows + i] = a[i * n + j];
    f->singular = factor_columns(rows, columns, f->columns, f->pivots + first) < columns;
    if (f->singular) return false;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) a[i * n + j] = f->columns[j * rows + i];
    for (size_t k = first; k < first + columns; k++) f->pivots[k] += first;
    return true;
}

/* Columns first to first + columns - 1, of which the rows above `first` are finished. */
static bool factor(const work *w, factors *f, size_t first, size_t columns) {
    if (columns <= PANEL) return factor_panel(w, f, first, columns);
    size_t n = w->n, rows = n - first;
    size_t left = (columns / 2 + PANEL - 1) / PANEL * PANEL, right = columns - left;
    block a = {w->a + first * (n + 1), n, 1};
    block low = block_at(a, left, left), beside = block_at(a, 0, left), below = block_at(a, left, 0);
    if (!factor(w, f, first, left)) return false;
    follow_pivots(f, first, left, w->a + first + left, n, right);
    if (!solve_triangle(w, LOWER, left, right, a, beside) ||
        !subtract_product(w, rows - left, right, left, below, beside, low) ||
        !factor(w, f, first + left, right))
        return false;
    follow_pivots(f, first + left, right, w->a + first, n, left);
    return true;
}

bool factor_matrix(const work *w, factors *f) { return factor(w, f, 0, w->n); }

bool solve_systems(const work *w, size_t sides) {
    size_t n = w->n;
    double *b = w->more;
    factors f = factors_in(b + n * sides, n);
    if (!factor_matrix(w, &f)) return f.singular && is_singular(w);
    follow_pivots(&f, 0, n, b, sides, sides);
    block factored = {w->a, n, 1}, solved = {b, sides, 1};
    return solve_triangle(w, LOWER, n, sides, factored, solved) &&
           solve_triangle(w, UNIT_UPPER, n, sides, factored, solved);
}

size_t pivot_numbers(size_t rows, size_t columns) {
    (void)columns;
    return factor_numbers(rows) + rows;
}

/* Each swap of rows turns the sign of the first pivot. All pivots of a singular matrix are 0. */
bool matrix_pivots(const work *w) {
    size_t n = w->n;
    factors f = factors_in(w->more, n);
    double *pivots = w->more + factor_numbers(n);
    if (!factor_matrix(w, &f) && !f.singular) return false;
    for (size_t i = 0; i < n; i++) pivots[i] = f.singular ? 0 : w->a[i * (n + 1)];
    for (size_t i = 0; i < n && !f.singular; i++)
        if (f.pivots[i] != i) pivots[0] = -pivots[0];
    memset(w->a, 0, n * n * sizeof(double));
    for (size_t i = 0; i < n; i++) w->a[i * (n + 1)] = pivots[i];
    return true;
}
