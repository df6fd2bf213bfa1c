/* What one load of the library has in a database: the account of the memory of its kernels there. It
 * goes with the last function that was registered. */
#ifndef UCLE_LOADED_H
#define UCLE_LOADED_H

#include "memory.h"

typedef struct loaded {
    account account;
    atomic_size_t uses;
} loaded;

/* With one use; NULL where there is no memory. */
loaded *loaded_new(void);
loaded *loaded_keep(loaded *l);
void loaded_let_go(loaded *l);

#endif
