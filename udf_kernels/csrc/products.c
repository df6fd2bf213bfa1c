/* The scalar kernels that multiply vectors and matrices. */
#include "kernels.h"

#include "gemm.h"

/* A run of rows goes into one product: long enough that packing the matrix costs little beside it,
 * and at most 32 MB of vectors. */
enum { RUN_BYTES = 1 << 25, RUN_ROWS = 2048 };

size_t apply_inner_prod(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b) || !expect_length(c, "argument 2", a.length, b.length)) return 0;
    element out = c->type->identity[REDUCE_sum];
    if (!settle(c, c->type->dot(a.length, a.data, b.data, &out))) return 0;
    return put_element(c, row, &out);
}

size_t apply_outer_prod(call *c, size_t row) {
    const element_type *type = c->type;
    tensor a, b;
    if (!read_pair(c, row, &a, &b)) return 0;
    size_t n = b.length;
    char *out = writer_room(c, a.length * n);
    if (out == NULL) return 0;
    trouble bad = 0;
    for (size_t i = 0; i < a.length; i++)
        bad |= type->combine(OP_mult, n, at(type, a.data, i), 0, b.data, 1,
                             at_out(type, out, i * n));
    return finish(c, row, a.length * n, bad);
}

bool matrix_shape(call *c, size_t row, tensor a, tensor b, size_t *m, size_t *n, size_t *k) {
    int64_t inner = column_integer(c, 2, row);
    if (inner < 0) return fail(c, "expected k of at least 0, got %lld", (long long)inner);
    *k = (size_t)inner;
    if (!expect_multiple(c, *k, a.length) || !expect_multiple(c, *k, b.length)) return false;
    *m = *k ? a.length / *k : 0;
    *n = *k ? b.length / *k : 0;
    return true;
}

/* Room for a sum, which starts from zeros. */
static void *zeros(call *c, size_t length) {
    void *out = writer_room(c, length);
    if (out != NULL) memset(out, 0, length * c->type->size);
    return out;
}

size_t apply_mat_mat(call *c, size_t row) {
    tensor a, b;
    size_t m = 0, n = 0, k = 0;
    if (!read_pair(c, row, &a, &b) || !matrix_shape(c, row, a, b, &m, &n, &k)) return 0;
    void *out = zeros(c, m * n);
    if (out == NULL) return 0;
    return finish(c, row, m * n, gemm_dense(c->type, m, n, k, a.data, b.data, out));
}

/* How many rows from here on carry the same matrix, and vectors of the same length. */
static size_t run_length(const call *c, size_t row, int vector, int matrix, size_t limit) {
    view v = column_view(&c->args[vector], row), a = column_view(&c->args[matrix], row);
    size_t rows = 1;
    while (rows < limit && row + rows < c->rows && row_valid(c, row + rows) &&
           column_view(&c->args[vector], row + rows).bytes == v.bytes &&
           same_bytes(a, column_view(&c->args[matrix], row + rows)))
        rows++;
    return rows;
}

/* The vectors of a run as the rows of one matrix: where they lie if they are contiguous. */
static const void *gather_vectors(call *c, size_t row, size_t rows, int vector, size_t bytes) {
    const char *first = column_view(&c->args[vector], row).data;
    bool contiguous = true;
    for (size_t i = 1; contiguous && i < rows; i++)
        contiguous = column_view(&c->args[vector], row + i).data == first + i * bytes;
    if (contiguous) return first;
    char *x = call_scratch(c, rows * bytes);
    if (x == NULL) return NULL;
    for (size_t i = 0; i < rows; i++)
        memcpy(x + i * bytes, column_view(&c->args[vector], row + i).data, bytes);
    return x;
}

trouble matrix_vector(const element_type *type, size_t m, size_t k, const void *a, const void *x,
                      void *y) {
    trouble bad = 0;
    for (size_t i = 0; i < m; i++) bad |= type->dot(k, at(type, a, i * k), x, at_out(type, y, i));
    return bad;
}

/* One vector times one matrix, or the whole run of rows that share the matrix as one product.
 * `a` is its k x n view: transposed for mat_vec_mult. */
static size_t vector_times_matrix(call *c, size_t row, int vector, int matrix_arg) {
    const element_type *type = c->type;
    bool transposed = matrix_arg == 0;
    tensor x, a;
    if (!read_tensor(c, vector, row, &x) || !read_tensor(c, matrix_arg, row, &a) ||
        !expect_multiple(c, x.length, a.length))
        return 0;
    size_t k = x.length, n = k ? a.length / k : 0, widest = n > k ? n : k, limit = 1;
    if (gemm_pays(type, RUN_ROWS, n, k)) limit = RUN_BYTES / type->size / widest;
    if (limit > RUN_ROWS) limit = RUN_ROWS;
    size_t rows = limit > 1 ? run_length(c, row, vector, matrix_arg, limit) : 1;
    void *out = zeros(c, rows * n);
    if (out == NULL) return 0;
    if (rows > 1 && gemm_pays(type, rows, n, k)) {
        const void *vectors = gather_vectors(c, row, rows, vector, k * type->size);
        if (vectors == NULL) return 0;
        matrix right = {a.data, transposed ? 1 : n, transposed ? k : 1};
        if (gemm_add(type, rows, n, k, (matrix){vectors, k, 1}, right, out, n, 1)) {
            for (size_t i = 0; i < rows; i++) writer_take(c, row + i, n);
            return rows;
        }
    }
    return finish(c, row, n,
                  transposed ? matrix_vector(type, n, k, a.data, x.data, out)
                             : type->vector_matrix(n, k, x.data, a.data, out));
}

size_t apply_vec_mat(call *c, size_t row) { return vector_times_matrix(c, row, 0, 1); }
size_t apply_mat_vec(call *c, size_t row) { return vector_times_matrix(c, row, 1, 0); }
