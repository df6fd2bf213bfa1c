#include "watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned listeners;
static bool installed;
static struct sigaction before;
static atomic_uint interruptions;

static void on_interrupt(int number, siginfo_t *info, void *context) {
    atomic_fetch_add(&interruptions, 1);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else
        before.sa_handler(number);
}

static bool is_ours(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_interrupt;
}

static bool is_a_function(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void install(void) {
    struct sigaction found;
    if (sigaction(SIGINT, NULL, &found) != 0 || is_ours(&found) || !is_a_function(&found)) return;
    before = found;
    struct sigaction action = found;
    action.sa_sigaction = on_interrupt;
    action.sa_flags |= SA_SIGINFO;
    installed = sigaction(SIGINT, &action, NULL) == 0;
}

/* Leaves a handler alone that somebody else has set in the meantime. */
static void restore(void) {
    struct sigaction found;
    if (installed && sigaction(SIGINT, NULL, &found) == 0 && is_ours(&found))
        sigaction(SIGINT, &before, NULL);
    installed = false;
}

void watch_interrupt(void) { atomic_fetch_add(&interruptions, 1); }

bool watch_look(watch *w) {
    if (!w->on) {
        pthread_mutex_lock(&lock);
        if (listeners++ == 0) install();
        pthread_mutex_unlock(&lock);
        w->seen = atomic_load(&interruptions);
        w->on = true;
    }
    return atomic_load(&interruptions) != w->seen;
}

void watch_end(watch *w) {
    if (!w->on) return;
    pthread_mutex_lock(&lock);
    if (--listeners == 0) restore();
    pthread_mutex_unlock(&lock);
    w->on = false;
}
