#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Stands before what was handed out; as long as malloc's alignment. */
typedef union header {
    struct {
        size_t bytes;
        atomic_size_t holders;
    };
    max_align_t alignment;
} header;

static atomic_size_t held, limit;

static size_t default_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages / 5 * 4 * (size_t)size : SIZE_MAX;
}

size_t memory_limit(void) {
    size_t bytes = atomic_load(&limit);
    if (bytes > 0) return bytes;
    bytes = default_limit();
    atomic_store(&limit, bytes);
    return bytes;
}

size_t memory_batch_limit(void) {
    size_t least = (size_t)1 << 28, most = memory_limit();
    return most > least ? most : least;
}

void memory_set_limit(size_t bytes) { atomic_store(&limit, bytes); }
size_t memory_held(void) { return atomic_load(&held); }

bool memory_claim(size_t bytes) {
    size_t most = memory_limit();
    if (bytes > most) return false;
    if (atomic_fetch_add(&held, bytes) + bytes <= most) return true;
    memory_disclaim(bytes);
    return false;
}

void memory_disclaim(size_t bytes) { atomic_fetch_sub(&held, bytes); }

static void *hold(size_t bytes, bool zeros) {
    size_t whole = bytes + sizeof(header);
    if (whole < bytes || !memory_claim(whole)) return NULL;
    header *h = zeros ? calloc(1, whole) : malloc(whole);
    if (h == NULL) {
        memory_disclaim(whole);
        return NULL;
    }
    h->bytes = whole;
    atomic_init(&h->holders, 1);
    return h + 1;
}

void *memory_hold(size_t bytes) { return hold(bytes, false); }
void *memory_hold_zeros(size_t bytes) { return hold(bytes, true); }

void *memory_share(void *held) {
    atomic_fetch_add(&((header *)held - 1)->holders, 1);
    return held;
}

bool memory_is_shared(const void *held) {
    return atomic_load(&((const header *)held - 1)->holders) > 1;
}

void memory_release(void *data) {
    if (data == NULL) return;
    header *h = (header *)data - 1;
    if (atomic_fetch_sub(&h->holders, 1) > 1) return;
    memory_disclaim(h->bytes);
    free(h);
}
