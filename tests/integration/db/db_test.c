// SPDX-License-Identifier: MIT
#include "common/buf/buf.h"
#include "common/db/db.h"
#include "pg_bench.h"

#define PID "SELECT pg_backend_pid()"

struct bench {
    struct db *db;
    struct db *other;
    int connects;
    enum status verdict; // of on_connect
};

static enum status on_connect(struct db *db, void *arg) {
    struct bench *bench = arg;
    struct db_rows *rows = NULL;
    assert_int_equal(db_call(db, 0, "SELECT 42", 0, NULL, &rows), STATUS_OK);
    assert_int_equal(db_int64(rows, 0, 0), 42);
    db_rows_free(rows);
    bench->connects++;
    return bench->verdict;
}

static int setup(void **state) {
    struct bench *bench = base_calloc(1, sizeof *bench);
    const struct db_options options = {
        .conninfo = conninfo(), .application = "dunlin-test", .on_connect = on_connect, .arg = bench};
    bench->db = db_create(&options);
    const struct db_options plain = {.conninfo = conninfo(), .application = "dunlin-test-other"};
    bench->other = db_create(&plain);
    *state = bench;
    return 0;
}

static int teardown(void **state) {
    struct bench *bench = *state;
    db_free(bench->db);
    db_free(bench->other);
    free(bench);
    return 0;
}

static int64_t call_int64(struct db *db, const char *sql) {
    struct db_rows *rows = NULL;
    assert_int_equal(db_call(db, 0, sql, 0, NULL, &rows), STATUS_OK);
    int64_t value = db_int64(rows, 0, 0);
    db_rows_free(rows);
    return value;
}

static void check_error(struct db *db, const char *sql, enum status status, const char *sqlstate) {
    struct db_rows *untouched = NULL;
    assert_int_equal(db_call(db, 0, sql, 0, NULL, &untouched), status);
    assert_null(untouched);
    assert_string_equal(db_sqlstate(db), sqlstate);
}

static void test_values_and_nulls(void **state) {
    struct bench *bench = *state;
    assert_false(db_is_connected(bench->db));
    const char *const params[] = {"-9223372036854775808", "it's \"quoted\" %s \\ \r\n", NULL, "t"};
    struct db_rows *rows = NULL;
    assert_int_equal(db_call(bench->db, 0,
                         "SELECT $1::bigint, $2::text, $3::text, $4::boolean, false, '' "
                         "UNION ALL SELECT 7, NULL, 'x', NULL, true, 'y'",
                         4, params, &rows),
        STATUS_OK);
    assert_true(db_is_connected(bench->db));
    assert_int_equal(db_rows_count(rows), 2);
    assert_true(db_int64(rows, 0, 0) == INT64_MIN);
    assert_string_equal(db_text(rows, 0, 1), params[1]);
    assert_int_equal(db_text_len(rows, 0, 1), strlen(params[1]));
    assert_true(db_is_null(rows, 0, 2));
    assert_string_equal(db_text(rows, 0, 2), "");
    assert_int_equal(db_text_len(rows, 0, 2), 0);
    assert_true(db_bool(rows, 0, 3));
    assert_false(db_bool(rows, 0, 4));
    assert_false(db_is_null(rows, 0, 5));
    assert_int_equal(db_int64(rows, 1, 0), 7);
    assert_true(db_is_null(rows, 1, 1));
    assert_false(db_bool(rows, 1, 3));
    assert_true(db_bool(rows, 1, 4));
    db_rows_free(rows);
    db_rows_free(NULL);
    assert_int_equal(bench->connects, 1);
}

static void test_session(void **state) {
    struct bench *bench = *state;
    struct db_rows *rows = NULL;
    assert_int_equal(
        db_call(bench->db, 0,
            "SELECT current_setting('application_name'), current_setting('client_encoding')", 0, NULL, &rows),
        STATUS_OK);
    assert_string_equal(db_text(rows, 0, 0), "dunlin-test");
    assert_string_equal(db_text(rows, 0, 1), "UTF8");
    db_rows_free(rows);
    // Prepared once, under one name for one text.
    static const char sql[] = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%prepared%'";
    assert_int_equal(call_int64(bench->db, sql), 1);
    assert_int_equal(call_int64(bench->db, sql), 1);
    assert_int_equal(db_call(bench->db, 0, "SELECT 1 WHERE false", 0, NULL, NULL), STATUS_OK);
}

static void test_array_of_hostile_texts(void **state) {
    struct bench *bench = *state;
    static const char *const texts[] = {"", "NULL", "null", "{}", "{a,b}", "a,b", "\"", "\\", "\\\\\"",
        "'; --", " lead and trail ", "\t\r\n", "$1", "%s%n", "\xc3\xa9\xf0\x9f\x98\x80"};
    struct buf array;
    buf_init(&array, 10000);
    db_array_begin(&array);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        db_array_text(&array, texts[i], strlen(texts[i]));
    db_array_end(&array);
    assert_true(buf_ok(&array));
    const char *const params[] = {buf_text(&array)};
    struct db_rows *rows = NULL;
    assert_int_equal(
        db_call(bench->db, 0, "SELECT t FROM unnest($1::text[]) WITH ORDINALITY AS a (t, n) ORDER BY n", 1,
            params, &rows),
        STATUS_OK);
    assert_int_equal(db_rows_count(rows), ARRAY_LEN(texts));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_false(db_is_null(rows, i, 0));
        assert_string_equal(db_text(rows, i, 0), texts[i]);
    }
    db_rows_free(rows);
    buf_clear(&array);
    db_array_begin(&array);
    db_array_int64(&array, INT64_MAX);
    db_array_int64(&array, -1);
    db_array_end(&array);
    const char *const numbers[] = {buf_text(&array)};
    assert_int_equal(
        db_call(bench->db, 0, "SELECT sum(n) FROM unnest($1::bigint[]) n", 1, numbers, &rows), STATUS_OK);
    assert_string_equal(db_text(rows, 0, 0), "9223372036854775806");
    db_rows_free(rows);
    buf_done(&array);
}

static void test_errors_are_told_apart(void **state) {
    struct bench *bench = *state;
    struct db *db = bench->db;
    check_error(db, "SELECT 1/0", STATUS_INTERNAL, "22012");
    check_error(db, "SELECT no_such_function()", STATUS_INTERNAL, "42883");
    check_error(db, "SELECT no_such_function()", STATUS_INTERNAL, "42883"); // not taken for prepared
    assert_non_null(strstr(db_error_text(db), "42883: function no_such_function() does not exist"));
    check_error(
        db, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$", STATUS_ABORTED, "40001");
    check_error(
        db, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$", STATUS_ABORTED, "40P01");
    check_error(db, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '55P03'; END $$",
        STATUS_DEADLINE_EXCEEDED, "55P03");
    check_error(
        db, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53100'; END $$", STATUS_UNAVAILABLE, "53100");
    check_error(
        db, "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '08006'; END $$", STATUS_UNAVAILABLE, "08006");
    check_error(db,
        "DO $$ BEGIN RAISE EXCEPTION 'the alias is taken' USING ERRCODE = 'DN001', DETAIL = 'ALIAS_TAKEN'; "
        "END $$",
        STATUS_INTERNAL, "DN001");
    assert_string_equal(db_error_detail(db), "ALIAS_TAKEN");
    assert_string_equal(db_error_text(db), "DN001: the alias is taken");
    check_error(db, "SELECT 1/0", STATUS_INTERNAL, "22012");
    assert_string_equal(db_error_detail(db), "");
    assert_int_equal(bench->connects, 1);
}

static void test_a_value_is_not_in_the_text(void **state) {
    struct bench *bench = *state;
    const char *const params[] = {"hush"};
    assert_int_equal(db_call(bench->db, 0, "SELECT $1::bigint", 1, params, NULL), STATUS_INTERNAL);
    assert_string_equal(db_sqlstate(bench->db), "22P02");
    assert_null(strstr(db_error_text(bench->db), "hush"));
}

static void test_a_commit_that_fails(void **state) {
    struct bench *bench = *state;
    assert_int_equal(
        db_run(bench->db, 0, "CREATE TEMP TABLE t (n int UNIQUE DEFERRABLE INITIALLY DEFERRED);"), STATUS_OK);
    check_error(bench->db, "INSERT INTO t VALUES (1), (1) RETURNING n", STATUS_INTERNAL, "23505");
    assert_int_equal(call_int64(bench->db, "SELECT count(*) FROM t"), 0);
}

static void test_run(void **state) {
    struct bench *bench = *state;
    assert_int_equal(
        db_run(bench->db, 0, "CREATE TEMP TABLE t (n int); INSERT INTO t VALUES (1), (2)"), STATUS_OK);
    assert_int_equal(db_run(bench->db, 0, "INSERT INTO t VALUES (3); SELECT 1/0"), STATUS_INTERNAL);
    assert_string_equal(db_sqlstate(bench->db), "22012");
    assert_int_equal(call_int64(bench->db, "SELECT count(*) FROM t"), 2);
    assert_int_equal(db_run(bench->db, 0, "BEGIN"), STATUS_OK);
    assert_int_equal(db_run(bench->db, 0, "INSERT INTO t VALUES (3)"), STATUS_OK);
    assert_int_equal(db_run(bench->db, 0, "ROLLBACK"), STATUS_OK);
    assert_int_equal(call_int64(bench->db, "SELECT count(*) FROM t"), 2);
    assert_int_equal(db_run(bench->db, 0, ""), STATUS_OK);
    assert_int_equal(db_run(bench->db, 0, "COPY t FROM STDIN"), STATUS_INTERNAL);
    assert_int_equal(call_int64(bench->db, "SELECT 5"), 5);
}

static void test_server_side_timeouts(void **state) {
    struct bench *bench = *state;
    assert_int_equal(db_run(bench->db, 0, "SET statement_timeout = '50ms'"), STATUS_OK);
    check_error(bench->db, "SELECT pg_sleep(10)", STATUS_DEADLINE_EXCEEDED, "57014");
    assert_int_equal(bench->connects, 1);
    assert_true(db_is_connected(bench->db));
}

static void test_a_read_only_server(void **state) {
    struct bench *bench = *state;
    assert_int_equal(db_run(bench->db, 0, "SET default_transaction_read_only = on"), STATUS_OK);
    check_error(bench->db, "CREATE TABLE never (n int)", STATUS_UNAVAILABLE, "25006");
    assert_false(db_is_connected(bench->db)); // the name may lead to another server by now
}

static int64_t elapsed_ms(int64_t begun) {
    return (base_monotonic_us() - begun) / US_PER_MS;
}

static void test_a_deadline_closes_the_connection(void **state) {
    struct bench *bench = *state;
    int64_t pid = call_int64(bench->db, PID);
    int64_t begun = base_monotonic_us();
    assert_int_equal(
        db_call(bench->db, begun + 200 * US_PER_MS, "SELECT pg_sleep(5)", 0, NULL, NULL), STATUS_UNKNOWN);
    assert_in_range(elapsed_ms(begun), 199, 1500);
    assert_false(db_is_connected(bench->db));
    assert_string_equal(db_sqlstate(bench->db), "");
    assert_true(call_int64(bench->db, PID) != pid);
    assert_int_equal(bench->connects, 2);
    assert_int_equal(db_call(bench->db, begun, "SELECT 1", 0, NULL, NULL),
        STATUS_DEADLINE_EXCEEDED); // over before it began
    assert_true(db_is_connected(bench->db));
}

static void terminate(struct bench *bench, int64_t pid) {
    char text[DB_INT64_TEXT];
    const char *const params[] = {db_param_int64(text, pid)};
    struct db_rows *rows = NULL;
    // Waits for its end.
    assert_int_equal(
        db_call(bench->other, 0, "SELECT pg_terminate_backend($1::int, 5000)", 1, params, &rows), STATUS_OK);
    assert_true(db_bool(rows, 0, 0));
    db_rows_free(rows);
}

static void test_a_lost_idle_connection_is_made_anew(void **state) {
    struct bench *bench = *state;
    int64_t pid = call_int64(bench->db, PID);
    terminate(bench, pid);
    assert_true(call_int64(bench->db, PID) != pid); // in the same call
    assert_int_equal(bench->connects, 2);
    pid = call_int64(bench->db, PID);
    terminate(bench, pid);
    assert_int_equal(db_run(bench->db, 0, "SELECT 1; SELECT 2"), STATUS_OK);
    assert_int_equal(bench->connects, 3);
}

static void test_a_lost_transaction_is_not_gone_on_with(void **state) {
    struct bench *bench = *state;
    int64_t pid = call_int64(bench->db, PID);
    assert_int_equal(db_run(bench->db, 0, "BEGIN"), STATUS_OK);
    terminate(bench, pid);
    assert_int_equal(db_call(bench->db, 0, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE);
    assert_int_equal(call_int64(bench->db, "SELECT 1"), 1);
}

static void test_terminated_while_it_ran(void **state) {
    struct bench *bench = *state;
    check_error(
        bench->db, "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(5)", STATUS_UNAVAILABLE, "57P01");
    assert_false(db_is_connected(bench->db));
    assert_int_equal(bench->connects, 1); // it was not run again
    assert_int_equal(call_int64(bench->db, "SELECT 3"), 3);
}

static void test_a_stale_plan_is_prepared_again(void **state) {
    struct bench *bench = *state;
    assert_int_equal(db_run(bench->db, 0, "CREATE TEMP TABLE t AS SELECT 1 AS a"), STATUS_OK);
    static const char sql[] = "SELECT * FROM t";
    assert_int_equal(call_int64(bench->db, sql), 1);
    assert_int_equal(db_run(bench->db, 0, "ALTER TABLE t ALTER a TYPE text USING '2'"), STATUS_OK);
    assert_int_equal(call_int64(bench->db, sql), 2);
    assert_int_equal(db_run(bench->db, 0, "DEALLOCATE ALL"), STATUS_OK);
    assert_int_equal(call_int64(bench->db, sql), 2);
    assert_int_equal(bench->connects, 1);
}

static void test_on_connect_may_refuse(void **state) {
    struct bench *bench = *state;
    bench->verdict = STATUS_FAILED_PRECONDITION;
    assert_int_equal(db_call(bench->db, 0, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE);
    assert_int_equal(bench->connects, 1);
    assert_string_equal(db_error_text(bench->db), "the new connection was refused by its user's own check");
    assert_int_equal(db_call(bench->db, 0, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE);
    assert_int_equal(bench->connects, 1); // the pause between attempts
    bench->verdict = STATUS_OK;
    int64_t until = base_monotonic_us() + 5 * US_PER_S;
    enum status status = STATUS_UNAVAILABLE;
    while (status == STATUS_UNAVAILABLE && base_monotonic_us() < until)
        status = db_call(bench->db, 0, "SELECT 1", 0, NULL, NULL);
    assert_int_equal(status, STATUS_OK);
}

static struct db *open_at(int port) {
    char text[80];
    (void)snprintf(text, sizeof text, "postgresql://nobody:hush@127.0.0.1:%d/none", port);
    const struct db_options options = {.conninfo = text, .application = "dunlin-test"};
    return db_create(&options);
}

static void test_a_silent_server_times_out(void **state) {
    (void)state;
    int port = 0;
    int listener = listen_anywhere(&port);
    struct db *db = open_at(port);
    int64_t begun = base_monotonic_us();
    assert_int_equal(db_call(db, begun + 200 * US_PER_MS, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE);
    assert_in_range(elapsed_ms(begun), 199, 1000);
    begun = base_monotonic_us();
    assert_int_equal(db_call(db, 0, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE); // no attempt
    assert_in_range(elapsed_ms(begun), 0, 40);
    assert_string_equal(db_error_text(db), "no connection within the deadline");
    db_free(db);
    (void)close(listener);
}

static void test_nobody_listens(void **state) {
    (void)state;
    int port = 0;
    (void)close(listen_anywhere(&port));
    struct db *db = open_at(port);
    assert_int_equal(db_call(db, 0, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE);
    assert_non_null(strstr(db_error_text(db), "refused"));
    db_free(db);
}

static void test_a_bad_conninfo_keeps_its_secret(void **state) {
    (void)state;
    static const char *const bad[] = {"postgresql://u:hush@[::1", "host=h password='hush", "hush",
        "postgresql://u:hush@h/db?x", "postgresql://h:hush/db", "postgresql://u:hu%zzsh@h/db"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const struct db_options options = {.conninfo = bad[i], .application = "dunlin-test"};
        struct db *db = db_create(&options);
        assert_int_equal(db_call(db, 0, "SELECT 1", 0, NULL, NULL), STATUS_UNAVAILABLE);
        assert_string_equal(db_error_text(db), "the connection string is malformed");
        db_free(db);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_values_and_nulls),
        TEST(test_session),
        TEST(test_array_of_hostile_texts),
        TEST(test_errors_are_told_apart),
        TEST(test_a_value_is_not_in_the_text),
        TEST(test_a_commit_that_fails),
        TEST(test_run),
        TEST(test_server_side_timeouts),
        TEST(test_a_read_only_server),
        TEST(test_a_deadline_closes_the_connection),
        TEST(test_a_lost_idle_connection_is_made_anew),
        TEST(test_a_lost_transaction_is_not_gone_on_with),
        TEST(test_terminated_while_it_ran),
        TEST(test_a_stale_plan_is_prepared_again),
        TEST(test_on_connect_may_refuse),
        TEST(test_a_silent_server_times_out),
        TEST(test_nobody_listens),
        TEST(test_a_bad_conninfo_keeps_its_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
