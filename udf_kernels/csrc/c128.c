/* complex128: two float64 each. */
#define S c128
#define V c128
#define PART double
#define PART_S f64
#define PART_TYPE type_f64
#define MATH(name) name
#define NAME "complex128"
#define TAG "c128"
#define SUFFIX "_c128"
#define HAS_GEMM 1

#include "element.h"
#include "ops_complex.h"
#include "loops_template.h"
#include "complex_template.h"
#include "type_template.h"
