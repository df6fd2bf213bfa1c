/* float32. */
#define S f32
#define V float
#define MATH(name) name##f
#define NAME "float32"
#define TAG "f32"
#define SUFFIX "_f32"
#define HAS_MATRICES 1
#define HAS_GEMM 1
#define TOTAL_SIZE sizeof(double)

#include "element.h"
#include "ops_real.h"
#include "loops_template.h"

#define TOTAL double
#define TOTAL_ADD(t, x) ((t) + (x))
#define TOTAL_IS_OUTSIDE(t) ((void)(t), false)
#include "totals_template.h"
#include "gemm_template.h"
#include "type_template.h"
