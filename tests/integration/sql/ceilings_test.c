// SPDX-License-Identifier: MIT
// Ceilings behind their functions: what is public for 30 s, what is handed out below it, and where jumps
// land. Time is made to pass by moving stamps.
#include "tests/support/test_db.h"

// cmocka.h needs these before it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define JUMP (INT64_C(1) << 30)
#define HEADROOM (INT64_C(1) << 31)
#define STEP (INT64_C(1) << 27)
#define FAR (INT64_C(1) << 33)
#define COUNTERS_END INT64_C(27732715023888)
#define RAW_KEY "\\x0102030405060708"
#define KEY "'" RAW_KEY "'"

static struct test_db *test;
static struct db *superuser, *keyrange, *other;

// Statements are prepared by their address: those that are asked for rows are constants.
static struct db_rows *call(struct db *db, const char *sql, unsigned count, const char *const params[]) {
    struct db_rows *rows = NULL;
    return db_call(db, 0, sql, count, params, &rows) == STATUS_OK ? rows : NULL;
}

static int64_t column_of(unsigned slot, unsigned column) {
    char text[DB_INT64_TEXT];
    const char *params[] = {db_param_int64(text, slot)};
    struct db_rows *rows = call(superuser,
        "SELECT next_start, ceiling, ceiling_ready, (ceiling_seen_at IS NOT NULL)::int"
        " FROM dunlin.key_ranges WHERE slot = $1::int",
        1, params);
    assert_non_null(rows);
    int64_t value = db_int64(rows, 0, column);
    db_rows_free(rows);
    return value;
}

static int64_t next_of(unsigned slot) {
    return column_of(slot, 0);
}

static int64_t ceiling_of(unsigned slot) {
    return column_of(slot, 1);
}

static int64_t ready_of(unsigned slot) {
    return column_of(slot, 2);
}

static bool is_seen(unsigned slot) {
    return column_of(slot, 3) == 1;
}

static void set(unsigned slot, int64_t next, int64_t ceiling, int64_t ready) {
    char sql[256];
    (void)snprintf(sql, sizeof sql,
        "UPDATE dunlin.key_ranges SET next_start = %" PRId64 ", ceiling = %" PRId64
        ", ceiling_ready = %" PRId64 ", ceiling_seen_at = NULL, ceiling_set_by = NULL WHERE slot = %u",
        next, ceiling, ready, slot);
    test_db_run(superuser, sql);
}

// As if it had been seen so long ago.
static void age(unsigned slot, const char *by) {
    char sql[192];
    (void)snprintf(sql, sizeof sql,
        "UPDATE dunlin.key_ranges SET ceiling_seen_at = ceiling_seen_at - interval '%s' WHERE slot = %u", by,
        slot);
    test_db_run(superuser, sql);
}

// The block's start, or -5 where the ceiling is not ready.
static int64_t claim_on(struct db *db, unsigned slot, int64_t size) {
    char slot_text[DB_INT64_TEXT];
    char size_text[DB_INT64_TEXT];
    const char *params[] = {db_param_int64(slot_text, slot), db_param_int64(size_text, size)};
    struct db_rows *rows =
        call(db, "SELECT block_start FROM dunlin.range_claim($1::int, $2::bigint, " KEY ")", 2, params);
    if (rows == NULL) {
        assert_string_equal("DN005", db_sqlstate(db));
        assert_string_equal("CEILING_NOT_READY", db_error_detail(db));
        return -5;
    }
    int64_t start = db_int64(rows, 0, 0);
    db_rows_free(rows);
    return start;
}

static int64_t claim(unsigned slot, int64_t size) {
    return claim_on(keyrange, slot, size);
}

static int64_t prepare(unsigned slot) {
    char text[DB_INT64_TEXT];
    const char *params[] = {db_param_int64(text, slot)};
    struct db_rows *rows = call(keyrange, "SELECT dunlin.ceiling_prepare($1::int)", 1, params);
    assert_non_null(rows);
    int64_t seconds = db_int64(rows, 0, 0);
    db_rows_free(rows);
    return seconds;
}

// ---- first: the database is as the migrations left it

static void a_new_installation_creates_at_once(void **state) {
    (void)state;
    assert_int_equal(HEADROOM + STEP, ceiling_of(0));
    assert_int_equal(HEADROOM + STEP, ready_of(0));
    for (unsigned slot = 1; slot <= 6; slot++)
        assert_int_equal(0, ceiling_of(slot));
    assert_string_equal("NULL", test_db_text(keyrange, "SELECT fingerprint::text FROM dunlin.ceilings_get()"
                                                       " WHERE slot = 3"));
    assert_int_equal(0, claim(0, 1000));
    assert_int_equal(1000, claim(0, 1000));
    assert_string_equal("0 2000 2281701376 \\x0102030405060708 0\n1 0 0 \\x0102030405060708 0",
        test_db_text(keyrange, "SELECT concat_ws(' ', slot, counter, ceiling, fingerprint, jumps)"
                               " FROM dunlin.ceilings_get() WHERE slot < 2"));
    assert_int_equal(7, test_db_int64(keyrange, "SELECT count(*) FROM dunlin.ceilings_get()"));
}

static void an_unused_slot_waits_until_its_ceiling_was_public(void **state) {
    (void)state;
    assert_int_equal(-5, claim(1, 1000));
    assert_int_equal(0, ceiling_of(1)); // the refused claim left nothing
    assert_int_equal(31, prepare(1));
    assert_int_equal(HEADROOM + STEP + (1 << 24), ceiling_of(1));
    assert_int_equal(0, ready_of(1));
    assert_false(is_seen(1));
    assert_int_equal(-5, claim(1, 1000));
    assert_int_equal(31, prepare(1));
    assert_true(is_seen(1));
    age(1, "20 s");
    assert_in_range(prepare(1), 10, 11);
    assert_int_equal(-5, claim(1, 1000));
    age(1, "9 s");
    assert_int_equal(-5, claim(1, 1000));
    age(1, "1.5 s");
    assert_int_equal(0, claim(1, 1000));
    assert_int_equal(HEADROOM + STEP + (1 << 24), ready_of(1));
    assert_int_equal(0, prepare(1));
}

// Found by the transaction that set it, a ceiling is not committed yet.
static void only_a_later_transaction_stamps(void **state) {
    (void)state;
    test_db_run(other, "BEGIN; SELECT dunlin.ceiling_prepare(2); SELECT dunlin.ceiling_prepare(2); COMMIT");
    assert_true(ceiling_of(2) > 0);
    assert_false(is_seen(2));
    assert_int_equal(31, prepare(2));
    assert_true(is_seen(2));
}

static void a_ceiling_is_raised_while_claims_go_on(void **state) {
    (void)state;
    int64_t ceiling = ready_of(0);
    int64_t low = ceiling - HEADROOM;
    set(0, low - 10, ceiling, ceiling);
    assert_int_equal(low - 10, claim(0, 10)); // just enough
    assert_int_equal(ceiling, ceiling_of(0));
    assert_int_equal(low, claim(0, 10));
    assert_int_equal(low + 10 + HEADROOM + STEP, ceiling_of(0));
    assert_int_equal(ceiling, ready_of(0));
    assert_false(is_seen(0));
    assert_int_equal(low + 10, claim(0, 10));
    assert_true(is_seen(0));
    age(0, "31 s");
    assert_int_equal(low + 20, claim(0, 10));
    assert_int_equal(low + 10 + HEADROOM + STEP, ready_of(0));
    assert_int_equal(low + 10 + HEADROOM + STEP, ceiling_of(0));
}

static void nothing_is_handed_out_past_what_is_ready(void **state) {
    (void)state;
    set(3, 990, 5000, 1000);
    assert_int_equal(-5, claim(3, 11));
    assert_int_equal(990, claim(3, 10));
    assert_int_equal(-5, claim(3, 1));
    // The raise that was on its way does: it is let finish, though it is low.
    assert_int_equal(5000, ceiling_of(3));
    age(3, "31 s");
    assert_int_equal(1000, claim(3, 4000));
    assert_int_equal(-5, claim(3, 1));
    assert_true(prepare(3) > 0);
    assert_int_equal(5000 + HEADROOM + STEP, ceiling_of(3)); // by the last claim
}

static void ceilings_end_where_the_counters_do(void **state) {
    (void)state;
    set(4, COUNTERS_END - 10, COUNTERS_END, COUNTERS_END);
    assert_int_equal(COUNTERS_END - 10, claim(4, 10));
    assert_string_equal("DN002", test_db_sqlstate(keyrange, "SELECT dunlin.range_claim(4, 1, " KEY ")"));
    set(4, COUNTERS_END - 10, 0, 0);
    assert_int_equal(31, prepare(4));
    assert_int_equal(COUNTERS_END, ceiling_of(4));
}

#define CLAIMERS 6
#define CLAIMS 30

static void *claim_many(void *arg) {
    int64_t *starts = arg;
    struct db *db = test_db_open(test, "keyrange");
    for (int i = 0; i < CLAIMS; i++)
        starts[i] = claim_on(db, 0, 10);
    db_free(db);
    return NULL;
}

static int compare_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Across a raise.
static void claims_at_once_never_overlap(void **state) {
    (void)state;
    static int64_t starts[CLAIMERS][CLAIMS];
    pthread_t threads[CLAIMERS];
    int64_t first = INT64_C(1) << 32;
    set(0, first, first + HEADROOM + 500, first + HEADROOM + 500);
    for (size_t i = 0; i < CLAIMERS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, claim_many, starts[i]));
    for (size_t i = 0; i < CLAIMERS; i++)
        assert_int_equal(0, pthread_join(threads[i], NULL));
    qsort(starts, (size_t)CLAIMERS * CLAIMS, sizeof starts[0][0], compare_int64);
    for (int i = 0; i < CLAIMERS * CLAIMS; i++)
        assert_int_equal(first + i * 10, starts[i / CLAIMS][i % CLAIMS]);
    assert_int_equal(first + 510 + HEADROOM + STEP, ceiling_of(0));
}

// ---- jumps

static void a_jump_lands_below_what_is_ready(void **state) {
    (void)state;
    int64_t next = next_of(0);
    set(0, next, next + HEADROOM, next + HEADROOM);
    set(5, 0, 0, 0);
    test_db_run(superuser, "UPDATE dunlin.database_identity SET timeline = '0000002A'");
    assert_int_equal(next + JUMP, claim(0, 1000));
    assert_int_equal(next + HEADROOM, ready_of(0));
    assert_int_equal(next + JUMP + HEADROOM + STEP, ceiling_of(0));
    assert_int_equal(JUMP, next_of(5));
    assert_int_equal(0, ceiling_of(5)); // still unused
}

static void a_jump_starts_the_wait_of_a_raise_anew(void **state) {
    (void)state;
    set(1, 1000, HEADROOM * 4, HEADROOM);
    (void)prepare(1);
    age(1, "60 s");
    test_db_run(superuser, "UPDATE dunlin.database_identity SET timeline = '0000002B'");
    assert_string_equal("t", test_db_text(keyrange, "SELECT jumped FROM dunlin.database_guard()"));
    assert_false(is_seen(1));
    assert_int_equal(HEADROOM, ready_of(1));
}

static int64_t jumps(void) {
    return test_db_int64(superuser, "SELECT jumps FROM dunlin.database_identity");
}

// It did since, and the number is one that was never used.
static void jumped_once(int64_t *before) {
    int64_t now = jumps();
    int64_t wall_us = base_wall_us();
    assert_true(now > *before);
    assert_in_range(now, wall_us - 60 * US_PER_S, wall_us + 60 * US_PER_S);
    *before = now;
}

// What is known of the log; 0: nothing.
static int64_t known_jumps, known_position;

// "jumped", "nothing", or the SQLSTATE.
static const char *recall(const char *key, int64_t counter_0, int64_t ceiling_0, int64_t ceiling_5) {
    char counters[128];
    char ceilings[128];
    (void)snprintf(counters, sizeof counters, "{%" PRId64 ",0,0,0,0,0,0}", counter_0);
    (void)snprintf(ceilings, sizeof ceilings, "{%" PRId64 ",0,0,0,0,%" PRId64 ",0}", ceiling_0, ceiling_5);
    char jumps_text[DB_INT64_TEXT];
    char position_text[DB_INT64_TEXT];
    const char *params[] = {key, counters, ceilings, db_param_int64(jumps_text, known_jumps),
        db_param_int64(position_text, known_position)};
    struct db_rows *rows =
        call(keyrange, "SELECT jumped FROM dunlin.counters_recall($1::bytea, $2, $3, $4, $5)", 5, params);
    if (rows == NULL)
        return db_sqlstate(keyrange);
    bool jumped = db_bool(rows, 0, 0);
    db_rows_free(rows);
    return jumped ? "jumped" : "nothing";
}

static void a_database_that_is_behind_jumps(void **state) {
    (void)state;
    int64_t next = INT64_C(1) << 34;
    int64_t before = jumps();
    set(0, next, next + HEADROOM, next + HEADROOM);
    set(1, 500, HEADROOM, HEADROOM);
    set(5, 0, 0, 0);
    assert_string_equal("nothing", recall(RAW_KEY, next, next + HEADROOM, 0)); // knows no more than is there
    assert_int_equal(before, jumps());
    assert_string_equal("nothing", recall("\\x0102030405060709", next + 1, 0, 0)); // somebody else's counters
    assert_int_equal(before, jumps());

    assert_string_equal("jumped", recall(RAW_KEY, next + 7, 0, 0));
    jumped_once(&before);
    assert_int_equal(next + 7 + JUMP, next_of(0));
    assert_int_equal(500 + JUMP, next_of(1));
    assert_int_equal(JUMP, next_of(5));
    assert_int_equal(0, ceiling_of(5));
    assert_int_equal(next + 7 + JUMP, claim(0, 10)); // below what was ready

    // A slot that the copy knows as unused had a ceiling.
    assert_string_equal("jumped", recall(RAW_KEY, 0, 0, HEADROOM + 1));
    jumped_once(&before);
    assert_int_equal(HEADROOM + 1 + JUMP, next_of(5));
    assert_int_equal(HEADROOM + 1 + JUMP + HEADROOM + STEP, ceiling_of(5));
    assert_int_equal(-5, claim(5, 1));
}

// The log is shorter than it was, though no counter is behind.
static void a_database_that_lost_its_log_jumps(void **state) {
    (void)state;
    int64_t before = jumps();
    int64_t next = next_of(0);
    known_jumps = before;
    known_position = test_db_int64(superuser, "SELECT pg_current_wal_flush_lsn() - '0/0'");
    assert_string_equal("nothing", recall(RAW_KEY, 0, 0, 0));
    known_position += INT64_C(1) << 30;
    known_jumps = before - 1; // of a history that this one knows to be over
    assert_string_equal("nothing", recall(RAW_KEY, 0, 0, 0));
    known_jumps = before;
    assert_string_equal("nothing", recall("\\x0102030405060709", 0, 0, 0));
    assert_string_equal("jumped", recall(RAW_KEY, 0, 0, 0));
    jumped_once(&before);
    assert_int_equal(next + JUMP, next_of(0));
    assert_string_equal("nothing", recall(RAW_KEY, 0, 0, 0));
    // It lost a jump.
    known_jumps = before + 3600 * US_PER_S;
    known_position = 1;
    assert_string_equal("jumped", recall(RAW_KEY, 0, 0, 0));
    assert_int_equal(before + 3600 * US_PER_S + 1, jumps());
    assert_string_equal("nothing", recall(RAW_KEY, 0, 0, 0));
    known_jumps = known_position = 0;
    test_db_run(superuser, "UPDATE dunlin.database_identity SET jumps = 1");
}

static void a_word_moves_only_so_far(void **state) {
    (void)state;
    int64_t next = INT64_C(1) << 35;
    int64_t before = jumps();
    set(0, next, next + HEADROOM, next + HEADROOM);
    assert_string_equal("DN006", recall(RAW_KEY, next + FAR - JUMP + 1, 0, 0));
    assert_string_equal("COUNTER_TOO_FAR", db_error_detail(keyrange));
    assert_int_equal(next, next_of(0));
    assert_int_equal(before, jumps());
    assert_string_equal("jumped", recall(RAW_KEY, next + FAR - JUMP, 0, 0));
    assert_int_equal(next + FAR, next_of(0));
    jumped_once(&before);
    assert_string_equal("DN009", recall(RAW_KEY, COUNTERS_END + 1, 0, 0));
    assert_string_equal("DN009", recall(RAW_KEY, -1, 0, 0));
    assert_string_equal("DN009", recall(NULL, 1, 0, 0));
}

static void *recall_once(void *arg) {
    struct db *db = test_db_open(test, "keyrange");
    *(int64_t *)arg = test_db_int64(db, "SELECT jumped::int FROM dunlin.counters_recall(" KEY
                                        ", '{0,0,0,0,0,0,2000}', '{0,0,0,0,0,0,0}', 0, 0)");
    db_free(db);
    return NULL;
}

static void two_words_at_once_jump_once(void **state) {
    (void)state;
    int64_t before = jumps();
    int64_t jumped = -1;
    pthread_t thread;
    set(6, 1000, HEADROOM, HEADROOM);
    test_db_run(other,
        "BEGIN; SELECT dunlin.counters_recall(" KEY ", '{0,0,0,0,0,0,2000}', '{0,0,0,0,0,0,0}', 0, 0)");
    assert_int_equal(0, pthread_create(&thread, NULL, recall_once, &jumped));
    test_db_await_blocked(superuser);
    test_db_run(other, "COMMIT");
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(0, jumped);
    jumped_once(&before);
    assert_int_equal(2000 + JUMP, next_of(6));
}

static void an_advance_goes_upward(void **state) {
    (void)state;
    int64_t before = jumps();
    set(2, 1000, HEADROOM * 2, HEADROOM * 2);
    assert_int_equal(1000, test_db_int64(keyrange, "SELECT dunlin.range_advance(2, 999, false)"));
    assert_int_equal(1000, test_db_int64(keyrange, "SELECT dunlin.range_advance(2, 1000, false)"));
    assert_int_equal(before, jumps());
    assert_int_equal(5000, test_db_int64(keyrange, "SELECT dunlin.range_advance(2, 5000, false)"));
    jumped_once(&before);
    assert_int_equal(5000, claim(2, 1));
    static const char *const far[] = {"SELECT dunlin.range_advance(2, 5001 + (1::bigint << 33) + 1, false)",
        "SELECT dunlin.range_advance(2, 5001 + (1::bigint << 33) + 1, true)",
        "SELECT dunlin.range_advance(2, 27732715023889, true)"};
    assert_string_equal("DN006", test_db_sqlstate(keyrange, far[0]));
    assert_int_equal(5002 + FAR, test_db_int64(keyrange, far[1]));
    assert_int_equal(5002 + FAR + HEADROOM + STEP, ceiling_of(2));
    assert_int_equal(-5, claim(2, 1));
    assert_string_equal("DN009", test_db_sqlstate(keyrange, far[2]));
    assert_string_equal("DN009", test_db_sqlstate(keyrange, "SELECT dunlin.range_advance(7, 1, true)"));
}

static int set_up(void **state) {
    (void)state;
    test = test_db_create();
    superuser = test_db_open(test, "superuser");
    keyrange = test_db_open(test, "keyrange");
    other = test_db_open(test, "keyrange");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    db_free(superuser);
    db_free(keyrange);
    db_free(other);
    test_db_drop(test);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_installation_creates_at_once),
        cmocka_unit_test(an_unused_slot_waits_until_its_ceiling_was_public),
        cmocka_unit_test(only_a_later_transaction_stamps),
        cmocka_unit_test(a_ceiling_is_raised_while_claims_go_on),
        cmocka_unit_test(nothing_is_handed_out_past_what_is_ready),
        cmocka_unit_test(ceilings_end_where_the_counters_do),
        cmocka_unit_test(claims_at_once_never_overlap),
        cmocka_unit_test(a_jump_lands_below_what_is_ready),
        cmocka_unit_test(a_jump_starts_the_wait_of_a_raise_anew),
        cmocka_unit_test(a_database_that_is_behind_jumps),
        cmocka_unit_test(a_database_that_lost_its_log_jumps),
        cmocka_unit_test(a_word_moves_only_so_far),
        cmocka_unit_test(two_words_at_once_jump_once),
        cmocka_unit_test(an_advance_goes_upward),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
