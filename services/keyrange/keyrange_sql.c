// SPDX-License-Identifier: MIT
#include "services/keyrange/keyrange_sql.h"
#include "common/log/log.h"

#include <stdio.h>
#include <string.h>

static enum status explain(struct db *db, enum status status, struct problem *why) {
    if (strcmp(db_sqlstate(db), "DN001") == 0)
        return problem_set(why, STATUS_FAILED_PRECONDITION, "KEY_MISMATCH",
            "The counters belong to another permutation key.");
    if (strcmp(db_sqlstate(db), "DN002") == 0)
        return problem_set(
            why, STATUS_RESOURCE_EXHAUSTED, "SLOT_EXHAUSTED", "The slot has no counter values left.");
    log_error("a block could not be claimed", log_text("status", status_name(status)),
        log_text("error", db_error_text(db)));
    if (status == STATUS_INTERNAL)
        return problem_set(why, status, "", "Postgres refused the claim.");
    // A claim whose outcome is unknown is only a lost block: the caller may ask again.
    return problem_set(why, STATUS_UNAVAILABLE, "POSTGRES_UNAVAILABLE", "Postgres did not answer the claim.");
}

enum status keyrange_sql_claim(struct db *db, int64_t deadline_us, unsigned slot, uint64_t size,
    const char *fingerprint_hex, struct keyrange_block *out, struct problem *why) {
    char slot_text[DB_INT64_TEXT];
    char size_text[DB_INT64_TEXT];
    char fingerprint[64];
    (void)snprintf(fingerprint, sizeof fingerprint, "\\x%s", fingerprint_hex);
    const char *params[] = {
        db_param_int64(slot_text, slot), db_param_int64(size_text, (int64_t)size), fingerprint};
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT block_start, block_end FROM dunlin.range_claim($1::int, $2::bigint, $3::bytea)", 3, params,
        &rows);
    if (status != STATUS_OK)
        return explain(db, status, why);
    *out = (struct keyrange_block){
        .slot = slot,
        .start = (uint64_t)db_int64(rows, 0, 0),
        .end = (uint64_t)db_int64(rows, 0, 1),
    };
    db_rows_free(rows);
    return STATUS_OK;
}
