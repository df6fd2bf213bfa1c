/* The scalar kernels. Each takes one row (or a run of rows) and writes its result. */
#include "kernels.h"

#include "gemm.h"

/* A run of rows goes into one product: long enough that packing the matrix costs little beside it,
 * and at most 32 MB of vectors. */
enum { RUN_DOUBLES = 1 << 22, RUN_ROWS = 2048 };

static size_t put_double(call *c, size_t row, double value) {
    ((double *)c->out.values)[row] = value;
    return 1;
}

static size_t put_integer(call *c, size_t row, int64_t value) {
    ((int64_t *)c->out.values)[row] = value;
    return 1;
}

bool expect_length(call *c, const char *what, size_t expected, size_t got) {
    if (expected == got) return true;
    return fail(c, "expected %zu doubles as %s, got %zu", expected, what, got);
}

bool expect_multiple(call *c, size_t of, size_t got) {
    if (of == 0 ? got == 0 : got % of == 0) return true;
    return fail(c, "expected a matrix of a multiple of %zu doubles, got %zu", of, got);
}

static bool read_pair(call *c, size_t row, tensor *a, tensor *b) {
    return read_tensor(c, 0, row, a) && read_tensor(c, 1, row, b);
}

/* ---- Making and reading tensors ---- */

size_t apply_pack(call *c, size_t row) {
    list l;
    return read_list(c, 0, row, &l) && writer_put(c, row, l.elements, l.length);
}

size_t apply_vec_to_list(call *c, size_t row) {
    tensor t;
    return read_tensor(c, 0, row, &t) && writer_put(c, row, t.data, t.length);
}

size_t apply_full(call *c, size_t row) {
    int64_t n = column_integer(c, 0, row);
    if (n < 0) return fail(c, "expected a length of at least 0, got %lld", (long long)n);
    double *out = writer_room(c, (size_t)n);
    if (out == NULL) return 0;
    loop_fill((size_t)n, column_double(c, 1, row), out);
    writer_take(c, row, (size_t)n);
    return 1;
}

size_t apply_sca_to_vec(call *c, size_t row) {
    double value = column_double(c, 0, row);
    return writer_put(c, row, &value, 1);
}

size_t apply_element(call *c, size_t row) {
    tensor t;
    int64_t i = column_integer(c, 1, row);
    if (!read_tensor(c, 0, row, &t)) return 0;
    if (i < 0 || (size_t)i >= t.length)
        return fail(c, "expected an offset below %zu, got %lld", t.length, (long long)i);
    return put_double(c, row, t.data[i]);
}

size_t apply_slice(call *c, size_t row) {
    tensor t;
    strided s;
    if (!read_tensor(c, 0, row, &t) || !read_strided(c, row, 1, 2, 3, t.length, &s)) return 0;
    double *out = writer_room(c, s.count);
    if (out == NULL) return 0;
    strided_gather(&s, t.data, out);
    writer_take(c, row, s.count);
    return 1;
}

size_t apply_any_not(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    ((uint8_t *)c->out.values)[row] = loop_count_not(t.length, t.data, column_double(c, 1, row)) > 0;
    return 1;
}

size_t apply_count_not(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    return put_integer(c, row,
                       (int64_t)loop_count_not(t.length, t.data, column_double(c, 1, row)));
}

/* ---- Entry by entry ---- */

size_t apply_map(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    double *out = writer_room(c, t.length);
    if (out == NULL) return 0;
    loop_map((enum map_op)c->kernel->op, t.length, t.data, out);
    writer_take(c, row, t.length);
    return 1;
}

static size_t combine(call *c, size_t row, size_t n, const f64 *a, size_t sa, const f64 *b,
                      size_t sb) {
    double *out = writer_room(c, n);
    if (out == NULL) return 0;
    loop_combine((enum combine_op)c->kernel->op, n, a, sa, b, sb, out);
    writer_take(c, row, n);
    return 1;
}

size_t apply_vec_vec(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b) || !expect_length(c, "argument 2", a.length, b.length)) return 0;
    return combine(c, row, a.length, a.data, 1, b.data, 1);
}

size_t apply_vec_sca(call *c, size_t row) {
    tensor a;
    if (!read_tensor(c, 0, row, &a)) return 0;
    double value = column_double(c, 1, row);
    return combine(c, row, a.length, a.data, 1, &value, 0);
}

size_t apply_sca_vec(call *c, size_t row) {
    tensor b;
    if (!read_tensor(c, 1, row, &b)) return 0;
    double value = column_double(c, 0, row);
    return combine(c, row, b.length, &value, 0, b.data, 1);
}

/* ---- Products ---- */

size_t apply_inner_prod(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b) || !expect_length(c, "argument 2", a.length, b.length)) return 0;
    return put_double(c, row, loop_dot(a.length, a.data, b.data));
}

size_t apply_outer_prod(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b)) return 0;
    double *out = writer_room(c, a.length * b.length);
    if (out == NULL) return 0;
    for (size_t i = 0; i < a.length; i++)
        loop_combine(OP_MULT, b.length, a.data + i, 0, b.data, 1, out + i * b.length);
    writer_take(c, row, a.length * b.length);
    return 1;
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

size_t apply_mat_mat(call *c, size_t row) {
    tensor a, b;
    size_t m = 0, n = 0, k = 0;
    if (!read_pair(c, row, &a, &b) || !matrix_shape(c, row, a, b, &m, &n, &k)) return 0;
    double *out = writer_room(c, m * n);
    if (out == NULL) return 0;
    loop_fill(m * n, 0, out);
    gemm_dense(m, n, k, a.data, b.data, out);
    writer_take(c, row, m * n);
    return 1;
}

static bool same_bytes(view u, view v) {
    return u.bytes == v.bytes && (u.bytes == 0 || u.data == v.data || memcmp(u.data, v.data, u.bytes) == 0);
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
static const f64 *gather_vectors(call *c, size_t row, size_t rows, int vector, size_t k) {
    const char *first = column_view(&c->args[vector], row).data;
    bool contiguous = true;
    for (size_t i = 1; contiguous && i < rows; i++)
        contiguous = column_view(&c->args[vector], row + i).data == first + i * k * sizeof(double);
    if (contiguous) return (const f64 *)first;
    double *x = call_scratch(c, 0, rows * k);
    if (x == NULL) return NULL;
    for (size_t i = 0; i < rows; i++)
        memcpy(x + i * k, column_view(&c->args[vector], row + i).data, k * sizeof(double));
    return x;
}

/* One vector times one matrix, or the whole run of rows that share the matrix as one product.
 * `a` is its k x n view: transposed for mat_vec_mult. */
static size_t vector_times_matrix(call *c, size_t row, int vector, int matrix_arg) {
    bool transposed = matrix_arg == 0;
    tensor x, a;
    if (!read_tensor(c, vector, row, &x) || !read_tensor(c, matrix_arg, row, &a) ||
        !expect_multiple(c, x.length, a.length))
        return 0;
    size_t k = x.length, n = k ? a.length / k : 0, widest = n > k ? n : k, limit = 1;
    if (gemm_pays(RUN_ROWS, n, k)) limit = widest < RUN_DOUBLES ? RUN_DOUBLES / widest : 1;
    if (limit > RUN_ROWS) limit = RUN_ROWS;
    size_t rows = limit > 1 ? run_length(c, row, vector, matrix_arg, limit) : 1;
    double *out = writer_room(c, rows * n);
    if (out == NULL) return 0;
    if (rows > 1 && gemm_pays(rows, n, k)) {
        const f64 *vectors = gather_vectors(c, row, rows, vector, k);
        if (vectors == NULL) return 0;
        matrix right = {a.data, transposed ? 1 : n, transposed ? k : 1};
        loop_fill(rows * n, 0, out);
        if (gemm_add(rows, n, k, (matrix){vectors, k, 1}, right, out, n, 1)) {
            for (size_t i = 0; i < rows; i++) writer_take(c, row + i, n);
            return rows;
        }
    }
    if (transposed) {
        for (size_t i = 0; i < n; i++) out[i] = loop_dot(k, a.data + i * k, x.data);
    } else {
        loop_fill(n, 0, out);
        loop_vector_matrix(n, k, x.data, a.data, n, out);
    }
    writer_take(c, row, n);
    return 1;
}

size_t apply_vec_mat(call *c, size_t row) { return vector_times_matrix(c, row, 0, 1); }
size_t apply_mat_vec(call *c, size_t row) { return vector_times_matrix(c, row, 1, 0); }

/* ---- General contractions ---- */

/* The spec and the sizes rarely change within a batch: parse them again only when they do. */
static bool plan_for(call *c, size_t row) {
    bool unary = c->arguments == 3;
    view spec = column_view(&c->args[0], row);
    list sizes;
    if (!read_list(c, 1, row, &sizes)) return false;
    view bytes = {sizes.elements, sizes.length * sizeof(int64_t)};
    /* A short spec lies inside the row's entry, which outlives the batch like any other. */
    if (c->plan_ready && same_bytes(spec, c->plan_spec) && same_bytes(bytes, c->plan_sizes))
        return true;
    char message[160];
    c->plan_ready = ein_parse(&c->plan, unary, spec.data, spec.bytes, sizes.elements, sizes.length,
                              message, sizeof message);
    c->plan_spec = spec;
    c->plan_sizes = bytes;
    if (!c->plan_ready)
        return fail(c, "%s (spec '%.*s')", message, (int)(spec.bytes < 60 ? spec.bytes : 60),
                    spec.data);
    return true;
}

bool prepare_ein_operands(call *c, size_t row, tensor *a, tensor *b) {
    *b = (tensor){NULL, 0};
    if (!plan_for(c, row) || !read_tensor(c, 2, row, a)) return false;
    if (!expect_length(c, "first operand", c->plan.length_a, a->length)) return false;
    if (c->plan.unary) return true;
    return read_tensor(c, 3, row, b) &&
           expect_length(c, "second operand", c->plan.length_b, b->length);
}

size_t apply_ein(call *c, size_t row) {
    tensor a, b;
    if (!prepare_ein_operands(c, row, &a, &b)) return 0;
    size_t n = c->plan.length_out;
    double *out = writer_room(c, n);
    if (out == NULL) return 0;
    loop_fill(n, reduce_identity(c->plan.reduce), out);
    ein_run(&c->plan, a.data, b.data, out);
    writer_take(c, row, n);
    return 1;
}

size_t apply_ein_sca(call *c, size_t row) {
    tensor a, b;
    if (!prepare_ein_operands(c, row, &a, &b)) return 0;
    /* Without output labels; one that has only size 1 would do as well, but not in SQL's eyes. */
    view spec = column_view(&c->args[0], row);
    if (spec.data[spec.bytes - 1] != '>')
        return fail(c, "expected a spec without output labels, got '%.*s'",
                    (int)(spec.bytes < 60 ? spec.bytes : 60), spec.data);
    double out = reduce_identity(c->plan.reduce);
    ein_run(&c->plan, a.data, b.data, (f64 *)&out);
    return put_double(c, row, out);
}
