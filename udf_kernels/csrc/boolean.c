/* bool: one byte, of which C's conversion to bool makes 0 or 1. */
#define S boolean
#define V bool
#define NAME "bool"
#define TAG "bool"
#define SUFFIX "_bool"
#define HAS_GEMM 0
#define OWN_KERNELS                                                                           \
    {"tape", "sv>B", "", &TYPE, &TYPE, apply_tape, NULL, NULL, 0, NULL, NULL, NULL},          \
    {"csr_empty", "ii>b", "", &TYPE, &TYPE, apply_csr_empty, NULL, NULL, 0, NULL, NULL, NULL},

#include "element.h"
#include "ops_boolean.h"
#include "loops_template.h"
#include "type_template.h"
