#include "gemm.h"

#include <stdlib.h>
#include <string.h>

/* A product blocked for the caches: panels of b and a are copied side by side in the order in which
 * they are read, and tiles of c are summed up in registers. Threads are DuckDB's business: each call
 * runs on the thread that makes it, where a BLAS would wake up threads of its own and let the two
 * sets fight for the cores. */
enum {
    DEPTH = 256,  /* of a panel: a tile's share of a and b stays in the first-level cache */
    HEIGHT = 192, /* rows of a packed at a time: DEPTH x HEIGHT doubles fit the second level */
    SPAN = 3072,  /* columns of b packed at a time */
    TILE = 192    /* entries of the largest tile */
};

/* Adds up one tile, `rows` by `vectors` registers of `bytes` bytes. `a` and `b` are panels: for each
 * step of depth one column of the tile's rows of a, and one row of the tile's columns of b. */
#define MICRO_KERNEL(name, attributes, bytes, rows, vectors)                                     \
    attributes static void name(size_t depth, const double *a, const double *b, double *tile) { \
        typedef double vec __attribute__((vector_size(bytes), aligned(8)));                      \
        enum { LANES = (bytes) / sizeof(double) };                                               \
        vec sum[rows][vectors];                                                                  \
        memset(sum, 0, sizeof sum);                                                              \
        for (size_t l = 0; l < depth; l++, a += (rows), b += LANES * (vectors))                  \
            _Pragma("GCC unroll 24") for (int i = 0; i < (rows); i++)                            \
                _Pragma("GCC unroll 4") for (int j = 0; j < (vectors); j++)                      \
                    sum[i][j] += a[i] * *(const vec *)(b + j * LANES);                           \
        memcpy(tile, sum, sizeof sum);                                                           \
    }

/* For each kind of register three shapes of tile, all with as many accumulators as leave room for a
 * row of b: wide ones, and two for products with few columns. */
#define MICRO_KERNELS(kind, attributes, bytes, accumulators)              \
    MICRO_KERNEL(kind##_wide, attributes, bytes, (accumulators) / 3, 3)   \
    MICRO_KERNEL(kind##_medium, attributes, bytes, (accumulators) / 2, 2) \
    MICRO_KERNEL(kind##_narrow, attributes, bytes, accumulators, 1)

typedef struct micro_kernel {
    void (*add)(size_t depth, const double *a, const double *b, double *tile);
    size_t rows, columns;
} micro_kernel;

#define CHOOSE(kind, lanes, accumulators, n)                                                \
    ((n) <= (lanes)       ? (micro_kernel){kind##_narrow, accumulators, lanes}              \
     : (n) <= 2 * (lanes) ? (micro_kernel){kind##_medium, (accumulators) / 2, 2 * (lanes)}  \
                          : (micro_kernel){kind##_wide, (accumulators) / 3, 3 * (lanes)})

MICRO_KERNELS(plain, , 16, 12)
#if defined(__x86_64__)
MICRO_KERNELS(avx2, __attribute__((target("avx2,fma"))), 32, 12)
MICRO_KERNELS(avx512, __attribute__((target("avx512f,fma"))), 64, 24)
#endif

/* The shape of tile for a product with n columns on this processor. */
static micro_kernel choose(size_t n) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return CHOOSE(avx512, 8, 24, n);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return CHOOSE(avx2, 4, 12, n);
#endif
    return CHOOSE(plain, 2, 12, n);
}

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

/* Copies a matrix of `count` lines and `depth` steps into panels of `width` lines, step by step;
 * lines that the last panel lacks are zeros. */
static void pack(size_t count, size_t depth, size_t width, const f64 *x, size_t across,
                 size_t along, double *panel) {
    for (size_t p = 0; p < count; p += width) {
        size_t lines = least(width, count - p);
        for (size_t l = 0; l < depth; l++, panel += width) {
            const f64 *source = x + p * across + l * along;
            if (across == 1)
                memcpy(panel, source, lines * sizeof(double));
            else
                for (size_t i = 0; i < lines; i++) panel[i] = source[i * across];
            for (size_t i = lines; i < width; i++) panel[i] = 0.0;
        }
    }
}

/* c += a b for packed panels of one block. */
static void multiply_block(micro_kernel kernel, size_t m, size_t n, size_t depth, const double *a,
                           const double *b, f64 *c, size_t c_row, size_t c_column) {
    double tile[TILE];
    for (size_t j = 0; j < n; j += kernel.columns)
        for (size_t i = 0; i < m; i += kernel.rows) {
            kernel.add(depth, a + i * depth, b + j * depth, tile);
            size_t rows = least(kernel.rows, m - i), columns = least(kernel.columns, n - j);
            for (size_t r = 0; r < rows; r++) {
                f64 *out = c + (i + r) * c_row + j * c_column;
                const double *in = tile + r * kernel.columns;
                if (c_column == 1)
                    for (size_t s = 0; s < columns; s++) out[s] += in[s];
                else
                    for (size_t s = 0; s < columns; s++) out[s * c_column] += in[s];
            }
        }
}

/* Below some 16 x 16 x 16 packing costs more than it saves. */
bool gemm_pays(size_t m, size_t n, size_t k) {
    return m > 1 && n > 1 && k > 1 && (double)m * (double)n * (double)k >= 4096;
}

bool gemm_add(size_t m, size_t n, size_t k, matrix a, matrix b, f64 *c, size_t c_row,
              size_t c_column) {
    micro_kernel kernel = choose(n);
    size_t depth = least(DEPTH, k), height = round_up(least(HEIGHT, m), kernel.rows);
    size_t span = round_up(least(SPAN, n), kernel.columns);
    /* Aligned like the widest registers, so that no load crosses a cache line. */
    double *panels = aligned_alloc(64, round_up((height + span) * depth * sizeof(double), 64));
    if (panels == NULL) return false;
    double *a_panels = panels + span * depth;
    for (size_t j = 0; j < n; j += SPAN)
        for (size_t l = 0; l < k; l += DEPTH) {
            size_t columns = least(SPAN, n - j), steps = least(DEPTH, k - l);
            pack(columns, steps, kernel.columns, b.data + l * b.row + j * b.column, b.column, b.row,
                 panels);
            for (size_t i = 0; i < m; i += HEIGHT) {
                size_t rows = least(HEIGHT, m - i);
                pack(rows, steps, kernel.rows, a.data + i * a.row + l * a.column, a.row, a.column,
                     a_panels);
                multiply_block(kernel, rows, columns, steps, a_panels, panels,
                               c + i * c_row + j * c_column, c_row, c_column);
            }
        }
    free(panels);
    return true;
}

void gemm_dense(size_t m, size_t n, size_t k, const f64 *a, const f64 *b, f64 *c) {
    if (gemm_pays(m, n, k) && gemm_add(m, n, k, (matrix){a, k, 1}, (matrix){b, n, 1}, c, n, 1))
        return;
    for (size_t i = 0; i < m; i++) loop_vector_matrix(n, k, a + i * k, b, n, c + i * n);
}
