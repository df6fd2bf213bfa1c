/* The functions on lists that multiply vectors and matrices, and those that make matrices. */
#include <math.h>

#include "gemm.h"
#include "hot.h"
#include "kernels.h"
#include "lists.h"

static bool read_vectors(list_call *l, size_t row, array *a, array *b) {
    return read_vector(l, 0, row, a) && read_vector(l, 1, row, b);
}

/* ---- Vectors ---- */

static size_t put_number(list_call *l, size_t row, const element *value) {
    const element_type *type = l->call.type;
    copy_element(type->size, value, at_out(type, duck_vector_data(l->out.vector), row));
    return 1;
}

/* The inner products of two vectors with each other and with themselves, in double: FLOAT loses
 * digits in long vectors. */
typedef struct products {
    double ab, aa, bb;
} products;

/* So many sums stand side by side, for the widest registers. */
enum { LANES = 16 };

static double sum_of_lanes(const double *lanes) {
    double sum = 0;
    for (size_t j = 0; j < LANES; j++) sum += lanes[j];
    return sum;
}

#define PRODUCTS(S)                                                                   \
    HOT products products_of_##S(size_t n, const S *a, const S *b) {                  \
        double ab[LANES] = {0}, aa[LANES] = {0}, bb[LANES] = {0};                     \
        size_t i = 0;                                                                 \
        for (; i + LANES <= n; i += LANES)                                            \
            for (size_t j = 0; j < LANES; j++) {                                      \
                double x = a[i + j], y = b[i + j];                                    \
                ab[j] += x * y, aa[j] += x * x, bb[j] += y * y;                       \
            }                                                                         \
        for (size_t j = 0; i + j < n; j++) {                                          \
            double x = a[i + j], y = b[i + j];                                        \
            ab[j] += x * y, aa[j] += x * x, bb[j] += y * y;                           \
        }                                                                             \
        return (products){sum_of_lanes(ab), sum_of_lanes(aa), sum_of_lanes(bb)};      \
    }                                                                                 \
    HOT double dot_of_##S(size_t n, const S *a, const S *b) {                         \
        double ab[LANES] = {0};                                                       \
        size_t i = 0;                                                                 \
        for (; i + LANES <= n; i += LANES)                                            \
            for (size_t j = 0; j < LANES; j++) ab[j] += (double)a[i + j] * b[i + j];  \
        for (size_t j = 0; i + j < n; j++) ab[j] += (double)a[i + j] * b[i + j];      \
        return sum_of_lanes(ab);                                                      \
    }
PRODUCTS(f64)
PRODUCTS(f32)

static double dot_in_double(const element_type *type, size_t n, const void *a, const void *b) {
    return type == &type_f64 ? dot_of_f64(n, a, b) : dot_of_f32(n, a, b);
}

static products products_of(const element_type *type, size_t n, const void *a, const void *b) {
    return type == &type_f64 ? products_of_f64(n, a, b) : products_of_f32(n, a, b);
}

/* Whether a sum of squares has neither overflowed nor lost what is small. */
static bool in_range(double squares) { return squares > 0x1p-900 && squares < 0x1p1000; }

/* A copy of a vector of doubles, by a power of two so that its largest entry is about 1; the power. */
static int scaled(size_t n, const f64 *x, double *out) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fabs(x[i]) > most ? fabs(x[i]) : most;
    int power = most > 0 && isfinite(most) ? ilogb(most) : 0;
    for (size_t i = 0; i < n; i++) out[i] = ldexp(x[i], -power);
    return power;
}

static size_t put_double(list_call *l, size_t row, double value) {
    element number;
    if (l->call.type == &type_f32)
        number.f32 = (float)value;
    else
        number.f64 = value;
    return put_number(l, row, &number);
}

static size_t list_inner_prod(list_call *l, size_t row) {
    array a, b;
    if (!read_vectors(l, row, &a, &b) || !expect_length(&l->call, "argument 2", a.cols, b.cols))
        return 0;
    return put_double(l, row, dot_in_double(l->call.type, a.cols, a.data, b.data));
}

/* The cosine of the angle between two vectors, which no rounding takes beyond 1; NaN if one of them
 * is 0, as 0 / 0 is. */
static size_t list_cosine(list_call *l, size_t row) {
    call *c = &l->call;
    array a, b;
    if (!read_vectors(l, row, &a, &b) || !expect_length(c, "argument 2", a.cols, b.cols)) return 0;
    size_t n = a.cols;
    products p = products_of(c->type, n, a.data, b.data);
    if (c->type == &type_f64 && n > 0 && !(in_range(p.aa) && in_range(p.bb))) {
        double *copies = (double *)call_scratch(c, 2 * n * sizeof(double));
        if (copies == NULL) return 0;
        scaled(n, a.data, copies);
        scaled(n, b.data, copies + n);
        p = products_of_f64(n, copies, copies + n);
    }
    if (p.aa == 0 || p.bb == 0) return put_double(l, row, NAN);
    double cosine = p.ab / sqrt(p.aa) / sqrt(p.bb);
    return put_double(l, row, cosine > 1 ? 1 : cosine < -1 ? -1 : cosine);
}

static size_t list_norm(list_call *l, size_t row) {
    call *c = &l->call;
    array a;
    if (!read_vector(l, 0, row, &a)) return 0;
    double squares = dot_in_double(c->type, a.cols, a.data, a.data);
    if (c->type != &type_f64 || a.cols == 0 || in_range(squares))
        return put_double(l, row, sqrt(squares));
    double *copy = (double *)call_scratch(c, a.cols * sizeof(double));
    if (copy == NULL) return 0;
    int power = scaled(a.cols, a.data, copy);
    return put_double(l, row, ldexp(sqrt(dot_of_f64(a.cols, copy, copy)), power));
}

static size_t list_outer_prod(list_call *l, size_t row) {
    const element_type *type = l->call.type;
    array a, b;
    if (!read_vectors(l, row, &a, &b)) return 0;
    size_t n = b.cols;
    char *out = put_matrix(l, row, a.cols, n);
    if (out == NULL) return 0;
    for (size_t i = 0; i < a.cols && n > 0; i++) {
        if (watch_stops(&l->call.watch, n)) return fail_with(&l->call, INTERRUPTED);
        type->combine(OP_mult, n, at(type, a.data, i), 0, b.data, 1, at_out(type, out, i * n));
    }
    return 1;
}

/* ---- Matrices ---- */

/* How many rows from here on have the same matrix, and vectors that lie one behind the other: one
 * product serves them all. */
static size_t run_length(list_call *l, size_t row, int vectors, int matrix_arg) {
    const list_column *v = &l->args[vectors], *a = &l->args[matrix_arg];
    size_t length = v->lists[row].length, rows = 1;
    while (row + rows < l->call.rows && bit(v->validity, row + rows) &&
           v->lists[row + rows].length == length &&
           v->lists[row + rows].offset == v->lists[row].offset + rows * length &&
           same_argument(a, row, row + rows))
        rows++;
    return rows;
}

/* a (m x k) times b (k x n). */
static bool product(call *c, size_t m, size_t n, size_t k, matrix a, matrix b, void *out) {
    size_t bytes = m * n * c->type->size;
    if (bytes > 0) memset(out, 0, bytes);
    return settle(c, multiply(c, m, n, k, a, b, out));
}

/* x times the matrix a, of one row or a run; `a` is transposed for mat_vec. */
static size_t vector_times_matrix(list_call *l, size_t row, int vector, int matrix_arg) {
    call *c = &l->call;
    const element_type *type = c->type;
    bool transposed = matrix_arg == 0;
    array x, a;
    if (!read_vector(l, vector, row, &x) || !read_matrix(l, matrix_arg, row, &a)) return 0;
    size_t k = transposed ? a.cols : a.rows, n = transposed ? a.rows : a.cols;
    if (!expect_length(c, transposed ? "the vector, one for each column" :
                                       "the vector, one for each row", k, x.cols))
        return 0;
    if (watch_stops(&c->watch, n * k / 4)) return fail_with(c, INTERRUPTED);
    size_t rows = run_length(l, row, vector, matrix_arg);
    if (rows > 1 && gemm_pays(type, rows, n, k)) {
        array next;
        for (size_t i = 1; i < rows; i++)
            if (!read_vector(l, vector, row + i, &next)) return 0;
    } else {
        rows = 1;
    }
    void *out = put_vectors(l, row, rows, n);
    if (out == NULL) return 0;
    matrix right = {a.data, transposed ? 1 : n, transposed ? k : 1};
    return product(c, rows, n, k, (matrix){x.data, k, 1}, right, out) ? rows : 0;
}

static size_t list_vec_mat(list_call *l, size_t row) { return vector_times_matrix(l, row, 0, 1); }
static size_t list_mat_vec(list_call *l, size_t row) { return vector_times_matrix(l, row, 1, 0); }

static size_t list_mat_mult(list_call *l, size_t row) {
    call *c = &l->call;
    array a, b;
    if (!read_matrix(l, 0, row, &a) || !read_matrix(l, 1, row, &b)) return 0;
    if (a.cols != b.rows)
        return fail(c, "expected as many columns as the other matrix has rows, got %zu x %zu times "
                       "%zu x %zu", a.rows, a.cols, b.rows, b.cols);
    void *out = put_matrix(l, row, a.rows, b.cols);
    if (out == NULL) return 0;
    return product(c, a.rows, b.cols, a.cols, (matrix){a.data, a.cols, 1},
                   (matrix){b.data, b.cols, 1}, out);
}

/* ---- Making and taking apart ---- */

/* From the lists of its rows. */
static size_t list_pack_rows(list_call *l, size_t row) {
    const list_column *k = &l->args[0];
    call *c = &l->call;
    duck_list outer = k->outer[row];
    bool some = outer.length > 0 && bit(k->lists_validity, outer.offset);
    size_t cols = some ? k->lists[outer.offset].length : 0;
    char *out = put_matrix(l, row, outer.length, cols);
    if (out == NULL) return 0;
    for (size_t i = 0; i < outer.length; i++) {
        array v;
        size_t inner = outer.offset + i;
        if (!bit(k->lists_validity, inner))
            return fail(c, "expected lists of numbers, got NULL as row %zu", i + 1);
        if (!read_vector(l, 0, inner, &v)) return 0;
        if (v.cols != cols)
            return fail(c, "expected rows of one length, got %zu and, as row %zu, %zu", cols, i + 1,
                        v.cols);
        if (cols > 0)
            memcpy(out + i * cols * c->type->size, v.data, cols * c->type->size);
    }
    return 1;
}

/* From its shape and its elements, row by row. */
static size_t list_pack_shape(list_call *l, size_t row) {
    call *c = &l->call;
    int64_t rows = l->args[0].integers[row], cols = l->args[1].integers[row];
    array v;
    if (!read_vector(l, 2, row, &v)) return 0;
    if (rows < 0 || cols < 0 || rows > INT32_MAX || cols > INT32_MAX ||
        (uint64_t)rows * (uint64_t)cols != v.cols)
        return fail(c, "expected rows x cols elements, got %zu for %lld x %lld", v.cols,
                    (long long)rows, (long long)cols);
    char *out = put_matrix(l, row, (size_t)rows, (size_t)cols);
    if (out == NULL) return 0;
    if (v.cols > 0) memcpy(out, v.data, v.cols * c->type->size);
    return 1;
}

static size_t list_mat_to_list(list_call *l, size_t row) {
    array a;
    if (!read_matrix(l, 0, row, &a)) return 0;
    char *out = put_rows(l, row, a.rows, a.cols);
    if (out == NULL) return 0;
    size_t bytes = a.rows * a.cols * l->call.type->size;
    if (bytes > 0) memcpy(out, a.data, bytes);
    return 1;
}

static size_t list_transpose(list_call *l, size_t row) {
    const element_type *type = l->call.type;
    array a;
    if (!read_matrix(l, 0, row, &a)) return 0;
    char *out = put_matrix(l, row, a.cols, a.rows);
    if (out == NULL) return 0;
    for (size_t i = 0; i < a.rows && a.cols > 0; i++) {
        if (watch_stops(&l->call.watch, a.cols)) return fail_with(&l->call, INTERRUPTED);
        type->copy(a.cols, at(type, a.data, i * a.cols), 1, at_out(type, out, i),
                   (ptrdiff_t)a.rows);
    }
    return 1;
}

/* ---- All of them: those of one name stand together ---- */

static const list_function functions[] = {
    {"vec_sum", "E>E", NULL, VEC_SUM},
    {"vec_avg", "E>E", NULL, VEC_AVG},
    {"vec_min", "E>E", NULL, VEC_MIN},
    {"vec_max", "E>E", NULL, VEC_MAX},
    {"inner_prod", "EE>e", list_inner_prod, NOT_AN_AGGREGATE},
    {"outer_prod", "EE>M", list_outer_prod, NOT_AN_AGGREGATE},
    {"cosine", "EE>e", list_cosine, NOT_AN_AGGREGATE},
    {"norm", "E>e", list_norm, NOT_AN_AGGREGATE},
    {"mat_mult", "MM>M", list_mat_mult, NOT_AN_AGGREGATE},
    {"mat_vec", "ME>E", list_mat_vec, NOT_AN_AGGREGATE},
    {"vec_mat", "EM>E", list_vec_mat, NOT_AN_AGGREGATE},
    {"mat_transpose", "M>M", list_transpose, NOT_AN_AGGREGATE},
    {"pack", "L>M", list_pack_rows, NOT_AN_AGGREGATE},
    {"pack", "iiE>M", list_pack_shape, NOT_AN_AGGREGATE},
    {"mat_to_list", "M>L", list_mat_to_list, NOT_AN_AGGREGATE},
};

size_t list_function_count(void) { return sizeof functions / sizeof functions[0]; }
const list_function *list_function_at(size_t index) { return &functions[index]; }
