/* Facts about the positions of a table's rows, for statistics (stats/position_counts.py). A position is
 * one integer from 0 below 2^62, in whose bits all coordinates of a row lie. */
#ifndef UCLE_POSITIONS_H
#define UCLE_POSITIONS_H

#include <stdint.h>

/* Whether two positions are equal: 1 or 0, or -1 where there is no memory to find out, which takes up
 * to 6 bytes for each position. */
int ucle_positions_repeat(const int64_t *positions, int64_t count);

/* Adds the rows of each coordinate, the `bits` above `shift`, to its counter. There are 2^counter_bits
 * counters: one for each coordinate, or fewer, where a hash picks one for many. */
void ucle_count_coordinates(const int64_t *positions, int64_t count, int shift, int bits, int counter_bits,
                            int64_t *counters);

#endif
