// SPDX-License-Identifier: MIT
#include "services/writer/writer_sql.h"
#include "common/log/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stored_link_done(struct stored_link *link) {
    free(link->url);
    *link = (struct stored_link){0};
}

// For whatever a call's own SQLSTATEs don't explain.
static enum status explain(struct db *db, enum status status, const char *what, struct problem *why) {
    static struct log_limit limit;
    int64_t suppressed = 0;
    if (log_allowed(&limit, &suppressed))
        log_error("Postgres failed a call", log_text("call", what), log_text("status", status_name(status)),
            log_text("error", db_error_text(db)), log_int("suppressed", suppressed));
    if (status == STATUS_INTERNAL)
        return problem_set(why, status, "", "Postgres refused the call.");
    (void)problem_set(why, status == STATUS_UNKNOWN ? STATUS_UNKNOWN : STATUS_UNAVAILABLE,
        "POSTGRES_UNAVAILABLE", "Postgres did not answer.");
    why->retry_after_s = 1;
    return why->status;
}

static void copy_text(char *out, size_t size, const struct db_rows *rows, unsigned column) {
    (void)snprintf(out, size, "%s", db_text(rows, 0, column));
}

// The columns from `first` on: code, url, owner, state, source, version, created, updated, expires.
static void read_link(const struct db_rows *rows, unsigned first, struct stored_link *out) {
    *out = (struct stored_link){0};
    copy_text(out->code, sizeof out->code, rows, first);
    if (!db_is_null(rows, 0, first + 1)) {
        out->url_len = db_text_len(rows, 0, first + 1);
        out->url = base_strndup(db_text(rows, 0, first + 1), out->url_len);
    }
    copy_text(out->owner, sizeof out->owner, rows, first + 2);
    out->state = (enum link_state)db_int64(rows, 0, first + 3);
    copy_text(out->source, sizeof out->source, rows, first + 4);
    out->version = (uint64_t)db_int64(rows, 0, first + 5);
    out->created_at = db_int64(rows, 0, first + 6);
    out->updated_at = db_int64(rows, 0, first + 7);
    out->has_expiry = !db_is_null(rows, 0, first + 8);
    out->expires_at = db_int64(rows, 0, first + 8);
}

static enum status explain_create(
    struct db *db, enum status status, enum create_outcome *outcome, struct problem *why) {
    if (strcmp(db_sqlstate(db), "DN003") == 0) {
        *outcome = CREATE_COUNTER_REFUSED;
        return STATUS_OK;
    }
    if (strcmp(db_sqlstate(db), "DN004") == 0)
        return problem_violate(why, "expires_at", "It must be in the future.");
    return explain(db, status, "link_create", why);
}

enum status writer_sql_create(struct db *db, int64_t deadline_us, const struct new_link *link,
    enum create_outcome *outcome, struct stored_link *made, struct problem *why) {
    char expires[DB_INT64_TEXT];
    char slot[DB_INT64_TEXT];
    char counter[DB_INT64_TEXT];
    char id[2 + 2 * WRITER_CREATE_ID + 1] = "\\x";
    crypto_hex(id + 2, link->create_id, WRITER_CREATE_ID);
    bool from_counter = strcmp(link->source, "range") == 0;
    const char *params[] = {
        link->code,
        link->url,
        link->owner,
        link->source,
        link->has_expiry ? db_param_int64(expires, link->expires_at) : NULL,
        id,
        from_counter ? db_param_int64(slot, link->slot) : NULL,
        from_counter ? db_param_int64(counter, (int64_t)link->counter) : NULL,
    };
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT outcome, code, url, owner, state, source, version, created_at_us, updated_at_us, "
        "expires_at_us"
        " FROM dunlin.link_create($1, $2, $3, $4, $5::bigint, $6::bytea, $7::int, $8::bigint)",
        ARRAY_LEN(params), params, &rows);
    if (status != STATUS_OK)
        return explain_create(db, status, outcome, why);
    if (strcmp(db_text(rows, 0, 0), "taken") == 0) {
        *outcome = CREATE_TAKEN;
    } else {
        *outcome = CREATE_MADE;
        read_link(rows, 1, made);
    }
    db_rows_free(rows);
    return STATUS_OK;
}

enum status writer_sql_get(struct db *db, int64_t deadline_us, const char *code, const char *owner,
    struct stored_link *out, struct problem *why) {
    const char *params[] = {code, owner};
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT code, url, owner, state, source, version, created_at_us, updated_at_us, expires_at_us"
        " FROM dunlin.link_get($1, $2)",
        ARRAY_LEN(params), params, &rows);
    if (status != STATUS_OK)
        return explain(db, status, "link_get", why);
    if (db_rows_count(rows) == 0)
        status = problem_set(why, STATUS_NOT_FOUND, "LINK_NOT_FOUND", "There is no such link of yours.");
    else
        read_link(rows, 0, out);
    db_rows_free(rows);
    return status;
}

enum status writer_sql_create_key(struct db *db, int64_t deadline_us, const char *id, const char *hash_hex,
    const char *owner, const char *scope, struct problem *why) {
    char hash[2 + 64 + 1];
    (void)snprintf(hash, sizeof hash, "\\x%s", hash_hex);
    const char *params[] = {id, hash, owner, scope};
    struct db_rows *rows = NULL;
    enum status status = db_call(
        db, deadline_us, "SELECT dunlin.key_create($1, $2::bytea, $3, $4)", ARRAY_LEN(params), params, &rows);
    if (status != STATUS_OK)
        return explain(db, status, "key_create", why);
    db_rows_free(rows);
    return STATUS_OK;
}
