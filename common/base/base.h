// SPDX-License-Identifier: MIT
// The few spellings that every file may use. Nothing here knows about Dunlin.
#pragma once

#include <stddef.h>
#include <stdint.h>

// A caller that drops this result has a bug.
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_at, first_at) __attribute__((format(printf, format_at, first_at)))

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

// Instants are microseconds since 1970-01-01T00:00:00Z; spans and deadlines are microseconds of
// CLOCK_MONOTONIC.
#define US_PER_MS INT64_C(1000)
#define US_PER_S INT64_C(1000000)
#define US_PER_DAY (INT64_C(86400) * US_PER_S)

// Aborts with a line on standard error: for broken invariants, in release builds too.
#define REQUIRE(condition) ((condition) ? (void)0 : base_abort(#condition, __FILE__, __LINE__))
_Noreturn void base_abort(const char *condition, const char *file, int line);

// Small allocations abort when memory is gone; what a peer sizes goes through a bounded struct buf instead.
// Results are owned by the caller and released with free().
void *base_calloc(size_t count, size_t size);
char *base_strdup(const char *text);
char *base_strndup(const char *bytes, size_t len);

// CLOCK_MONOTONIC and CLOCK_REALTIME in microseconds. Any thread.
int64_t base_monotonic_us(void);
int64_t base_wall_us(void);
