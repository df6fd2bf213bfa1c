/* The kernels of one element type and its description: the end of its own file (f64.c, ...).
 *
 * That file defines NAME, what NumPy calls it; TAG, what SQL does; SUFFIX, what stands behind the
 * names of its kernels; HAS_GEMM, whether it has matrix products of its own; HAS_TOP, whether it has
 * lists of first entries; HAS_MATRICES, whether it has functions of whole matrices; and if its sums
 * need totals TOTAL_SIZE, and IS_EXACT if these are exact. OWN_KERNELS are those of no type, whose
 * tensors come and go as bytes.
 */
#include "csr_template.h"
#if PARTS == 1
#include "multiway_template.h"
#endif
#include "growth.h"
#include "kernels.h"

#define PASTE(a, b) a##b
#define OF_TYPE(prefix, s) PASTE(prefix, s)
#define TYPE OF_TYPE(type_, S)

#define SCALAR(name, signature, function, op) \
    {name SUFFIX, signature, "", &TYPE, &TYPE, apply_##function, NULL, NULL, op, NULL, NULL, NULL},
#define AGGREGATE(name, signature, gathered, function, op) \
    {name SUFFIX, signature, gathered, &TYPE, &TYPE, NULL, prepare_##function, add_##function, op, \
     plan_##function, NULL, NULL},
#define STACK(name, signature, gathered) \
    {#name SUFFIX, signature, gathered, &TYPE, &TYPE, NULL, prepare_##name, add_stack, MERGE_STACK, \
     NULL, NULL, NULL},

/* Compressed tensors are made byte by byte. */
#define TO_CSR(name, signature) \
    {#name SUFFIX, signature, "", &TYPE, &type_boolean, apply_##name, NULL, NULL, 0, NULL, NULL, \
     NULL},
#define TO_INTEGERS(name, signature) \
    {#name SUFFIX, signature, "", &TYPE, &type_i64, apply_##name, NULL, NULL, 0, NULL, NULL, \
     NULL},
#define FROM_CSR(name, signature) SCALAR(#name, signature, name, 0)
#define GROWING(name, signature, gathered) \
    {#name SUFFIX, signature, gathered, &TYPE, &type_boolean, NULL, NULL, NULL, 0, NULL, NULL, \
     &growth_of_##name},

#define MATRIX_KERNEL(name) SCALAR("mat_" #name, "bii>b", matrix, MATRIX_##name)
#define MATRIX_PARTS_KERNEL(name) SCALAR("mat_" #name, "biii>b", matrix, MATRIX_##name)
#define MAP_KERNEL(name) SCALAR("vec_" #name, "b>b", map, MAP_##name)
#define COMBINE_KERNELS(name)                           \
    SCALAR("vec_" #name, "bb>b", vec_vec, OP_##name)    \
    SCALAR("vec_sca_" #name, "be>b", vec_sca, OP_##name)
#define ORDERED_KERNEL(name) SCALAR("sca_vec_" #name, "eb>b", sca_vec, OP_##name)
#define REDUCE_KERNELS(name)                                               \
    SCALAR("cum" #name, "bii>b", running, REDUCE_##name)                   \
    AGGREGATE(#name "_vec", "b>b", "x", vec, REDUCE_##name)                \
    AGGREGATE(#name "_ein", "sIbb>b", "--xx", ein, REDUCE_##name)          \
    AGGREGATE(#name "_ein1", "sIb>b", "--x", ein, REDUCE_##name)
#define CHAIN(number, operands)                                      \
    SCALAR("chain" number, "s" operands ">b", chain, 0)              \
    SCALAR("chain" number "_sca", "s" operands ">e", chain_sca, 0)
/* Named after both types, also where one of them is float64. */
#define CAST_KERNEL(to, text) \
    {"vec_cast_" TAG "_" text, "b>b", "", &TYPE, &type_##to, apply_cast, NULL, NULL, TYPE_##to, NULL, \
     NULL, NULL},

#define TOP_KERNELS(order, merge)                                                                 \
    SCALAR("vec_top_" #order, "biii>b", top, merge - MERGE_TOP_MAX)                               \
    {"top_" #order SUFFIX, "bii>b", "xx-", &TYPE, &TYPE, NULL, prepare_top, add_top, merge, NULL, \
     NULL, NULL},                                                                                 \
    {"top_" #order "_sca" SUFFIX, "eii>b", "xx-", &TYPE, &TYPE, NULL, prepare_top_sca, add_top,   \
     merge, NULL, NULL, NULL},

#ifndef OWN_KERNELS
#define OWN_KERNELS
#endif

static const kernel kernels[] = {
    OWN_KERNELS
    SCALAR("pack", "E>b", pack, 0)
    SCALAR("vec_to_list", "b>E", vec_to_list, 0)
    SCALAR("full", "ie>b", full, 0)
    SCALAR("sca_to_vec", "e>b", sca_to_vec, 0)
    SCALAR("element", "bi>e", element, 0)
    SCALAR("slice", "biII>b", slice, 0)
    SCALAR("reindex", "bIIe>b", reindex, 0)
    SCALAR("any_not", "be>o", any_not, 0)
    SCALAR("count_not", "be>i", count_not, 0)
    SCALAR("all_finite", "b>o", all_finite, 0)
    SCALAR("count_null", "E>i", count_null, 0)
    EACH_TYPE(CAST_KERNEL)

    FAMILY_MAPS(MAP_KERNEL)
    FAMILY_SYMMETRIC(COMBINE_KERNELS)
    FAMILY_ORDERED(COMBINE_KERNELS)
    FAMILY_ORDERED(ORDERED_KERNEL)
    SCALAR("ein", "sIbb>b", ein, 0)
    SCALAR("ein_sca", "sIbb>e", ein_sca, 0)
    SCALAR("ein1", "sIb>b", ein, 0)
    SCALAR("ein1_sca", "sIb>e", ein_sca, 0)
    FAMILY_REDUCES(REDUCE_KERNELS)
    CHAIN("1", "b")
    CHAIN("2", "bb")
    CHAIN("3", "bbb")
    CHAIN("4", "bbbb")
    STACK(stack_sca, "eiie>b", "xx--")
    STACK(stack, "biie>b", "xx--")
    STACK(stack_strided, "biIIie>b", "xx----")

    FROM_CSR(csr_nnz, "b>i")
    TO_INTEGERS(csr_rows, "b>I")
    TO_INTEGERS(csr_cols, "b>I")
    FROM_CSR(csr_values, "b>b")
    FROM_CSR(csr_stored, "b>b")
    TO_CSR(csr_with, "bb>b")
    TO_CSR(csr_prune, "be>b")
    FROM_CSR(csr_to_mat, "be>b")
    TO_CSR(mat_to_csr, "bie>b")
    FROM_CSR(csr_mat, "sbbi>b")
    FROM_CSR(csr_t_mat, "sbbi>b")
    TO_CSR(csr_transpose, "b>b")
    TO_CSR(csr_row, "bi>b")
    TO_CSR(csr_scale_rows, "sbb>b")
    TO_CSR(csr_scale_cols, "sbb>b")
    TO_CSR(csr_at, "sbb>b")
    TO_CSR(csr_csr_at, "sbb>b")
    TO_CSR(csr_csr_filled, "sbbe>b")
    TO_CSR(csr_csr_union, "sbbee>b")
    TO_CSR(csr_csr, "sbb>b")
    TO_CSR(csr_csr_masked, "sbbb>b")
    TO_CSR(csr_csr_t_masked, "sbbb>b")
    TO_CSR(csr_sddmm, "sbbbi>b")
    FROM_CSR(csr_reduce_rows, "sb>b")
    FROM_CSR(csr_reduce_cols, "sb>b")
    FROM_CSR(csr_reduce, "sb>e")
    GROWING(stack_csr, "eiiiie>b", "xxx---")
    GROWING(stack_runs, "eiiiiie>b", "xxxx---")
    GROWING(stack_csr_rows, "biii>b", "xx--")

#if PARTS == 1
    SCALAR("scatter", "EIIiee>b", scatter, 0)
    TO_CSR(multiway, "sv>b")
    SCALAR("multiway_sca", "sv>e", multiway_sca, 0)
#endif
#if HAS_TOP
    TOP_KERNELS(max, MERGE_TOP_MAX)
    TOP_KERNELS(min, MERGE_TOP_MIN)
#endif
#if HAS_MATRICES
    MATRIX_KERNEL(cholesky)
    MATRIX_KERNEL(inv)
    MATRIX_KERNEL(eigenvalues)
    MATRIX_KERNEL(eigenvectors)
    MATRIX_KERNEL(pivots)
    SCALAR("mat_solve", "bbi>b", solve, 0)
    MATRIX_KERNEL(singular_values)
    MATRIX_PARTS_KERNEL(qr)
    MATRIX_PARTS_KERNEL(svd)
#endif
#if HAS_PRODUCTS
    SCALAR("inner_prod", "bb>e", inner_prod, 0)
    SCALAR("outer_prod", "bb>b", outer_prod, 0)
    SCALAR("mat_vec_mult", "bb>b", mat_vec, 0)
    SCALAR("vec_mat_mult", "bb>b", vec_mat, 0)
    SCALAR("mat_mat_mult", "bbi>b", mat_mat, 0)
    AGGREGATE("sum_vec_sca_mult", "be>b", "xx", vec_sca_mult, REDUCE_sum)
    AGGREGATE("sum_vec_mult", "bb>b", "xx", vec_mult, REDUCE_sum)
    AGGREGATE("sum_outer_prod", "bb>b", "xx", outer_prod, REDUCE_sum)
    AGGREGATE("sum_vec_mat_mult", "bb>b", "xx", vec_mat, REDUCE_sum)
    AGGREGATE("sum_mat_vec_mult", "bb>b", "xx", mat_vec, REDUCE_sum)
    AGGREGATE("sum_mat_mat_mult", "bbi>b", "xx-", mat_mat, REDUCE_sum)
    {"sum_csr_t_mat" SUFFIX, "bbi>b", "xx-", &TYPE, &TYPE, NULL, prepare_csr_t_mat, add_csr_t_mat,
     REDUCE_sum, NULL, csr_t_mat_to_totals, NULL},
#endif
};

#define MAP_BIT(name) | (uint64_t)1 << MAP_##name
#define COMBINE_BIT(name) | (uint64_t)1 << OP_##name
#define REDUCE_BIT(name) | (uint64_t)1 << REDUCE_##name
#define REDUCE_IDENTITY(name) [REDUCE_##name] = {.S = IDENTITY_##name},
#define CAST_TO(to, text) [TYPE_##to] = cast_to_##to,

const element_type TYPE = {
    .name = NAME, .number = OF_TYPE(TYPE_, S), .size = sizeof(S),
    .log_size = __builtin_ctz(sizeof(S)), .parts = PARTS,
    .maps = 0 FAMILY_MAPS(MAP_BIT),
    .combines = 0 FAMILY_SYMMETRIC(COMBINE_BIT) FAMILY_ORDERED(COMBINE_BIT),
    .reduces = 0 FAMILY_REDUCES(REDUCE_BIT),
    .identity = {FAMILY_REDUCES(REDUCE_IDENTITY)},
    .csr = &loops_of_csr, .kernels = kernels, .kernel_count = sizeof kernels / sizeof kernels[0],
    .map = map, .combine = combine, .reduce = reduce, .running = running, .cast = {EACH_TYPE(CAST_TO)},
    .fill = fill, .copy = copy, .count_not = count_not,
    .all_finite = all_finite, .overlay = overlay,
#if HAS_PRODUCTS
    .axpy = axpy, .multiply_add = multiply_add, .dot = dot, .vector_matrix = vector_matrix,
    .matrix_vector = matrix_vector,
#endif
#if PARTS == 1
    .multiway = &loops_of_multiway,
#endif
#if HAS_TOP
    .top = top, .top_merge = top_merge, .top_sort = top_sort,
#endif
#ifdef TOTAL_SIZE
    .total_size = TOTAL_SIZE, .gather = gather, .join_totals = join_totals, .narrow = narrow,
#endif
#ifdef IS_EXACT
    .retract = retract, .exact = exact,
#endif
#if HAS_GEMM
    .panel_bytes = panel_bytes, .gemm = gemm,
#endif
#if PARTS == 2
    .join = join, .split = split,
#endif
};
