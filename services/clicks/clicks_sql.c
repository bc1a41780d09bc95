// SPDX-License-Identifier: MIT
#include "services/clicks/clicks_sql.h"

#include "common/buf/buf.h"

#define MONTHS_AHEAD "2"
// Three arrays of one record's clicks at most, each element with its quotes and comma.
#define ARRAYS_MAX ((size_t)64 * 1024 * 1024)

enum status clicks_sql_position(struct db *db, const struct clicks_place *place, int64_t *out) {
    char partition[DB_INT64_TEXT];
    const char *params[] = {place->stream, place->topic, db_param_int64(partition, place->partition)};
    struct db_rows *rows = NULL;
    enum status status =
        db_call(db, 0, "SELECT dunlin.clicks_position($1::text, $2::text, $3::int)", 3, params, &rows);
    if (status != STATUS_OK)
        return status;
    *out = db_is_null(rows, 0, 0) ? -1 : db_int64(rows, 0, 0);
    db_rows_free(rows);
    return STATUS_OK;
}

struct arrays {
    struct buf codes, days, counts;
};

static void arrays_init(struct arrays *arrays, const struct fold *fold) {
    buf_init(&arrays->codes, ARRAYS_MAX);
    buf_init(&arrays->days, ARRAYS_MAX);
    buf_init(&arrays->counts, ARRAYS_MAX);
    db_array_begin(&arrays->codes);
    db_array_begin(&arrays->days);
    db_array_begin(&arrays->counts);
    for (size_t i = 0; i < fold->count; i++) {
        const struct fold_entry *entry = &fold->entries[i];
        db_array_text(&arrays->codes, entry->code, entry->len);
        db_array_int64(&arrays->days, entry->day);
        db_array_int64(&arrays->counts, (int64_t)entry->clicks);
    }
    db_array_end(&arrays->codes);
    db_array_end(&arrays->days);
    db_array_end(&arrays->counts);
    REQUIRE(buf_ok(&arrays->codes) && buf_ok(&arrays->days) && buf_ok(&arrays->counts));
}

static void arrays_done(struct arrays *arrays) {
    buf_done(&arrays->codes);
    buf_done(&arrays->days);
    buf_done(&arrays->counts);
}

enum status clicks_sql_apply(struct db *db, int64_t deadline_us, const struct clicks_place *place,
    int64_t from, int64_t next, const struct fold *fold, bool *applied) {
    char partition[DB_INT64_TEXT];
    char from_text[DB_INT64_TEXT];
    char next_text[DB_INT64_TEXT];
    struct arrays arrays;
    arrays_init(&arrays, fold);
    const char *params[] = {place->stream, place->topic, db_param_int64(partition, place->partition),
        db_param_int64(from_text, from), db_param_int64(next_text, next), buf_text(&arrays.codes),
        buf_text(&arrays.days), buf_text(&arrays.counts)};
    struct db_rows *rows = NULL;
    enum status status = db_call(db, deadline_us,
        "SELECT dunlin.clicks_apply($1::text, $2::text, $3::int, $4::bigint, $5::bigint, $6::text[], "
        "$7::int[], "
        "$8::bigint[])",
        8, params, &rows);
    arrays_done(&arrays);
    if (status == STATUS_OK)
        *applied = db_bool(rows, 0, 0);
    db_rows_free(rows);
    return status;
}

enum status clicks_sql_months(struct db *db, int64_t *made) {
    static const char *const params[] = {MONTHS_AHEAD};
    struct db_rows *rows = NULL;
    enum status status = db_call(db, 0, "SELECT dunlin.clicks_months_ensure($1::int)", 1, params, &rows);
    if (status == STATUS_OK)
        *made = db_int64(rows, 0, 0);
    db_rows_free(rows);
    return status;
}

enum status clicks_sql_get(struct db *db, int64_t deadline_us, const char *code, const char *owner,
    int32_t from, int32_t to, struct db_rows **out) {
    char from_text[DB_INT64_TEXT];
    char to_text[DB_INT64_TEXT];
    const char *params[] = {code, owner, db_param_int64(from_text, from), db_param_int64(to_text, to)};
    return db_call(db, deadline_us,
        "SELECT day, clicks, lifetime FROM dunlin.clicks_get($1::text, $2::text, $3::int, $4::int) ORDER BY "
        "day",
        4, params, out);
}
