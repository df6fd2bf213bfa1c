/* What only complex types need, besides the loops: their separate parts, and matrix products by
 * those of the parts' type, PART_TYPE, which are stored as PART_S. */

HOT void join(size_t n, const void *re_from, const void *im_from, void *restrict to) {
    const PART_S *re = re_from, *im = im_from;
    S *out = to;
    for (size_t i = 0; i < n; i++) out[i] = pair(re[i], im[i]);
}

HOT void split(size_t n, const void *from, void *restrict re_to, void *restrict im_to) {
    const S *x = from;
    PART_S *re = re_to, *im = im_to;
    for (size_t i = 0; i < n; i++) re[i] = x[i].re, im[i] = x[i].im;
}

static size_t panel_bytes(size_t m, size_t n, size_t k) {
    return PART_TYPE.panel_bytes(m, n, k);
}

/* The real (0) or imaginary (1) parts of a matrix, which lie two by two. */
static matrix part_of(matrix x, size_t part) {
    return (matrix){(const PART_S *)x.data + part, 2 * x.row, 2 * x.column};
}

/* Four real products run at full speed, where complex arithmetic would shuffle between lanes. */
static trouble gemm(size_t m, size_t n, size_t k, enum gemm_mode mode, matrix a, matrix b,
                    void *c, size_t c_row, size_t c_column, void *panels, watch *w) {
    enum gemm_mode opposite = mode == GEMM_ADD ? GEMM_SUBTRACT : GEMM_ADD;
    trouble bad = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2 && !bad; j++)
            bad = PART_TYPE.gemm(m, n, k, i && j ? opposite : mode, part_of(a, i), part_of(b, j),
                                 (PART_S *)c + (i ^ j), 2 * c_row, 2 * c_column, panels, w);
    return bad;
}
