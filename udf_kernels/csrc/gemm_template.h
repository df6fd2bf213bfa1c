/* Matrix products of one floating-point type, blocked for the caches: panels of b and a are copied
 * side by side in the order in which they are read, and tiles of c are summed up in registers.
 * Threads are DuckDB's business: each call runs on the thread that makes it, where a BLAS would
 * wake up threads of its own and let the two sets fight for the cores. */

#include "gemm.h"

enum {
    DEPTH = GEMM_TERMS,        /* of a panel: a tile's share of a and b stays in the first cache */
    HEIGHT = 1536 / sizeof(V), /* rows of a packed at a time: DEPTH x HEIGHT fit the second one */
    SPAN = 24576 / sizeof(V),  /* columns of b packed at a time */
    TILE = 1536 / sizeof(V)    /* entries of the largest tile */
};

/* Adds to one tile, `rows` by `vectors` registers of `bytes` bytes. `a` and `b` are panels: for
 * each step of depth one column of the tile's rows of a, and one row of the tile's columns of b. */
#define MICRO_KERNEL(name, attributes, bytes, rows, vectors)                                     \
    attributes static void name(size_t depth, const V *a, const V *b, V *tile) {                \
        typedef V vec __attribute__((vector_size(bytes), aligned(sizeof(V))));                   \
        enum { LANES = (bytes) / sizeof(V) };                                                    \
        vec sum[rows][vectors];                                                                  \
        memcpy(sum, tile, sizeof sum);                                                           \
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
    void (*add)(size_t depth, const V *a, const V *b, V *tile);
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
    if (__builtin_cpu_supports("avx512f")) return CHOOSE(avx512, 64 / sizeof(V), 24, n);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return CHOOSE(avx2, 32 / sizeof(V), 12, n);
#endif
    return CHOOSE(plain, 16 / sizeof(V), 12, n);
}

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

/* Copies a matrix of `count` lines and `depth` steps into panels of `width` lines, step by step;
 * lines that the last panel lacks are zeros. */
static void pack(size_t count, size_t depth, size_t width, const S *x, size_t across, size_t along,
                 V *panel) {
    for (size_t p = 0; p < count; p += width) {
        size_t lines = least(width, count - p);
        for (size_t l = 0; l < depth; l++, panel += width) {
            const S *source = x + p * across + l * along;
            if (across == 1)
                memcpy(panel, source, lines * sizeof(V));
            else
                for (size_t i = 0; i < lines; i++) panel[i] = source[i * across];
            for (size_t i = lines; i < width; i++) panel[i] = 0;
        }
    }
}

/* Asks for a tile of c, whose rows lie far apart, before its sum is computed. */
static inline void ask_for_tile(const S *c, size_t rows, size_t columns, size_t c_row,
                                size_t c_column) {
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < columns; s += 64 / sizeof(S))
            __builtin_prefetch(c + r * c_row + s * c_column, 1);
}

/* What a tile starts from: nothing, or -c if the product is taken off term by term. */
static inline void start_tile(bool from_c, size_t rows, size_t columns, const S *c, size_t c_row,
                              size_t c_column, size_t width, size_t entries, V *tile) {
    memset(tile, 0, entries * sizeof(V));
    for (size_t r = 0; from_c && r < rows; r++)
        for (size_t s = 0; s < columns; s++)
            tile[r * width + s] = -c[r * c_row + s * c_column];
}

/* c becomes the mode's sum of itself and a b, for packed panels of one block. */
static void multiply_block(micro_kernel kernel, size_t m, size_t n, size_t depth,
                           enum gemm_mode mode, const V *a, const V *b, S *c, size_t c_row,
                           size_t c_column) {
    V tile[TILE], factor = mode == GEMM_ADD ? 1 : -1;
    bool from_c = mode == GEMM_ELIMINATE;
    for (size_t j = 0; j < n; j += kernel.columns)
        for (size_t i = 0; i < m; i += kernel.rows) {
            size_t rows = least(kernel.rows, m - i), columns = least(kernel.columns, n - j);
            S *place = c + i * c_row + j * c_column;
            ask_for_tile(place, rows, columns, c_row, c_column);
            start_tile(from_c, rows, columns, place, c_row, c_column, kernel.columns,
                       kernel.rows * kernel.columns, tile);
            kernel.add(depth, a + i * depth, b + j * depth, tile);
            for (size_t r = 0; r < rows; r++) {
                S *out = place + r * c_row;
                const V *in = tile + r * kernel.columns;
                if (from_c)
                    for (size_t s = 0; s < columns; s++) out[s * c_column] = -in[s];
                else if (c_column == 1)
                    for (size_t s = 0; s < columns; s++) out[s] += factor * in[s];
                else
                    for (size_t s = 0; s < columns; s++) out[s * c_column] += factor * in[s];
            }
        }
}

/* The parts of the panels: steps of depth, rows of a, columns of b. */
typedef struct blocking {
    micro_kernel kernel;
    size_t depth, height, span;
} blocking;

static blocking block(size_t m, size_t n, size_t k) {
    micro_kernel kernel = choose(n);
    return (blocking){kernel, least(DEPTH, k), round_up(least(HEIGHT, m), kernel.rows),
                      round_up(least(SPAN, n), kernel.columns)};
}

static size_t panel_bytes(size_t m, size_t n, size_t k) {
    blocking p = block(m, n, k);
    return (p.height + p.span) * p.depth * sizeof(V);
}

static trouble gemm(size_t m, size_t n, size_t k, enum gemm_mode mode, matrix a, matrix b, void *c,
                    size_t c_row, size_t c_column, void *panels, watch *w) {
    blocking p = block(m, n, k);
    V *b_panels = panels, *a_panels = b_panels + p.span * p.depth;
    const S *a_data = a.data, *b_data = b.data;
    for (size_t j = 0; j < n; j += SPAN)
        for (size_t l = 0; l < k; l += DEPTH) {
            size_t columns = least(SPAN, n - j), steps = least(DEPTH, k - l);
            pack(columns, steps, p.kernel.columns, b_data + l * b.row + j * b.column, b.column,
                 b.row, b_panels);
            for (size_t i = 0; i < m; i += HEIGHT) {
                size_t rows = least(HEIGHT, m - i);
                if (watch_stops(w, rows * columns / 16 * steps)) return INTERRUPTED;
                pack(rows, steps, p.kernel.rows, a_data + i * a.row + l * a.column, a.row, a.column,
                     a_panels);
                multiply_block(p.kernel, rows, columns, steps, mode, a_panels, b_panels,
                               (S *)c + i * c_row + j * c_column, c_row, c_column);
            }
        }
    return 0;
}
