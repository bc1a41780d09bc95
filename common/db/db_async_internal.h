// SPDX-License-Identifier: MIT
// The pool (db_async.c) and its connections (db_async_conn.c). For this folder alone.
#pragma once

#include "common/db/db_async.h"
#include "common/db/db_internal.h"
#include "common/loop/loop_offload.h"

#define DB_ASYNC_METRICS(M)                                                                                  \
    M(calls, COUNTER, "dunlin_db_async_calls_total", "calls", "status",                                      \
        "Calls on pipelined Postgres connections, by how they ended.",                                       \
        "DEADLINE_EXCEEDED: is Postgres slow or a lock held? RESOURCE_EXHAUSTED: more misses than the "      \
        "connections carry. UNAVAILABLE: is Postgres up?")                                                   \
    M(in_flight, GAUGE, "dunlin_db_async_in_flight", "calls", NULL,                                          \
        "Calls that Postgres has not answered yet.",                                                         \
        "Near the bound of the queue: calls are being refused.")                                             \
    M(connects, COUNTER, "dunlin_db_async_connects_total", "attempts", "outcome",                            \
        "Attempts to connect to Postgres, by outcome (ok, failed).", "Does the log say why they fail?")      \
    M(up, GAUGE, "dunlin_db_async_connections", "connections", NULL, "Connections that are up.",             \
        "Fewer than configured: Postgres refuses or drops some.")                                            \
    M(wait, HISTOGRAM, "dunlin_db_async_wait_seconds", "seconds", NULL,                                      \
        "From accepting a call to its answer or deadline.", "Rising: is Postgres slow or the network?")

enum {
#define DB_ASYNC_FAMILY(member, ...) DB_ASYNC_##member,
    DB_ASYNC_METRICS(DB_ASYNC_FAMILY)
#undef DB_ASYNC_FAMILY
};

// One call under way. It stays in its connection's line until the server has answered, its caller may have
// been told before.
struct db_pending {
    struct db_pending *next;
    const char *sql;
    db_async_done *done;
    void *arg;
    int64_t sent_us;
    int64_t deadline_us;
    struct pg_result *result;
    enum status status;
    bool preparing; // the statement's own preparation goes before it in the pipeline
    bool greeting;  // the connection's first call, ours
    bool told;
};

enum db_conn_state { DB_CONN_DOWN, DB_CONN_DIALING, DB_CONN_GREETING, DB_CONN_UP };

struct db_conn {
    struct db_async *owner;
    enum db_conn_state state;
    struct pg_conn *pg; // in GREETING and UP
    struct loop_watch *watch;
    struct loop_timer
        *timer; // DOWN: the next attempt; GREETING and UP: the next deadline, or at once when broken
    struct loop_offload *dial;
    bool broken; // to be closed by the next callback of ours
    struct db_statements statements;
    struct db_pending *head;
    struct db_pending **tail;
    unsigned under_way;
    unsigned late; // of these, told of their deadline
    int64_t backoff_us;
};

struct db_async {
    struct loop *loop;
    char *conninfo;
    char *application;
    unsigned queue_max;
    int64_t deadline_us;
    char *greeting_sql;
    enum status (*greeting)(void *arg, const struct db_rows *rows);
    void *arg;
    bool closing;
    unsigned under_way; // over all connections, greetings left out
    struct metric *calls[STATUS_COUNT];
    struct metric *in_flight, *connects_ok, *connects_failed, *up, *wait;
    unsigned conn_count;
    struct db_conn conns[];
};

void db_conn_init(struct db_conn *conn, struct db_async *owner);
void db_conn_start(struct db_conn *conn);
// Ends the connection; every call under way on it gets the status.
void db_conn_done(struct db_conn *conn, enum status status);
// False where the connection can't take it; then it closes soon. Ownership of `pending` passes on true.
bool db_conn_send(
    struct db_conn *conn, struct db_pending *pending, unsigned count, const char *const params[]);
// Counts how a call ended.
void db_async_count(struct db_async *db, enum status status);
