// SPDX-License-Identifier: MIT
// Who may do what, the counters, and the identity of the database.
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
#include <string.h>

#define JUMP (INT64_C(1) << 30)

static struct test_db *test;
static struct db *superuser, *owner, *keyrange, *writer, *redirector, *clicks, *analyst;

// Each function and who may run it. A function that is not in this list fails the test.
static void test_functions_belong_to_their_roles(void **state) {
    (void)state;
    static const char expected[] = "bad_argument:\n"
                                   "calendar_day:\n"
                                   "ceiling_for:\n"
                                   "ceiling_prepare: keyrange\n"
                                   "ceiling_tended:\n"
                                   "ceilings_get: keyrange\n"
                                   "clicks_apply: clicks\n"
                                   "clicks_get: clicks\n"
                                   "clicks_months_ensure: clicks\n"
                                   "clicks_position: clicks\n"
                                   "commit_durably:\n"
                                   "counters_end:\n"
                                   "counters_jump:\n"
                                   "counters_recall: keyrange\n"
                                   "database_guard: keyrange writer\n"
                                   "database_jumps: redirector writer\n"
                                   "database_now: clicks keyrange redirector writer\n"
                                   "identity_now:\n"
                                   "instant:\n"
                                   "instant_us:\n"
                                   "jumps_after:\n"
                                   "key_create: writer\n"
                                   "key_find: clicks writer\n"
                                   "key_list: writer\n"
                                   "key_revoke: writer\n"
                                   "link_create: writer\n"
                                   "link_find: redirector\n"
                                   "link_get: writer\n"
                                   "range_advance: keyrange\n"
                                   "range_claim: keyrange\n"
                                   "wal_position:";
    assert_string_equal(
        expected, test_db_text(superuser,
                      "SELECT p.proname || ':' || coalesce(string_agg(' ' || r.name, '' ORDER BY r.name), "
                      "'') FROM pg_proc AS p"
                      " LEFT JOIN unnest('{keyrange,writer,redirector,clicks,analyst}'::text[]) AS r (name)"
                      "  ON has_function_privilege('dunlin_' || r.name, p.oid, 'EXECUTE')"
                      " WHERE p.pronamespace = 'dunlin'::regnamespace GROUP BY p.oid, p.proname ORDER BY "
                      "p.proname COLLATE \"C\""));
    assert_int_equal(
        0, test_db_int64(superuser, "SELECT count(*) FROM pg_proc WHERE pronamespace = 'dunlin'::regnamespace"
                                    " AND has_function_privilege('public', oid, 'EXECUTE')"));
}

// A function with its owner's rights must not find its tables and operators by the caller's search path.
static void test_definer_functions_set_their_search_path(void **state) {
    (void)state;
    assert_int_equal(19, test_db_int64(superuser, "SELECT count(*) FROM pg_proc WHERE pronamespace ="
                                                  " 'dunlin'::regnamespace AND prosecdef"));
    assert_int_equal(
        0, test_db_int64(superuser,
               "SELECT count(*) FROM pg_proc WHERE pronamespace = 'dunlin'::regnamespace AND prosecdef"
               " AND NOT coalesce('search_path=dunlin, pg_temp' = ANY (proconfig), false)"));
}

static void test_no_role_has_a_table(void **state) {
    (void)state;
    assert_string_equal("analyst clicks_by_day SELECT",
        test_db_text(superuser,
            "SELECT r.name || ' ' || c.relname || ' ' || p.right FROM pg_class AS c,"
            " unnest('{keyrange,writer,redirector,clicks,analyst}'::text[]) AS r (name),"
            " unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p (\"right\")"
            " WHERE c.relnamespace = 'dunlin'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
            " AND has_table_privilege('dunlin_' || r.name, c.oid, p.right)"));
}

static void test_what_each_role_is_refused(void **state) {
    (void)state;
    const struct {
        struct db **db;
        const char *sql;
    } refused[] = {
        {&keyrange, "SELECT code FROM dunlin.links"},
        {&keyrange, "UPDATE dunlin.key_ranges SET next_start = 0"},
        {&keyrange, "SELECT dunlin.link_find('abcdefg')"},
        {&keyrange, "SELECT dunlin.link_create('abcdefg', 'https://d.example/', 'me', 'alias', NULL, NULL, "
                    "NULL, NULL)"},
        {&writer, "INSERT INTO dunlin.links (code) VALUES ('abcdefg')"},
        {&writer, "DELETE FROM dunlin.links"},
        {&writer, "SELECT hash FROM dunlin.api_keys"},
        {&writer, "SELECT dunlin.range_claim(0, 1, '\\x0000000000000000')"},
        {&writer, "SELECT dunlin.clicks_apply('s', 't', 0, -1, 1, '{}', '{}', '{}')"},
        {&redirector, "SELECT long_url FROM dunlin.links"},
        {&redirector, "SELECT dunlin.link_create('abcdefg', 'https://d.example/', 'me', 'alias', NULL, NULL, "
                      "NULL, NULL)"},
        {&redirector, "SELECT dunlin.database_guard()"},
        {&redirector, "SELECT dunlin.key_find('\\x00')"},
        {&clicks, "INSERT INTO dunlin.clicks_daily VALUES ('abcdefg', '2026-01-01', 1)"},
        {&clicks, "SELECT dunlin.key_create('k', '\\x00', 'me', 'operator')"},
        {&clicks, "SELECT dunlin.key_revoke('k')"},
        {&clicks, "SELECT dunlin.link_find('abcdefg')"},
        {&analyst, "SELECT code FROM dunlin.clicks_daily"},
        {&analyst, "SELECT code FROM dunlin.links"},
        {&analyst, "SELECT dunlin.database_now()"},
        {&analyst, "CREATE TABLE dunlin.mine (x int)"},
        {&clicks, "CREATE TABLE dunlin.mine (x int)"},
        {&writer, "CREATE FUNCTION dunlin.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'"},
        {&redirector, "CREATE TEMPORARY TABLE mine (x int)"},
        {&keyrange, "CREATE TABLE public.mine (x int)"},
        {&redirector, "SELECT number FROM dunlin.schema_migrations"},
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        const char *sqlstate = test_db_sqlstate(*refused[i].db, refused[i].sql);
        if (strcmp(sqlstate, "42501") != 0) {
            fail_msg("%s: SQLSTATE \"%s\"", refused[i].sql, sqlstate);
        }
    }
    assert_int_equal(0, test_db_int64(analyst, "SELECT count(*) FROM dunlin.clicks_by_day"));
}

static void test_clock_is_the_servers(void **state) {
    (void)state;
    int64_t before_us = base_wall_us();
    int64_t now_us = test_db_int64(redirector, "SELECT dunlin.database_now()");
    assert_true(now_us >= before_us - US_PER_S && now_us <= base_wall_us() + US_PER_S);
}

// To the last microsecond of year 9999, past what a double holds.
static void test_instants_are_exact(void **state) {
    (void)state;
    assert_string_equal("9999-12-31 23:59:59.999999",
        test_db_text(owner, "SELECT (dunlin.instant(253402300799999999) AT TIME ZONE 'UTC')::text"));
    assert_int_equal(
        0, test_db_int64(owner, "SELECT count(*) FROM unnest('{0,-1,1483228799999999,253402300799999999,"
                                "9007199254740993}'::bigint[]) AS t (us)"
                                " WHERE dunlin.instant_us(dunlin.instant(us)) <> us"));
}

static void test_claims_follow_each_other(void **state) {
    (void)state;
    assert_string_equal("(0,1000)", test_db_text(keyrange, "SELECT r::text FROM dunlin.range_claim(0, 1000,"
                                                           " '\\x0102030405060708') AS r"));
    assert_string_equal("(1000,1001)", test_db_text(keyrange, "SELECT r::text FROM dunlin.range_claim(0, 1,"
                                                              " '\\x0102030405060708') AS r"));
    assert_string_equal(
        "(0,16777216)", test_db_text(keyrange, "SELECT r::text FROM dunlin.range_claim(6, 16777216,"
                                               " '\\x0102030405060708') AS r"));
}

static void test_claims_are_checked(void **state) {
    (void)state;
    static const char *const bad[] = {
        "SELECT dunlin.range_claim(-1, 1, '\\x0102030405060708')",
        "SELECT dunlin.range_claim(7, 1, '\\x0102030405060708')",
        "SELECT dunlin.range_claim(NULL, 1, '\\x0102030405060708')",
        "SELECT dunlin.range_claim(0, 0, '\\x0102030405060708')",
        "SELECT dunlin.range_claim(0, 16777217, '\\x0102030405060708')",
        "SELECT dunlin.range_claim(0, NULL, '\\x0102030405060708')",
        "SELECT dunlin.range_claim(0, 1, '\\x01020304050607')",
        "SELECT dunlin.range_claim(0, 1, NULL)",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_string_equal("DN009", test_db_sqlstate(keyrange, bad[i]));
    }
    assert_string_equal(
        "DN001", test_db_sqlstate(keyrange, "SELECT dunlin.range_claim(0, 1, '\\x0102030405060709')"));
    assert_string_equal("KEY_MISMATCH", db_error_detail(keyrange));
}

static void test_counters_end(void **state) {
    (void)state;
    test_db_run(superuser, "UPDATE dunlin.key_ranges SET next_start = 27732715023888 - 5 WHERE slot = 5");
    assert_string_equal(
        "DN002", test_db_sqlstate(keyrange, "SELECT dunlin.range_claim(5, 6, '\\x0102030405060708')"));
    assert_string_equal(
        "(27732715023883,27732715023888)", test_db_text(keyrange, "SELECT r::text FROM dunlin.range_claim("
                                                                  "5, 5, '\\x0102030405060708') AS r"));
    assert_string_equal(
        "DN002", test_db_sqlstate(keyrange, "SELECT dunlin.range_claim(5, 1, '\\x0102030405060708')"));
}

#define CLAIMERS 8
#define CLAIMS 40
#define CLAIM_SIZE 10

static void *claim_many(void *arg) {
    int64_t *starts = arg;
    struct db *db = test_db_open(test, "keyrange");
    for (int i = 0; i < CLAIMS; i++) {
        starts[i] =
            test_db_int64(db, "SELECT block_start FROM dunlin.range_claim(3, 10, '\\x0102030405060708')");
    }
    db_free(db);
    return NULL;
}

static int compare_int64(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void test_claims_at_once_never_overlap(void **state) {
    (void)state;
    static int64_t starts[CLAIMERS][CLAIMS];
    pthread_t threads[CLAIMERS];
    for (size_t i = 0; i < CLAIMERS; i++) {
        assert_int_equal(0, pthread_create(&threads[i], NULL, claim_many, starts[i]));
    }
    for (size_t i = 0; i < CLAIMERS; i++) {
        assert_int_equal(0, pthread_join(threads[i], NULL));
    }
    qsort(starts, (size_t)CLAIMERS * CLAIMS, sizeof starts[0][0], compare_int64);
    for (int i = 0; i < CLAIMERS * CLAIMS; i++) {
        assert_int_equal(i * CLAIM_SIZE, starts[i / CLAIMS][i % CLAIMS]);
    }
}

static const char *counters(void) {
    return test_db_text(superuser, "SELECT next_start::text FROM dunlin.key_ranges ORDER BY slot");
}

static void test_same_database_does_not_jump(void **state) {
    (void)state;
    char before[512];
    (void)snprintf(before, sizeof before, "%s", counters());
    assert_string_equal("(0,f)", test_db_text(writer, "SELECT r::text FROM dunlin.database_guard() AS r"));
    assert_string_equal(before, counters());
    assert_int_equal(0, test_db_int64(redirector, "SELECT dunlin.database_jumps()"));
}

// Each part of the identity by itself; the counters of unused slots jump too, once.
static void test_another_database_jumps(void **state) {
    (void)state;
    static const char *const changes[] = {
        "UPDATE dunlin.database_identity SET system_identifier = system_identifier + 1",
        "UPDATE dunlin.database_identity SET timeline = '0000002A'",
        "UPDATE dunlin.database_identity SET database_oid = 1",
        "UPDATE dunlin.database_identity SET table_oid = 1",
    };
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        int64_t used = test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 0");
        int64_t unused = test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 1");
        int64_t jumps = test_db_int64(redirector, "SELECT dunlin.database_jumps()");
        test_db_run(superuser, changes[i]);
        assert_string_equal("t", test_db_text(writer, "SELECT jumped FROM dunlin.database_guard()"));
        assert_int_equal(
            used + JUMP, test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 0"));
        assert_int_equal(unused + JUMP,
            test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 1"));
        // A number that no lost history of this database can have used: it comes from the clock.
        int64_t after = test_db_int64(redirector, "SELECT dunlin.database_jumps()");
        assert_true(after > jumps && after >= base_wall_us() - 60 * US_PER_S);
        assert_string_equal("f", test_db_text(writer, "SELECT jumped FROM dunlin.database_guard()"));
        assert_int_equal(after, test_db_int64(redirector, "SELECT dunlin.database_jumps()"));
    }
}

static void test_a_claim_guards_itself(void **state) {
    (void)state;
    int64_t before = test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 2");
    test_db_run(superuser, "UPDATE dunlin.database_identity SET timeline = '0000002A'");
    assert_int_equal(before + JUMP,
        test_db_int64(keyrange, "SELECT block_start FROM dunlin.range_claim(2, 1, '\\x0102030405060708')"));
}

static void *guard(void *arg) {
    struct db *db = test_db_open(test, "writer");
    int64_t *jumped = arg;
    *jumped = test_db_int64(db, "SELECT jumped::int FROM dunlin.database_guard()");
    db_free(db);
    return NULL;
}

static void test_two_guards_jump_once(void **state) {
    (void)state;
    int64_t jumps = test_db_int64(redirector, "SELECT dunlin.database_jumps()");
    test_db_run(superuser, "UPDATE dunlin.database_identity SET timeline = '0000002A'");
    test_db_run(writer, "BEGIN; SELECT dunlin.database_guard()");
    pthread_t thread;
    int64_t jumped = -1;
    assert_int_equal(0, pthread_create(&thread, NULL, guard, &jumped));
    test_db_await_blocked(superuser);
    test_db_run(writer, "COMMIT");
    assert_int_equal(0, pthread_join(thread, NULL));
    assert_int_equal(0, jumped);
    assert_true(test_db_int64(redirector, "SELECT dunlin.database_jumps()") > jumps);
}

// A restore that lost the row knows no number of jumps: the new one must be above every old one.
static void test_missing_identity_jumps(void **state) {
    (void)state;
    int64_t before = test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 4");
    int64_t jumps = test_db_int64(redirector, "SELECT dunlin.database_jumps()");
    test_db_run(superuser, "DELETE FROM dunlin.database_identity");
    assert_string_equal("true", test_db_text(writer, "SELECT jumped::text FROM dunlin.database_guard()"));
    assert_int_equal(
        before + JUMP, test_db_int64(superuser, "SELECT next_start FROM dunlin.key_ranges WHERE slot = 4"));
    assert_true(test_db_int64(redirector, "SELECT dunlin.database_jumps()") > jumps);
}

static void test_commits_are_durable(void **state) {
    (void)state;
    static const char *const calls[] = {
        "SELECT dunlin.range_claim(4, 1, '\\x0102030405060708')",
        ("SELECT dunlin.link_create('durable', 'https://d.example/', 'me', 'alias', NULL,"
         " '\\x000102030405060708090a0b0c0d0e0f', NULL, NULL)"),
        "SELECT dunlin.clicks_apply('durable', 't', 0, -1, 1, '{}', '{}', '{}')",
        "SELECT dunlin.key_create('durable', decode(repeat('ab', 32), 'hex'), 'me', 'links')",
        "SELECT dunlin.key_revoke('durable')",
    };
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        test_db_run(owner, "SET synchronous_commit = off; BEGIN");
        assert_string_equal("", test_db_sqlstate(owner, calls[i]));
        assert_string_equal("on", test_db_text(owner, "SELECT current_setting('synchronous_commit')"));
        test_db_run(owner, "COMMIT");
    }
}

static int set_up(void **state) {
    (void)state;
    test = test_db_create();
    struct {
        struct db **db;
        const char *role;
    } const all[] = {{&superuser, "superuser"}, {&owner, "owner"}, {&keyrange, "keyrange"},
        {&writer, "writer"}, {&redirector, "redirector"}, {&clicks, "clicks"}, {&analyst, "analyst"}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        *all[i].db = test_db_open(test, all[i].role);
    }
    // The ceilings have a test of their own; here every slot has been in use for long.
    test_db_run(superuser, "UPDATE dunlin.key_ranges SET ceiling = dunlin.counters_end(), ceiling_ready = "
                           "dunlin.counters_end()");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    struct db *const all[] = {superuser, owner, keyrange, writer, redirector, clicks, analyst};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        db_free(all[i]);
    }
    test_db_drop(test);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_belong_to_their_roles),
        cmocka_unit_test(test_definer_functions_set_their_search_path),
        cmocka_unit_test(test_no_role_has_a_table),
        cmocka_unit_test(test_what_each_role_is_refused),
        cmocka_unit_test(test_clock_is_the_servers),
        cmocka_unit_test(test_instants_are_exact),
        cmocka_unit_test(test_claims_follow_each_other),
        cmocka_unit_test(test_claims_are_checked),
        cmocka_unit_test(test_counters_end),
        cmocka_unit_test(test_claims_at_once_never_overlap),
        cmocka_unit_test(test_same_database_does_not_jump),
        cmocka_unit_test(test_another_database_jumps),
        cmocka_unit_test(test_a_claim_guards_itself),
        cmocka_unit_test(test_two_guards_jump_once),
        cmocka_unit_test(test_missing_identity_jumps),
        cmocka_unit_test(test_commits_are_durable),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
