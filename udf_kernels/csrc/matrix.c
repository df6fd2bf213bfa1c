/* Functions of dense matrices: square ones that follow each other in a tensor, row-major. They
 * compute in float64, whatever they are handed. What has no answer, as the inverse of a singular
 * matrix, is an error, as in NumPy. */
#include "gemm.h"
#include "matrix.h"

/* One function: how many numbers it needs beside the matrix, and what it makes of that. */
typedef struct matrix_function {
    size_t (*numbers)(size_t n);
    bool (*apply)(const work *w);
} matrix_function;

static size_t no_numbers(size_t n) {
    (void)n;
    return 0;
}

static const matrix_function functions[] = {
    [MATRIX_cholesky] = {no_numbers, matrix_cholesky},
    [MATRIX_inv] = {inverse_numbers, matrix_inverse},
    [MATRIX_eigenvalues] = {eigenvalue_numbers, matrix_eigenvalues},
    [MATRIX_eigenvectors] = {eigenvector_numbers, matrix_eigenvectors},
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

/* Memory for one matrix at a time; panels are aligned like the widest registers. */
static bool find_memory(work *w, size_t numbers) {
    enum { ALIGNED = 64 };
    size_t bytes = (w->n * w->n + numbers) * sizeof(double);
    char *scratch = call_scratch(w->c, bytes + ALIGNED + gemm_bytes(&type_f64, w->n));
    if (scratch == NULL) return false;
    w->a = (double *)scratch;
    w->more = w->a + w->n * w->n;
    w->panels = scratch + bytes + (ALIGNED - (uintptr_t)(scratch + bytes) % ALIGNED);
    return true;
}

size_t apply_matrix(call *c, size_t row) {
    const matrix_function *f = &functions[c->kernel->op];
    planes p;
    if (!read_planes(c, row, &p)) return 0;
    size_t n = p.length;
    if (p.inner != n)
        return fail(c, "expected square matrices, got %zu rows of %zu", p.length, p.inner);
    if (p.elements > max_elements(c->type))
        return fail(c, "expected matrices that fit a BLOB, got one of %zu rows", n);
    if (p.t.length == 0) return writer_put(c, row, NULL, 0); /* of nothing, whatever its shape */
    void *out = writer_room(c, row, p.t.length);
    work w = {.c = c, .n = n};
    if (out == NULL || !find_memory(&w, f->numbers(n))) return 0;
    for (size_t first = 0; first < p.t.length; first += p.elements) {
        widen(c, p.elements, at(c->type, p.t.data, first), w.a);
        if (!f->apply(&w)) return 0;
        narrow_to(c, p.elements, w.a, at_out(c->type, out, first));
    }
    return finish(c, row, p.t.length, 0);
}
