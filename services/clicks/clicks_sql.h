// SPDX-License-Identifier: MIT
// The service's edge to Postgres: the functions of deploy/sql that it may call. Statuses are db_call()'s.
#pragma once

#include "common/db/db.h"
#include "services/clicks/fold.h"

// A partition of the stream, as positions know it.
struct clicks_place {
    const char *stream; // the Kafka cluster's id
    const char *topic;
    int32_t partition;
};

// The next offset to count, -1 where none is stored.
MUST_CHECK enum status clicks_sql_position(struct db *db, const struct clicks_place *place, int64_t *out);
// Moves the position from `from` to `next` together with the counts of a sorted fold. *applied is false, and
// nothing was done, where the position is not at `from` any more.
MUST_CHECK enum status clicks_sql_apply(struct db *db, int64_t deadline_us, const struct clicks_place *place,
    int64_t from, int64_t next, const struct fold *fold, bool *applied);
// Makes this month's and the next months' partitions of the counts; *made: how many were missing.
MUST_CHECK enum status clicks_sql_months(struct db *db, int64_t *made);
// One row a day from..to: (day, clicks, lifetime). No row: no such link, or not this owner's (NULL:
// anybody's).
MUST_CHECK enum status clicks_sql_get(struct db *db, int64_t deadline_us, const char *code, const char *owner,
    int32_t from, int32_t to, struct db_rows **out);
