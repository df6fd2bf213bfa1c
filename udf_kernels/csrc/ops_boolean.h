/* What the operations mean for truth values: false < true, sums are "or", products "and". */

#define FAMILY_MAPS MAPS_boolean
#define FAMILY_SYMMETRIC SYMMETRIC_boolean
#define FAMILY_ORDERED ORDERED_boolean
#define FAMILY_REDUCES REDUCES_boolean
#define HAS_PRODUCTS 0
#define PARTS 1

COMBINE(mult, u & v)
COMBINE(add, u | v)
COMBINE(least, u & v)
COMBINE(greatest, u | v)
COMBINE(less, !u & v)
COMBINE(less_equal, !u | v)
COMBINE(equal, u == v)
COMBINE(not_equal, u != v)
COMBINE(when, u & v)
COMBINE(when_one, !u | v)
COMBINE(when_lowest, u & v)
COMBINE(when_highest, !u | v)
COMBINE(unless, !u & v)
COMBINE(sparse_mult, u & v)
COMBINE(bit_and, u & v)
COMBINE(bit_or, u | v)
COMBINE(bit_xor, u ^ v)

static inline V map_not(V v) { return !v; }
static inline V map_one_if_zero(V v) { return (void)v, true; }

#define IDENTITY_min true
#define IDENTITY_max false

#define IS_NAN(v) ((void)(v), false)
#define IS_FINITE(v) ((void)(v), true)
#define NONZERO(v) (v)
#define REAL(v) (v)
#define IMAG(v) 0
#define TO_INT64(v) (v)
