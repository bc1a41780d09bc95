// SPDX-License-Identifier: MIT
// A stop sign for one thread: it waits in pause_wait() between attempts and is woken when another thread
// raises it.
#pragma once

#include "common/base/base.h"
#include <pthread.h>
#include <stdbool.h>

struct pause {
    pthread_mutex_t lock;
    pthread_cond_t raised;
    bool stopping;
};

// init/done: the struct is the caller's and must not move in between.
void pause_init(struct pause *pause);
void pause_done(struct pause *pause);
// For good. Any thread.
void pause_stop(struct pause *pause);
bool pause_is_stopping(struct pause *pause);
// Waits for the time or the stop sign; true when it is raised.
bool pause_wait(struct pause *pause, int64_t us);
