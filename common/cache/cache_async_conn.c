// SPDX-License-Identifier: MIT
// hiredis' asynchronous context on our loop. It frees itself: on a lost connection, a failed connect or
// redisAsyncFree() it first runs every pending reply callback with no reply, then the cleanup hook, after
// which the pointer is dead. So the cleanup hook is the one place where the connection ends.
#include "common/cache/cache_async_internal.h"
#include "common/log/log.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GREETING_US US_PER_S

struct dial_job {
    struct cache_async *cache; // for the loop alone: it may be gone once the dial was cancelled
    char *host;
    int port;
    redisAsyncContext *redis;
};

static void dial(struct cache_async *cache);

static void retry_later(struct cache_async *cache) {
    cache->state = CACHE_DOWN;
    if (!cache->closing)
        loop_timer_start(cache->timer, cache_backoff_us(&cache->backoff_us) / US_PER_MS);
}

// No more commands from here on; those under way end when hiredis gives them back.
static void leave_service(struct cache_async *cache, const char *why) {
    static struct log_limit limit;
    int64_t suppressed = 0;
    bool was_up = cache->state == CACHE_UP;
    if (was_up)
        metric_move(cache->up, -1);
    else if (cache->state != CACHE_DOWN && !cache->closing)
        metric_inc(cache->connects_failed);
    if (cache->state != CACHE_DOWN && !cache->closing && log_allowed(&limit, &suppressed))
        log_warn(was_up ? "closed a Redis connection" : "can't connect to Redis", log_text("why", why),
            log_int("suppressed", suppressed));
    retry_later(cache);
}

static void update_watch(struct cache_async *cache, unsigned events) {
    cache->events = events;
    loop_watch_set(cache->watch, events);
}

static void add_read(void *arg) {
    struct cache_async *cache = arg;
    update_watch(cache, cache->events | LOOP_READ);
}

static void del_read(void *arg) {
    struct cache_async *cache = arg;
    update_watch(cache, cache->events & ~(unsigned)LOOP_READ);
}

static void add_write(void *arg) {
    struct cache_async *cache = arg;
    update_watch(cache, cache->events | LOOP_WRITE);
}

static void del_write(void *arg) {
    struct cache_async *cache = arg;
    update_watch(cache, cache->events & ~(unsigned)LOOP_WRITE);
}

static void cleanup(void *arg) {
    struct cache_async *cache = arg;
    loop_watch_free(cache->watch);
    cache->watch = NULL;
    cache->redis = NULL;
    if (cache->state != CACHE_DOWN)
        leave_service(cache, "the connection ended");
}

static void on_ready(void *arg, unsigned events) {
    struct cache_async *cache = arg;
    redisAsyncContext *redis = cache->redis;
    if ((events & LOOP_READ) != 0)
        redisAsyncHandleRead(redis);
    if ((events & LOOP_WRITE) != 0 && cache->redis == redis)
        redisAsyncHandleWrite(redis);
    // The loop pauses a watch that it has reported an error on.
    if (cache->redis == redis)
        loop_watch_set(cache->watch, cache->events);
}

static void arm(struct cache_async *cache) {
    int64_t left_us = cache->head->deadline_us - base_monotonic_us();
    loop_timer_start(cache->timer, left_us <= 0 ? 0 : (left_us + US_PER_MS - 1) / US_PER_MS);
}

static void on_timer(void *arg) {
    struct cache_async *cache = arg;
    if (cache->state == CACHE_DOWN) {
        dial(cache);
        return;
    }
    if (cache->head == NULL)
        return;
    if (base_monotonic_us() < cache->head->deadline_us) {
        arm(cache);
        return;
    }
    leave_service(cache, "no answer within the deadline");
    redisAsyncFree(cache->redis);
}

static void come_up(struct cache_async *cache) {
    cache->state = CACHE_UP;
    cache->backoff_us = 0;
    metric_inc(cache->connects_ok);
    metric_move(cache->up, 1);
    log_debug("the Redis connection is up");
}

// Within a reply callback redisAsyncFree() takes effect after it.
static void on_greeting(struct cache_async *cache, bool last, const redisReply *reply) {
    if (cache->state != CACHE_GREETING)
        return;
    if (reply != NULL && cache_status_of(reply) == STATUS_OK) {
        if (last)
            come_up(cache);
        return;
    }
    if (reply == NULL)
        return;
    leave_service(cache, reply->type == REDIS_REPLY_ERROR ? reply->str : "an unexpected greeting");
    redisAsyncFree(cache->redis);
}

static void tell(const struct cache_pending *pending, const redisReply *reply) {
    struct cache_async *cache = pending->cache;
    enum status status = reply == NULL ? STATUS_UNAVAILABLE : cache_status_of(reply);
    // A fill that found the key taken did its work.
    if (pending->done == NULL && status == STATUS_NOT_FOUND)
        status = STATUS_OK;
    cache->under_way--;
    metric_move(cache->in_flight, -1);
    metric_inc(cache->calls[status]);
    metric_observe_us(cache->wait, base_monotonic_us() - pending->sent_us);
    if (pending->done == NULL)
        return;
    bool has_value = status == STATUS_OK && reply->type == REDIS_REPLY_STRING;
    pending->done(pending->arg, status, has_value ? reply->str : NULL, has_value ? (size_t)reply->len : 0);
}

// A primary that became a replica: the name may lead to another server by now.
static bool is_demoted(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "READONLY", strlen("READONLY")) == 0;
}

static void on_reply(redisAsyncContext *redis, void *answer, void *arg) {
    struct cache_pending *pending = arg;
    struct cache_async *cache = pending->cache;
    REQUIRE(cache->head == pending);
    // A connection that ends on its own says so here first: its callers must not come back to it.
    if (answer == NULL && cache->state != CACHE_DOWN)
        leave_service(cache, redis->errstr != NULL && redis->errstr[0] != '\0' ? redis->errstr : "it ended");
    cache->head = pending->next;
    if (cache->head == NULL)
        cache->tail = &cache->head;
    if (pending->greeting)
        on_greeting(cache, pending->last, answer);
    else
        tell(pending, answer);
    free(pending);
    if (answer != NULL && is_demoted(answer) && cache->state != CACHE_DOWN) {
        leave_service(cache, "READONLY: the server is a replica");
        redisAsyncFree(redis);
    }
}

bool cache_conn_send(struct cache_async *cache, struct cache_pending *pending, int count, const char *bytes[],
    const size_t lens[]) {
    if (redisAsyncCommandArgv(cache->redis, on_reply, pending, count, bytes, lens) != REDIS_OK)
        return false;
    *cache->tail = pending;
    cache->tail = &pending->next;
    // An earlier command's deadline is set already, and is no later than this one's.
    if (cache->head == pending)
        arm(cache);
    return true;
}

static bool greet_with(struct cache_async *cache, bool last, const char *word, const char *operand) {
    int64_t now = base_monotonic_us();
    struct cache_pending *pending = base_calloc(1, sizeof *pending);
    *pending = (struct cache_pending){
        .cache = cache, .sent_us = now, .deadline_us = now + GREETING_US, .greeting = true, .last = last};
    const char *bytes[] = {word, operand};
    const size_t lens[] = {strlen(word), operand == NULL ? 0 : strlen(operand)};
    bool sent = cache_conn_send(cache, pending, operand == NULL ? 1 : 2, bytes, lens);
    if (!sent)
        free(pending);
    return sent;
}

static bool greet(struct cache_async *cache) {
    const struct cache_address *address = &cache->address;
    if (address->password != NULL && !greet_with(cache, false, "AUTH", address->password))
        return false;
    char number[16];
    (void)snprintf(number, sizeof number, "%d", address->database);
    if (address->database != 0 && !greet_with(cache, false, "SELECT", number))
        return false;
    return greet_with(cache, true, "PING", NULL);
}

static void on_connect(const redisAsyncContext *redis, int status) {
    struct cache_async *cache = redis->ev.data;
    if (status != REDIS_OK && cache->state != CACHE_DOWN)
        leave_service(cache, redis->errstr);
}

static void attach(struct cache_async *cache, redisAsyncContext *redis) {
    cache->state = CACHE_GREETING;
    cache->redis = redis;
    cache->events = 0;
    cache->watch = loop_watch_create(cache->loop, redis->c.fd, on_ready, cache);
    redis->ev.data = cache;
    redis->ev.addRead = add_read;
    redis->ev.delRead = del_read;
    redis->ev.addWrite = add_write;
    redis->ev.delWrite = del_write;
    redis->ev.cleanup = cleanup;
    // Starts the wait for the connection too, so the hooks come first.
    bool sound = redisAsyncSetConnectCallback(redis, on_connect) == REDIS_OK &&
                 redisEnableKeepAlive(&redis->c) == REDIS_OK && greet(cache);
    if (sound)
        return;
    leave_service(cache, "the connection could not be set up");
    redisAsyncFree(redis);
}

static void job_free(void *arg) {
    struct dial_job *job = arg;
    if (job->redis != NULL)
        redisAsyncFree(job->redis);
    free(job->host);
    free(job);
}

// On a thread of its own, for name lookup blocks; the connecting that it starts doesn't.
static void dial_work(void *arg) {
    struct dial_job *job = arg;
    job->redis = redisAsyncConnect(job->host, job->port);
}

static void dialed(void *arg) {
    struct dial_job *job = arg;
    struct cache_async *cache = job->cache;
    cache->dial = NULL;
    if (job->redis != NULL && job->redis->err == 0) {
        redisAsyncContext *redis = job->redis;
        job->redis = NULL;
        attach(cache, redis);
    } else {
        leave_service(cache, job->redis == NULL ? "out of memory" : job->redis->errstr);
    }
    job_free(job);
}

static void dial(struct cache_async *cache) {
    struct dial_job *job = base_calloc(1, sizeof *job);
    job->cache = cache;
    job->host = base_strdup(cache->address.host);
    job->port = cache->address.port;
    const struct loop_offload_job offload = {.work = dial_work, .done = dialed, .drop = job_free, .job = job};
    cache->state = CACHE_DIALING;
    cache->dial = loop_offload_start(cache->loop, &offload);
    if (cache->dial != NULL)
        return;
    job_free(job);
    leave_service(cache, "no thread for it");
}

void cache_conn_init(struct cache_async *cache) {
    cache->tail = &cache->head;
    cache->timer = loop_timer_create(cache->loop, on_timer, cache);
    dial(cache);
}

void cache_conn_done(struct cache_async *cache) {
    loop_offload_cancel(cache->dial);
    cache->dial = NULL;
    loop_timer_stop(cache->timer);
    if (cache->state != CACHE_DOWN)
        leave_service(cache, "closed");
    if (cache->redis != NULL)
        redisAsyncFree(cache->redis);
    loop_timer_free(cache->timer);
}
