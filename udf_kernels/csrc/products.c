/* The scalar kernels that multiply vectors and matrices. */
#include "kernels.h"

#include "gemm.h"

/* A run of rows goes into one product: long enough that packing the shared matrix costs little
 * beside it, and at most RUN_BYTES in or out. */
enum { RUN_ROWS = 2048 };

ein_plan matrix_plan(const element_type *type, size_t m, size_t n, size_t k) {
    axis axes[] = {{m, k, 0, n}, {k, 1, n, 0}, {n, 0, 1, 1}};
    return ein_plan_of(type, false, axes, 3);
}

/* How many terms the loops for matrices add to an entry one by one. */
size_t matrix_terms(const element_type *type, size_t m, size_t n, size_t k) {
    return 1 + k / (gemm_pays(type, m, n, k) ? GEMM_TERMS : 4);
}

trouble contract_into(call *c, const ein_plan *plan, const void *a, const void *b, void *zeros) {
    const element_type *type = c->type;
    bool plain = plan->reduce != REDUCE_sum || !has_totals(type) ||
                 (type->exact == NULL && plan->terms <= NEAR_TERMS);
    if (plain) return ein_run(plan, a, b, zeros, &c->watch);
    size_t length = 1;
    for (size_t i = 0; i < plan->axes; i++)
        if (plan->axis[i].out > 0) length *= plan->axis[i].size;
    sum s = {.type = type, .account = c->account, .length = plan->empty ? 0 : length,
             .near = zeros};
    trouble bad = sum_contraction(&s, plan, a, b, &c->watch);
    if (!bad) bad = sum_finish(&s, zeros);
    sum_release(&s);
    return bad;
}

/* A product of matrices into zeros: by their own loop unless that would add up too many terms one
 * by one, or has overflowed. */
typedef trouble (*product_loop)(call *c, size_t m, size_t n, size_t k, const void *a,
                                const void *b, void *out);
static trouble multiply_into(call *c, product_loop loop, size_t terms, size_t m, size_t n, size_t k,
                             const void *a, const void *b, void *zeros) {
    const element_type *type = c->type;
    ein_plan plan;
    if (!has_totals(type) || type->exact != NULL || terms <= NEAR_TERMS) {
        trouble bad = loop(c, m, n, k, a, b, zeros);
        if (bad != OVERFLOWS || type->exact == NULL) return bad;
        memset(zeros, 0, m * n * type->size);
    }
    plan = matrix_plan(type, m, n, k);
    return contract_into(c, &plan, a, b, zeros);
}

static trouble by_dot(call *c, size_t m, size_t n, size_t k, const void *a, const void *b,
                      void *out) {
    (void)m, (void)n;
    return c->type->dot(k, a, b, out);
}
static trouble by_columns(call *c, size_t m, size_t n, size_t k, const void *a, const void *b,
                          void *out) {
    (void)m;
    return c->type->vector_matrix(n, k, a, b, out);
}
static trouble by_rows(call *c, size_t m, size_t n, size_t k, const void *a, const void *b,
                       void *out) {
    (void)n;
    return c->type->matrix_vector(m, k, a, b, out);
}
static trouble by_blocks(call *c, size_t m, size_t n, size_t k, const void *a, const void *b,
                         void *out) {
    return gemm_dense(c->type, m, n, k, a, b, out, &c->watch);
}

trouble multiply(call *c, size_t m, size_t n, size_t k, matrix a, matrix b, void *zeros) {
    const element_type *type = c->type;
    bool transposed = b.column != 1, blocked = gemm_pays(type, m, n, k);
    size_t terms = blocked ? 1 + k / GEMM_TERMS : transposed ? 1 : 1 + k / 4;
    if (has_totals(type) && terms > NEAR_TERMS) {
        axis axes[] = {{m, a.row, 0, n}, {k, a.column, b.row, 0}, {n, 0, b.column, 1}};
        ein_plan plan = ein_plan_of(type, false, axes, 3);
        return contract_into(c, &plan, a.data, b.data, zeros);
    }
    if (blocked) return gemm_add(type, m, n, k, a, b, zeros, n, 1, &c->watch);
    if (!transposed) return gemm_dense(type, m, n, k, a.data, b.data, zeros, &c->watch);
    trouble bad = 0;
    for (size_t i = 0; i < m && !bad; i++)
        bad = type->matrix_vector(n, k, b.data, at(type, a.data, i * a.row),
                                  at_out(type, zeros, i * n));
    return bad;
}

size_t apply_inner_prod(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b) || !expect_length(c, "argument 2", a.length, b.length)) return 0;
    element out = c->type->identity[REDUCE_sum];
    if (!settle(c, multiply_into(c, by_dot, 1, 1, 1, a.length, a.data, b.data, &out))) return 0;
    return put_element(c, row, &out);
}

size_t apply_outer_prod(call *c, size_t row) {
    const element_type *type = c->type;
    tensor a, b;
    if (!read_pair(c, row, &a, &b)) return 0;
    size_t n = b.length;
    char *out = writer_room(c, row, a.length * n);
    if (out == NULL) return 0;
    trouble bad = 0;
    for (size_t i = 0; i < a.length && n > 0 && !bad; i++) {
        if (watch_stops(&c->watch, n)) bad = INTERRUPTED;
        bad |= type->combine(OP_mult, n, at(type, a.data, i), 0, b.data, 1,
                             at_out(type, out, i * n));
    }
    return finish(c, row, a.length * n, bad);
}

bool matrix_shape(call *c, size_t row, tensor a, tensor b, size_t *m, size_t *n, size_t *k) {
    if (!read_whole(c, 2, row, INT64_MAX, "k", k)) return false; /* it divides */
    if (!expect_multiple(c, *k, a.length) || !expect_multiple(c, *k, b.length)) return false;
    *m = *k ? a.length / *k : 0;
    *n = *k ? b.length / *k : 0;
    return true;
}

size_t run_of_rows(const call *c, size_t row, int other, int shared, size_t widest) {
    size_t limit = RUN_BYTES / c->type->size / (widest > 0 ? widest : 1), rows = 1;
    if (limit > RUN_ROWS) limit = RUN_ROWS;
    view x = column_view(&c->args[other], row), a = column_view(&c->args[shared], row);
    while (rows < limit && row + rows < c->rows && row_valid(c, row + rows) &&
           column_view(&c->args[other], row + rows).bytes == x.bytes &&
           same_bytes(a, column_view(&c->args[shared], row + rows)))
        rows++;
    return rows;
}

const void *gather_run(call *c, size_t row, size_t rows, int arg, size_t bytes) {
    const char *first = column_view(&c->args[arg], row).data;
    bool contiguous = true;
    for (size_t i = 1; contiguous && i < rows; i++)
        contiguous = column_view(&c->args[arg], row + i).data == first + i * bytes;
    if (contiguous) return first;
    char *x = call_scratch(c, rows * bytes);
    if (x == NULL) return NULL;
    for (size_t i = 0; i < rows; i++)
        memcpy(x + i * bytes, column_view(&c->args[arg], row + i).data, bytes);
    return x;
}

/* Whether rows of m x k matrices and one k x n matrix that they share are worth one product. */
static bool shares(const element_type *type, size_t rows, size_t n, size_t k) {
    return gemm_pays(type, rows, n, k) &&
           (!has_totals(type) || matrix_terms(type, rows, n, k) <= NEAR_TERMS);
}

/* Such a product; 0 after an error. */
static size_t multiply_run(call *c, size_t row, size_t rows, int other, matrix right, size_t m,
                           size_t n, size_t k) {
    const element_type *type = c->type;
    void *out = writer_zeros(c, row, rows, m * n);
    const void *left = gather_run(c, row, rows, other, m * k * type->size);
    if (out == NULL || left == NULL) return 0;
    if (!settle(c, gemm_add(type, rows * m, n, k, (matrix){left, k, 1}, right, out, n, 1,
                            &c->watch)))
        return 0;
    for (size_t i = 0; i < rows; i++) writer_take(c, row + i, m * n);
    return rows;
}

/* One vector times one matrix, or the whole run of rows that share the matrix. `a` is its k x n
 * view: transposed for mat_vec_mult. */
static size_t vector_times_matrix(call *c, size_t row, int vector, int matrix_arg) {
    const element_type *type = c->type;
    bool transposed = matrix_arg == 0;
    tensor x, a;
    if (!read_tensor(c, vector, row, &x) || !read_tensor(c, matrix_arg, row, &a) ||
        !expect_multiple(c, x.length, a.length))
        return 0;
    size_t k = x.length, n = k ? a.length / k : 0;
    if (shares(type, RUN_ROWS, n, k)) {
        size_t rows = run_of_rows(c, row, vector, matrix_arg, n > k ? n : k);
        matrix right = {a.data, transposed ? 1 : n, transposed ? k : 1};
        size_t done =
            gemm_pays(type, rows, n, k) ? multiply_run(c, row, rows, vector, right, 1, n, k) : 0;
        if (done > 0 || c->failed) return done;
    }
    void *out = writer_zeros(c, row, 1, n);
    if (out == NULL) return 0;
    return finish(c, row, n,
                  transposed ? multiply_into(c, by_rows, 1, n, 1, k, a.data, x.data, out)
                             : multiply_into(c, by_columns, 1 + k / 4, 1, n, k, x.data, a.data, out));
}

size_t apply_vec_mat(call *c, size_t row) { return vector_times_matrix(c, row, 0, 1); }
size_t apply_mat_vec(call *c, size_t row) { return vector_times_matrix(c, row, 1, 0); }

/* How many of the next rows ask for products of the same shape: k is an argument. */
static size_t same_inner(const call *c, size_t row, size_t rows) {
    size_t same = 1;
    while (same < rows && column_integer(c, 2, row + same) == column_integer(c, 2, row)) same++;
    return same;
}

size_t apply_mat_mat(call *c, size_t row) {
    const element_type *type = c->type;
    tensor a, b;
    size_t m = 0, n = 0, k = 0;
    if (!read_pair(c, row, &a, &b) || !matrix_shape(c, row, a, b, &m, &n, &k)) return 0;
    if (shares(type, RUN_ROWS, n, k)) {
        size_t rows = same_inner(c, row, run_of_rows(c, row, 0, 1, m * (n > k ? n : k)));
        size_t done = rows > 1 && gemm_pays(type, rows * m, n, k)
                          ? multiply_run(c, row, rows, 0, (matrix){b.data, n, 1}, m, n, k)
                          : 0;
        if (done > 0 || c->failed) return done;
    }
    void *out = writer_zeros(c, row, 1, m * n);
    if (out == NULL) return 0;
    return finish(c, row, m * n,
                  multiply_into(c, by_blocks, matrix_terms(type, m, n, k), m, n, k, a.data, b.data,
                                out));
}
