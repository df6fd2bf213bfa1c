/* Eigenvectors of tridiagonal matrices: divide and conquer (Cuppen; Gu and Eisenstat).
 *
 * Without one entry beside the diagonal, a matrix falls into two, the eigenvalues d and vectors of
 * which are computed first. In these vectors the whole is a diagonal matrix to which rho z z^T is
 * added. Where z is tiny, or two of the d are the same but for rounding, nothing changes: such
 * vectors are kept. The others are multiplied by the vectors of that matrix, which is a product. */
#include <float.h>
#include <math.h>

#include "hot.h"
#include "matrix.h"

/* Matrices of at most so many rows are not divided. */
enum { UNDIVIDED = 32 };

/* Memory for the two halves that are put together: numbers of all rows, and two matrices. */
typedef struct merge {
    size_t n, half;
    double rho;
    double *d, *z;                 /* of all rows */
    size_t *order, *changed, *kept, *place; /* row numbers */
    bool *left, *right;            /* where the entries of a row are */
    double *poles, *squares, *row; /* of the vectors that change */
    size_t changing, keeping;
    double *u, *t;
} merge;

size_t divide_numbers(size_t n) { return 2 * n * n + 10 * n; }

static merge merge_in(double *numbers, size_t n) {
    merge m = {.u = numbers, .t = numbers + n * n};
    double *more = m.t + n * n;
    m.z = more;
    m.poles = more + n;
    m.squares = more + 2 * n;
    m.row = more + 3 * n;
    m.order = (size_t *)(void *)(more + 4 * n);
    m.changed = (size_t *)(void *)(more + 5 * n);
    m.kept = (size_t *)(void *)(more + 6 * n);
    m.place = (size_t *)(void *)(more + 7 * n);
    m.left = (bool *)(more + 8 * n);
    m.right = (bool *)(more + 9 * n);
    return m;
}

/* By insertion: d is almost in order. */
void sort_rows(size_t n, const double *d, size_t *order) {
    for (size_t i = 0; i < n; i++) {
        size_t j = i;
        for (; j > 0 && d[order[j - 1]] > d[i]; j--) order[j] = order[j - 1];
        order[j] = i;
    }
}

/* The last row of the first half and the first one of the second are what is added. */
static void read_z(merge *m, double beside, block v) {
    for (size_t i = 0; i < m->n; i++) {
        m->left[i] = i < m->half;
        m->right[i] = !m->left[i];
        double entry = v.data[i * v.row + (m->left[i] ? m->half - 1 : m->half)];
        m->z[i] = (m->right[i] && beside < 0 ? -entry : entry) * sqrt(0.5);
    }
    m->rho = 2 * fabs(beside);
}

/* Rotates two rows so that z is 0 in the first, if their d differ by so little that they stay
 * eigenvectors. */
static bool merge_equals(merge *m, size_t i, size_t j, double tolerance, block v) {
    double *d = m->d, *z = m->z, all = sqrt(z[i] * z[i] + z[j] * z[j]);
    double cosine = z[j] / all, sine = z[i] / all;
    if (fabs((d[j] - d[i]) * cosine * sine) > tolerance) return false;
    double low = d[i], high = d[j];
    z[j] = all;
    z[i] = 0;
    d[i] = low * cosine * cosine + high * sine * sine;
    d[j] = low * sine * sine + high * cosine * cosine;
    rotate_rows(m->n, cosine, sine, v.data + i * v.row, v.data + j * v.row);
    m->left[i] = m->left[j] = m->left[i] || m->left[j];
    m->right[i] = m->right[j] = m->right[i] || m->right[j];
    return true;
}

/* Finds the rows that change. */
static void deflate(merge *m, block v) {
    double greatest = 0;
    for (size_t i = 0; i < m->n; i++)
        greatest = fmax(greatest, fmax(fabs(m->d[i]), fabs(m->z[i])));
    double tolerance = 8 * DBL_EPSILON * greatest;
    m->changing = m->keeping = 0;
    for (size_t k = 0; k < m->n; k++) {
        size_t row = m->order[k];
        if (m->rho * fabs(m->z[row]) <= tolerance) {
            m->kept[m->keeping++] = row;
        } else if (m->changing > 0 &&
                   merge_equals(m, m->changed[m->changing - 1], row, tolerance, v)) {
            m->kept[m->keeping++] = m->changed[m->changing - 1];
            m->changed[m->changing - 1] = row;
        } else {
            m->changed[m->changing++] = row;
        }
    }
}

HOT void multiply_ratios(size_t n, const double *differences, const double *d, double pole,
                         double *restrict product) {
    for (size_t j = 0; j < n; j++) product[j] *= differences[j] / (d[j] - pole);
}

/* The z that has exactly these roots, from the differences d_j - root in the rows of u. */
static void restore_z(const merge *m, double *z) {
    size_t n = m->changing;
    for (size_t j = 0; j < n; j++) z[j] = 1;
    for (size_t i = 0; i < n; i++) {
        const double *row = m->u + i * n;
        multiply_ratios(i, row, m->poles, m->poles[i], z);
        multiply_ratios(n - i - 1, row + i + 1, m->poles + i + 1, m->poles[i], z + i + 1);
        z[i] *= row[i];
    }
    for (size_t j = 0; j < n; j++) z[j] = copysign(sqrt(fabs(z[j])), m->z[m->changed[j]]);
}

/* Where the columns of u belong: those of rows with entries on the left alone come first, those on
 * the right alone last. Returns how many the former are. */
static size_t place_columns(merge *m) {
    size_t place = 0, left_alone = 0;
    for (int pass = 0; pass < 3; pass++) {
        for (size_t j = 0; j < m->changing; j++) {
            bool left = m->left[m->changed[j]], right = m->right[m->changed[j]];
            if (pass == (left ? right ? 1 : 0 : 2)) m->place[j] = place++;
        }
        if (pass == 0) left_alone = place;
    }
    return left_alone;
}

HOT double quotients(size_t n, const double *z, const double *differences, double *restrict out) {
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (size_t j = 0; j < n; j++) {
        out[j] = z[j] / differences[j];
        squares += out[j] * out[j];
    }
    return squares;
}

/* The eigenvectors of the diagonal matrix and what is added to it, in the rows of u. */
static void fill_vectors(const merge *m, const double *z) {
    size_t n = m->changing;
    for (size_t i = 0; i < n; i++) {
        double *row = m->u + i * n;
        double scale = 1 / sqrt(quotients(n, z, row, m->row));
        for (size_t j = 0; j < n; j++) row[m->place[j]] = m->row[j] * scale;
    }
}

/* The rows of v that change, and behind them those that are kept. */
static bool multiply_vectors(const work *w, merge *m, block v, size_t left_alone) {
    size_t n = m->n, half = m->half, count = m->changing, lefts = 0, rights = 0;
    for (size_t j = 0; j < count; j++) {
        lefts += m->left[m->changed[j]];
        rights += m->right[m->changed[j]];
    }
    block left = {m->t, half, 1}, right = {m->t + lefts * half, n - half, 1};
    double *kept = right.data + rights * (n - half);
    for (size_t j = 0; j < count; j++) {
        const double *row = v.data + m->changed[j] * v.row;
        size_t place = m->place[j];
        if (m->left[m->changed[j]])
            memcpy(left.data + place * half, row, half * sizeof(double));
        if (m->right[m->changed[j]])
            memcpy(right.data + (place - left_alone) * (n - half), row + half,
                   (n - half) * sizeof(double));
    }
    for (size_t i = 0; i < m->keeping; i++)
        memcpy(kept + i * n, v.data + m->kept[i] * v.row, n * sizeof(double));
    for (size_t i = 0; i < n; i++) {
        double *row = v.data + i * v.row;
        if (i < count)
            memset(row, 0, n * sizeof(double));
        else
            memcpy(row, kept + (i - count) * n, n * sizeof(double));
    }
    block u = {m->u, count, 1};
    return add_product(w, count, half, lefts, u, left, v) &&
           add_product(w, count, n - half, rights, block_at(u, 0, left_alone), right,
                       block_at(v, 0, half));
}

/* Eigenvalues and vectors of the whole, from those of its halves. */
static bool merge_halves(const work *w, merge *m, double beside, block v) {
    read_z(m, beside, v);
    sort_rows(m->n, m->d, m->order);
    deflate(m, v);
    size_t count = m->changing;
    secular s = {count, m->rho, 0, m->poles, m->squares};
    for (size_t j = 0; j < count; j++) {
        m->poles[j] = m->d[m->changed[j]];
        m->squares[j] = m->z[m->changed[j]] * m->z[m->changed[j]];
        s.total += m->squares[j];
    }
    for (size_t i = 0; i < m->keeping; i++) m->row[i] = m->d[m->kept[i]];
    memcpy(m->d + count, m->row, m->keeping * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        if (interrupted(w, 16 * count)) return false;
        m->d[i] = secular_root(&s, i, m->u + i * count);
    }
    restore_z(m, m->squares);
    size_t left_alone = place_columns(m);
    fill_vectors(m, m->squares);
    return multiply_vectors(w, m, v, left_alone);
}

static bool divide(const work *w, tridiagonal t, block v, double *numbers) {
    if (t.n <= UNDIVIDED) {
        for (size_t i = 0; i < t.n; i++) v.data[i * (v.row + 1)] = 1;
        return iterate_tridiagonal(w, t, v.data, v.row, t.n);
    }
    size_t half = t.n / 2;
    double beside = t.e[half - 1];
    t.d[half - 1] -= fabs(beside);
    t.d[half] -= fabs(beside);
    tridiagonal low = {half, t.d, t.e}, high = {t.n - half, t.d + half, t.e + half};
    if (!divide(w, low, v, numbers) || !divide(w, high, block_at(v, half, half), numbers)) return false;
    merge m = merge_in(numbers, w->n);
    m.n = t.n;
    m.half = half;
    m.d = t.d;
    return merge_halves(w, &m, beside, v);
}

bool divide_tridiagonal(const work *w, tridiagonal t, double *v, double *numbers) {
    memset(v, 0, t.n * t.n * sizeof(double));
    return divide(w, t, (block){v, t.n, 1}, numbers);
}
