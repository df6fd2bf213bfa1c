/* Reflections (Householder) that make entries of columns 0, and products with them.
 *
 * Columns lie as rows, so that what a reflection reads is contiguous. The effect of REFLECTIONS of them
 * on what comes behind is two products. */
#include <math.h>

#include "matrix_reflections.h"

double reflect_first(size_t n, double *x, double *first) {
    double leading = x[0], others = dot(n - 1, x + 1, x + 1), all = others + leading * leading;
    *first = leading;
    x[0] = 1;
    if (!(others > 0) || all < NEGLIGIBLE * NEGLIGIBLE) {
        memset(x + 1, 0, (n - 1) * sizeof(double));
        return 0;
    }
    double length = -copysign(sqrt(all), leading), scale = 1 / (leading - length);
    for (size_t i = 1; i < n; i++) x[i] *= scale;
    *first = length;
    return (length - leading) / length;
}

void join_reflections(size_t n, size_t count, const double *factors, const double *v, double *s) {
    memset(s, 0, count * count * sizeof(double));
    for (size_t k = 0; k < count; k++) {
        double *row = s + k * count;
        for (size_t l = 0; l < k; l++)
            subtract(k, factors[k] * dot(n, v + k * n, v + l * n), s + l * count, row);
        row[k] = factors[k];
    }
}

bool multiply_reflections(const work *w, size_t rows, size_t reach, block vectors, size_t count,
                          block s, block z, double *numbers) {
    block by_v = {numbers, count, 1}, by_s = {numbers + count * rows, count, 1};
    memset(numbers, 0, 2 * count * rows * sizeof(double));
    return add_product(w, rows, count, reach, z, transpose(vectors), by_v) &&
           add_product(w, rows, count, count, by_v, s, by_s) &&
           subtract_product(w, rows, reach, count, by_s, vectors, z);
}

/* The vectors of some reflections in rows of their own, with the 0 and 1 that are not stored. */
static void copy_vectors(const reflections *r, size_t first, size_t count, double *v) {
    size_t reach = r->length - first;
    for (size_t k = 0; k < count; k++, v += reach) {
        memset(v, 0, k * sizeof(double));
        v[k] = 1;
        memcpy(v + k + 1, r->data + (first + k) * (r->stride + 1) + 1,
               (reach - k - 1) * sizeof(double));
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t reflection_numbers(size_t length, size_t rows) {
    return least(REFLECTIONS, least(length, rows)) * (length + 2 * rows);
}

/* Columns first to first + count - 1, one after the other; the others are not touched. */
static void reduce_panel(const reflections *r, size_t first, size_t count) {
    double kept[REFLECTIONS];
    for (size_t k = 0; k < count; k++) {
        double *column = r->data + (first + k) * (r->stride + 1);
        size_t n = r->length - first - k;
        double factor = r->factors[first + k] = reflect_first(n, column, kept + k);
        for (size_t l = k + 1; l < count && factor != 0; l++) {
            double *other = column + (l - k) * r->stride;
            subtract(n, factor * dot(n, column, other), column, other);
        }
    }
    for (size_t k = 0; k < count; k++) r->data[(first + k) * (r->stride + 1)] = kept[k];
}

bool reduce_columns(const work *w, const reflections *r, size_t columns, double *numbers) {
    double s[REFLECTIONS * REFLECTIONS];
    for (size_t first = 0; first < r->count; first += REFLECTIONS) {
        size_t count = least(REFLECTIONS, r->count - first), reach = r->length - first;
        if (interrupted(w, reach * count * count)) return false;
        reduce_panel(r, first, count);
        size_t behind = first + count, rest = columns - behind;
        if (rest == 0) continue;
        copy_vectors(r, first, count, numbers);
        join_reflections(reach, count, r->factors + first, numbers, s);
        block v = {numbers, reach, 1}, z = {r->data + behind * r->stride + first, r->stride, 1};
        if (!multiply_reflections(w, rest, reach, v, count, (block){s, 1, count}, z,
                                  numbers + count * reach))
            return false;
    }
    return true;
}

bool apply_reflections(const work *w, const reflections *r, size_t rows, bool identity, block z,
                       double *numbers) {
    double s[REFLECTIONS * REFLECTIONS];
    size_t blocks = (r->count + REFLECTIONS - 1) / REFLECTIONS;
    for (size_t b = blocks; b-- > 0;) {
        size_t first = b * REFLECTIONS, count = least(REFLECTIONS, r->count - first);
        size_t reach = r->length - first, skipped = identity ? least(first, rows) : 0;
        copy_vectors(r, first, count, numbers);
        join_reflections(reach, count, r->factors + first, numbers, s);
        if (!multiply_reflections(w, rows - skipped, reach, (block){numbers, reach, 1}, count,
                                  (block){s, count, 1}, block_at(z, skipped, first),
                                  numbers + count * reach))
            return false;
    }
    return true;
}
