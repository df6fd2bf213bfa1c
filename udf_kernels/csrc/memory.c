#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Stands before what was handed out; as long as malloc's alignment. */
typedef union header {
    struct {
        size_t bytes;
        atomic_size_t holders;
        account *account;
    };
    max_align_t alignment;
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static account *opened;

size_t default_memory_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages / 5 * 4 * (size_t)size : SIZE_MAX;
}

/* ---- Accounts ---- */

account account_of_call(size_t limit) {
    return (account){.limit = limit > 0 ? limit : default_memory_limit()};
}

void account_open(account *a) {
    *a = account_of_call(0);
    pthread_mutex_lock(&lock);
    a->next = opened;
    if (opened != NULL) opened->before = a;
    opened = a;
    pthread_mutex_unlock(&lock);
}

void account_close(account *a) {
    pthread_mutex_lock(&lock);
    if (a->next != NULL) a->next->before = a->before;
    if (a->before != NULL) a->before->next = a->next;
    if (opened == a) opened = a->next;
    pthread_mutex_unlock(&lock);
}

size_t memory_held(void) {
    size_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (const account *a = opened; a != NULL; a = a->next) bytes += account_held(a);
    pthread_mutex_unlock(&lock);
    return bytes;
}

void account_set_limit(account *a, size_t bytes) {
    atomic_store(&a->limit, bytes > 0 ? bytes : default_memory_limit());
}

size_t account_limit(const account *a) { return atomic_load(&a->limit); }
size_t account_held(const account *a) { return atomic_load(&a->all); }

size_t account_batch_limit(const account *a) {
    size_t least = (size_t)1 << 28, most = account_limit(a);
    return most > least ? most : least;
}

static bool add_within(atomic_size_t *sum, size_t bytes, size_t most) {
    if (bytes > most) return false;
    if (atomic_fetch_add(sum, bytes) <= most - bytes) return true;
    atomic_fetch_sub(sum, bytes);
    return false;
}

bool account_borrow(account *a, size_t bytes) {
    return add_within(&a->all, bytes, account_batch_limit(a));
}

void account_repay(account *a, size_t bytes) { atomic_fetch_sub(&a->all, bytes); }

bool account_keep(account *a, size_t bytes) {
    return add_within(&a->kept, bytes, account_limit(a));
}

bool account_claim(account *a, size_t bytes) {
    if (!account_keep(a, bytes)) return false;
    if (account_borrow(a, bytes)) return true;
    atomic_fetch_sub(&a->kept, bytes);
    return false;
}

void account_disclaim(account *a, size_t bytes) {
    atomic_fetch_sub(&a->kept, bytes);
    account_repay(a, bytes);
}

/* ---- Memory ---- */

/* What is this large has pages of its own, which the system takes back at once: malloc keeps what is
 * freed between things that are not, as the states of an aggregation are while it finishes. What is
 * larger is a whole tensor mostly, of which there are few: malloc hands out its pages again, where
 * fresh ones would have to be cleared each time. Under the address sanitizer all is malloc's, which it
 * watches. */
enum { OWN_PAGES_LEAST = 1 << 20, OWN_PAGES_MOST = 1 << 24 };

#if defined(__SANITIZE_ADDRESS__)
#define UCLE_OWN_PAGES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UCLE_OWN_PAGES 0
#endif
#endif
#ifndef UCLE_OWN_PAGES
#define UCLE_OWN_PAGES 1
#endif

static bool has_own_pages(size_t bytes) {
    return UCLE_OWN_PAGES && bytes >= OWN_PAGES_LEAST && bytes <= OWN_PAGES_MOST;
}

static void *take(size_t bytes, bool zeros) {
    if (!has_own_pages(bytes)) return zeros ? calloc(1, bytes) : malloc(bytes);
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static void give_back(void *taken, size_t bytes) {
    if (has_own_pages(bytes))
        munmap(taken, bytes);
    else
        free(taken);
}

static void *hold(account *a, size_t bytes, bool zeros) {
    size_t whole = bytes + sizeof(header);
    if (whole < bytes || !account_claim(a, whole)) return NULL;
    header *h = take(whole, zeros);
    if (h == NULL) {
        account_disclaim(a, whole);
        return NULL;
    }
    h->bytes = whole;
    atomic_init(&h->holders, 1);
    h->account = a;
    return h + 1;
}

void *memory_hold(account *a, size_t bytes) { return hold(a, bytes, false); }
void *memory_hold_zeros(account *a, size_t bytes) { return hold(a, bytes, true); }

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
    size_t bytes = h->bytes;
    account_disclaim(h->account, bytes);
    give_back(h, bytes);
}
