/* The aggregate kernels: `prepare` checks a row and says how long its state is, `add` accumulates.
 * Nothing is materialised per row. */
#include "kernels.h"

#include "gemm.h"

static bool read_operands(call *c, size_t row, addend *x) {
    x->start = 0;
    return read_tensor(c, 0, row, &x->a) && read_tensor(c, 1, row, &x->b);
}

bool prepare_vec(call *c, size_t row, addend *x) {
    if (!read_tensor(c, 0, row, &x->a)) return false;
    x->length = x->a.length;
    x->start = reduce_identity((enum reduce_op)c->kernel->op);
    return true;
}
void add_vec(call *c, const addend *x, f64 *state) {
    loop_reduce((enum reduce_op)c->kernel->op, x->length, x->a.data, 1, state, 1);
}

bool prepare_vec_sca_mult(call *c, size_t row, addend *x) {
    if (!read_tensor(c, 0, row, &x->a)) return false;
    x->length = x->a.length;
    x->start = 0;
    x->c = column_double(c, 1, row);
    return true;
}
void add_vec_sca_mult(call *c, const addend *x, f64 *state) {
    (void)c;
    loop_axpy(x->length, x->c, x->a.data, state);
}

bool prepare_outer_prod(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x)) return false;
    x->length = x->a.length * x->b.length;
    return true;
}
void add_outer_prod(call *c, const addend *x, f64 *state) {
    (void)c;
    size_t n = x->b.length;
    for (size_t i = 0; i < x->a.length; i++)
        loop_axpy(n, x->a.data[i], x->b.data, state + i * n);
}

bool prepare_vec_mult(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x)) return false;
    x->length = x->a.length;
    return expect_length(c, "argument 2", x->a.length, x->b.length);
}
void add_vec_mult(call *c, const addend *x, f64 *state) {
    (void)c;
    loop_multiply_add(x->length, x->a.data, x->b.data, state);
}

bool prepare_vec_mat(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x) || !expect_multiple(c, x->a.length, x->b.length)) return false;
    x->k = x->a.length;
    x->length = x->n = x->k ? x->b.length / x->k : 0;
    return true;
}
void add_vec_mat(call *c, const addend *x, f64 *state) {
    (void)c;
    loop_vector_matrix(x->n, x->k, x->a.data, x->b.data, x->n, state);
}

bool prepare_mat_vec(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x) || !expect_multiple(c, x->b.length, x->a.length)) return false;
    x->k = x->b.length;
    x->length = x->m = x->k ? x->a.length / x->k : 0;
    return true;
}
void add_mat_vec(call *c, const addend *x, f64 *state) {
    (void)c;
    for (size_t i = 0; i < x->m; i++)
        state[i] += loop_dot(x->k, x->a.data + i * x->k, x->b.data);
}

bool prepare_mat_mat(call *c, size_t row, addend *x) {
    if (!read_operands(c, row, x) || !matrix_shape(c, row, x->a, x->b, &x->m, &x->n, &x->k))
        return false;
    x->length = x->m * x->n;
    return true;
}
void add_mat_mat(call *c, const addend *x, f64 *state) {
    (void)c;
    gemm_dense(x->m, x->n, x->k, x->a.data, x->b.data, state);
}

bool prepare_ein(call *c, size_t row, addend *x) {
    static const char *const names[] = {"sum", "prod", "min", "max"};
    if (!prepare_ein_operands(c, row, &x->a, &x->b)) return false;
    if ((int)c->plan.reduce != c->kernel->op)
        return fail(c, "expected a spec that reduces by %s, got %s", names[c->kernel->op],
                    names[c->plan.reduce]);
    x->length = c->plan.length_out;
    x->start = reduce_identity(c->plan.reduce);
    return true;
}
void add_ein(call *c, const addend *x, f64 *state) {
    ein_run(&c->plan, x->a.data, x->b.data, state);
}

/* ---- Stacks: scatter into a tensor of `total` doubles that are `fill` elsewhere ---- */

static bool read_total(call *c, size_t row, int total, addend *x) {
    int64_t length = column_integer(c, total, row);
    if (length < 0 || (uint64_t)length > MAX_DOUBLES)
        return fail(c, "expected a total of 0 to %zu, got %lld", MAX_DOUBLES, (long long)length);
    x->length = (size_t)length;
    x->start = column_double(c, total + 1, row);
    return true;
}

/* `count` doubles in a row from an offset on: a strided place of rank one. */
static bool place_at(call *c, size_t row, size_t count, addend *x) {
    int64_t offset = column_integer(c, 1, row);
    if (offset < 0 || (uint64_t)offset > x->length || count > x->length - (size_t)offset)
        return fail(c, "expected positions within %zu doubles, got %zu from offset %lld", x->length,
                    count, (long long)offset);
    x->place.rank = 1;
    x->place.offset = offset;
    x->place.count = count;
    x->place.size[0] = (int64_t)count;
    x->place.stride[0] = 1;
    return true;
}

bool prepare_stack_sca(call *c, size_t row, addend *x) {
    /* The value is read where it lies: as a tensor of one entry. */
    const column *values = &c->args[0];
    x->a = (tensor){(const f64 *)values->entries + column_index(values, row), 1};
    return read_total(c, row, 2, x) && place_at(c, row, 1, x);
}

bool prepare_stack(call *c, size_t row, addend *x) {
    return read_tensor(c, 0, row, &x->a) && read_total(c, row, 2, x) &&
           place_at(c, row, x->a.length, x);
}

bool prepare_stack_strided(call *c, size_t row, addend *x) {
    return read_tensor(c, 0, row, &x->a) && read_total(c, row, 4, x) &&
           read_strided(c, row, 1, 2, 3, x->length, &x->place) &&
           expect_length(c, "argument 1", x->place.count, x->a.length);
}

void add_stack(call *c, const addend *x, f64 *state) {
    (void)c;
    strided_scatter(&x->place, x->a.data, state);
}

void merge_states(int op, size_t length, double start, const f64 *from, f64 *into) {
    if (op != MERGE_STACK) {
        loop_reduce((enum reduce_op)op, length, from, 1, into, 1);
        return;
    }
    for (size_t i = 0; i < length; i++) /* bit by bit: a NaN fill equals itself */
        if (memcmp(&from[i], &start, sizeof start) != 0) into[i] = from[i];
}
