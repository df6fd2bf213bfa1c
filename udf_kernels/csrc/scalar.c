/* The scalar kernels. Each takes one row (or a run of rows) and writes its result. */
#include "kernels.h"

#include "gemm.h"

/* A run of rows goes into one product: long enough that packing the matrix costs little beside it,
 * and at most 32 MB of vectors. */
enum { RUN_BYTES = 1 << 25, RUN_ROWS = 2048 };

/* The result of a row stands in its room, unless the loop that put it there met trouble. */
static size_t finish(call *c, size_t row, size_t length, trouble bad) {
    if (!settle(c, bad)) return 0;
    writer_take(c, row, length);
    return 1;
}

static size_t put_element(call *c, size_t row, const void *value) {
    writer_put_element(c, row, value);
    return 1;
}

bool expect_length(call *c, const char *what, size_t expected, size_t got) {
    if (expected == got) return true;
    return fail(c, "expected %zu elements as %s, got %zu", expected, what, got);
}

bool expect_multiple(call *c, size_t of, size_t got) {
    if (of == 0 ? got == 0 : got % of == 0) return true;
    return fail(c, "expected a matrix of a multiple of %zu elements, got %zu", of, got);
}

static bool read_pair(call *c, size_t row, tensor *a, tensor *b) {
    return read_tensor(c, 0, row, a) && read_tensor(c, 1, row, b);
}

/* ---- Making and reading tensors ---- */

size_t apply_pack(call *c, size_t row) {
    list l;
    if (!read_list(c, 0, row, &l)) return 0;
    if (c->type->parts == 1 && l.length > 0) /* where it lies */
        return writer_put(c, row, at(c->type, l.data, l.first), l.length);
    void *out = writer_room(c, l.length);
    if (out == NULL || !read_elements(c, 0, &l, out)) return 0;
    writer_take(c, row, l.length);
    return 1;
}

size_t apply_vec_to_list(call *c, size_t row) {
    tensor t;
    return read_tensor(c, 0, row, &t) && writer_put_list(c, row, t.data, t.length);
}

size_t apply_full(call *c, size_t row) {
    int64_t n = column_integer(c, 0, row);
    element value;
    if (n < 0) return fail(c, "expected a length of at least 0, got %lld", (long long)n);
    if (!read_element(c, 1, row, &value)) return 0;
    void *out = writer_room(c, (size_t)n);
    if (out == NULL) return 0;
    c->type->fill((size_t)n, &value, out);
    writer_take(c, row, (size_t)n);
    return 1;
}

size_t apply_sca_to_vec(call *c, size_t row) {
    element value;
    return read_element(c, 0, row, &value) && writer_put(c, row, &value, 1);
}

size_t apply_element(call *c, size_t row) {
    tensor t;
    element value;
    int64_t i = column_integer(c, 1, row);
    if (!read_tensor(c, 0, row, &t)) return 0;
    if (i < 0 || (size_t)i >= t.length)
        return fail(c, "expected an offset below %zu, got %lld", t.length, (long long)i);
    c->type->copy(1, at(c->type, t.data, (size_t)i), 1, &value, 1);
    return put_element(c, row, &value);
}

size_t apply_slice(call *c, size_t row) {
    tensor t;
    strided s;
    if (!read_tensor(c, 0, row, &t) || !read_strided(c, row, 1, 2, 3, t.length, &s)) return 0;
    void *out = writer_room(c, s.count);
    if (out == NULL) return 0;
    strided_gather(c->type, &s, t.data, out);
    writer_take(c, row, s.count);
    return 1;
}

static bool count_not(call *c, size_t row, size_t *count) {
    tensor t;
    element fill;
    if (!read_tensor(c, 0, row, &t) || !read_element(c, 1, row, &fill)) return false;
    *count = c->type->count_not(t.length, t.data, &fill);
    return true;
}

size_t apply_any_not(call *c, size_t row) {
    size_t count;
    if (!count_not(c, row, &count)) return 0;
    ((uint8_t *)c->out.values)[row] = count > 0;
    return 1;
}

size_t apply_count_not(call *c, size_t row) {
    size_t count;
    if (!count_not(c, row, &count)) return 0;
    ((int64_t *)c->out.values)[row] = (int64_t)count;
    return 1;
}

/* ---- Entry by entry ---- */

size_t apply_cast(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    void *out = writer_room(c, t.length);
    return out == NULL ? 0 : finish(c, row, t.length, c->type->cast[c->kernel->op](t.length, t.data, out));
}

size_t apply_map(call *c, size_t row) {
    tensor t;
    if (!read_tensor(c, 0, row, &t)) return 0;
    void *out = writer_room(c, t.length);
    if (out == NULL) return 0;
    return finish(c, row, t.length, c->type->map((enum map_op)c->kernel->op, t.length, t.data, out));
}

static size_t combine(call *c, size_t row, size_t n, const void *a, size_t sa, const void *b,
                      size_t sb) {
    void *out = writer_room(c, n);
    if (out == NULL) return 0;
    return finish(c, row, n,
                  c->type->combine((enum combine_op)c->kernel->op, n, a, sa, b, sb, out));
}

size_t apply_vec_vec(call *c, size_t row) {
    tensor a, b;
    if (!read_pair(c, row, &a, &b) || !expect_length(c, "argument 2", a.length, b.length)) return 0;
    return combine(c, row, a.length, a.data, 1, b.data, 1);
}

size_t apply_vec_sca(call *c, size_t row) {
    tensor a;
    element value;
    if (!read_tensor(c, 0, row, &a) || !read_element(c, 1, row, &value)) return 0;
    return combine(c, row, a.length, a.data, 1, &value, 0);
}

size_t apply_sca_vec(call *c, size_t row) {
    tensor b;
    element value;
    if (!read_tensor(c, 1, row, &b) || !read_element(c, 0, row, &value)) return 0;
    return combine(c, row, b.length, &value, 0, b.data, 1);
}

/* ---- Products ---- */

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
        bad |= type->combine(OP_mult, n, at(type, a.data, i), 0, b.data, 1, at_out(type, out, i * n));
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

/* ---- General contractions ---- */

/* The spec and the sizes rarely change within a batch: parse them again only when they do. */
static bool plan_for(call *c, size_t row) {
    bool unary = c->arguments == 3;
    view spec = column_view(&c->args[0], row);
    list sizes;
    if (!read_list(c, 1, row, &sizes)) return false;
    const i64 *first = sizes.length > 0 ? (const i64 *)sizes.data + sizes.first : NULL;
    view bytes = {(const char *)first, sizes.length * sizeof(int64_t)};
    /* A short spec lies inside the row's entry, which outlives the batch like any other. */
    if (c->plan_ready && same_bytes(spec, c->plan_spec) && same_bytes(bytes, c->plan_sizes))
        return true;
    char message[320];
    c->plan_ready = ein_parse(&c->plan, c->type, unary, spec.data, spec.bytes, first, sizes.length,
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
    void *out = writer_room(c, n);
    if (out == NULL) return 0;
    c->type->fill(n, &c->type->identity[c->plan.reduce], out);
    return finish(c, row, n, ein_run(&c->plan, a.data, b.data, out));
}

size_t apply_ein_sca(call *c, size_t row) {
    tensor a, b;
    if (!prepare_ein_operands(c, row, &a, &b)) return 0;
    /* Without output labels; one that has only size 1 would do as well, but not in SQL's eyes. */
    view spec = column_view(&c->args[0], row);
    if (spec.data[spec.bytes - 1] != '>')
        return fail(c, "expected a spec without output labels, got '%.*s'",
                    (int)(spec.bytes < 60 ? spec.bytes : 60), spec.data);
    element out = c->type->identity[c->plan.reduce];
    if (!settle(c, ein_run(&c->plan, a.data, b.data, &out))) return 0;
    return put_element(c, row, &out);
}
