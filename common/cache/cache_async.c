// SPDX-License-Identifier: MIT
#include "common/cache/cache_async_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct metric_family cache_async_metrics[] = {CACHE_ASYNC_METRICS(METRIC_ROW)};
const size_t cache_async_metrics_count = ARRAY_LEN(cache_async_metrics);

static void add_metrics(struct cache_async *cache) {
    static const enum status ends[] = {
        STATUS_OK, STATUS_NOT_FOUND, STATUS_UNAVAILABLE, STATUS_RESOURCE_EXHAUSTED};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        cache->calls[ends[i]] = metric_add(&cache_async_metrics[CACHE_ASYNC_calls], status_name(ends[i]));
    cache->in_flight = metric_add(&cache_async_metrics[CACHE_ASYNC_in_flight]);
    cache->connects_ok = metric_add(&cache_async_metrics[CACHE_ASYNC_connects], "ok");
    cache->connects_failed = metric_add(&cache_async_metrics[CACHE_ASYNC_connects], "failed");
    cache->up = metric_add(&cache_async_metrics[CACHE_ASYNC_up]);
    cache->wait = metric_add(&cache_async_metrics[CACHE_ASYNC_wait]);
}

enum status cache_async_open(struct loop *loop, const char *url, unsigned commands_max, int64_t timeout_us,
    struct cache_async **out, struct problem *why) {
    struct cache_address address;
    if (!cache_address_parse(url, &address))
        return problem_set(why, STATUS_INVALID_ARGUMENT, "INVALID_REDIS_URL", CACHE_URL_RULE);
    struct cache_async *cache = base_calloc(1, sizeof *cache);
    cache->loop = loop;
    cache->address = address;
    cache->commands_max = commands_max;
    cache->timeout_us = timeout_us;
    add_metrics(cache);
    cache_conn_init(cache);
    *out = cache;
    return STATUS_OK;
}

void cache_async_close(struct cache_async *cache) {
    if (cache == NULL)
        return;
    cache->closing = true;
    cache_conn_done(cache);
    cache_address_done(&cache->address);
    free(cache);
}

static enum status accept_command(struct cache_async *cache, cache_async_done *done, void *arg, int count,
    const char *bytes[], const size_t lens[]) {
    if (cache->state != CACHE_UP || cache->closing)
        return STATUS_UNAVAILABLE;
    if (cache->under_way >= cache->commands_max)
        return STATUS_RESOURCE_EXHAUSTED;
    int64_t now = base_monotonic_us();
    struct cache_pending *pending = base_calloc(1, sizeof *pending);
    *pending = (struct cache_pending){
        .cache = cache, .done = done, .arg = arg, .sent_us = now, .deadline_us = now + cache->timeout_us};
    if (cache_conn_send(cache, pending, count, bytes, lens)) {
        cache->under_way++;
        metric_move(cache->in_flight, 1);
        return STATUS_OK;
    }
    free(pending);
    return STATUS_UNAVAILABLE;
}

static enum status start_command(struct cache_async *cache, cache_async_done *done, void *arg, int count,
    const char *bytes[], const size_t lens[]) {
    enum status status = accept_command(cache, done, arg, count, bytes, lens);
    if (status != STATUS_OK)
        metric_inc(cache->calls[status]);
    return status;
}

enum status cache_async_get(struct cache_async *cache, const char *key, cache_async_done *done, void *arg) {
    const char *bytes[] = {"GET", key};
    const size_t lens[] = {3, strlen(key)};
    return start_command(cache, done, arg, ARRAY_LEN(bytes), bytes, lens);
}

void cache_async_fill(
    struct cache_async *cache, const char *key, const void *value, size_t len, int64_t ttl_ms) {
    char ttl[24];
    int digits = snprintf(ttl, sizeof ttl, "%" PRId64, ttl_ms);
    const char *bytes[] = {"SET", key, value, "NX", "PX", ttl};
    const size_t lens[] = {3, strlen(key), len, 2, 2, (size_t)digits};
    (void)start_command(cache, NULL, NULL, ARRAY_LEN(bytes), bytes, lens);
}

bool cache_async_is_up(const struct cache_async *cache) {
    return cache->state == CACHE_UP;
}
