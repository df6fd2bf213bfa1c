/* Products of blocks of matrices, and triangular systems, which are split until they are small. */
#include "fused.h"
#include "gemm.h"
#include "hot.h"
#include "matrix.h"

/* Right-hand sides that are solved at a time, in memory of their own. */
enum { STRIP = 64 };

HOT void add_small_product(double sign, size_t m, size_t n, size_t k, block a, block b, block c) {
    for (size_t i = 0; i < m; i++) {
        double *restrict out = c.data + i * c.row;
        for (size_t l = 0; l < k; l++) {
            double factor = sign * a.data[i * a.row + l * a.column];
            const double *in = b.data + l * b.row;
            if (b.column == 1)
                for (size_t j = 0; j < n; j++) out[j] += factor * in[j];
            else
                for (size_t j = 0; j < n; j++) out[j] += factor * in[j * b.column];
        }
    }
}

static matrix operand(block b) { return (matrix){b.data, b.row, b.column}; }

static bool multiply_blocks(const work *w, enum gemm_mode mode, size_t m, size_t n, size_t k,
                            block a, block b, block c) {
    if (m == 0 || n == 0 || k == 0) return true;
    if (c.column != 1)
        return multiply_blocks(w, mode, n, m, k, transpose(b), transpose(a), transpose(c));
    if (k < TRIANGLE && !gemm_pays(&type_f64, m, n, k)) {
        add_small_product(mode == GEMM_ADD ? 1 : -1, m, n, k, a, b, c);
        return true;
    }
    return settle(w->c, type_f64.gemm(m, n, k, mode, operand(a), operand(b), c.data, c.row, 1,
                                      w->panels, &w->c->watch));
}

bool add_product(const work *w, size_t m, size_t n, size_t k, block a, block b, block c) {
    return multiply_blocks(w, GEMM_ADD, m, n, k, a, b, c);
}

bool subtract_product(const work *w, size_t m, size_t n, size_t k, block a, block b, block c) {
    return multiply_blocks(w, GEMM_ELIMINATE, m, n, k, a, b, c);
}

/* In halves: blocks on the diagonal are computed whole. */
bool subtract_lower_product(const work *w, size_t n, size_t k, block a, block b, block c) {
    enum { WHOLE = 96 };
    if (n <= WHOLE) return subtract_product(w, n, n, k, a, b, c);
    size_t half = n / 2 / 8 * 8, rest = n - half;
    return subtract_lower_product(w, half, k, a, b, c) &&
           subtract_product(w, rest, half, k, block_at(a, half, 0), b, block_at(c, half, 0)) &&
           subtract_lower_product(w, rest, k, block_at(a, half, 0), block_at(b, 0, half),
                                  block_at(c, half, half));
}

/* The rows of x, of which each has m entries. */
FUSED_LOOPS void solve_down_loops(size_t n, size_t m, block t, double *x, size_t stride) {
    for (size_t i = 0; i < n; i++) {
        double *restrict row = x + i * stride;
        for (size_t k = 0; k < i; k++) {
            double factor = t.data[i * t.row + k * t.column];
            for (size_t j = 0; j < m; j++) row[j] -= factor * x[k * stride + j];
        }
        double diagonal = t.data[i * (t.row + t.column)];
        for (size_t j = 0; j < m; j++) row[j] /= diagonal;
    }
}
FUSED(void, solve_down, (size_t n, size_t m, block t, double *x, size_t stride),
      (n, m, t, x, stride))

HOT void solve_up(size_t n, size_t m, block t, double *x, size_t stride) {
    for (size_t i = n; i-- > 0;) {
        double *restrict row = x + i * stride;
        for (size_t k = i + 1; k < n; k++) {
            double factor = t.data[i * t.row + k * t.column];
            for (size_t j = 0; j < m; j++) row[j] -= factor * x[k * stride + j];
        }
    }
}

static void copy_block(size_t n, size_t m, block from, block to) {
    for (size_t i = 0; i < n; i++) {
        const double *in = from.data + i * from.row;
        double *out = to.data + i * to.row;
        if (from.column == 1 && to.column == 1)
            memcpy(out, in, m * sizeof(double));
        else
            for (size_t j = 0; j < m; j++) out[j * to.column] = in[j * from.column];
    }
}

static void solve_rows(enum triangle kind, size_t n, size_t m, block t, block x) {
    (kind == UNIT_UPPER ? solve_up : solve_down)(n, m, t, x.data, x.row);
}

static void solve_small(enum triangle kind, size_t n, size_t m, block t, block b) {
    double x[TRIANGLE * STRIP];
    block strip = {x, STRIP, 1};
    if (b.column == 1 && m <= STRIP) {
        solve_rows(kind, n, m, t, b);
        return;
    }
    for (size_t j = 0; j < m; j += STRIP) {
        size_t columns = m - j < STRIP ? m - j : STRIP;
        copy_block(n, columns, block_at(b, 0, j), strip);
        solve_rows(kind, n, columns, t, strip);
        copy_block(n, columns, strip, block_at(b, 0, j));
    }
}

/* The first rows of a triangle that is split in two. */
static size_t split(size_t n) { return (n / 2 + TRIANGLE - 1) / TRIANGLE * TRIANGLE; }

bool solve_triangle(const work *w, enum triangle kind, size_t n, size_t m, block t, block b) {
    if (n <= TRIANGLE) {
        if (interrupted(w, n * m)) return false;
        solve_small(kind, n, m, t, b);
        return true;
    }
    size_t half = split(n), rest = n - half;
    block low = block_at(t, half, half), below = block_at(b, half, 0);
    if (kind == UNIT_UPPER)
        return solve_triangle(w, kind, rest, m, low, below) &&
               subtract_product(w, half, m, rest, block_at(t, 0, half), below, b) &&
               solve_triangle(w, kind, half, m, t, b);
    return solve_triangle(w, kind, half, m, t, b) &&
           subtract_product(w, rest, m, half, block_at(t, half, 0), b, below) &&
           solve_triangle(w, kind, rest, m, low, below);
}

bool invert_lower(const work *w, size_t n, block t, block x) {
    if (n <= TRIANGLE) {
        for (size_t i = 0; i < n; i++) x.data[i * (x.row + x.column)] = 1;
        return solve_triangle(w, LOWER, n, n, t, x);
    }
    size_t half = split(n), rest = n - half;
    block low = block_at(t, half, half), below = block_at(x, half, 0);
    return invert_lower(w, half, t, x) &&
           subtract_product(w, rest, half, half, block_at(t, half, 0), x, below) &&
           solve_triangle(w, LOWER, rest, half, low, below) &&
           invert_lower(w, rest, low, block_at(x, half, half));
}
