// SPDX-License-Identifier: MIT
#include "services/redirector/fetch.h"
#include "common/log/log.h"
#include "common/target/target.h"
#include "services/redirector/redirector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDIS_COMMANDS_MAX 10000
#define JUMPS_UNKNOWN INT64_C(-1)

enum result { RESULT_HIT, RESULT_ABSENT, RESULT_FAILED, RESULT_COUNT };

struct fetch {
    struct cache_async *redis; // NULL: there is none
    struct db_async *postgres;
    int64_t jumps; // of the database that we are connected to: part of each key in Redis
    struct metric *counts[2][RESULT_COUNT];
};

struct read {
    struct fetch *fetch;
    fetch_done *done;
    void *arg;
    char code[CODES_TEXT];
};

static void finish(
    struct read *read, enum status status, const struct cached_link *link, enum link_source source) {
    enum result result = status == STATUS_OK          ? RESULT_HIT
                         : status == STATUS_NOT_FOUND ? RESULT_ABSENT
                                                      : RESULT_FAILED;
    metric_inc(read->fetch->counts[source][result]);
    read->done(read->arg, status, link, source);
    free(read);
}

// ---- Postgres

// The columns of dunlin.link_find(). False for a row that no rule of today would have let in.
static bool read_row(const struct db_rows *rows, struct cached_link *out) {
    *out = (struct cached_link){
        .version = (uint64_t)db_int64(rows, 0, 1),
        .state = (enum link_state)db_int64(rows, 0, 2),
        .has_expiry = !db_is_null(rows, 0, 3),
        .expires_at = db_int64(rows, 0, 3),
        .redirect_status = (int)db_int64(rows, 0, 4),
        .max_age = (uint32_t)db_int64(rows, 0, 5),
        .permanent = db_bool(rows, 0, 6),
        .strict = db_bool(rows, 0, 7),
        .forward_query = db_bool(rows, 0, 8),
        .verified_at = db_int64(rows, 0, 10),
    };
    (void)snprintf(out->code, sizeof out->code, "%s", db_text(rows, 0, 0));
    if (db_is_null(rows, 0, 9))
        return out->state != LINK_ACTIVE;
    out->url_len = db_text_len(rows, 0, 9);
    out->url = base_strndup(db_text(rows, 0, 9), out->url_len);
    return target_is_sendable(out->url, out->url_len);
}

static void fill(struct fetch *fetch, const struct cached_link *link) {
    if (fetch->redis == NULL || fetch->jumps == JUMPS_UNKNOWN)
        return;
    char key[LINKCACHE_KEY];
    linkcache_key(key, fetch->jumps, link->code);
    struct buf value;
    buf_init(&value, 2 * TARGET_MAX);
    linkcache_pack(link, &value);
    if (buf_ok(&value))
        cache_async_fill(fetch->redis, key, value.data, value.len, linkcache_ttl_ms(link, base_wall_us()));
    buf_done(&value);
}

static void postgres_done(void *arg, enum status status, const struct db_rows *rows) {
    struct read *read = arg;
    if (status != STATUS_OK) {
        finish(read, STATUS_UNAVAILABLE, NULL, LINK_FROM_POSTGRES);
        return;
    }
    if (db_rows_count(rows) == 0) {
        finish(read, STATUS_NOT_FOUND, NULL, LINK_FROM_POSTGRES);
        return;
    }
    struct cached_link link;
    if (read_row(rows, &link)) {
        fill(read->fetch, &link);
        finish(read, STATUS_OK, &link, LINK_FROM_POSTGRES);
    } else {
        log_error("a link in Postgres has no target that could be sent", log_text("code", read->code));
        finish(read, STATUS_DATA_LOSS, NULL, LINK_FROM_POSTGRES);
    }
    cached_link_done(&link);
}

static void ask_postgres(struct read *read) {
    const char *params[] = {read->code};
    enum status status = db_async_call(read->fetch->postgres,
        "SELECT code, version, state, expires_at_us, redirect_status, max_age, permanent, strict, "
        "forward_query, url,"
        " now_us FROM dunlin.link_find($1)",
        1, params, postgres_done, read);
    if (status != STATUS_OK)
        finish(read, STATUS_UNAVAILABLE, NULL, LINK_FROM_POSTGRES);
}

// ---- Redis

static void redis_done(void *arg, enum status status, const char *value, size_t len) {
    struct read *read = arg;
    struct cached_link link;
    if (status == STATUS_OK && linkcache_unpack(read->code, value, len, &link)) {
        // Of a strict link Redis holds the bare fact.
        bool strict = link.strict;
        if (!strict)
            finish(read, STATUS_OK, &link, LINK_FROM_REDIS);
        cached_link_done(&link);
        if (!strict)
            return;
    }
    // Absent, away, or not what we wrote: the authority knows.
    metric_inc(
        read->fetch->counts[LINK_FROM_REDIS][status == STATUS_NOT_FOUND ? RESULT_ABSENT : RESULT_FAILED]);
    ask_postgres(read);
}

static bool ask_redis(struct read *read) {
    struct fetch *fetch = read->fetch;
    if (fetch->redis == NULL || fetch->jumps == JUMPS_UNKNOWN)
        return false;
    char key[LINKCACHE_KEY];
    linkcache_key(key, fetch->jumps, read->code);
    return cache_async_get(fetch->redis, key, redis_done, read) == STATUS_OK;
}

void fetch_find(struct fetch *fetch, const char *code, fetch_done *done, void *arg) {
    struct read *read = base_calloc(1, sizeof *read);
    *read = (struct read){.fetch = fetch, .done = done, .arg = arg};
    (void)snprintf(read->code, sizeof read->code, "%s", code);
    if (!ask_redis(read))
        ask_postgres(read);
}

// ---- life

static enum status greeted(void *arg, const struct db_rows *rows) {
    struct fetch *fetch = arg;
    if (db_rows_count(rows) != 1)
        return STATUS_INTERNAL;
    // An old primary that is still reachable never takes us back to its keys.
    if (db_int64(rows, 0, 0) > fetch->jumps)
        fetch->jumps = db_int64(rows, 0, 0);
    return STATUS_OK;
}

enum status fetch_open(const struct fetch_options *options, struct fetch **out, struct problem *why) {
    static const char *const sources[] = {"redis", "postgres"};
    static const char *const results[] = {"hit", "absent", "failed"};
    struct fetch *fetch = base_calloc(1, sizeof *fetch);
    fetch->jumps = JUMPS_UNKNOWN;
    for (size_t source = 0; source < ARRAY_LEN(sources); source++)
        for (size_t result = 0; result < RESULT_COUNT; result++)
            fetch->counts[source][result] =
                metric_add(&redirector_metrics[REDIRECTOR_METRIC_LOOKUPS], sources[source], results[result]);
    if (options->redis_url[0] != '\0') {
        enum status status = cache_async_open(options->loop, options->redis_url, REDIS_COMMANDS_MAX,
            options->redis_deadline_us, &fetch->redis, why);
        if (status != STATUS_OK) {
            free(fetch);
            return status;
        }
    }
    const struct db_async_options postgres = {
        .loop = options->loop,
        .conninfo = options->pg_url,
        .application = "dunlin-redirector",
        .connections = options->pg_connections,
        .queue_max = options->pg_queue,
        .deadline_us = options->pg_deadline_us,
        .greeting_sql = "SELECT dunlin.database_jumps()",
        .greeting = greeted,
        .arg = fetch,
    };
    fetch->postgres = db_async_open(&postgres);
    *out = fetch;
    return STATUS_OK;
}

void fetch_close(struct fetch *fetch) {
    if (fetch == NULL)
        return;
    // Redis first: what waits there goes on to Postgres and ends there.
    cache_async_close(fetch->redis);
    fetch->redis = NULL;
    db_async_close(fetch->postgres);
    free(fetch);
}

void fetch_raise_jumps(struct fetch *fetch, int64_t jumps) {
    if (fetch->jumps != JUMPS_UNKNOWN && jumps > fetch->jumps)
        fetch->jumps = jumps;
}

bool fetch_is_up(const struct fetch *fetch) {
    // Without a first word from Postgres the keys in Redis are not known either.
    return fetch->jumps != JUMPS_UNKNOWN &&
           (db_async_is_up(fetch->postgres) || (fetch->redis != NULL && cache_async_is_up(fetch->redis)));
}
