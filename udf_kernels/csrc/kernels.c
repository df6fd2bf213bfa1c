/* The table of kernels: the single place that maps SQL names to code. */
#include "kernels.h"

#define SCALAR(name, signature, function, op) {name, signature, "", apply_##function, NULL, NULL, op}
#define AGGREGATE(name, signature, gathered, function, op) \
    {name, signature, gathered, NULL, prepare_##function, add_##function, op}
#define STACK(name, signature, gathered) \
    {#name, signature, gathered, NULL, prepare_##name, add_stack, MERGE_STACK}
#define BY_REDUCE(suffix, signature, gathered, function)                       \
    AGGREGATE("sum_" suffix, signature, gathered, function, REDUCE_SUM),       \
        AGGREGATE("prod_" suffix, signature, gathered, function, REDUCE_PROD), \
        AGGREGATE("min_" suffix, signature, gathered, function, REDUCE_MIN),   \
        AGGREGATE("max_" suffix, signature, gathered, function, REDUCE_MAX)

const kernel kernels[] = {
    SCALAR("pack", "D>b", pack, 0),
    SCALAR("vec_to_list", "b>D", vec_to_list, 0),
    SCALAR("full", "id>b", full, 0),
    SCALAR("sca_to_vec", "d>b", sca_to_vec, 0),
    SCALAR("element", "bi>d", element, 0),
    SCALAR("slice", "biII>b", slice, 0),
    SCALAR("any_not", "bd>o", any_not, 0),
    SCALAR("count_not", "bd>i", count_not, 0),

    SCALAR("vec_relu", "b>b", map, MAP_RELU),
    SCALAR("vec_leaky_relu", "b>b", map, MAP_LEAKY_RELU),
    SCALAR("vec_sigmoid", "b>b", map, MAP_SIGMOID),
    SCALAR("vec_tanh", "b>b", map, MAP_TANH),
    SCALAR("vec_exp", "b>b", map, MAP_EXP),
    SCALAR("vec_log", "b>b", map, MAP_LOG),
    SCALAR("vec_log1p", "b>b", map, MAP_LOG1P),
    SCALAR("vec_sqrt", "b>b", map, MAP_SQRT),
    SCALAR("vec_abs", "b>b", map, MAP_ABS),
    SCALAR("vec_neg", "b>b", map, MAP_NEG),
    SCALAR("vec_square", "b>b", map, MAP_SQUARE),
    SCALAR("vec_reciprocal", "b>b", map, MAP_RECIPROCAL),
    SCALAR("vec_sign", "b>b", map, MAP_SIGN),

    SCALAR("vec_mult", "bb>b", vec_vec, OP_MULT),
    SCALAR("vec_add", "bb>b", vec_vec, OP_ADD),
    SCALAR("vec_sub", "bb>b", vec_vec, OP_SUB),
    SCALAR("vec_div", "bb>b", vec_vec, OP_DIV),
    SCALAR("vec_pow", "bb>b", vec_vec, OP_POW),
    SCALAR("vec_min", "bb>b", vec_vec, OP_MIN),
    SCALAR("vec_max", "bb>b", vec_vec, OP_MAX),

    SCALAR("vec_sca_mult", "bd>b", vec_sca, OP_MULT),
    SCALAR("vec_sca_add", "bd>b", vec_sca, OP_ADD),
    SCALAR("vec_sca_sub", "bd>b", vec_sca, OP_SUB),
    SCALAR("vec_sca_div", "bd>b", vec_sca, OP_DIV),
    SCALAR("vec_sca_pow", "bd>b", vec_sca, OP_POW),
    SCALAR("vec_sca_min", "bd>b", vec_sca, OP_MIN),
    SCALAR("vec_sca_max", "bd>b", vec_sca, OP_MAX),
    SCALAR("sca_vec_sub", "db>b", sca_vec, OP_SUB),
    SCALAR("sca_vec_div", "db>b", sca_vec, OP_DIV),
    SCALAR("sca_vec_pow", "db>b", sca_vec, OP_POW),

    SCALAR("inner_prod", "bb>d", inner_prod, 0),
    SCALAR("outer_prod", "bb>b", outer_prod, 0),
    SCALAR("mat_vec_mult", "bb>b", mat_vec, 0),
    SCALAR("vec_mat_mult", "bb>b", vec_mat, 0),
    SCALAR("mat_mat_mult", "bbi>b", mat_mat, 0),
    SCALAR("ein", "sIbb>b", ein, 0),
    SCALAR("ein_sca", "sIbb>d", ein_sca, 0),
    SCALAR("ein1", "sIb>b", ein, 0),
    SCALAR("ein1_sca", "sIb>d", ein_sca, 0),

    BY_REDUCE("vec", "b>b", "x", vec),
    AGGREGATE("sum_vec_sca_mult", "bd>b", "xx", vec_sca_mult, REDUCE_SUM),
    AGGREGATE("sum_vec_mult", "bb>b", "xx", vec_mult, REDUCE_SUM),
    AGGREGATE("sum_outer_prod", "bb>b", "xx", outer_prod, REDUCE_SUM),
    AGGREGATE("sum_vec_mat_mult", "bb>b", "xx", vec_mat, REDUCE_SUM),
    AGGREGATE("sum_mat_vec_mult", "bb>b", "xx", mat_vec, REDUCE_SUM),
    AGGREGATE("sum_mat_mat_mult", "bbi>b", "xx-", mat_mat, REDUCE_SUM),
    BY_REDUCE("ein", "sIbb>b", "--xx", ein),
    BY_REDUCE("ein1", "sIb>b", "--x", ein),
    STACK(stack_sca, "diid>b", "xx--"),
    STACK(stack, "biid>b", "xx--"),
    STACK(stack_strided, "biIIid>b", "xx----"),
};

const size_t kernel_count = sizeof kernels / sizeof kernels[0];
