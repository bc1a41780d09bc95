// SPDX-License-Identifier: MIT
// The calls (cache_async.c) and the connection below them (cache_async_conn.c). For this folder alone.
#pragma once

#include "common/cache/cache_async.h"
#include "common/cache/cache_internal.h"
#include "common/loop/loop_offload.h"

#define CACHE_ASYNC_METRICS(M)                                                                               \
    M(calls, COUNTER, "dunlin_cache_calls_total", "calls", "status",                                         \
        "Commands on pipelined Redis connections, by how they ended; NOT_FOUND is a miss.",                  \
        "UNAVAILABLE: is Redis up and fast? RESOURCE_EXHAUSTED: it answers more slowly than it is asked.")   \
    M(in_flight, GAUGE, "dunlin_cache_in_flight", "calls", NULL,                                             \
        "Commands that Redis has not answered yet.", "Near the bound: commands are being refused.")          \
    M(connects, COUNTER, "dunlin_cache_connects_total", "attempts", "outcome",                               \
        "Attempts to connect to Redis, by outcome (ok, failed).", "Does the log say why they fail?")         \
    M(up, GAUGE, "dunlin_cache_connections", "connections", NULL, "Connections that are up.",                \
        "Fewer than workers: Redis is away, reads go to Postgres.")                                          \
    M(wait, HISTOGRAM, "dunlin_cache_wait_seconds", "seconds", NULL,                                         \
        "From accepting a command to its answer.", "Rising: is Redis slow, or the network?")

enum {
#define CACHE_ASYNC_FAMILY(member, ...) CACHE_ASYNC_##member,
    CACHE_ASYNC_METRICS(CACHE_ASYNC_FAMILY)
#undef CACHE_ASYNC_FAMILY
};

struct redisAsyncContext;

// One command under way; Redis answers in the order of sending.
struct cache_pending {
    struct cache_pending *next;
    struct cache_async *cache;
    cache_async_done *done; // NULL for what nobody waits for
    void *arg;
    int64_t sent_us;
    int64_t deadline_us;
    bool greeting; // AUTH, SELECT and PING, ours
    bool last;     // of these
};

enum cache_state { CACHE_DOWN, CACHE_DIALING, CACHE_GREETING, CACHE_UP };

struct cache_async {
    struct loop *loop;
    struct cache_address address;
    unsigned commands_max;
    int64_t timeout_us;
    enum cache_state state;
    struct redisAsyncContext *redis; // in GREETING and UP
    struct loop_watch *watch;        // over its socket
    unsigned events;
    struct loop_timer *timer; // DOWN: the next attempt; GREETING and UP: the deadline of the first in line
    struct loop_offload *dial;
    struct cache_pending *head;
    struct cache_pending **tail;
    unsigned under_way; // greetings left out
    int64_t backoff_us;
    bool closing;
    struct metric *calls[STATUS_COUNT];
    struct metric *in_flight, *connects_ok, *connects_failed, *up, *wait;
};

void cache_conn_init(struct cache_async *cache);
void cache_conn_done(struct cache_async *cache);
// Queues one command; libhiredis sends it from the loop. False where the connection is going down. Ownership
// of `pending` passes on true.
bool cache_conn_send(struct cache_async *cache, struct cache_pending *pending, int count, const char *bytes[],
    const size_t lens[]);
