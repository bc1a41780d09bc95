// SPDX-License-Identifier: MIT
// Ends the process with 1 when stopping takes too long or a second signal asks for it. Inside the module
// only.
#pragma once

#include "common/base/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

struct watchdog {
    pthread_t thread;
    sigset_t signals;
    int64_t deadline_us;
    atomic_bool is_over;
};

// `signals` are blocked already. stop() is for an end in time.
void watchdog_start(struct watchdog *watchdog, const sigset_t *signals, int64_t budget_us);
void watchdog_stop(struct watchdog *watchdog);
