// SPDX-License-Identifier: MIT
#include "services/redirector/lookup.h"
#include "common/log/log.h"
#include "common/target/target.h"
#include "services/redirector/redirector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDIS_COMMANDS_MAX 10000
#define JUMPS_UNKNOWN INT64_C(-1)

enum result { RESULT_HIT, RESULT_ABSENT, RESULT_FAILED, RESULT_COUNT };

struct lookup {
    struct cache_async *redis; // NULL: there is none
    struct db_async *postgres;
    int64_t jumps; // of the database that we are connected to: part of each key in Redis
    struct metric *counts[2][RESULT_COUNT];
};

struct find {
    struct lookup *lookup;
    lookup_done *done;
    void *arg;
    char code[CODES_TEXT];
};

static void finish(
    struct find *find, enum status status, const struct cached_link *link, enum lookup_source source) {
    enum result result = status == STATUS_OK          ? RESULT_HIT
                         : status == STATUS_NOT_FOUND ? RESULT_ABSENT
                                                      : RESULT_FAILED;
    metric_inc(find->lookup->counts[source][result]);
    find->done(find->arg, status, link, source);
    free(find);
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

static void fill(struct lookup *lookup, const struct cached_link *link) {
    if (lookup->redis == NULL || lookup->jumps == JUMPS_UNKNOWN)
        return;
    char key[LINKCACHE_KEY];
    linkcache_key(key, lookup->jumps, link->code);
    struct buf value;
    buf_init(&value, 2 * TARGET_MAX);
    linkcache_pack(link, &value);
    if (buf_ok(&value))
        cache_async_fill(lookup->redis, key, value.data, value.len, linkcache_ttl_ms(link, base_wall_us()));
    buf_done(&value);
}

static void postgres_done(void *arg, enum status status, const struct db_rows *rows) {
    struct find *find = arg;
    if (status != STATUS_OK) {
        finish(find, STATUS_UNAVAILABLE, NULL, LOOKUP_POSTGRES);
        return;
    }
    if (db_rows_count(rows) == 0) {
        finish(find, STATUS_NOT_FOUND, NULL, LOOKUP_POSTGRES);
        return;
    }
    struct cached_link link;
    if (read_row(rows, &link)) {
        fill(find->lookup, &link);
        finish(find, STATUS_OK, &link, LOOKUP_POSTGRES);
    } else {
        log_error("a link in Postgres has no target that could be sent", log_text("code", find->code));
        finish(find, STATUS_DATA_LOSS, NULL, LOOKUP_POSTGRES);
    }
    cached_link_done(&link);
}

static void ask_postgres(struct find *find) {
    const char *params[] = {find->code};
    enum status status = db_async_call(find->lookup->postgres,
        "SELECT code, version, state, expires_at_us, redirect_status, max_age, permanent, strict, "
        "forward_query, url,"
        " now_us FROM dunlin.link_find($1)",
        1, params, postgres_done, find);
    if (status != STATUS_OK)
        finish(find, STATUS_UNAVAILABLE, NULL, LOOKUP_POSTGRES);
}

// ---- Redis

static void redis_done(void *arg, enum status status, const char *value, size_t len) {
    struct find *find = arg;
    struct cached_link link;
    if (status == STATUS_OK && linkcache_unpack(find->code, value, len, &link)) {
        // Of a strict link Redis holds the bare fact.
        bool strict = link.strict;
        if (!strict)
            finish(find, STATUS_OK, &link, LOOKUP_REDIS);
        cached_link_done(&link);
        if (!strict)
            return;
    }
    // Absent, away, or not what we wrote: the authority knows.
    metric_inc(
        find->lookup->counts[LOOKUP_REDIS][status == STATUS_NOT_FOUND ? RESULT_ABSENT : RESULT_FAILED]);
    ask_postgres(find);
}

static bool ask_redis(struct find *find) {
    struct lookup *lookup = find->lookup;
    if (lookup->redis == NULL || lookup->jumps == JUMPS_UNKNOWN)
        return false;
    char key[LINKCACHE_KEY];
    linkcache_key(key, lookup->jumps, find->code);
    return cache_async_get(lookup->redis, key, redis_done, find) == STATUS_OK;
}

void lookup_find(struct lookup *lookup, const char *code, lookup_done *done, void *arg) {
    struct find *find = base_calloc(1, sizeof *find);
    *find = (struct find){.lookup = lookup, .done = done, .arg = arg};
    (void)snprintf(find->code, sizeof find->code, "%s", code);
    if (!ask_redis(find))
        ask_postgres(find);
}

// ---- life

static enum status greeted(void *arg, const struct db_rows *rows) {
    struct lookup *lookup = arg;
    if (db_rows_count(rows) != 1)
        return STATUS_INTERNAL;
    // An old primary that is still reachable never takes us back to its keys.
    if (db_int64(rows, 0, 0) > lookup->jumps)
        lookup->jumps = db_int64(rows, 0, 0);
    return STATUS_OK;
}

enum status lookup_open(const struct lookup_options *options, struct lookup **out, struct problem *why) {
    static const char *const sources[] = {"redis", "postgres"};
    static const char *const results[] = {"hit", "absent", "failed"};
    struct lookup *lookup = base_calloc(1, sizeof *lookup);
    lookup->jumps = JUMPS_UNKNOWN;
    for (size_t source = 0; source < ARRAY_LEN(sources); source++)
        for (size_t result = 0; result < RESULT_COUNT; result++)
            lookup->counts[source][result] =
                metric_add(&redirector_metrics[REDIRECTOR_METRIC_LOOKUPS], sources[source], results[result]);
    if (options->redis_url[0] != '\0') {
        enum status status = cache_async_open(options->loop, options->redis_url, REDIS_COMMANDS_MAX,
            options->redis_deadline_us, &lookup->redis, why);
        if (status != STATUS_OK) {
            free(lookup);
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
        .arg = lookup,
    };
    lookup->postgres = db_async_open(&postgres);
    *out = lookup;
    return STATUS_OK;
}

void lookup_close(struct lookup *lookup) {
    if (lookup == NULL)
        return;
    // Redis first: what waits there goes on to Postgres and ends there.
    cache_async_close(lookup->redis);
    lookup->redis = NULL;
    db_async_close(lookup->postgres);
    free(lookup);
}

bool lookup_is_up(const struct lookup *lookup) {
    // Without a first word from Postgres the keys in Redis are not known either.
    return lookup->jumps != JUMPS_UNKNOWN &&
           (db_async_is_up(lookup->postgres) || (lookup->redis != NULL && cache_async_is_up(lookup->redis)));
}
