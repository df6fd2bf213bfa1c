/* Contractions of any shape: `reduce.combine ab,bc->ac` over dense row-major tensors.
 *
 * A plan is a nest of loops. Each axis has a size and a stride in a, b and the output; a stride 0
 * repeats (inputs) or accumulates (output). One operand is the same without b. Strides count
 * elements of the type, whose operations are the ones a spec may name.
 */
#ifndef UCLE_EIN_H
#define UCLE_EIN_H

#include "element.h"
#include "kernel_limits.h"

/* Of two operands, and one axis where there is no label. */
enum { MAX_LABELS = 2 * UCLE_MOST_LABELS + 1 };

typedef struct axis {
    size_t size, a, b, out;
} axis;

typedef struct ein_plan {
    const element_type *type;
    enum reduce_op reduce;
    enum combine_op combine;
    bool unary;
    bool empty;         /* nothing to accumulate: some label has size 0 */
    bool product;       /* the last three axes m, k, n are a matrix product */
    size_t length_a, length_b, length_out;
    size_t axes;
    size_t terms;          /* that the loops add to each entry one by one, if they sum up */
    axis axis[MAX_LABELS]; /* from the outermost to the innermost loop */
} ein_plan;

extern const char *const reduce_names[REDUCES];
extern const char *const combine_names[COMBINES];

/* The words for the operations that a type has; those for combinations are the longer list. */
enum { EIN_WORDS = 320 };
void ein_list_operations(const element_type *type, char *reduces, size_t reduces_size,
                         char *combines, size_t combines_size);

/* Fills a plan, or writes what was expected and returns false. */
bool ein_parse(ein_plan *plan, const element_type *type, bool unary, const char *spec,
               size_t spec_length, const i64 *sizes, size_t size_count, char *message,
               size_t message_size);

/* Accumulates into out, which the caller has filled with the identity or with earlier results. */
trouble ein_run(const ein_plan *plan, const void *a, const void *b, void *out, watch *w);
/* The same for sums of a type that has totals which are exact, into these. */
trouble ein_run_exactly(const ein_plan *plan, const void *a, const void *b, void *totals, watch *w);

/* The summed axis that adds most terms one by one, and how many they are, after a change of sizes. */
axis *ein_longest_sum(ein_plan *plan);
void ein_count_terms(ein_plan *plan);

/* Plans of one's own for sums of products: up to three axes, from the outermost to the innermost. */
ein_plan ein_plan_of(const element_type *type, bool unary, const axis *axes, size_t count);

#endif
