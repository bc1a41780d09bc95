// SPDX-License-Identifier: MIT
#include "common/identity/identity.h"
#include "common/log/log.h"

enum status identity_guard(struct db *db, void *arg) {
    struct identity *identity = arg;
    struct db_rows *rows = NULL;
    enum status status = db_call(db, 0, "SELECT jumps, jumped FROM dunlin.database_guard()", 0, NULL, &rows);
    if (status != STATUS_OK)
        return status;
    identity->jumps = db_int64(rows, 0, 0);
    if (db_bool(rows, 0, 1)) {
        log_critical(
            "the database is another than before: all counters jumped", log_int("jumps", identity->jumps));
        if (identity->jumped != NULL)
            metric_inc(identity->jumped);
    }
    db_rows_free(rows);
    return STATUS_OK;
}
