// SPDX-License-Identifier: MIT
// One pipelined Redis connection on one loop, for the redirector's workers. Bounded: at most `commands_max`
// under way, a deadline each; a command that is late closes the connection, and while Redis is away calls are
// refused at once (a breaker, not a time-out per request). Every accepted call gets its callback exactly
// once, from the loop and never from within the call itself.
#pragma once

#include "common/cache/cache.h"
#include "common/loop/loop.h"
#include "common/metrics/metrics.h"

struct cache_async;

// OK with the value, NOT_FOUND, or UNAVAILABLE. The value is borrowed for the call.
typedef void cache_async_done(void *arg, enum status status, const char *value, size_t len);

MUST_CHECK enum status cache_async_open(struct loop *loop, const char *url, unsigned commands_max,
    int64_t timeout_us, struct cache_async **out, struct problem *why);
// Calls under way get UNAVAILABLE first. Not from within a callback. NULL is fine.
void cache_async_close(struct cache_async *cache);

// UNAVAILABLE or RESOURCE_EXHAUSTED: then `done` is never called.
MUST_CHECK enum status cache_async_get(
    struct cache_async *cache, const char *key, cache_async_done *done, void *arg);
// Stores only where the key is empty (SET NX PX). Fire and forget: a lost fill costs a later miss and nothing
// else.
void cache_async_fill(
    struct cache_async *cache, const char *key, const void *value, size_t len, int64_t ttl_ms);
bool cache_async_is_up(const struct cache_async *cache);

extern const struct metric_family cache_async_metrics[];
extern const size_t cache_async_metrics_count;
