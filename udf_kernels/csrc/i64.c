/* int64. */
#define S i64
#define V int64_t
#define NAME "int64"
#define TAG "i64"
#define SUFFIX "_i64"
#define HAS_GEMM 0

#include "element.h"
#include "ops_integer.h"
#include "loops_template.h"
#include "type_template.h"
