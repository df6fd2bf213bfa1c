#include "gemm.h"

#include <stdlib.h>

/* Below some 16 x 16 x 16 packing costs more than it saves. */
bool gemm_pays(const element_type *type, size_t m, size_t n, size_t k) {
    return type->gemm != NULL && m > 1 && n > 1 && k > 1 &&
           (double)m * (double)n * (double)k >= 4096;
}

bool gemm_add(const element_type *type, size_t m, size_t n, size_t k, matrix a, matrix b, void *c,
              size_t c_row, size_t c_column) {
    /* Aligned like the widest registers, so that no load crosses a cache line. */
    size_t bytes = (type->panel_bytes(m, n, k) + 63) / 64 * 64;
    void *panels = aligned_alloc(64, bytes);
    if (panels == NULL) return false;
    type->gemm(m, n, k, 1, a, b, c, c_row, c_column, panels);
    free(panels);
    return true;
}

trouble gemm_dense(const element_type *type, size_t m, size_t n, size_t k, const void *a,
                   const void *b, void *c) {
    if (gemm_pays(type, m, n, k) &&
        gemm_add(type, m, n, k, (matrix){a, k, 1}, (matrix){b, n, 1}, c, n, 1))
        return 0;
    trouble bad = 0;
    for (size_t i = 0; i < m && !bad; i++)
        bad = type->vector_matrix(n, k, at(type, a, i * k), b, at_out(type, c, i * n));
    return bad;
}
