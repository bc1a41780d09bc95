// SPDX-License-Identifier: MIT
#include "common/db/db_internal.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_PRESET_US (5 * US_PER_S)

struct db {
    char *conninfo;
    char *application;
    enum status (*on_connect)(struct db *db, void *arg);
    void *arg;
    PGconn *conn; // NULL while not connected
    struct db_statements statements;
    struct db_fault fault;
    int64_t retry_at_us;
    int64_t backoff_us;
    int64_t hook_deadline_us; // bounds the calls of on_connect while it runs, 0 otherwise
};

struct statement {
    const char *sql;
    bool plain; // the simple protocol: several statements, no parameters
    unsigned count;
    const char *const *params;
};

// How the wait for a statement's results ended.
enum ending { ENDED, LOST, LATE, COPYING };

struct answer {
    PGresult *rows;  // the last result that was none
    PGresult *error; // the first one
};

struct db *db_create(const struct db_options *options) {
    struct db *db = base_calloc(1, sizeof *db);
    db->conninfo = base_strdup(options->conninfo);
    db->application = base_strdup(options->application);
    db->on_connect = options->on_connect;
    db->arg = options->arg;
    return db;
}

static void drop(struct db *db) {
    PQfinish(db->conn);
    db->conn = NULL;
}

void db_free(struct db *db) {
    if (db == NULL)
        return;
    drop(db);
    free(db->conninfo);
    free(db->application);
    free(db);
}

static void drop_and_pause(struct db *db) {
    drop(db);
    db->retry_at_us = base_monotonic_us() + db_backoff_us(&db->backoff_us);
}

static bool greet(struct db *db, int64_t deadline_us) {
    if (db->on_connect == NULL)
        return true;
    db->fault = (struct db_fault){0};
    db->hook_deadline_us = deadline_us;
    enum status status = db->on_connect(db, db->arg);
    db->hook_deadline_us = 0;
    if (status != STATUS_OK && db->fault.text[0] == '\0')
        db_fault_set(&db->fault, "the new connection was refused by its user's own check");
    return status == STATUS_OK && db->conn != NULL;
}

static enum status ensure_connected(struct db *db, int64_t deadline_us) {
    if (db->conn != NULL)
        return STATUS_OK;
    // The fault goes on telling why there is no connection.
    if (db->hook_deadline_us != 0 || base_monotonic_us() < db->retry_at_us)
        return STATUS_UNAVAILABLE;
    db->statements = (struct db_statements){0};
    db->conn = db_connect(db->conninfo, db->application, deadline_us, &db->fault);
    if (db->conn == NULL || !greet(db, deadline_us)) {
        drop_and_pause(db);
        return STATUS_UNAVAILABLE;
    }
    db->backoff_us = 0;
    return STATUS_OK;
}

// An idle connection has nothing to read but notices, and its end.
static bool is_alive(PGconn *conn) {
    while (PQstatus(conn) == CONNECTION_OK && db_wait(conn, POLLIN, 0) != 0) {
        if (PQconsumeInput(conn) == 0)
            return false;
        (void)PQisBusy(conn);
    }
    return PQstatus(conn) == CONNECTION_OK;
}

// Takes the result over. False where the server asks for a COPY, which would never end.
static bool take(struct answer *answer, PGresult *result) {
    switch (PQresultStatus(result)) {
    case PGRES_EMPTY_QUERY:
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
        PQclear(answer->rows);
        answer->rows = result;
        return true;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        PQclear(result);
        return false;
    default:
        if (answer->error == NULL)
            answer->error = result;
        else
            PQclear(result);
        return true;
    }
}

// Reads to the very end: a commit may fail after the rows have come.
static enum ending collect(PGconn *conn, int64_t deadline_us, struct answer *answer) {
    for (;;) {
        while (PQisBusy(conn) == 0) {
            PGresult *result = PQgetResult(conn);
            if (result == NULL)
                return PQstatus(conn) == CONNECTION_OK ? ENDED : LOST;
            if (!take(answer, result))
                return COPYING;
        }
        int unsent = PQflush(conn);
        if (unsent < 0)
            return LOST;
        int ready = db_wait(conn, (short)(unsent > 0 ? POLLIN | POLLOUT : POLLIN), deadline_us);
        if (ready == 0)
            return LATE;
        if ((ready & ~POLLOUT) != 0 && PQconsumeInput(conn) == 0)
            return LOST;
    }
}

static enum status status_of_error(struct db *db, const PGresult *error) {
    db_fault_from_result(&db->fault, error);
    enum status status = db_status_of(db->fault.sqlstate);
    // The name may lead to another server by now.
    if (strcmp(db->fault.sqlstate, "25006") == 0)
        drop_and_pause(db);
    return status;
}

static enum status lose(struct db *db, const char *text, enum status status) {
    db_fault_set(&db->fault, text);
    drop(db);
    return status;
}

// What the answer means; the connection is closed where it can't be used again. `late` and `lost` are what a
// missing answer means.
static enum status judge(
    struct db *db, enum ending ending, const struct answer *answer, enum status late, enum status lost) {
    bool told = answer->error != NULL && PQresultErrorField(answer->error, PG_DIAG_SQLSTATE) != NULL;
    switch (ending) {
    case ENDED:
        if (answer->error == NULL)
            return STATUS_OK;
        return told ? status_of_error(db, answer->error)
                    : lose(db, PQresultErrorMessage(answer->error), lost);
    case LATE:
        return lose(db, "no answer within the deadline", late);
    case COPYING:
        return lose(db, "COPY is not supported here", STATUS_INTERNAL);
    case LOST:
        break;
    }
    // A server that says why it ends the session has undone the statement, unless it had answered it already:
    // then the commit may have been made.
    if (!told || answer->rows != NULL)
        return lose(db, "the connection was lost", lost);
    enum status status = status_of_error(db, answer->error);
    drop(db);
    return status;
}

static void answer_done(struct answer *answer) {
    PQclear(answer->rows);
    PQclear(answer->error);
}

static enum status prepare(
    struct db *db, const struct statement *statement, int64_t deadline_us, char name[DB_STATEMENT_NAME]) {
    if (!db_statement_name(&db->statements, statement->sql, name))
        return STATUS_OK;
    if (PQsendPrepare(db->conn, name, statement->sql, (int)statement->count, NULL) == 0)
        return lose(db, PQerrorMessage(db->conn), STATUS_UNAVAILABLE);
    struct answer answer = {0};
    enum ending ending = collect(db->conn, deadline_us, &answer);
    enum status status = judge(db, ending, &answer, STATUS_DEADLINE_EXCEEDED, STATUS_UNAVAILABLE);
    answer_done(&answer);
    if (status != STATUS_OK)
        db_statement_forget(&db->statements, statement->sql);
    return status;
}

static bool send_statement(struct db *db, const struct statement *statement, const char *name) {
    if (statement->plain)
        return PQsendQuery(db->conn, statement->sql) != 0;
    return PQsendQueryPrepared(db->conn, name, (int)statement->count, statement->params, NULL, NULL, 0) != 0;
}

// `again`: nothing was done, and it is the connection's or the plan's fault.
static enum status attempt(struct db *db, const struct statement *statement, int64_t deadline_us,
    struct db_rows **out, bool *again) {
    // What a lost session had begun can't be gone on with in another one.
    bool can_move = PQtransactionStatus(db->conn) == PQTRANS_IDLE;
    if (!is_alive(db->conn)) {
        *again = can_move;
        return lose(db, "the server has closed the connection", STATUS_UNAVAILABLE);
    }
    char name[DB_STATEMENT_NAME] = "";
    enum status status = statement->plain ? STATUS_OK : prepare(db, statement, deadline_us, name);
    if (status != STATUS_OK) {
        *again = can_move && status == STATUS_UNAVAILABLE && db->conn == NULL;
        return status;
    }
    if (!send_statement(db, statement, name))
        return lose(db, PQerrorMessage(db->conn), STATUS_UNKNOWN);
    struct answer answer = {0};
    enum ending ending = collect(db->conn, deadline_us, &answer);
    status = judge(db, ending, &answer, STATUS_UNKNOWN, STATUS_UNKNOWN);
    if (answer.error != NULL && db_statement_is_stale(answer.error)) {
        db_statement_forget(&db->statements, statement->sql);
        *again = can_move;
    }
    if (status == STATUS_OK && out != NULL) {
        struct db_rows *rows = base_calloc(1, sizeof *rows);
        rows->result = answer.rows;
        rows->count = (size_t)PQntuples(answer.rows);
        answer.rows = NULL;
        *out = rows;
    }
    answer_done(&answer);
    return status;
}

static enum status perform(
    struct db *db, const struct statement *statement, int64_t deadline_us, struct db_rows **out) {
    int64_t now = base_monotonic_us();
    if (deadline_us == 0)
        deadline_us = now + DEADLINE_PRESET_US;
    if (db->hook_deadline_us != 0 && db->hook_deadline_us < deadline_us)
        deadline_us = db->hook_deadline_us;
    if (deadline_us <= now) {
        db_fault_set(&db->fault, "the deadline had passed before anything was sent");
        return STATUS_DEADLINE_EXCEEDED;
    }
    for (unsigned tries = 0;; tries++) {
        enum status status = ensure_connected(db, deadline_us);
        if (status != STATUS_OK)
            return status;
        bool again = false;
        status = attempt(db, statement, deadline_us, out, &again);
        if (!again || tries > 0)
            return status;
    }
}

enum status db_call(struct db *db, int64_t deadline_us, const char *sql, unsigned count,
    const char *const params[], struct db_rows **out) {
    const struct statement statement = {.sql = sql, .count = count, .params = params};
    return perform(db, &statement, deadline_us, out);
}

enum status db_run(struct db *db, int64_t deadline_us, const char *sql) {
    const struct statement statement = {.sql = sql, .plain = true};
    return perform(db, &statement, deadline_us, NULL);
}

const char *db_sqlstate(const struct db *db) {
    return db->fault.sqlstate;
}

const char *db_error_text(const struct db *db) {
    return db->fault.text;
}

const char *db_error_detail(const struct db *db) {
    return db->fault.detail;
}

bool db_is_connected(const struct db *db) {
    return db->conn != NULL;
}
