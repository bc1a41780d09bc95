// SPDX-License-Identifier: MIT
#include "common/rpc/rpc_thread.h"

#include <time.h>

void rpc_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    REQUIRE(pthread_condattr_init(&attr) == 0);
    REQUIRE(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    REQUIRE(pthread_cond_init(cond, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
}

bool rpc_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us) {
    if (base_monotonic_us() >= until_us)
        return false;
    const struct timespec until = {.tv_sec = until_us / US_PER_S, .tv_nsec = until_us % US_PER_S * 1000};
    return pthread_cond_timedwait(cond, lock, &until) == 0;
}

static void *run(void *arg) {
    struct rpc_ticker *ticker = arg;
    (void)pthread_mutex_lock(&ticker->lock);
    while (!ticker->stopping) {
        ticker->kicked = false;
        (void)pthread_mutex_unlock(&ticker->lock);
        ticker->tick(ticker->arg);
        int64_t next_us = base_monotonic_us() + ticker->period_us;
        (void)pthread_mutex_lock(&ticker->lock);
        while (!ticker->stopping && !ticker->kicked)
            if (!rpc_cond_wait_until(&ticker->wake, &ticker->lock, next_us))
                break;
    }
    (void)pthread_mutex_unlock(&ticker->lock);
    return NULL;
}

void rpc_ticker_start(struct rpc_ticker *ticker, int64_t period_us, void (*tick)(void *arg), void *arg) {
    *ticker = (struct rpc_ticker){.period_us = period_us, .tick = tick, .arg = arg, .started = true};
    REQUIRE(pthread_mutex_init(&ticker->lock, NULL) == 0);
    rpc_cond_init(&ticker->wake);
    REQUIRE(pthread_create(&ticker->thread, NULL, run, ticker) == 0);
}

void rpc_ticker_kick(struct rpc_ticker *ticker) {
    (void)pthread_mutex_lock(&ticker->lock);
    ticker->kicked = true;
    (void)pthread_cond_signal(&ticker->wake);
    (void)pthread_mutex_unlock(&ticker->lock);
}

void rpc_ticker_stop(struct rpc_ticker *ticker) {
    if (!ticker->started)
        return;
    (void)pthread_mutex_lock(&ticker->lock);
    ticker->stopping = true;
    (void)pthread_cond_signal(&ticker->wake);
    (void)pthread_mutex_unlock(&ticker->lock);
    (void)pthread_join(ticker->thread, NULL);
}

void rpc_ticker_done(struct rpc_ticker *ticker) {
    if (!ticker->started)
        return;
    (void)pthread_cond_destroy(&ticker->wake);
    (void)pthread_mutex_destroy(&ticker->lock);
    ticker->started = false;
}
