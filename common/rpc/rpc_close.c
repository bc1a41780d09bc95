// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_close.h"
#include "common/log/log.h"
#include "common/rpc/rpc_thread.h"

#include <nng/nng.h>
#include <stdlib.h>

#define CLOSE_US US_PER_S // ends in well under a millisecond, or never

struct closing {
    nng_socket socket;
    pthread_mutex_t lock; // guards what follows
    pthread_cond_t ended;
    bool done;
    bool abandoned;
};

static void free_closing(struct closing *closing) {
    (void)pthread_cond_destroy(&closing->ended);
    (void)pthread_mutex_destroy(&closing->lock);
    free(closing);
}

static void *run(void *arg) {
    struct closing *closing = arg;
    (void)nng_close(closing->socket);
    (void)pthread_mutex_lock(&closing->lock);
    closing->done = true;
    bool abandoned = closing->abandoned;
    (void)pthread_cond_signal(&closing->ended);
    (void)pthread_mutex_unlock(&closing->lock);
    if (abandoned)
        free_closing(closing);
    return NULL;
}

bool rpc_close_socket(uint32_t socket_id) {
    struct closing *closing = base_calloc(1, sizeof *closing);
    pthread_t thread;
    closing->socket.id = socket_id;
    REQUIRE(pthread_mutex_init(&closing->lock, NULL) == 0);
    rpc_cond_init(&closing->ended);
    REQUIRE(pthread_create(&thread, NULL, run, closing) == 0);
    int64_t until_us = base_monotonic_us() + CLOSE_US;
    (void)pthread_mutex_lock(&closing->lock);
    while (!closing->done && rpc_cond_wait_until(&closing->ended, &closing->lock, until_us))
        continue;
    bool done = closing->done;
    closing->abandoned = !done;
    (void)pthread_mutex_unlock(&closing->lock);
    if (!done) {
        (void)pthread_detach(thread);
        return false;
    }
    (void)pthread_join(thread, NULL);
    free_closing(closing);
    return true;
}

void rpc_close_abandon(void *memory) {
    // A list, so that what is kept can still be found.
    struct kept {
        struct kept *next;
        void *memory;
    };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept *all;
    struct kept *kept = base_calloc(1, sizeof *kept);
    kept->memory = memory;
    (void)pthread_mutex_lock(&lock);
    kept->next = all;
    all = kept;
    (void)pthread_mutex_unlock(&lock);
    log_warn("an NNG socket did not close and is left behind");
}
