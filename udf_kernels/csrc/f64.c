/* float64, whose kernels bear the plain names. */
#define S f64
#define V double
#define MATH(name) name
#define NAME "float64"
#define TAG "f64"
#define SUFFIX ""
#define HAS_TOP 1
#define HAS_MATRICES 1
#define HAS_GEMM 1
#define OWN_KERNELS                           \
    SCALAR("forest_pack", "bii>b", forest_pack, 0) \
    SCALAR("forest", "bb>b", forest, 0)

#include "element.h"
#include "ops_real.h"
#include "loops_template.h"
#include "gemm_template.h"
#include "top_template.h"
#include "type_template.h"
