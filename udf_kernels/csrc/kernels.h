/* The functions behind the kernels, and the checks that scalar and aggregate kernels share. They
 * serve every element type: what depends on it, they leave to its loops. */
#ifndef UCLE_KERNELS_H
#define UCLE_KERNELS_H

#include "call.h"

/* Functions of whole matrices, see matrix.c. */
enum matrix_map {
    MATRIX_cholesky,
    MATRIX_inv,
    MATRIX_eigenvalues,
    MATRIX_eigenvectors,
    MATRIX_pivots,
    MATRIX_singular_values,
    MATRIX_qr,
    MATRIX_svd
};

/* All kernels of all types, in one row. */
extern const element_type *const element_types[TYPES];
size_t kernel_count(void);
const kernel *kernel_at(size_t index);
const kernel *kernel_named(view name); /* NULL: there is none */

size_t apply_pack(call *c, size_t row);
size_t apply_vec_to_list(call *c, size_t row);
size_t apply_full(call *c, size_t row);
size_t apply_sca_to_vec(call *c, size_t row);
size_t apply_element(call *c, size_t row);
size_t apply_slice(call *c, size_t row);
size_t apply_scatter(call *c, size_t row);
size_t apply_reindex(call *c, size_t row);
size_t apply_hits(call *c, size_t row);
size_t apply_running(call *c, size_t row);
size_t apply_top(call *c, size_t row);
size_t apply_matrix(call *c, size_t row);
size_t apply_solve(call *c, size_t row);
size_t apply_forest(call *c, size_t row);
size_t apply_forest_pack(call *c, size_t row);
size_t apply_any_not(call *c, size_t row);
size_t apply_count_not(call *c, size_t row);
size_t apply_all_finite(call *c, size_t row);
size_t apply_count_null(call *c, size_t row);
size_t apply_cast(call *c, size_t row);
size_t apply_map(call *c, size_t row);
size_t apply_vec_vec(call *c, size_t row);
size_t apply_vec_sca(call *c, size_t row);
size_t apply_sca_vec(call *c, size_t row);
size_t apply_inner_prod(call *c, size_t row);
size_t apply_outer_prod(call *c, size_t row);
size_t apply_mat_vec(call *c, size_t row);
size_t apply_vec_mat(call *c, size_t row);
size_t apply_mat_mat(call *c, size_t row);
size_t apply_ein(call *c, size_t row);
size_t apply_ein_sca(call *c, size_t row);
size_t apply_chain(call *c, size_t row);
size_t apply_chain_sca(call *c, size_t row);
size_t apply_tape(call *c, size_t row);

size_t apply_csr_nnz(call *c, size_t row);
size_t apply_csr_rows(call *c, size_t row);
size_t apply_csr_cols(call *c, size_t row);
size_t apply_csr_values(call *c, size_t row);
size_t apply_csr_stored(call *c, size_t row);
size_t apply_csr_with(call *c, size_t row);
size_t apply_csr_prune(call *c, size_t row);
size_t apply_csr_to_mat(call *c, size_t row);
size_t apply_mat_to_csr(call *c, size_t row);
size_t apply_csr_empty(call *c, size_t row);
size_t apply_random_bits(call *c, size_t row);
size_t apply_csr_mat(call *c, size_t row);
size_t apply_csr_t_mat(call *c, size_t row);
size_t apply_csr_transpose(call *c, size_t row);
size_t apply_csr_row(call *c, size_t row);
size_t apply_csr_scale_rows(call *c, size_t row);
size_t apply_csr_scale_cols(call *c, size_t row);
size_t apply_csr_at(call *c, size_t row);
size_t apply_csr_csr_at(call *c, size_t row);
size_t apply_csr_csr_filled(call *c, size_t row);
size_t apply_csr_csr_union(call *c, size_t row);
size_t apply_csr_csr(call *c, size_t row);
size_t apply_csr_csr_masked(call *c, size_t row);
size_t apply_csr_csr_t_masked(call *c, size_t row);
size_t apply_csr_sddmm(call *c, size_t row);
size_t apply_csr_reduce_rows(call *c, size_t row);
size_t apply_csr_reduce_cols(call *c, size_t row);
size_t apply_csr_reduce(call *c, size_t row);
size_t apply_multiway(call *c, size_t row);
size_t apply_multiway_sca(call *c, size_t row);

bool prepare_vec(call *c, size_t row, addend *x);
trouble add_vec(call *c, const addend *x, void *state);
ein_plan plan_vec(const call *c, const addend *x);
bool prepare_vec_sca_mult(call *c, size_t row, addend *x);
trouble add_vec_sca_mult(call *c, const addend *x, void *state);
ein_plan plan_vec_sca_mult(const call *c, const addend *x);
bool prepare_outer_prod(call *c, size_t row, addend *x);
trouble add_outer_prod(call *c, const addend *x, void *state);
ein_plan plan_outer_prod(const call *c, const addend *x);
bool prepare_vec_mult(call *c, size_t row, addend *x);
trouble add_vec_mult(call *c, const addend *x, void *state);
ein_plan plan_vec_mult(const call *c, const addend *x);
bool prepare_vec_mat(call *c, size_t row, addend *x);
trouble add_vec_mat(call *c, const addend *x, void *state);
ein_plan plan_vec_mat(const call *c, const addend *x);
bool prepare_mat_vec(call *c, size_t row, addend *x);
trouble add_mat_vec(call *c, const addend *x, void *state);
ein_plan plan_mat_vec(const call *c, const addend *x);
bool prepare_mat_mat(call *c, size_t row, addend *x);
trouble add_mat_mat(call *c, const addend *x, void *state);
ein_plan plan_mat_mat(const call *c, const addend *x);
bool prepare_csr_t_mat(call *c, size_t row, addend *x);
trouble add_csr_t_mat(call *c, const addend *x, void *state);
trouble csr_t_mat_to_totals(call *c, const addend *x, void *totals);
bool prepare_ein(call *c, size_t row, addend *x);
trouble add_ein(call *c, const addend *x, void *state);
ein_plan plan_ein(const call *c, const addend *x);
bool prepare_stack_sca(call *c, size_t row, addend *x);
bool prepare_stack(call *c, size_t row, addend *x);
bool prepare_stack_strided(call *c, size_t row, addend *x);
trouble add_stack(call *c, const addend *x, void *state);
bool prepare_top(call *c, size_t row, addend *x);
bool prepare_top_sca(call *c, size_t row, addend *x);
trouble add_top(call *c, const addend *x, void *state);

/* Adds a row to the state of an aggregate, whose sums may need totals. */
trouble add_to_sum(call *c, const addend *x, sum *s);

/* What merges two partial states of an aggregate: a reduce_op, or one of these. */
enum { MERGE_STACK = REDUCES, MERGE_TOP_MAX, MERGE_TOP_MIN };
trouble merge_states(const kernel *k, size_t length, const element *start, const void *from,
                     void *into);
void merge_tops(const kernel *k, size_t length, const element *start, const void *from, void *into);

/* The ends of a scalar kernel: the result of a row stands in its room, unless the loop that put it
 * there met trouble; or it is one element. Both return the number of rows done. */
static inline size_t finish(call *c, size_t row, size_t length, trouble bad) {
    if (!settle(c, bad)) return 0;
    writer_take(c, row, length);
    return 1;
}
static inline size_t put_element(call *c, size_t row, const void *value) {
    writer_put_element(c, row, value);
    return 1;
}

/* How many bytes of a text an error message shows: `most`, or what of them are whole characters of
 * UTF-8, as DuckDB's messages have to be. */
int whole_characters(view text, size_t most);
static inline int shown_bytes(view text) { return whole_characters(text, 60); }

/* The sum that a contraction is, into zeros. */
trouble contract_into(call *c, const ein_plan *plan, const void *a, const void *b, void *zeros);
/* a (m x k) times b (k x n), either of which may be a vector. */
ein_plan matrix_plan(const element_type *type, size_t m, size_t n, size_t k);
size_t matrix_terms(const element_type *type, size_t m, size_t n, size_t k);
/* a (m x k), row-major, times b (k x n), row-major or the transpose of such a matrix, into zeros;
 * float64 and float32. */
trouble multiply(call *c, size_t m, size_t n, size_t k, matrix a, matrix b, void *zeros);
bool expect_something(call *c, size_t elements, size_t operand);
bool expect_ein_result(call *c, const ein_plan *plan);

bool read_pair(call *c, size_t row, tensor *a, tensor *b);
bool expect_length(call *c, const char *what, size_t expected, size_t got);
/* Whether two rows of a group say the same of what their state is filled with. */
bool expect_start(call *c, const void *expected, const void *got);
bool expect_multiple(call *c, size_t of, size_t got);
/* A tensor with an axis of `length` planes of `inner` elements each: argument 0 with 1 and 2. */
typedef struct planes {
    tensor t;
    size_t length, inner, elements; /* of all planes together */
} planes;
bool read_planes(call *c, size_t row, planes *p);
/* Planes that are done before somebody who waits is asked. */
static inline size_t patient_planes(size_t inner) {
    enum { PATIENT_ELEMENTS = 1 << 18 };
    return inner < PATIENT_ELEMENTS ? PATIENT_ELEMENTS / (inner + 1) + 1 : 1;
}
/* Rows that are computed at a time: how many from here on carry the same tensor as argument `shared`,
 * and as argument `other` tensors of one size, which come to `widest` elements in or out. RUN_BYTES
 * at most. Then those tensors one after the other, where they lie if they are contiguous. */
size_t run_of_rows(const call *c, size_t row, int other, int shared, size_t widest);
const void *gather_run(call *c, size_t row, size_t rows, int arg, size_t bytes);
bool matrix_shape(call *c, size_t row, tensor a, tensor b, size_t *m, size_t *n, size_t *k);
bool prepare_ein_operands(call *c, size_t row, tensor *a, tensor *b);

#endif
