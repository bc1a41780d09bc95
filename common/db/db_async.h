// SPDX-License-Identifier: MIT
// A bounded number of Postgres connections in pipeline mode on one loop, for the redirector's workers: a
// fixed number of connections, a bounded queue, a deadline per call; past them a call is refused at once.
// Every call that was accepted gets its callback exactly once, from the loop and never from within the call
// itself.
#pragma once

#include "common/db/db.h"
#include "common/loop/loop.h"
#include "common/metrics/metrics.h"

struct db_async;

struct db_async_options {
    struct loop *loop;
    const char *conninfo; // a secret
    const char *application;
    unsigned connections;
    unsigned queue_max;  // calls waiting or under way, over all connections
    int64_t deadline_us; // per call, from when it was accepted
    // Runs on each new connection before anything else, with the callback's rows: whatever its user must know
    // of the server that it now talks to. A failure drops the connection. NULL for none.
    const char *greeting_sql;
    enum status (*greeting)(void *arg, const struct db_rows *rows);
    void *arg;
};

// Connects in the background, again and again with backoff (100 ms to 2 s, jittered): name lookup, TLS and
// login run on a thread of their own and never hold the loop up.
struct db_async *db_async_open(const struct db_async_options *options);
// Calls that are under way get CANCELLED first. Not from within a callback. NULL is fine.
void db_async_close(struct db_async *db);

// `rows` is borrowed, NULL unless status is OK. Statuses as db_call(); reads are safe to repeat, so a lost
// connection is UNAVAILABLE here. DEADLINE_EXCEEDED comes at the deadline; a connection with two late calls,
// or with one that is late by another deadline, is closed, and the others on it get UNAVAILABLE.
typedef void db_async_done(void *arg, enum status status, const struct db_rows *rows);
// RESOURCE_EXHAUSTED where the queue is full, UNAVAILABLE where no connection is up: then `done` is never
// called.
MUST_CHECK enum status db_async_call(struct db_async *db, const char *sql, unsigned count,
    const char *const params[], db_async_done *done, void *arg);
bool db_async_is_up(const struct db_async *db);

extern const struct metric_family db_async_metrics[];
extern const size_t db_async_metrics_count;
