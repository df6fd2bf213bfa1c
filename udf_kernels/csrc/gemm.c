/* Chooses between the blocked product of a type and its plain loops. */
#include "gemm.h"

#include <stdlib.h>

/* Below some 16 x 16 x 16 packing costs more than it saves. */
bool gemm_pays(const element_type *type, size_t m, size_t n, size_t k) {
    return type->gemm != NULL && m > 1 && n > 1 && k > 1 &&
           (double)m * (double)n * (double)k >= 4096;
}

size_t gemm_bytes(const element_type *type, size_t n) {
    enum { TILE = 24 }; /* rows or columns of the longest tile: tiles of other shapes take more */
    return gemm_pays(type, n, n, n) ? type->panel_bytes(n + TILE, n + TILE, n) : 0;
}

trouble gemm_add(const element_type *type, size_t m, size_t n, size_t k, matrix a, matrix b,
                 void *c, size_t c_row, size_t c_column, watch *w) {
    /* Aligned like the widest registers, so that no load crosses a cache line. */
    size_t bytes = (type->panel_bytes(m, n, k) + 63) / 64 * 64;
    void *panels = aligned_alloc(64, bytes);
    if (panels == NULL) return NO_MEMORY;
    trouble bad = type->gemm(m, n, k, GEMM_ADD, a, b, c, c_row, c_column, panels, w);
    free(panels);
    return bad;
}

/* Row by row, over as many rows of b at a time as stay in the second-level cache. */
static trouble gemm_by_rows(const element_type *type, size_t m, size_t n, size_t k, const void *a,
                            const void *b, void *c, watch *w) {
    if (m == 0 || n == 0) return 0; /* whatever k is */
    enum { CACHE = 256 << 10 };
    size_t depth = CACHE / type->size / (n + 1) / 4 * 4; /* loops take four rows at a time */
    if (depth < 4) depth = 4;
    trouble bad = 0;
    for (size_t l = 0; l < k && !bad; l += depth)
        for (size_t i = 0; i < m; i++) {
            size_t steps = k - l < depth ? k - l : depth;
            if (watch_stops(w, n * steps / 4)) return bad | INTERRUPTED;
            bad |= type->vector_matrix(n, steps, at(type, a, i * k + l), at(type, b, l * n),
                                       at_out(type, c, i * n));
        }
    return bad;
}

trouble gemm_dense(const element_type *type, size_t m, size_t n, size_t k, const void *a,
                   const void *b, void *c, watch *w) {
    if (gemm_pays(type, m, n, k))
        return gemm_add(type, m, n, k, (matrix){a, k, 1}, (matrix){b, n, 1}, c, n, 1, w);
    return gemm_by_rows(type, m, n, k, a, b, c, w);
}
