// SPDX-License-Identifier: MIT
#include "common/db/db_async_internal.h"

#include <stdlib.h>

const struct metric_family db_async_metrics[] = {DB_ASYNC_METRICS(METRIC_ROW)};
const size_t db_async_metrics_count = ARRAY_LEN(db_async_metrics);

static void add_metrics(struct db_async *db) {
    static const enum status ends[] = {STATUS_OK, STATUS_CANCELLED, STATUS_DEADLINE_EXCEEDED,
        STATUS_RESOURCE_EXHAUSTED, STATUS_ABORTED, STATUS_INTERNAL, STATUS_UNAVAILABLE};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        db->calls[ends[i]] = metric_add(&db_async_metrics[DB_ASYNC_calls], status_name(ends[i]));
    db->in_flight = metric_add(&db_async_metrics[DB_ASYNC_in_flight]);
    db->connects_ok = metric_add(&db_async_metrics[DB_ASYNC_connects], "ok");
    db->connects_failed = metric_add(&db_async_metrics[DB_ASYNC_connects], "failed");
    db->up = metric_add(&db_async_metrics[DB_ASYNC_up]);
    db->wait = metric_add(&db_async_metrics[DB_ASYNC_wait]);
}

void db_async_count(struct db_async *db, enum status status) {
    metric_inc(db->calls[status]);
}

struct db_async *db_async_open(const struct db_async_options *options) {
    REQUIRE(options->connections > 0 && options->queue_max > 0 && options->deadline_us > 0);
    struct db_async *db = base_calloc(1, sizeof *db + options->connections * sizeof db->conns[0]);
    db->loop = options->loop;
    db->conninfo = base_strdup(options->conninfo);
    db->application = base_strdup(options->application);
    db->queue_max = options->queue_max;
    db->deadline_us = options->deadline_us;
    if (options->greeting_sql != NULL)
        db->greeting_sql = base_strdup(options->greeting_sql);
    db->greeting = options->greeting;
    db->arg = options->arg;
    add_metrics(db);
    db->conn_count = options->connections;
    for (unsigned i = 0; i < db->conn_count; i++) {
        db_conn_init(&db->conns[i], db);
        db_conn_start(&db->conns[i]);
    }
    return db;
}

void db_async_close(struct db_async *db) {
    if (db == NULL)
        return;
    db->closing = true;
    for (unsigned i = 0; i < db->conn_count; i++)
        db_conn_done(&db->conns[i], STATUS_CANCELLED);
    free(db->conninfo);
    free(db->application);
    free(db->greeting_sql);
    free(db);
}

static bool is_usable(const struct db_conn *conn) {
    return conn->state == DB_CONN_UP && !conn->broken;
}

// The usable connection with the fewest calls under way; one that holds a late call only if there is no
// other.
static struct db_conn *pick(struct db_async *db) {
    struct db_conn *best = NULL;
    for (unsigned i = 0; i < db->conn_count; i++) {
        struct db_conn *conn = &db->conns[i];
        if (!is_usable(conn))
            continue;
        bool better = best == NULL || conn->late < best->late ||
                      (conn->late == best->late && conn->under_way < best->under_way);
        if (better)
            best = conn;
    }
    return best;
}

static enum status accept_call(
    struct db_async *db, struct db_pending call, unsigned count, const char *const params[]) {
    if (db->closing)
        return STATUS_UNAVAILABLE;
    struct db_conn *conn = pick(db);
    if (conn == NULL)
        return STATUS_UNAVAILABLE;
    if (db->under_way >= db->queue_max)
        return STATUS_RESOURCE_EXHAUSTED;
    struct db_pending *pending = base_calloc(1, sizeof *pending);
    *pending = call;
    if (!db_conn_send(conn, pending, count, params)) {
        free(pending);
        return STATUS_UNAVAILABLE;
    }
    db->under_way++;
    metric_move(db->in_flight, 1);
    return STATUS_OK;
}

enum status db_async_call(struct db_async *db, const char *sql, unsigned count, const char *const params[],
    db_async_done *done, void *arg) {
    int64_t now = base_monotonic_us();
    const struct db_pending call = {
        .sql = sql, .done = done, .arg = arg, .sent_us = now, .deadline_us = now + db->deadline_us};
    enum status status = accept_call(db, call, count, params);
    if (status != STATUS_OK)
        db_async_count(db, status);
    return status;
}

bool db_async_is_up(const struct db_async *db) {
    for (unsigned i = 0; i < db->conn_count; i++) {
        if (is_usable(&db->conns[i]))
            return true;
    }
    return false;
}
