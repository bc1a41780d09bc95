// SPDX-License-Identifier: MIT
#include "common/cache/cache_internal.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_FIRST_US (100 * US_PER_MS)
#define BACKOFF_MAX_US (2 * US_PER_S)

struct cache {
    struct cache_address address;
    int64_t timeout_us;
    redisContext *redis; // NULL while not connected
    int64_t retry_at_us;
    int64_t backoff_us;
    char error[160];
};

struct argument {
    const void *bytes;
    size_t len;
};
#define ARGUMENTS_MAX 5
#define TEXT(text) ((struct argument){(text), strlen(text)})

int64_t cache_backoff_us(int64_t *backoff_us) {
    int64_t span = *backoff_us == 0 ? BACKOFF_FIRST_US : *backoff_us;
    *backoff_us = span * 2 < BACKOFF_MAX_US ? span * 2 : BACKOFF_MAX_US;
    return span / 2 + arc4random_uniform((uint32_t)(span / 2));
}

enum status cache_status_of(const redisReply *reply) {
    switch (reply->type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_INTEGER:
        return STATUS_OK;
    case REDIS_REPLY_NIL:
        return STATUS_NOT_FOUND;
    default:
        return STATUS_UNAVAILABLE;
    }
}

enum status cache_create(const char *url, int64_t timeout_us, struct cache **out, struct problem *why) {
    struct cache_address address;
    if (!cache_address_parse(url, &address))
        return problem_set(why, STATUS_INVALID_ARGUMENT, "INVALID_REDIS_URL", CACHE_URL_RULE);
    struct cache *cache = base_calloc(1, sizeof *cache);
    cache->address = address;
    cache->timeout_us = timeout_us;
    *out = cache;
    return STATUS_OK;
}

static void drop(struct cache *cache) {
    if (cache->redis != NULL)
        redisFree(cache->redis);
    cache->redis = NULL;
}

void cache_free(struct cache *cache) {
    if (cache == NULL)
        return;
    drop(cache);
    cache_address_done(&cache->address);
    free(cache);
}

// Closes the connection, whatever still comes on it, and makes the next attempt wait.
static enum status fail(struct cache *cache, const char *text) {
    (void)snprintf(cache->error, sizeof cache->error, "%s", text);
    drop(cache);
    cache->retry_at_us = base_monotonic_us() + cache_backoff_us(&cache->backoff_us);
    return STATUS_UNAVAILABLE;
}

// One command on the open connection. The reply is the caller's where the status is not UNAVAILABLE.
static enum status exchange(
    struct cache *cache, const struct argument *arguments, int count, redisReply **out) {
    const char *bytes[ARGUMENTS_MAX];
    size_t lens[ARGUMENTS_MAX];
    for (int i = 0; i < count; i++) {
        bytes[i] = arguments[i].bytes;
        lens[i] = arguments[i].len;
    }
    redisReply *reply = redisCommandArgv(cache->redis, count, bytes, lens);
    if (reply == NULL)
        return fail(cache, cache->redis->errstr);
    enum status status = cache_status_of(reply);
    if (status == STATUS_UNAVAILABLE) {
        (void)snprintf(cache->error, sizeof cache->error, "%s",
            reply->type == REDIS_REPLY_ERROR ? reply->str : "a reply of an unexpected type");
        // A primary that was demoted: the name may lead to another server by now.
        if (strncmp(cache->error, "READONLY", strlen("READONLY")) == 0)
            (void)fail(cache, "READONLY: the server is a replica");
        freeReplyObject(reply);
        return status;
    }
    cache->backoff_us = 0;
    *out = reply;
    return status;
}

static enum status run(struct cache *cache, const struct argument *arguments, int count) {
    redisReply *reply = NULL;
    enum status status = exchange(cache, arguments, count, &reply);
    freeReplyObject(reply);
    return status;
}

static enum status introduce(struct cache *cache) {
    if (cache->address.password != NULL) {
        const struct argument auth[] = {TEXT("AUTH"), TEXT(cache->address.password)};
        enum status status = run(cache, auth, ARRAY_LEN(auth));
        if (status != STATUS_OK)
            return status;
    }
    if (cache->address.database == 0)
        return STATUS_OK;
    char number[16];
    (void)snprintf(number, sizeof number, "%d", cache->address.database);
    const struct argument choose[] = {TEXT("SELECT"), TEXT(number)};
    return run(cache, choose, ARRAY_LEN(choose));
}

static enum status open_connection(struct cache *cache) {
    const struct timeval timeout = {
        .tv_sec = cache->timeout_us / US_PER_S, .tv_usec = cache->timeout_us % US_PER_S};
    cache->redis = redisConnectWithTimeout(cache->address.host, cache->address.port, timeout);
    REQUIRE(cache->redis != NULL);
    if (cache->redis->err != 0 || redisSetTimeout(cache->redis, timeout) != REDIS_OK ||
        redisEnableKeepAlive(cache->redis) != REDIS_OK)
        return fail(cache, cache->redis->errstr);
    enum status status = introduce(cache);
    // An error reply: a wrong password, a server that is loading.
    if (status != STATUS_OK && cache->redis != NULL) {
        char text[sizeof cache->error];
        memcpy(text, cache->error, sizeof text);
        return fail(cache, text);
    }
    return status;
}

// An idle connection has nothing to read: what there is, is its end, or an answer that nobody asked for.
static bool is_idle(const redisContext *redis) {
    struct pollfd poll_fd = {.fd = redis->fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 0;
}

static enum status ensure_connected(struct cache *cache) {
    if (cache->redis != NULL && is_idle(cache->redis))
        return STATUS_OK;
    drop(cache);
    // The error goes on telling why there is no connection.
    if (base_monotonic_us() < cache->retry_at_us)
        return STATUS_UNAVAILABLE;
    return open_connection(cache);
}

static enum status command(
    struct cache *cache, const struct argument *arguments, int count, redisReply **out) {
    enum status status = ensure_connected(cache);
    return status == STATUS_OK ? exchange(cache, arguments, count, out) : status;
}

enum status cache_get(struct cache *cache, const char *key, struct buf *out) {
    const struct argument get[] = {TEXT("GET"), TEXT(key)};
    redisReply *reply = NULL;
    enum status status = command(cache, get, ARRAY_LEN(get), &reply);
    if (status == STATUS_OK) {
        buf_append(out, reply->str, reply->len);
        if (!buf_ok(out)) {
            (void)snprintf(
                cache->error, sizeof cache->error, "a value of %zu bytes is too large", (size_t)reply->len);
            status = STATUS_UNAVAILABLE;
        }
    }
    freeReplyObject(reply);
    return status;
}

// Where the reply tells no more than that it worked.
static enum status order(struct cache *cache, const struct argument *arguments, int count) {
    redisReply *reply = NULL;
    enum status status = command(cache, arguments, count, &reply);
    freeReplyObject(reply);
    return status;
}

enum status cache_set(struct cache *cache, const char *key, const void *value, size_t len, int64_t ttl_ms) {
    char ttl[24];
    (void)snprintf(ttl, sizeof ttl, "%" PRId64, ttl_ms);
    const struct argument set[] = {TEXT("SET"), TEXT(key), {value, len}, TEXT("PX"), TEXT(ttl)};
    return order(cache, set, ARRAY_LEN(set));
}

enum status cache_delete(struct cache *cache, const char *key) {
    const struct argument unlink[] = {TEXT("DEL"), TEXT(key)};
    return order(cache, unlink, ARRAY_LEN(unlink));
}

enum status cache_ping(struct cache *cache) {
    const struct argument ping[] = {TEXT("PING")};
    return order(cache, ping, ARRAY_LEN(ping));
}

const char *cache_error_text(const struct cache *cache) {
    return cache->error;
}
