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

#include "element.h"
#include "ops_complex.h"
#include "loops_template.h"
#include "complex_template.h"
#include "type_template.h"
