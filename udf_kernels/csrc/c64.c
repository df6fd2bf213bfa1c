/* complex64: two float32 each. */
#define S c64
#define V c64
#define PART float
#define PART_S f32
#define PART_TYPE type_f32
#define MATH(name) name##f
#define NAME "complex64"
#define TAG "c64"
#define SUFFIX "_c64"
#define HAS_GEMM 1
#define TOTAL_SIZE sizeof(c128)

#include "element.h"
#include "ops_complex.h"
#include "loops_template.h"
#include "complex_template.h"

/* The totals of both parts, one beside the other. */
static trouble gather(size_t n, const void *x, void *restrict totals) {
    return PART_TYPE.gather(2 * n, x, totals);
}
static trouble join_totals(size_t n, const void *from, void *restrict into) {
    return PART_TYPE.join_totals(2 * n, from, into);
}
static trouble narrow(size_t n, const void *totals, const void *x, void *out) {
    return PART_TYPE.narrow(2 * n, totals, x, out);
}
#include "type_template.h"
