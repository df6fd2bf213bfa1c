#include "loaded.h"

#include <stdlib.h>

loaded *loaded_new(void) {
    loaded *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    account_open(&l->account);
    atomic_store(&l->uses, 1);
    return l;
}

loaded *loaded_keep(loaded *l) {
    atomic_fetch_add(&l->uses, 1);
    return l;
}

void loaded_let_go(loaded *l) {
    if (atomic_fetch_sub(&l->uses, 1) > 1) return;
    account_close(&l->account);
    free(l);
}
