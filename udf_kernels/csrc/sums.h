/* Sums of many terms.
 *
 * Adding number upon number in float32 loses digits, and int64 overflows on the way to a sum that
 * would fit. For types that need it, a sum therefore has two parts: a near one of the type itself,
 * to which the loops add, and totals in a wider type (double, 128 bits), which take over the near
 * part from time to time. Short sums never have any.
 */
#ifndef UCLE_SUMS_H
#define UCLE_SUMS_H

#include "ein.h"
#include "element.h"
#include "memory.h"
#include "watch.h"

/* How many terms are added up in the near part: what float32 then loses is as little as in NumPy's
 * pairwise sums, and the totals cost nothing beside so many terms. */
enum { NEAR_TERMS = 128 };

typedef struct sum {
    const element_type *type;
    account *account; /* of the totals */
    size_t length;
    void *near;
    void *totals;   /* NULL: none yet */
    uint64_t terms; /* in the near part */
} sum;

static inline bool has_totals(const element_type *type) { return type->total_size > 0; }

/* Says that so many terms will be added to the near part. */
trouble sum_expect(sum *s, size_t terms);
/* Moves the near part to the totals, which are made if there are none. */
trouble sum_gather(sum *s);
/* Takes wrong results of integers back that a loop has added to the near part, by adding them once
 * more elsewhere: integers wrap around. */
trouble sum_retract(sum *s, const void *added);
/* Totals for a fresh sum whose near part is a copy of the other one's. */
trouble sum_copy(sum *into, const sum *from);
trouble sum_merge(sum *into, const sum *from);
/* The whole sum, in `out`, which may be the near part. */
trouble sum_finish(const sum *s, void *out);
void sum_release(sum *s);

/* Adds a contraction that sums up, however many terms it has. The near part may be anything if
 * `fresh`. */
trouble sum_contraction(sum *s, const ein_plan *plan, const void *a, const void *b, watch *w);
/* The same for a near part that the loops could not add it to: exactly, to the totals. */
trouble sum_exactly(sum *s, const ein_plan *plan, const void *a, const void *b, watch *w);

#endif
