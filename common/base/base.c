// SPDX-License-Identifier: MIT
#include "common/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void base_abort(const char *condition, const char *file, int line) {
    (void)fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
    abort();
}

static void *checked(void *memory) {
    REQUIRE(memory != NULL);
    return memory;
}

void *base_calloc(size_t count, size_t size) {
    return checked(calloc(count, size));
}

char *base_strdup(const char *text) {
    return checked(strdup(text));
}

char *base_strndup(const char *bytes, size_t len) {
    char *copy = checked(malloc(len + 1));
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

static int64_t clock_us(clockid_t clock) {
    struct timespec now;
    REQUIRE(clock_gettime(clock, &now) == 0);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t base_monotonic_us(void) {
    return clock_us(CLOCK_MONOTONIC);
}

int64_t base_wall_us(void) {
    return clock_us(CLOCK_REALTIME);
}
