// SPDX-License-Identifier: MIT
// Each call is [Prepare] Execute Sync: a transaction of its own, whose results libpq gives back as
// [COMMAND_OK NULL] TUPLES_OK NULL PIPELINE_SYNC. The call has ended when its Sync has, for a commit may
// fail.
#include "common/db/db_async_internal.h"
#include "common/log/log.h"

#include <libpq-fe.h>
#include <stdlib.h>

#define DIAL_US (5 * US_PER_S)
#define GREETING_US (5 * US_PER_S)
#define LATE_MAX 2
#define EMPTY_MAX 4 // libpq says NULL once or twice between two results

struct dial_job {
    struct db_conn *conn; // for the loop alone: it may be gone once the dial was cancelled
    char *conninfo;
    char *application;
    PGconn *pg;
    struct db_fault fault;
};

static void dial(struct db_conn *conn);
static void on_timer(void *arg);

void db_conn_init(struct db_conn *conn, struct db_async *owner) {
    *conn = (struct db_conn){.owner = owner};
    conn->tail = &conn->head;
    conn->timer = loop_timer_create(owner->loop, on_timer, conn);
}

static void retry_later(struct db_conn *conn) {
    conn->state = DB_CONN_DOWN;
    loop_timer_start(conn->timer, db_backoff_us(&conn->backoff_us) / US_PER_MS);
}

static void tell(struct db_conn *conn, struct db_pending *pending, enum status status) {
    if (pending->told)
        return;
    pending->told = true;
    if (pending->greeting)
        return;
    struct db_async *db = conn->owner;
    db_async_count(db, status);
    metric_observe_us(db->wait, base_monotonic_us() - pending->sent_us);
    struct db_rows rows = {.result = pending->result};
    if (status == STATUS_OK)
        rows.count = (size_t)PQntuples(pending->result);
    pending->done(pending->arg, status, status == STATUS_OK ? &rows : NULL);
}

// The call is out of the line: it makes room before its callback runs, which may send the next one.
static void leave_line(struct db_conn *conn, const struct db_pending *pending) {
    conn->under_way--;
    if (pending->told)
        conn->late--;
    if (pending->greeting)
        return;
    conn->owner->under_way--;
    metric_move(conn->owner->in_flight, -1);
}

static void pending_free(struct db_pending *pending) {
    PQclear(pending->result);
    free(pending);
}

// Takes the connection down and only then tells its callers, who may call again.
static void hang_up(struct db_conn *conn, enum status status) {
    if (conn->state == DB_CONN_UP)
        metric_move(conn->owner->up, -1);
    loop_timer_stop(conn->timer);
    loop_watch_free(conn->watch);
    conn->watch = NULL;
    PQfinish(conn->pg);
    conn->pg = NULL;
    conn->broken = false;
    struct db_pending *line = conn->head;
    conn->head = NULL;
    conn->tail = &conn->head;
    if (conn->owner->closing)
        conn->state = DB_CONN_DOWN;
    else
        retry_later(conn);
    for (struct db_pending *pending = line; pending != NULL; pending = pending->next)
        leave_line(conn, pending);
    while (line != NULL) {
        struct db_pending *pending = line;
        line = line->next;
        tell(conn, pending, status);
        pending_free(pending);
    }
}

static void lose(struct db_conn *conn, const char *why) {
    if (conn->state == DB_CONN_UP)
        log_warn("closed a Postgres connection", log_text("why", why),
            log_int("calls_under_way", conn->under_way));
    else
        log_debug("a new Postgres connection failed", log_text("why", why));
    if (conn->state == DB_CONN_GREETING)
        metric_inc(conn->owner->connects_failed);
    hang_up(conn, STATUS_UNAVAILABLE);
}

void db_conn_done(struct db_conn *conn, enum status status) {
    loop_offload_cancel(conn->dial);
    conn->dial = NULL;
    hang_up(conn, status);
    loop_timer_free(conn->timer);
}

static void set_watch(struct db_conn *conn, int unsent) {
    loop_watch_set(conn->watch, unsent > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

static void break_soon(struct db_conn *conn) {
    conn->broken = true;
    loop_timer_start(conn->timer, 0);
}

static void arm(struct db_conn *conn) {
    const struct db_pending *next = conn->head;
    if (next == NULL)
        return;
    int64_t at = next->deadline_us;
    if (next->told) {
        at += conn->owner->deadline_us;
        if (next->next != NULL && next->next->deadline_us < at)
            at = next->next->deadline_us;
    }
    int64_t left_us = at - base_monotonic_us();
    loop_timer_start(conn->timer, left_us <= 0 ? 0 : (left_us + US_PER_MS - 1) / US_PER_MS);
}

bool db_conn_send(
    struct db_conn *conn, struct db_pending *pending, unsigned count, const char *const params[]) {
    char name[DB_STATEMENT_NAME];
    pending->preparing = db_statement_name(&conn->statements, pending->sql, name);
    bool sent = !pending->preparing || PQsendPrepare(conn->pg, name, pending->sql, (int)count, NULL) != 0;
    sent = sent && PQsendQueryPrepared(conn->pg, name, (int)count, params, NULL, NULL, 0) != 0;
    sent = sent && PQpipelineSync(conn->pg) != 0;
    int unsent = sent ? PQflush(conn->pg) : -1;
    if (unsent < 0) {
        break_soon(conn);
        return false;
    }
    set_watch(conn, unsent);
    *conn->tail = pending;
    conn->tail = &pending->next;
    conn->under_way++;
    // An earlier call's deadline is set already, and is no later than this one's.
    if (conn->head == pending)
        arm(conn);
    return true;
}

static void come_up(struct db_conn *conn) {
    conn->state = DB_CONN_UP;
    conn->backoff_us = 0;
    metric_inc(conn->owner->connects_ok);
    metric_move(conn->owner->up, 1);
    log_debug("a Postgres connection is up");
}

static bool greeting_passes(struct db_conn *conn, const struct db_pending *pending) {
    if (pending->status != STATUS_OK)
        return false;
    struct db_async *db = conn->owner;
    struct db_rows rows = {.result = pending->result, .count = (size_t)PQntuples(pending->result)};
    return db->greeting == NULL || db->greeting(db->arg, &rows) == STATUS_OK;
}

static void complete(struct db_conn *conn) {
    struct db_pending *pending = conn->head;
    if (pending->status == STATUS_OK && pending->result == NULL)
        pending->status = STATUS_INTERNAL;
    conn->head = pending->next;
    if (conn->head == NULL)
        conn->tail = &conn->head;
    leave_line(conn, pending);
    tell(conn, pending, pending->status);
    if (pending->greeting) {
        if (greeting_passes(conn, pending))
            come_up(conn);
        else
            conn->broken = true;
    }
    pending_free(pending);
}

static void note_error(struct db_conn *conn, const PGresult *error) {
    static struct log_limit limit;
    struct db_pending *pending = conn->head;
    if (pending->status != STATUS_OK)
        return;
    struct db_fault fault;
    db_fault_from_result(&fault, error);
    pending->status = fault.sqlstate[0] == '\0' ? STATUS_UNAVAILABLE : db_status_of(fault.sqlstate);
    bool stale = db_statement_is_stale(error);
    if (stale)
        pending->status = STATUS_UNAVAILABLE;
    if (stale || pending->preparing)
        db_statement_forget(&conn->statements, pending->sql);
    int64_t suppressed = 0;
    if (pending->status == STATUS_INTERNAL && log_allowed(&limit, &suppressed))
        log_warn("Postgres refused a statement", log_text("error", fault.text), log_text("sql", pending->sql),
            log_int("suppressed", suppressed));
}

static void on_result(struct db_conn *conn, PGresult *result) {
    struct db_pending *pending = conn->head;
    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        complete(conn);
        break;
    case PGRES_PIPELINE_ABORTED:
        break;
    case PGRES_EMPTY_QUERY:
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
        if (pending->preparing) {
            pending->preparing = false;
            break;
        }
        PQclear(pending->result);
        pending->result = result;
        return;
    default:
        note_error(conn, result);
        break;
    }
    PQclear(result);
}

static void read_results(struct db_conn *conn) {
    unsigned empty = 0;
    // Asked even while nothing is awaited: it is what takes notices out of libpq's buffer.
    while (PQisBusy(conn->pg) == 0 && conn->head != NULL && !conn->broken) {
        PGresult *result = PQgetResult(conn->pg);
        if (result != NULL) {
            empty = 0;
            on_result(conn, result);
        } else if (++empty == EMPTY_MAX) {
            // We wait for an answer that libpq does not know of.
            conn->broken = true;
        }
    }
}

static void on_ready(void *arg, unsigned events) {
    struct db_conn *conn = arg;
    bool lost = (events & LOOP_READ) != 0 && PQconsumeInput(conn->pg) == 0;
    read_results(conn);
    int unsent = lost || conn->broken ? -1 : PQflush(conn->pg);
    if (unsent < 0)
        lose(conn, lost ? "the connection was lost" : "it was refused or broke");
    else
        set_watch(conn, unsent);
}

static void check_deadlines(struct db_conn *conn) {
    int64_t now = base_monotonic_us();
    bool hopeless = false;
    for (struct db_pending *pending = conn->head; pending != NULL && pending->deadline_us <= now;
         pending = pending->next) {
        hopeless = hopeless || pending->greeting;
        if (pending->told)
            continue;
        conn->late++;
        tell(conn, pending, STATUS_DEADLINE_EXCEEDED);
    }
    const struct db_pending *head = conn->head;
    hopeless = hopeless || conn->late >= LATE_MAX ||
               (head != NULL && head->told && now >= head->deadline_us + conn->owner->deadline_us);
    if (hopeless)
        lose(conn, "no answer within the deadline");
    else if (conn->broken)
        lose(conn, "it broke");
    else
        arm(conn);
}

static void on_timer(void *arg) {
    struct db_conn *conn = arg;
    if (conn->state == DB_CONN_DOWN)
        dial(conn);
    else
        check_deadlines(conn);
}

static void job_free(void *arg) {
    struct dial_job *job = arg;
    PQfinish(job->pg);
    free(job->conninfo);
    free(job->application);
    free(job);
}

// On a thread of its own: name lookup blocks, and TLS and SCRAM take their time.
static void dial_work(void *arg) {
    struct dial_job *job = arg;
    job->pg = db_connect(job->conninfo, job->application, base_monotonic_us() + DIAL_US, &job->fault);
}

static void begin_session(struct db_conn *conn) {
    conn->statements = (struct db_statements){0};
    conn->state = DB_CONN_GREETING;
    conn->watch = loop_watch_create(conn->owner->loop, PQsocket(conn->pg), on_ready, conn);
    set_watch(conn, 0);
    if (PQenterPipelineMode(conn->pg) != 1) {
        break_soon(conn);
        return;
    }
    const char *sql = conn->owner->greeting_sql;
    if (sql == NULL) {
        come_up(conn);
        return;
    }
    int64_t now = base_monotonic_us();
    struct db_pending *pending = base_calloc(1, sizeof *pending);
    *pending =
        (struct db_pending){.sql = sql, .sent_us = now, .deadline_us = now + GREETING_US, .greeting = true};
    if (!db_conn_send(conn, pending, 0, NULL))
        free(pending);
}

static void dialed(void *arg) {
    struct dial_job *job = arg;
    struct db_conn *conn = job->conn;
    conn->dial = NULL;
    conn->pg = job->pg;
    job->pg = NULL;
    if (conn->pg != NULL) {
        begin_session(conn);
    } else {
        static struct log_limit limit;
        int64_t suppressed = 0;
        metric_inc(conn->owner->connects_failed);
        if (log_allowed(&limit, &suppressed))
            log_warn("can't connect to Postgres", log_text("error", job->fault.text),
                log_int("suppressed", suppressed));
        retry_later(conn);
    }
    job_free(job);
}

static void dial(struct db_conn *conn) {
    struct dial_job *job = base_calloc(1, sizeof *job);
    job->conn = conn;
    job->conninfo = base_strdup(conn->owner->conninfo);
    job->application = base_strdup(conn->owner->application);
    const struct loop_offload_job offload = {.work = dial_work, .done = dialed, .drop = job_free, .job = job};
    conn->state = DB_CONN_DIALING;
    conn->dial = loop_offload_start(conn->owner->loop, &offload);
    if (conn->dial != NULL)
        return;
    metric_inc(conn->owner->connects_failed);
    job_free(job);
    retry_later(conn);
}

void db_conn_start(struct db_conn *conn) {
    dial(conn);
}
