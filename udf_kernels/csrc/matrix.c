/* Functions of dense matrices, which follow each other in a tensor, row-major. They
 * compute in float64, whatever they are handed. What has no answer, as the inverse of a singular
 * matrix, is an error, as in NumPy. */
#include <math.h>

#include "gemm.h"
#include "matrix_lu.h"

/* One function: whether its matrices are square, how many parts of their shape its result has, how
 * many numbers it needs beside them, and what it makes of that. */
typedef struct matrix_function {
    bool square;
    size_t parts;
    size_t (*numbers)(size_t rows, size_t columns);
    bool (*apply)(const work *w);
} matrix_function;

size_t no_numbers(size_t rows, size_t columns) {
    (void)rows, (void)columns;
    return 0;
}

static const matrix_function functions[] = {
    [MATRIX_cholesky] = {true, 1, no_numbers, matrix_cholesky},
    [MATRIX_inv] = {true, 1, inverse_numbers, matrix_inverse},
    [MATRIX_eigenvalues] = {true, 1, eigenvalue_numbers, matrix_eigenvalues},
    [MATRIX_eigenvectors] = {true, 1, eigenvector_numbers, matrix_eigenvectors},
    [MATRIX_pivots] = {true, 1, pivot_numbers, matrix_pivots},
    [MATRIX_singular_values] = {false, 1, singular_value_numbers, matrix_singular_values},
    [MATRIX_qr] = {false, 2, qr_numbers, matrix_qr},
    [MATRIX_svd] = {false, 3, svd_numbers, matrix_svd},
};

static void widen(const call *c, size_t n, const void *from, double *to) {
    if (c->type->number == TYPE_f64) {
        memcpy(to, from, n * sizeof(double));
        return;
    }
    const float *x = from;
    for (size_t i = 0; i < n; i++) to[i] = (double)x[i];
}

static void narrow_to(const call *c, size_t n, const double *from, void *to) {
    if (c->type->number == TYPE_f64) {
        memcpy(to, from, n * sizeof(double));
        return;
    }
    float *x = to;
    for (size_t i = 0; i < n; i++) x[i] = (float)from[i];
}

bool scale_matrix(const work *w, int *exponent) {
    size_t elements = w->rows * w->n;
    double greatest = 0;
    for (size_t i = 0; i < elements; i++) {
        double x = fabs(w->a[i]);
        if (!isfinite(x)) return fail(w->c, "expected a matrix of finite numbers");
        greatest = fmax(greatest, x);
    }
    frexp(greatest, exponent);
    double factor = ldexp(1, -*exponent / 2), rest = ldexp(1, -*exponent - -*exponent / 2);
    for (size_t i = 0; i < elements; i++) w->a[i] = w->a[i] * factor * rest;
    return true;
}

void turn(size_t rows, size_t columns, const double *from, double *to) {
    enum { TILE = 16 };
    for (size_t i = 0; i < rows; i += TILE)
        for (size_t j = 0; j < columns; j++)
            for (size_t k = i; k < rows && k < i + TILE; k++) to[j * rows + k] = from[k * columns + j];
}

void set_identity(size_t rows, size_t columns, double *a) {
    memset(a, 0, rows * columns * sizeof(double));
    for (size_t i = 0; i < rows && i < columns; i++) a[i * (columns + 1)] = 1;
}

/* Memory for one matrix at a time; panels are aligned like the widest registers. No product has more
 * rows, columns or terms than `longest`. */
static bool find_memory(work *w, size_t elements, size_t numbers, size_t longest) {
    enum { ALIGNED = 64 };
    size_t bytes = (elements + numbers) * sizeof(double);
    char *scratch = call_scratch(w->c, bytes + ALIGNED + gemm_bytes(&type_f64, longest));
    if (scratch == NULL) return false;
    w->a = (double *)scratch;
    w->more = w->a + elements;
    w->panels = scratch + bytes + (ALIGNED - (uintptr_t)(scratch + bytes) % ALIGNED);
    return true;
}

/* The longer side of a matrix; its bidiagonal matrix is doubled for singular vectors. */
static size_t longest_side(const work *w) {
    size_t narrow = w->rows < w->n ? w->rows : w->n, longest = w->rows < w->n ? w->n : w->rows;
    return longest < 2 * narrow && w->c->kernel->op == MATRIX_svd ? 2 * narrow : longest;
}

/* Matrices that follow each other, each with what its other parts replace. */
static bool read_matrices(call *c, size_t row, const matrix_function *f, planes *p) {
    if (f->parts == 1) return read_planes(c, row, p);
    size_t parts;
    if (!read_tensor(c, 0, row, &p->t) || !read_whole(c, 1, row, LARGEST_SIZE, "parts", &parts) ||
        !read_whole(c, 2, row, LARGEST_SIZE, "sizes", &p->length) ||
        !read_whole(c, 3, row, LARGEST_SIZE, "sizes", &p->inner) ||
        !multiply_sizes(c, p->length, p->inner, &p->elements) ||
        !multiply_sizes(c, p->elements, f->parts, &p->elements))
        return false;
    if (parts != f->parts) return fail(c, "expected %zu parts, got %zu", f->parts, parts);
    return expect_multiple(c, p->elements, p->t.length);
}

size_t apply_matrix(call *c, size_t row) {
    const matrix_function *f = &functions[c->kernel->op];
    planes p;
    if (!read_matrices(c, row, f, &p)) return 0;
    size_t m = p.length, n = p.inner;
    if (f->square && m != n)
        return fail(c, "expected square matrices, got %zu rows of %zu", m, n);
    if (p.elements > max_elements(c->type))
        return fail(c, "expected matrices that fit a BLOB, got one of %zu rows", m);
    if (p.t.length == 0) return writer_put(c, row, NULL, 0); /* of nothing, whatever its shape */
    void *out = writer_room(c, row, p.t.length);
    work w = {.c = c, .rows = m, .n = n};
    if (out == NULL || !find_memory(&w, f->parts * m * n, f->numbers(m, n), longest_side(&w)))
        return 0;
    for (size_t first = 0; first < p.t.length; first += p.elements) {
        widen(c, m * n, at(c->type, p.t.data, first), w.a);
        if (!f->apply(&w)) return 0;
        narrow_to(c, p.elements, w.a, at_out(c->type, out, first));
    }
    return finish(c, row, p.t.length, 0);
}

/* Matrices (n x n) that follow each other, and as many blocks of right-hand sides (n x sides). */
static bool read_systems(call *c, size_t row, tensor *a, tensor *b, size_t *n, size_t *sides) {
    size_t square, rows;
    if (!read_tensor(c, 0, row, a) || !read_tensor(c, 1, row, b) ||
        !read_whole(c, 2, row, LARGEST_SIZE, "sizes", n) || !multiply_sizes(c, *n, *n, &square) ||
        !expect_multiple(c, square, a->length))
        return false;
    rows = *n == 0 ? 0 : a->length / *n;
    *sides = rows == 0 ? 0 : b->length / rows;
    return expect_multiple(c, rows, b->length);
}

size_t apply_solve(call *c, size_t row) {
    tensor a, b;
    size_t n, sides;
    if (!read_systems(c, row, &a, &b, &n, &sides)) return 0;
    if (b.length == 0) return writer_put(c, row, NULL, 0);
    void *out = writer_room(c, row, b.length);
    work w = {.c = c, .rows = n, .n = n};
    size_t elements = n * n, block = n * sides;
    if (out == NULL ||
        !find_memory(&w, elements, block + factor_numbers(n), n > sides ? n : sides))
        return 0;
    for (size_t k = 0; k * block < b.length; k++) {
        widen(c, elements, at(c->type, a.data, k * elements), w.a);
        widen(c, block, at(c->type, b.data, k * block), w.more);
        if (!solve_systems(&w, sides)) return 0;
        narrow_to(c, block, w.more, at_out(c->type, out, k * block));
    }
    return finish(c, row, b.length, 0);
}
