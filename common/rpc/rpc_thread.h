// SPDX-License-Identifier: MIT
// A thread that does one thing again and again, and at once when it is kicked.
#pragma once

#include "common/base/base.h"
#include <pthread.h>
#include <stdbool.h>

struct rpc_ticker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; // of CLOCK_MONOTONIC
    int64_t period_us;
    void (*tick)(void *arg);
    void *arg;
    bool kicked;
    bool stopping;
    bool started; // false in a zeroed one, which stop() and done() leave alone
};

// A condition variable whose timed waits run on CLOCK_MONOTONIC.
void rpc_cond_init(pthread_cond_t *cond);
// True until the instant has passed; `cond` may also end the wait early.
bool rpc_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_us);

// The first tick is at once, on the new thread.
void rpc_ticker_start(struct rpc_ticker *ticker, int64_t period_us, void (*tick)(void *arg), void *arg);
// Does not block; also from within tick().
void rpc_ticker_kick(struct rpc_ticker *ticker);
// Waits for a tick that is under way. Kicks may still come, until done().
void rpc_ticker_stop(struct rpc_ticker *ticker);
void rpc_ticker_done(struct rpc_ticker *ticker);
