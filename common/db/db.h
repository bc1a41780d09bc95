// SPDX-License-Identifier: MIT
// One Postgres connection for a thread that may block. Services call functions of schema dunlin and send no
// table SQL. Connects when first needed and again when lost, with backoff; every wait has a deadline.
// db_async.h is the same for an event loop. The only includers of libpq are in this folder.
#pragma once

#include "common/base/base.h"
#include "common/status/status.h"
#include <stdbool.h>

struct db;
struct db_rows;

struct db_options {
    // libpq URI or key-value text; a secret. Of several hosts the next one is tried when one refuses or does
    // not acknowledge a packet for 3 s; one that takes the connection and then is silent uses up the
    // deadline.
    const char *conninfo;
    const char *application; // shown in pg_stat_activity: "dunlin-writer"
    // Runs on each new connection before the first call on it; may call db_call(). A failure drops the
    // connection.
    enum status (*on_connect)(struct db *db, void *arg);
    void *arg;
};

// No I/O. create/free; free takes NULL.
struct db *db_create(const struct db_options *options);
void db_free(struct db *db);

// Calls one statement, prepared on first use (`sql` is a constant: its address is its name), with text
// parameters (NULL is SQL NULL), in a transaction of its own. `out` may be NULL where no rows are wanted.
// Returns
//   OK                 and the rows; free them with db_rows_free()
//   UNAVAILABLE        no connection, a read-only server, too many clients, shutdown; nothing was done…
//   UNKNOWN            …unless it is this: the connection was lost or timed out after the statement was sent
//   DEADLINE_EXCEEDED  statement_timeout or lock_timeout fired, or time was up before sending: no change
//   ABORTED            serialisation failure or deadlock: nothing was done, may be run again
//   INTERNAL           anything else; db_sqlstate() tells SQLSTATEs apart (class DN is Dunlin's own, see
//                      deploy/sql)
// deadline_us: CLOCK_MONOTONIC, 0 for 5 s from now. A connection that timed out is closed, never reused; the
// server may go on with the statement. A connection that is found lost before the statement was sent is made
// anew within the call.
MUST_CHECK enum status db_call(struct db *db, int64_t deadline_us, const char *sql, unsigned count,
    const char *const params[], struct db_rows **out);
// Several statements without parameters or results (no COPY), for migrations and administration. They are one
// transaction unless they say BEGIN and COMMIT; one that a run leaves open ends with its connection.
MUST_CHECK enum status db_run(struct db *db, int64_t deadline_us, const char *sql);

// About the last failure: five characters ("" where the server said none), a line for the log (no parameter
// values), and the error's DETAIL ("" for none), which Dunlin's own functions use for a stable word.
const char *db_sqlstate(const struct db *db);
const char *db_error_text(const struct db *db);
const char *db_error_detail(const struct db *db);
bool db_is_connected(const struct db *db);

// Rows are read by position; one that isn't there is a bug and aborts. Texts are borrowed from the rows.
void db_rows_free(struct db_rows *rows); // NULL is fine
size_t db_rows_count(const struct db_rows *rows);
bool db_is_null(const struct db_rows *rows, size_t row, unsigned column);
const char *db_text(const struct db_rows *rows, size_t row, unsigned column); // "" for NULL
size_t db_text_len(const struct db_rows *rows, size_t row, unsigned column);
int64_t db_int64(const struct db_rows *rows, size_t row, unsigned column); // 0 for NULL
bool db_bool(const struct db_rows *rows, size_t row, unsigned column);

// Parameters: a number as text in caller's memory; an array literal built in a buf.
#define DB_INT64_TEXT 24
const char *db_param_int64(char out[DB_INT64_TEXT], int64_t number);
struct buf;
void db_array_begin(struct buf *out);
// Quoted and escaped; a NUL, which SQL has not, fails the buf.
void db_array_text(struct buf *out, const char *text, size_t len);
void db_array_int64(struct buf *out, int64_t number);
void db_array_end(struct buf *out);
