// SPDX-License-Identifier: MIT
#include "services/keyrange/keyrange_sql.h"
#include "common/buf/buf.h"
#include "common/log/log.h"

#include <stdio.h>
#include <string.h>

#define ARRAY_MAX ((size_t)256) // of seven numbers, as text
#define READY_S 30              // how long a ceiling is public before blocks are handed out below it

static bool is(const struct db *db, const char *sqlstate) {
    return strcmp(db_sqlstate(db), sqlstate) == 0;
}

// What no SQLSTATE of ours tells. `what`: "claim".
static enum status explain(struct db *db, enum status status, const char *what, struct problem *why) {
    log_error("a call to Postgres failed", log_text("call", what), log_text("status", status_name(status)),
        log_text("error", db_error_text(db)));
    if (status == STATUS_INTERNAL)
        return problem_set(why, status, "", "Postgres refused the %s.", what);
    // One whose outcome is unknown may be asked again: a claim is only a lost block, the rest changes nothing
    // twice.
    return problem_set(
        why, STATUS_UNAVAILABLE, "POSTGRES_UNAVAILABLE", "Postgres did not answer the %s.", what);
}

static const char *param_fingerprint(char out[2 * CODES_FINGERPRINT + 3], const char *hex) {
    (void)snprintf(out, 2 * CODES_FINGERPRINT + 3, "\\x%s", hex);
    return out;
}

// ---- claims

// The claim was undone with all that it found out, so the ceiling is seen to in a transaction of its own.
static enum status prepare(struct db *db, int64_t deadline_us, const char *slot, struct problem *why) {
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us, "SELECT dunlin.ceiling_prepare($1::int)", 1, &slot, &rows);
    int64_t seconds = READY_S;
    if (status == STATUS_OK)
        seconds = db_int64(rows, 0, 0);
    else
        log_warn("a ceiling could not be made ready", log_text("error", db_error_text(db)));
    db_rows_free(rows);
    (void)problem_set(why, STATUS_UNAVAILABLE, "CEILING_NOT_READY",
        "The slot's ceiling must be public for %d s before values are handed out.", READY_S);
    why->retry_after_s = seconds > 0 ? (uint32_t)seconds : 1;
    return why->status;
}

enum status keyrange_sql_claim(struct db *db, int64_t deadline_us, unsigned slot, uint64_t size,
    const char *fingerprint_hex, struct keyrange_block *out, struct problem *why) {
    char slot_text[DB_INT64_TEXT];
    char size_text[DB_INT64_TEXT];
    char fingerprint[2 * CODES_FINGERPRINT + 3];
    const char *params[] = {db_param_int64(slot_text, slot), db_param_int64(size_text, (int64_t)size),
        param_fingerprint(fingerprint, fingerprint_hex)};
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT block_start, block_end FROM dunlin.range_claim($1::int, $2::bigint, $3::bytea)", 3, params,
        &rows);
    if (status != STATUS_OK && is(db, "DN001"))
        return problem_set(why, STATUS_FAILED_PRECONDITION, "KEY_MISMATCH",
            "The counters belong to another permutation key.");
    if (status != STATUS_OK && is(db, "DN002"))
        return problem_set(
            why, STATUS_RESOURCE_EXHAUSTED, "SLOT_EXHAUSTED", "The slot has no counter values left.");
    if (status != STATUS_OK && is(db, "DN005"))
        return prepare(db, deadline_us, slot_text, why);
    if (status != STATUS_OK)
        return explain(db, status, "claim", why);
    *out = (struct keyrange_block){
        .slot = slot,
        .start = (uint64_t)db_int64(rows, 0, 0),
        .end = (uint64_t)db_int64(rows, 0, 1),
    };
    db_rows_free(rows);
    return STATUS_OK;
}

// ---- counters and ceilings

static const char *param_numbers(struct buf *out, const uint64_t numbers[KEYRANGE_SLOTS]) {
    db_array_begin(out);
    for (unsigned slot = 0; slot < KEYRANGE_SLOTS; slot++)
        db_array_int64(out, (int64_t)numbers[slot]);
    db_array_end(out);
    return buf_text(out);
}

enum status keyrange_sql_recall(struct db *db, int64_t deadline_us, const char *fingerprint_hex,
    const struct known *known, bool *jumped, struct problem *why) {
    char fingerprint[2 * CODES_FINGERPRINT + 3];
    char jumps[DB_INT64_TEXT];
    char position[DB_INT64_TEXT];
    struct buf counters;
    struct buf ceilings;
    buf_init(&counters, ARRAY_MAX);
    buf_init(&ceilings, ARRAY_MAX);
    const char *params[] = {param_fingerprint(fingerprint, fingerprint_hex),
        param_numbers(&counters, known->counter), param_numbers(&ceilings, known->ceiling),
        db_param_int64(jumps, (int64_t)known->jumps), db_param_int64(position, (int64_t)known->position)};
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT jumped FROM dunlin.counters_recall($1::bytea, $2::bigint[], $3::bigint[], $4::bigint, "
        "$5::bigint)",
        5, params, &rows);
    buf_done(&counters);
    buf_done(&ceilings);
    if (status != STATUS_OK && is(db, "DN006"))
        return problem_set(why, STATUS_FAILED_PRECONDITION, "COUNTERS_FAR_BEHIND",
            "The counters are so far behind what is known of them that they must be advanced by hand.");
    if (status != STATUS_OK)
        return explain(db, status, "recall", why);
    *jumped = db_rows_count(rows) == 1 && db_bool(rows, 0, 0);
    db_rows_free(rows);
    return STATUS_OK;
}

enum status keyrange_sql_ceilings(
    struct db *db, int64_t deadline_us, struct keyrange_ceilings *out, struct problem *why) {
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT slot, counter, ceiling, encode(fingerprint, 'hex'), jumps, wal_position FROM "
        "dunlin.ceilings_get()",
        0, NULL, &rows);
    if (status != STATUS_OK)
        return explain(db, status, "ceilings", why);
    struct keyrange_ceilings ceilings = {0};
    for (size_t row = 0; row < db_rows_count(rows); row++) {
        int64_t slot = db_int64(rows, row, 0);
        REQUIRE(slot >= 0 && slot < KEYRANGE_SLOTS);
        ceilings.now.counter[slot] = (uint64_t)db_int64(rows, row, 1);
        ceilings.now.ceiling[slot] = (uint64_t)db_int64(rows, row, 2);
        ceilings.has_fingerprint = !db_is_null(rows, row, 3) && crypto_unhex(ceilings.fingerprint,
                                                                    CODES_FINGERPRINT, db_text(rows, row, 3));
        ceilings.now.jumps = (uint64_t)db_int64(rows, row, 4);
        ceilings.now.position = (uint64_t)db_int64(rows, row, 5);
    }
    db_rows_free(rows);
    *out = ceilings;
    return STATUS_OK;
}

enum status keyrange_sql_advance(struct db *db, int64_t deadline_us, unsigned slot, uint64_t to, bool force,
    uint64_t *counter, struct problem *why) {
    char slot_text[DB_INT64_TEXT];
    char to_text[DB_INT64_TEXT];
    const char *params[] = {
        db_param_int64(slot_text, slot), db_param_int64(to_text, (int64_t)to), force ? "true" : "false"};
    struct db_rows *rows = NULL;
    enum status status = db_call(
        db, deadline_us, "SELECT dunlin.range_advance($1::int, $2::bigint, $3::boolean)", 3, params, &rows);
    if (status != STATUS_OK && is(db, "DN006"))
        return problem_set(why, STATUS_FAILED_PRECONDITION, "COUNTER_TOO_FAR",
            "That is more than 2^33 values further; it can be forced.");
    if (status != STATUS_OK)
        return explain(db, status, "advance", why);
    *counter = (uint64_t)db_int64(rows, 0, 0);
    db_rows_free(rows);
    return STATUS_OK;
}
