// SPDX-License-Identifier: MIT
#include "cli/migrate/migrate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUERY_US (30 * US_PER_S)
#define FILE_US (3600 * US_PER_S) // one migration may rewrite a large table
#define POLL_MS 200

struct run {
    const struct migrate_options *options;
    struct buf *why;
    struct db *db;
    bool connected;
};

static void say(const struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
static void say(const struct run *run, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    run->options->say(run->options->arg, line);
}

static void pause_ms(long ms) {
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&span, NULL);
}

// The advisory lock lives and dies with the connection: a second one would work without it.
static enum status on_connect(struct db *db, void *arg) {
    (void)db;
    struct run *run = arg;
    if (run->connected) {
        return STATUS_FAILED_PRECONDITION;
    }
    run->connected = true;
    return STATUS_OK;
}

// The database's line without the SQLSTATE that it may begin with.
static const char *error_words(const struct db *db) {
    const char *text = db_error_text(db);
    const char *sqlstate = db_sqlstate(db);
    size_t len = strlen(sqlstate);
    return len > 0 && strncmp(text, sqlstate, len) == 0 && strncmp(text + len, ": ", 2) == 0 ? text + len + 2
                                                                                             : text;
}

static bool failed(const struct run *run, enum status status, const char *what) {
    if (run->connected && !db_is_connected(run->db)) {
        buf_printf(run->why, "%s: the connection was lost; run it again to go on", what);
        return false;
    }
    const char *sqlstate = db_sqlstate(run->db);
    buf_printf(run->why, "%s: %s%s: %s", what, sqlstate[0] != '\0' ? "SQLSTATE " : "",
        sqlstate[0] != '\0' ? sqlstate : status_name(status), error_words(run->db));
    return false;
}

static bool query(const struct run *run, const char *what, const char *sql, struct db_rows **out) {
    enum status status = db_call(run->db, base_monotonic_us() + QUERY_US, sql, 0, NULL, out);
    return status == STATUS_OK || failed(run, status, what);
}

static bool connect_in_time(const struct run *run) {
    int64_t end_us = base_monotonic_us() + run->options->wait_us;
    for (bool said = false;; said = true) {
        struct db_rows *rows;
        enum status status = db_call(run->db, base_monotonic_us() + 2 * US_PER_S, "SELECT 1", 0, NULL, &rows);
        if (status == STATUS_OK) {
            db_rows_free(rows);
            return true;
        }
        bool may_come =
            status == STATUS_UNAVAILABLE || status == STATUS_UNKNOWN || status == STATUS_DEADLINE_EXCEEDED;
        if (!may_come || run->connected || base_monotonic_us() >= end_us) {
            return failed(run, status, "can't connect");
        }
        if (!said) {
            say(run, "waiting for the database (up to %" PRId64 " s): %s", run->options->wait_us / US_PER_S,
                db_error_text(run->db));
        }
        pause_ms(POLL_MS);
    }
}

// Asked for again and again instead of waited for, so that a wait is neither cut by a statement timeout nor
// endless.
static bool lock_in_time(const struct run *run) {
    int64_t end_us = base_monotonic_us() + run->options->wait_us;
    for (bool said = false;; said = true) {
        struct db_rows *rows;
        if (!query(run, "can't lock", "SELECT pg_try_advisory_lock(hashtextextended('dunlin.migrate', 0))",
                &rows)) {
            return false;
        }
        bool locked = db_bool(rows, 0, 0);
        db_rows_free(rows);
        if (locked) {
            return true;
        }
        if (base_monotonic_us() >= end_us) {
            buf_puts(run->why, "another dunlin-migrate is still at work on this database");
            return false;
        }
        if (!said) {
            say(run, "another dunlin-migrate is at work; waiting for it");
        }
        pause_ms(POLL_MS);
    }
}

static bool has_table(const struct run *run, bool *out) {
    struct db_rows *rows;
    if (!query(run, "can't look", "SELECT to_regclass('dunlin.schema_migrations') IS NOT NULL", &rows)) {
        return false;
    }
    *out = db_bool(rows, 0, 0);
    db_rows_free(rows);
    return true;
}

static bool make_table(const struct run *run) {
    enum status status = db_run(run->db, base_monotonic_us() + QUERY_US,
        "CREATE SCHEMA IF NOT EXISTS dunlin;"
        "CREATE TABLE dunlin.schema_migrations ("
        " number int PRIMARY KEY CHECK (number > 0),"
        " name text NOT NULL,"
        " checksum bytea NOT NULL CHECK (octet_length(checksum) = 32),"
        " applied_at timestamptz NOT NULL DEFAULT clock_timestamp());");
    return status == STATUS_OK || failed(run, status, "can't make dunlin.schema_migrations");
}

static bool read_applied(const struct run *run, const struct migrate_set *set, size_t *done) {
    struct db_rows *rows;
    if (!query(run, "can't read dunlin.schema_migrations",
            "SELECT number, encode(checksum, 'hex') FROM dunlin.schema_migrations ORDER BY number LIMIT 9999",
            &rows)) {
        return false;
    }
    size_t count = db_rows_count(rows);
    struct migrate_applied *applied = base_calloc(count + 1, sizeof applied[0]);
    for (size_t i = 0; i < count; i++) {
        applied[i].number = (unsigned)db_int64(rows, i, 0);
        (void)snprintf(applied[i].checksum, sizeof applied[i].checksum, "%s", db_text(rows, i, 1));
    }
    db_rows_free(rows);
    bool ok = migrate_plan(set, applied, count, done, run->why);
    free(applied);
    return ok;
}

static bool file_failed(
    const struct run *run, enum status status, const struct migrate_file *file, unsigned line) {
    char what[MIGRATE_NAME_MAX + 32];
    (void)snprintf(what, sizeof what, "%s:%u", file->name, line);
    return failed(run, status, what);
}

static bool apply_statement(
    const struct run *run, const struct migrate_file *file, const struct migrate_statement *statement) {
    if (migrate_is_transaction_control(statement)) {
        buf_printf(run->why, "%s:%u: a migration is one transaction and has no words of its own about it",
            file->name, statement->line);
        return false;
    }
    char *sql = base_strndup(statement->text, statement->len);
    enum status status = db_run(run->db, base_monotonic_us() + FILE_US, sql);
    free(sql);
    return status == STATUS_OK || file_failed(run, status, file, statement->line);
}

// Statement by statement, because that tells which one failed. They stay one transaction, since there is no
// second connection (on_connect). The row goes first: should there be a rival in spite of the lock, the key
// keeps one of the two out before it does anything. What fails is rolled back by the connection's end.
static bool apply(const struct run *run, const struct migrate_file *file) {
    char begin[512];
    (void)snprintf(begin, sizeof begin,
        "BEGIN; INSERT INTO dunlin.schema_migrations (number, name, checksum) VALUES (%u, '%s', '\\x%s')",
        file->number, file->name, file->checksum);
    enum status status = db_run(run->db, base_monotonic_us() + QUERY_US, begin);
    if (status != STATUS_OK) {
        return file_failed(run, status, file, 1);
    }
    struct migrate_statement statement = {.line = 1};
    for (size_t at = 0; migrate_next(file, &at, &statement);) {
        if (!apply_statement(run, file, &statement)) {
            return false;
        }
    }
    status = db_run(run->db, base_monotonic_us() + QUERY_US, "COMMIT");
    if (status != STATUS_OK) {
        return file_failed(run, status, file, statement.line);
    }
    say(run, "applied %s", file->name);
    return true;
}

static void say_status(const struct run *run, const struct migrate_set *set, size_t done) {
    for (size_t i = 0; i < set->count; i++) {
        say(run, "%-8s %s", i < done ? "applied" : "pending", set->files[i].name);
    }
}

static bool bring_up(const struct run *run, const struct migrate_set *set) {
    bool there;
    size_t done = 0;
    if (!connect_in_time(run) || (!run->options->status_only && !lock_in_time(run)) ||
        !has_table(run, &there) || (!there && !run->options->status_only && !make_table(run))) {
        return false;
    }
    if ((there || !run->options->status_only) && !read_applied(run, set, &done)) {
        return false;
    }
    if (run->options->status_only) {
        say_status(run, set, done);
        return true;
    }
    if (done == set->count) {
        say(run, "nothing to do: %zu migrations are applied", done);
    }
    for (size_t i = done; i < set->count; i++) {
        if (!apply(run, &set->files[i])) {
            return false;
        }
    }
    return true;
}

bool migrate_run(const struct migrate_options *options, struct buf *why) {
    struct migrate_set set;
    if (!migrate_read(options->dir, &set, why)) {
        return false;
    }
    struct run run = {.options = options, .why = why};
    run.db = db_create(&(struct db_options){.conninfo = options->conninfo,
        .application = "dunlin-migrate",
        .on_connect = on_connect,
        .arg = &run});
    bool ok = bring_up(&run, &set);
    db_free(run.db);
    migrate_done(&set);
    return ok;
}
