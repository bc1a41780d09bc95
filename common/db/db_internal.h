// SPDX-License-Identifier: MIT
// What the blocking connection and the pipelined ones share. For this folder alone.
#pragma once

#include "common/db/db.h"

struct pg_conn;   // libpq's PGconn
struct pg_result; // libpq's PGresult

struct db_rows {
    struct pg_result *result;
    size_t count;
};

// The last failure, in the words of db.h.
struct db_fault {
    char sqlstate[6];
    char text[256];
    char detail[256];
};
void db_fault_set(struct db_fault *fault, const char *text);
void db_fault_from_conn(struct db_fault *fault, const struct pg_conn *conn);
void db_fault_from_result(struct db_fault *fault, const struct pg_result *result);
// What an SQLSTATE means to a caller.
enum status db_status_of(const char *sqlstate);
// The server no longer has the prepared statement, or its plan no longer fits: nothing was done, prepare it
// again.
bool db_statement_is_stale(const struct pg_result *error);

// The statements that one connection has prepared, by the address of their text.
#define DB_STATEMENTS_MAX 128
#define DB_STATEMENT_NAME 16
struct db_statements {
    const char *sql[DB_STATEMENTS_MAX];
    unsigned serial[DB_STATEMENTS_MAX]; // 0: to be prepared (again)
    unsigned count;
    unsigned last_serial;
};
// True where it is still to be prepared, under the name that is given back.
bool db_statement_name(struct db_statements *statements, const char *sql, char name[DB_STATEMENT_NAME]);
void db_statement_forget(struct db_statements *statements, const char *sql);

// Connects, waiting at most until the deadline (but for name lookup, whose time is the resolver's). NULL: see
// the fault.
struct pg_conn *db_connect(
    const char *conninfo, const char *application, int64_t deadline_us, struct db_fault *fault);
// Waits for POLLIN or POLLOUT on the connection's socket: poll()'s revents, 0 at the deadline.
int db_wait(const struct pg_conn *conn, short events, int64_t deadline_us);
// The pause before the next attempt: from 100 ms, doubled to 2 s, the last half of it random, so that a fleet
// does not come back as one. `backoff_us` is the state; 0 starts over.
int64_t db_backoff_us(int64_t *backoff_us);
