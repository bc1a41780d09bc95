// SPDX-License-Identifier: MIT
// Waiting for what becomes true by itself: polls, and fails the test when time is up.
#pragma once

#include "tests/support/cmocka_all.h"

#include "common/base/base.h"
#include <time.h>

#define AWAIT(seconds, condition)                                                                            \
    do {                                                                                                     \
        int64_t await_end_us = base_monotonic_us() + (seconds)*US_PER_S;                                     \
        while (!(condition)) {                                                                               \
            if (base_monotonic_us() > await_end_us)                                                          \
                fail_msg("waited %d s in vain for: %s", (int)(seconds), #condition);                         \
            (void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000000}, NULL);                              \
        }                                                                                                    \
    } while (0)
