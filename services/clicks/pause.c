// SPDX-License-Identifier: MIT
#include "services/clicks/pause.h"

#include <time.h>

void pause_init(struct pause *pause) {
    pthread_condattr_t attributes;
    REQUIRE(pthread_condattr_init(&attributes) == 0);
    REQUIRE(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    REQUIRE(pthread_cond_init(&pause->raised, &attributes) == 0);
    REQUIRE(pthread_mutex_init(&pause->lock, NULL) == 0);
    (void)pthread_condattr_destroy(&attributes);
    pause->stopping = false;
}

void pause_done(struct pause *pause) {
    (void)pthread_cond_destroy(&pause->raised);
    (void)pthread_mutex_destroy(&pause->lock);
}

void pause_stop(struct pause *pause) {
    (void)pthread_mutex_lock(&pause->lock);
    pause->stopping = true;
    (void)pthread_cond_broadcast(&pause->raised);
    (void)pthread_mutex_unlock(&pause->lock);
}

bool pause_is_stopping(struct pause *pause) {
    return pause_wait(pause, 0);
}

bool pause_wait(struct pause *pause, int64_t us) {
    int64_t until = base_monotonic_us() + us;
    const struct timespec at = {.tv_sec = until / US_PER_S, .tv_nsec = until % US_PER_S * 1000};
    int failed = us > 0 ? 0 : -1;
    (void)pthread_mutex_lock(&pause->lock);
    while (!pause->stopping && failed == 0)
        failed = pthread_cond_timedwait(&pause->raised, &pause->lock, &at);
    bool stopping = pause->stopping;
    (void)pthread_mutex_unlock(&pause->lock);
    return stopping;
}
