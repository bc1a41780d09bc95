// SPDX-License-Identifier: MIT
#include "common/service/watchdog.h"

#include "common/log/log.h"
#include <errno.h>
#include <time.h>
#include <unistd.h>

static void *watch(void *arg) {
    struct watchdog *watchdog = arg;
    for (;;) {
        int64_t left = watchdog->deadline_us - base_monotonic_us();
        if (left < 0)
            left = 0;
        struct timespec wait = {
            .tv_sec = (time_t)(left / US_PER_S), .tv_nsec = (long)(left % US_PER_S * 1000)};
        int got = sigtimedwait(&watchdog->signals, NULL, &wait);
        if (atomic_load(&watchdog->is_over))
            return NULL;
        if (got < 0 && errno == EINTR)
            continue;
        if (got > 0)
            log_error("a second signal: ended at once");
        else
            log_error("stopping took longer than SHUTDOWN_TIMEOUT_MS: ended at once");
        _exit(1);
    }
}

void watchdog_start(struct watchdog *watchdog, const sigset_t *signals, int64_t budget_us) {
    watchdog->signals = *signals;
    watchdog->deadline_us = base_monotonic_us() + budget_us;
    atomic_init(&watchdog->is_over, false);
    REQUIRE(pthread_create(&watchdog->thread, NULL, watch, watchdog) == 0);
}

// A signal to that one thread ends its wait.
void watchdog_stop(struct watchdog *watchdog) {
    atomic_store(&watchdog->is_over, true);
    (void)pthread_kill(watchdog->thread, SIGINT);
    (void)pthread_join(watchdog->thread, NULL);
}
