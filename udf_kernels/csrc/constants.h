/* Words and numbers in the programs of chains and tapes. */
#ifndef UCLE_CONSTANTS_H
#define UCLE_CONSTANTS_H

#include "call.h"

bool is_word(view word, const char *name);

/* A number below 2^63 and not below -2^63. */
bool read_integer(view text, int64_t *value);

/* An element of a type: true or false, an integer, or a real number with a decimal point, inf and nan
 * among them; of a complex one the real and imaginary part with a comma between them. */
bool read_constant(view text, const element_type *type, element *value);

#endif
