/* float32. */
#define S f32
#define V float
#define MATH(name) name##f
#define NAME "float32"
#define TAG "f32"
#define SUFFIX "_f32"
#define HAS_GEMM 1

#include "element.h"
#include "ops_real.h"
#include "loops_template.h"
#include "gemm_template.h"
#include "type_template.h"
