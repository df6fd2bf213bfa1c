/* Singular values and vectors of matrices of any shape.
 *
 * A wide matrix is transposed, and of a tall one only its triangle is looked at, which becomes a
 * bidiagonal matrix. The singular values of that, and their negatives, are the eigenvalues of a
 * tridiagonal matrix of twice its size, whose diagonal is 0 and beside whose diagonal the entries of the
 * bidiagonal one stand in turn (Golub and Kahan): so small singular values are as exact as large ones,
 * which squares would not leave them.
 *
 * Every second entry of an eigenvector is one of a right vector. Where singular values are tiny, those
 * of both signs mix, and these halves are not orthonormal: QR makes them so. What the large ones span is
 * exact, so nothing but rounding errors stands beside the diagonal of the triangle that a second QR
 * leaves of the matrix times the right vectors, and its orthonormal columns are the left vectors. */
#include <math.h>
#include <stdlib.h>

#include "matrix_reflections.h"

/* A matrix at work: its columns, or its rows if these are longer, lie as `count` rows of `length`. */
typedef struct singular {
    size_t count, length;
    int exponent;
    double *columns, *square, *d, *e, *factors, *numbers;
} singular;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a > b ? a : b; }

/* Numbers of a singular, with as many behind `numbers`. */
static size_t singular_numbers(size_t count, size_t length, size_t numbers) {
    return 2 * count * length + count * count + 3 * count + numbers;
}

static singular singular_in(const work *w) {
    size_t count = least(w->rows, w->n), length = most(w->rows, w->n);
    singular s = {.count = count, .length = length, .columns = w->more};
    s.square = s.columns + 2 * count * length;
    s.d = s.square + count * count;
    s.e = s.d + count;
    s.factors = s.e + count;
    s.numbers = s.factors + count;
    return s;
}

static size_t reduction_numbers(size_t count, size_t length) {
    return most(reflection_numbers(length, count), bidiagonal_numbers(count));
}

/* The triangle of the columns, or the columns themselves if they are square, becomes bidiagonal. */
static bool reduce(const work *w, singular *s) {
    size_t k = s->count, length = s->length;
    double *copy = s->columns + k * length;
    if (!scale_matrix(w, &s->exponent)) return false;
    if (w->rows < w->n)
        memcpy(s->columns, w->a, k * length * sizeof(double));
    else
        turn(w->rows, w->n, w->a, s->columns);
    memcpy(copy, s->columns, k * length * sizeof(double));
    reflections r = {k, length, length, copy, s->factors};
    bool is_square = length == k;
    if (!is_square && !reduce_columns(w, &r, k, s->numbers)) return false;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++)
            s->square[i * k + j] = is_square || i <= j ? copy[j * length + i] : 0;
    return bidiagonalise(w, k, s->square, (bidiagonal){s->d, s->e, s->factors}, s->numbers);
}

/* The tridiagonal matrix of twice the size, in 4 * count numbers. */
static tridiagonal doubled(const singular *s, double *numbers) {
    size_t k = s->count;
    tridiagonal t = {2 * k, numbers, numbers + 2 * k};
    memset(t.d, 0, 2 * k * sizeof(double));
    for (size_t i = 0; i < k; i++) {
        t.e[2 * i] = s->d[i];
        t.e[2 * i + 1] = i + 1 < k ? s->e[i] : 0;
    }
    return t;
}

static int compare_down(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return u > v ? -1 : u < v;
}

size_t singular_value_numbers(size_t rows, size_t columns) {
    size_t count = least(rows, columns), length = most(rows, columns);
    return singular_numbers(count, length, most(4 * count, reduction_numbers(count, length)));
}

bool matrix_singular_values(const work *w) {
    singular s = singular_in(w);
    if (!reduce(w, &s)) return false;
    tridiagonal t = doubled(&s, s.numbers);
    if (!iterate_tridiagonal(w, t, NULL, 0, 0)) return false;
    qsort(t.d, t.n, sizeof(double), compare_down);
    memset(w->a, 0, w->rows * w->n * sizeof(double));
    for (size_t i = 0; i < s.count; i++) w->a[i * (w->n + 1)] = ldexp(fmax(t.d[i], 0), s.exponent);
    return true;
}

/* The triangle that QR leaves of square or tall columns is dropped; the orthonormal columns go to q. */
static bool orthonormalise(const work *w, const reflections *r, double *q, double *numbers) {
    if (!reduce_columns(w, r, r->count, numbers)) return false;
    set_identity(r->count, r->length, q);
    return apply_reflections(w, r, r->count, true, (block){q, r->length, 1}, numbers);
}

/* The right vectors of the bidiagonal matrix into the rows of v, the greatest singular value first; the
 * values into s->d. */
static bool find_right_vectors(const work *w, const singular *s, double *v) {
    size_t k = s->count, n = 2 * k;
    double *z = s->numbers, *places = z + n * n, *more = places + n;
    tridiagonal t = doubled(s, more);
    work larger = *w;
    larger.n = n;
    if (!divide_tridiagonal(&larger, t, z, more + 2 * n)) return false;
    size_t *order = (size_t *)(void *)places;
    sort_rows(n, t.d, order);
    for (size_t i = 0; i < k; i++) {
        size_t row = order[n - 1 - i];
        s->d[i] = fmax(t.d[row], 0);
        for (size_t j = 0; j < k; j++) v[i * k + j] = z[row * n + 2 * j];
    }
    return true;
}

size_t svd_numbers(size_t rows, size_t columns) {
    size_t k = least(rows, columns), length = most(rows, columns), n = 2 * k;
    size_t divided = n * n + 3 * n + divide_numbers(n);
    size_t reflected = k * k + reflection_numbers(length, k);
    size_t most_at_a_time = most(most(divided, reflected), reduction_numbers(k, length));
    return singular_numbers(k, length, most_at_a_time + k * k + k);
}

/* Vectors in rows: `left` of w->rows entries and `right` of w->n, whose greatest entries become
 * positive. */
static void put_vectors(const work *w, const singular *s, const double *left, const double *right) {
    size_t m = w->rows, n = w->n;
    double *u = w->a, *values = u + m * n, *v = values + m * n;
    memset(u, 0, 3 * m * n * sizeof(double));
    for (size_t j = 0; j < s->count; j++) {
        double sign = sign_of(n, right + j * n);
        for (size_t i = 0; i < m; i++) u[i * n + j] = sign * left[j * m + i];
        for (size_t i = 0; i < n; i++) v[j * n + i] = sign * right[j * n + i];
        values[j * (n + 1)] = ldexp(s->d[j], s->exponent);
    }
}

bool matrix_svd(const work *w) {
    singular s = singular_in(w);
    size_t k = s.count, length = s.length;
    double *v = s.numbers, *factors = v + k * k;
    s.numbers = factors + k;
    double *product = s.columns + k * length, *left = s.columns, *right = s.numbers;
    double *numbers = right + k * k;
    reflections of_right = {k, k, k, v, factors}, of_product = {k, length, length, product, factors};
    reflections of_rows = {k - 1, k - 1, k, s.square + 1, s.factors};
    if (!reduce(w, &s) || !find_right_vectors(w, &s, v) ||
        !orthonormalise(w, &of_right, right, numbers) ||
        !apply_reflections(w, &of_rows, k, false, (block){right + 1, k, 1}, numbers))
        return false;
    memset(product, 0, k * length * sizeof(double));
    if (!add_product(w, k, length, k, (block){right, k, 1}, (block){s.columns, length, 1},
                     (block){product, length, 1}) ||
        !orthonormalise(w, &of_product, left, numbers))
        return false;
    for (size_t j = 0; j < k; j++)
        for (size_t i = 0; i < length && product[j * (length + 1)] < 0; i++) left[j * length + i] *= -1;
    bool wide = w->rows < w->n;
    put_vectors(w, &s, wide ? right : left, wide ? left : right);
    return true;
}
