// SPDX-License-Identifier: MIT
// Counting clicks behind its functions.
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
#include <string.h>

static struct test_db *test;
static struct db *superuser, *clicks, *other, *analyst;

static void test_apply_moves_the_position_and_counts(void **state) {
    (void)state;
    assert_string_equal("NULL", test_db_text(clicks, "SELECT dunlin.clicks_position('a', 't', 0)"));
    assert_string_equal(
        "t", test_db_text(clicks, "SELECT dunlin.clicks_apply('a', 't', 0, -1, 10,"
                                  " '{zz,apply-1,apply-1,apply-1}', '{20000,20001,20000,20001}',"
                                  " '{1,2,3,4}')"));
    assert_int_equal(10, test_db_int64(clicks, "SELECT dunlin.clicks_position('a', 't', 0)"));
    assert_string_equal(
        "t", test_db_text(clicks, "SELECT dunlin.clicks_apply('a', 't', 0, 10, 12, '{apply-1}',"
                                  " '{20001}', '{5}')"));
    assert_string_equal("apply-1 2024-10-04 3\napply-1 2024-10-05 11\nzz 2024-10-04 1",
        test_db_text(analyst, "SELECT concat_ws(' ', code, day, clicks) FROM dunlin.clicks_by_day"
                              " WHERE code IN ('apply-1', 'zz') ORDER BY code, day"));
}

static void test_apply_compares_and_sets(void **state) {
    (void)state;
    static const char *const lost[] = {
        "SELECT dunlin.clicks_apply('b', 't', 0, 5, 6, '{cas-1}', '{20000}', '{1}')",  // no row yet
        "SELECT dunlin.clicks_apply('b', 't', 0, -1, 9, '{cas-1}', '{20000}', '{1}')", // there is one
        "SELECT dunlin.clicks_apply('b', 't', 0, 6, 9, '{cas-1}', '{20000}', '{1}')",  // a zombie ahead
        "SELECT dunlin.clicks_apply('b', 't', 0, 4, 9, '{cas-1}', '{20000}', '{1}')",  // and one behind
    };
    assert_string_equal("f", test_db_text(clicks, lost[0]));
    assert_string_equal("NULL", test_db_text(clicks, "SELECT dunlin.clicks_position('b', 't', 0)"));
    assert_string_equal(
        "t", test_db_text(clicks, "SELECT dunlin.clicks_apply('b', 't', 0, -1, 5, '{}', '{}', '{}')"));
    for (size_t i = 1; i < ARRAY_LEN(lost); i++) {
        assert_string_equal("f", test_db_text(clicks, lost[i]));
    }
    assert_int_equal(5, test_db_int64(clicks, "SELECT dunlin.clicks_position('b', 't', 0)"));
    assert_int_equal(
        0, test_db_int64(analyst, "SELECT count(*) FROM dunlin.clicks_by_day WHERE code = 'cas-1'"));
    // Streams, topics and partitions each have their own; a log that was made anew starts below.
    assert_string_equal("NULL", test_db_text(clicks, "SELECT dunlin.clicks_position('b', 't', 1)"));
    assert_string_equal("NULL", test_db_text(clicks, "SELECT dunlin.clicks_position('b', 'u', 0)"));
    assert_string_equal(
        "t", test_db_text(clicks, "SELECT dunlin.clicks_apply('b', 't', 0, 5, 0, '{}', '{}', '{}')"));
}

static void test_apply_is_all_or_nothing(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"DN009", "SELECT dunlin.clicks_apply('c', 't', 0, -2, 1, '{}', '{}', '{}')"},
        {"DN009", "SELECT dunlin.clicks_apply('c', 't', 0, NULL, 1, '{}', '{}', '{}')"},
        {"DN009", "SELECT dunlin.clicks_apply('c', 't', 0, -1, -1, '{}', '{}', '{}')"},
        {"DN009", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, NULL, NULL, NULL)"},
        {"DN009", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, '{aaaa}', '{}', '{1}')"},
        {"DN009", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, '{aaaa}', '{1}', '{1,2}')"},
        {"23514", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, '{good,\"\"}', '{1,1}', '{1,1}')"},
        {"23514", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, '{good,bad}', '{1,1}', '{1,-1}')"},
        {"23502", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, '{good,NULL}', '{1,1}', '{1,1}')"},
        {"22008", "SELECT dunlin.clicks_apply('c', 't', 0, -1, 1, '{good,bad}', '{1,2147483647}', '{1,1}')"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *sqlstate = test_db_sqlstate(clicks, bad[i][1]);
        if (strcmp(sqlstate, bad[i][0]) != 0) {
            fail_msg("%s: SQLSTATE \"%s\"", bad[i][1], sqlstate);
        }
    }
    assert_string_equal("NULL", test_db_text(clicks, "SELECT dunlin.clicks_position('c', 't', 0)"));
    assert_int_equal(
        0, test_db_int64(analyst, "SELECT count(*) FROM dunlin.clicks_by_day WHERE code = 'good'"));
}

struct call {
    const char *sql;
    int64_t answer;
};

static void *call_function(void *arg) {
    struct call *call = arg;
    struct db *db = test_db_open(test, "clicks");
    call->answer = test_db_int64(db, call->sql);
    db_free(db);
    return NULL;
}

static int64_t second_of_two(const char *open, const char *end, const char *sql) {
    struct call call = {.sql = sql, .answer = -1};
    test_db_run(other, open);
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, call_function, &call));
    test_db_await_blocked(superuser);
    test_db_run(other, end);
    assert_int_equal(0, pthread_join(thread, NULL));
    return call.answer;
}

static void test_two_consumers_of_one_partition(void **state) {
    (void)state;
    static const char first[] =
        "BEGIN; SELECT dunlin.clicks_apply('d', 't', 0, -1, 3, '{two}', '{20000}', '{1}')";
    static const char second[] =
        "SELECT dunlin.clicks_apply('d', 't', 0, -1, 3, '{two}', '{20000}', '{1}')::int";
    static const char first_next[] =
        "BEGIN; SELECT dunlin.clicks_apply('d', 't', 0, 3, 6, '{two}', '{20000}', '{1}')";
    static const char second_next[] =
        "SELECT dunlin.clicks_apply('d', 't', 0, 3, 6, '{two}', '{20000}', '{1}')::int";
    assert_int_equal(0, second_of_two(first, "COMMIT", second));
    assert_int_equal(0, second_of_two(first_next, "COMMIT", second_next));
    assert_int_equal(2, test_db_int64(analyst, "SELECT clicks FROM dunlin.clicks_by_day WHERE code = 'two'"));
    // The first one dies: the second one counts in its place.
    static const char first_last[] =
        "BEGIN; SELECT dunlin.clicks_apply('d', 't', 0, 6, 9, '{two}', '{20000}', '{1}')";
    static const char second_last[] =
        "SELECT dunlin.clicks_apply('d', 't', 0, 6, 9, '{two}', '{20000}', '{1}')::int";
    assert_int_equal(1, second_of_two(first_last, "ROLLBACK", second_last));
    assert_int_equal(3, test_db_int64(analyst, "SELECT clicks FROM dunlin.clicks_by_day WHERE code = 'two'"));
}

static void test_get_fills_days(void **state) {
    (void)state;
    test_db_run(superuser,
        "INSERT INTO dunlin.links (code, long_url, owner_id, source, create_id, created_at, updated_at)"
        " VALUES ('days-1', 'https://d.example/', 'me', 'alias',"
        " '\\x000102030405060708090a0b0c0d0e0f', now(), now())");
    assert_string_equal(
        "(20000,0,0)", test_db_text(clicks, "SELECT r::text FROM"
                                            " dunlin.clicks_get('days-1', 'me', 20000, 20000) AS r"));
    assert_string_equal(
        "t", test_db_text(clicks, "SELECT dunlin.clicks_apply('e', 't', 0, -1, 1,"
                                  " '{days-1,days-1,days-1,days-2}', '{19000,20000,20002,20001}',"
                                  " '{7,1,2,9}')"));
    static const char expected[] = "(20000,1,10)\n(20001,0,10)\n(20002,2,10)\n(20003,0,10)";
    assert_string_equal(
        expected, test_db_text(clicks, "SELECT r::text FROM"
                                       " dunlin.clicks_get('days-1', 'me', 20000, 20003) AS r"));
    assert_string_equal(
        expected, test_db_text(clicks, "SELECT r::text FROM"
                                       " dunlin.clicks_get('days-1', NULL, 20000, 20003) AS r"));
    assert_string_equal(
        "", test_db_text(clicks, "SELECT r::text FROM dunlin.clicks_get('days-1', 'you', 1, 2) AS r"));
    // Counted, but no link.
    assert_string_equal(
        "", test_db_text(clicks, "SELECT r::text FROM dunlin.clicks_get('days-2', NULL, 1, 2) AS r"));
    assert_int_equal(
        3660, test_db_int64(clicks, "SELECT count(*) FROM dunlin.clicks_get('days-1', NULL, 1, 3660)"));
    assert_string_equal(
        "DN009", test_db_sqlstate(clicks, "SELECT dunlin.clicks_get('days-1', NULL, 1, 3661)"));
    assert_string_equal("DN009", test_db_sqlstate(clicks, "SELECT dunlin.clicks_get('days-1', NULL, 2, 1)"));
    assert_string_equal(
        "DN009", test_db_sqlstate(clicks, "SELECT dunlin.clicks_get('days-1', NULL, NULL, 1)"));
}

// Where a row of clicks_daily lies: in the default partition, in its month's, or elsewhere.
#define MONTH_OF(code)                                                                                       \
    "SELECT CASE tableoid::regclass::text WHEN 'dunlin.clicks_daily_default' THEN 'default' ELSE"            \
    " CASE WHEN tableoid::regclass::text = 'dunlin.clicks_daily_' || to_char(day, 'YYYYMM') THEN 'month'"    \
    " ELSE 'wrong' END END FROM dunlin.clicks_daily WHERE code = '" code "'"

static void test_months_are_made_ahead(void **state) {
    (void)state;
    // The migrations made this month and two more.
    assert_int_equal(0, test_db_int64(clicks, "SELECT dunlin.clicks_months_ensure(2)"));
    assert_string_equal(
        "t", test_db_text(clicks,
                 "SELECT dunlin.clicks_apply('f', 't', 0, -1, 1, '{now,later,past}',"
                 " ARRAY[d, d + 130, d - 60], '{1,2,3}')"
                 " FROM (SELECT ((now() AT TIME ZONE 'UTC')::date - date '1970-01-01')::int) AS n (d)"));
    assert_string_equal("month", test_db_text(superuser, MONTH_OF("now")));
    assert_string_equal("default", test_db_text(superuser, MONTH_OF("later")));
    assert_string_equal("default", test_db_text(superuser, MONTH_OF("past")));
    assert_int_equal(4, test_db_int64(clicks, "SELECT dunlin.clicks_months_ensure(6)"));
    assert_int_equal(0, test_db_int64(clicks, "SELECT dunlin.clicks_months_ensure(6)"));
    static const char later_again[] = MONTH_OF("later");
    assert_string_equal("month", test_db_text(superuser, later_again));
    assert_int_equal(
        2, test_db_int64(analyst, "SELECT clicks FROM dunlin.clicks_by_day WHERE code = 'later'"));
    assert_string_equal(
        "t", test_db_text(clicks,
                 "SELECT dunlin.clicks_apply('f', 't', 0, 1, 2, '{later}', ARRAY[d + 130], '{5}')"
                 " FROM (SELECT ((now() AT TIME ZONE 'UTC')::date - date '1970-01-01')::int) AS n (d)"));
    assert_int_equal(
        7, test_db_int64(analyst, "SELECT clicks FROM dunlin.clicks_by_day WHERE code = 'later'"));
    // Still no right of anybody's on the new tables.
    assert_string_equal(
        "42501", test_db_sqlstate(clicks, "SELECT count(*) FROM dunlin.clicks_daily_default"));
    assert_int_equal(
        0, test_db_int64(superuser, "SELECT count(*) FROM pg_class WHERE relname LIKE 'clicks\\_daily\\_%'"
                                    " AND relkind = 'r' AND relowner <> 'dunlin_owner'::regrole"));
    assert_string_equal("DN009", test_db_sqlstate(clicks, "SELECT dunlin.clicks_months_ensure(121)"));
    assert_string_equal("DN009", test_db_sqlstate(clicks, "SELECT dunlin.clicks_months_ensure(-1)"));
}

static void test_two_make_months_at_once(void **state) {
    (void)state;
    static const char first[] = "BEGIN; SELECT dunlin.clicks_months_ensure(9)";
    static const char second[] = "SELECT dunlin.clicks_months_ensure(11)";
    (void)test_db_int64(clicks, "SELECT dunlin.clicks_months_ensure(8)");
    assert_int_equal(2, second_of_two(first, "COMMIT", second));
}

static int set_up(void **state) {
    (void)state;
    test = test_db_create();
    superuser = test_db_open(test, "superuser");
    clicks = test_db_open(test, "clicks");
    other = test_db_open(test, "clicks");
    analyst = test_db_open(test, "analyst");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    db_free(superuser);
    db_free(clicks);
    db_free(other);
    db_free(analyst);
    test_db_drop(test);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apply_moves_the_position_and_counts),
        cmocka_unit_test(test_apply_compares_and_sets),
        cmocka_unit_test(test_apply_is_all_or_nothing),
        cmocka_unit_test(test_two_consumers_of_one_partition),
        cmocka_unit_test(test_get_fills_days),
        cmocka_unit_test(test_months_are_made_ahead),
        cmocka_unit_test(test_two_make_months_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
