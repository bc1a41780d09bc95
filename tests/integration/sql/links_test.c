// SPDX-License-Identifier: MIT
// Links and API keys behind their functions.
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

static struct test_db *test;
static struct db *superuser, *writer, *redirector, *clicks;

// Inserts as the writer would and says the outcome, or the SQLSTATE.
struct create {
    const char *code, *url, *owner, *source, *expires_at_us, *create_id, *slot, *counter;
};

static const char *create_on(struct db *db, const struct create *create) {
    static _Thread_local char outcome[16];
    const char *const params[] = {create->code, create->url, create->owner, create->source,
        create->expires_at_us, create->create_id, create->slot, create->counter};
    struct db_rows *rows;
    enum status status = db_call(db, base_monotonic_us() + 30 * US_PER_S,
        "SELECT outcome FROM dunlin.link_create($1, $2, $3, $4, $5, $6, $7, $8)", 8, params, &rows);
    if (status != STATUS_OK) {
        return db_sqlstate(db);
    }
    assert_int_equal(1, db_rows_count(rows));
    (void)snprintf(outcome, sizeof outcome, "%s", db_text(rows, 0, 0));
    db_rows_free(rows);
    return outcome;
}

#define ID_A "\\x000102030405060708090a0b0c0d0e0f"
#define ID_B "\\xffeeddccbbaa99887766554433221100"
#define URL "https://dest.example/a?b=c#d"

static struct create alias(const char *code) {
    return (struct create){.code = code, .url = URL, .owner = "me", .source = "alias", .create_id = ID_A};
}

static void test_create_gives_the_link(void **state) {
    (void)state;
    int64_t before_us = test_db_int64(redirector, "SELECT dunlin.database_now()");
    assert_string_equal("created gives-it " URL " me 1 alias 1 t 253402300799999999",
        test_db_text(writer, "SELECT concat_ws(' ', outcome, code, url, owner, state, source, version, "
                             "created_at_us = updated_at_us,"
                             " expires_at_us) FROM dunlin.link_create('gives-it', '" URL
                             "', 'me', 'alias', 253402300799999999,"
                             " '" ID_A "', NULL, NULL)"));
    int64_t created_us = test_db_int64(writer, "SELECT created_at_us FROM dunlin.link_get('gives-it', 'me')");
    assert_true(created_us >= before_us);
    assert_string_equal("gives-it " URL " me 1 alias 1 t 253402300799999999",
        test_db_text(writer,
            "SELECT concat_ws(' ', code, url, owner, state, source, version,"
            " created_at_us = updated_at_us, expires_at_us) FROM dunlin.link_get('gives-it', NULL)"));
    assert_string_equal(
        "t", test_db_text(superuser, "SELECT custom FROM dunlin.links WHERE code = 'gives-it'"));
}

static void test_taken_and_replayed(void **state) {
    (void)state;
    struct create first = alias("taken-1");
    assert_string_equal("created", create_on(writer, &first));
    assert_string_equal("replayed", create_on(writer, &first));
    struct create rival = first;
    rival.create_id = ID_B;
    assert_string_equal("taken", create_on(writer, &rival));
    rival = first;
    rival.owner = "somebody-else";
    assert_string_equal("taken", create_on(writer, &rival));
    assert_string_equal(
        "(taken,,,,,,,,,)", test_db_text(writer, "SELECT r::text FROM dunlin.link_create('taken-1', '" URL
                                                 "', 'me', 'alias', NULL, '" ID_B "', NULL, NULL) AS r"));
    assert_int_equal(1, test_db_int64(superuser, "SELECT count(*) FROM dunlin.links WHERE code = 'taken-1'"));
    // Letter case tells codes apart.
    struct create other = alias("Taken-1");
    assert_string_equal("created", create_on(writer, &other));
}

// What a retry is told is the first answer, also when the link has changed or ended meanwhile.
static void test_replay_after_change(void **state) {
    (void)state;
    struct create create = alias("replay-1");
    create.expires_at_us = "253402300799999999";
    assert_string_equal("created", create_on(writer, &create));
    test_db_run(superuser,
        "UPDATE dunlin.links SET state = 3, long_url = NULL, version = 2, updated_at = now()"
        " WHERE code = 'replay-1'");
    assert_string_equal("replayed " URL " 1 1 t",
        test_db_text(writer,
            "SELECT concat_ws(' ', outcome, url, state, version, created_at_us = updated_at_us)"
            " FROM dunlin.link_create('replay-1', '" URL "', 'me', 'alias', 253402300799999999,"
            " '" ID_A "', NULL, NULL)"));
    create.expires_at_us = "1";
    assert_string_equal("replayed", create_on(writer, &create));
    // The tombstone keeps its code.
    create = alias("replay-1");
    create.create_id = ID_B;
    assert_string_equal("taken", create_on(writer, &create));
}

struct rival {
    struct create create;
    const char *outcome;
};

static void *run_rival(void *arg) {
    static const char *const outcomes[] = {"created", "replayed", "taken"};
    struct rival *rival = arg;
    struct db *db = test_db_open(test, "writer");
    const char *outcome = create_on(db, &rival->create);
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        if (strcmp(outcome, outcomes[i]) == 0) {
            rival->outcome = outcomes[i];
        }
    }
    db_free(db);
    return NULL;
}

// The second one comes while the first one's transaction is open; then that ends.
static const char *race(const char *first_sql, const char *end, const char *code, const char *create_id) {
    struct rival rival = {.create = alias(code), .outcome = "nothing"};
    rival.create.create_id = create_id;
    test_db_run(writer, first_sql);
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, run_rival, &rival));
    test_db_await_blocked(superuser);
    test_db_run(writer, end);
    assert_int_equal(0, pthread_join(thread, NULL));
    return rival.outcome;
}

#define OPEN(code)                                                                                           \
    "BEGIN; SELECT dunlin.link_create('" code "', '" URL "', 'me', 'alias', NULL, '" ID_A "', NULL, NULL)"

static void test_two_creates_at_once(void **state) {
    (void)state;
    assert_string_equal("taken", race(OPEN("race-1"), "COMMIT", "race-1", ID_B));
    assert_string_equal("replayed", race(OPEN("race-2"), "COMMIT", "race-2", ID_A));
    assert_string_equal("created", race(OPEN("race-3"), "ROLLBACK", "race-3", ID_B));
}

static void test_counter_must_cover(void **state) {
    (void)state;
    test_db_run(superuser, "UPDATE dunlin.key_ranges SET next_start = 100 WHERE slot = 2");
    struct create create = {.code = "abcdefg",
        .url = URL,
        .owner = "me",
        .source = "range",
        .create_id = ID_A,
        .slot = "2",
        .counter = "100"};
    assert_string_equal("DN003", create_on(writer, &create));
    assert_string_equal("COUNTER_NOT_COVERED", db_error_detail(writer));
    create.counter = "-1";
    assert_string_equal("DN003", create_on(writer, &create));
    create.counter = "5";
    create.slot = "7";
    assert_string_equal("DN003", create_on(writer, &create));
    create.slot = "2";
    create.counter = "99";
    assert_string_equal("created", create_on(writer, &create));
    // Slot and counter are said for source range, and for no other.
    create.counter = NULL;
    assert_string_equal("DN009", create_on(writer, &create));
    create = alias("counted");
    create.slot = "2";
    create.counter = "1";
    assert_string_equal("DN009", create_on(writer, &create));
    assert_int_equal(0, test_db_int64(superuser, "SELECT count(*) FROM dunlin.links WHERE code = 'counted'"));
}

static void test_expiry_must_come(void **state) {
    (void)state;
    struct create create = alias("expiry-1");
    create.expires_at_us = "0";
    assert_string_equal("DN004", create_on(writer, &create));
    create.expires_at_us = "-9223372036854775808";
    assert_string_equal("DN004", create_on(writer, &create));
    char now[32];
    (void)snprintf(now, sizeof now, "%" PRId64, test_db_int64(redirector, "SELECT dunlin.database_now()"));
    create.expires_at_us = now;
    assert_string_equal("DN004", create_on(writer, &create));
    create.expires_at_us = "253402300800000000";
    assert_string_equal("DN009", create_on(writer, &create));
    create.expires_at_us = "9223372036854775807";
    assert_string_equal("DN009", create_on(writer, &create));
    create.expires_at_us = "253402300799999999";
    assert_string_equal("created", create_on(writer, &create));
}

// The last line of defence: what the writer should have refused.
static void test_the_table_refuses(void **state) {
    (void)state;
    char long_url[8300];
    memset(long_url, 'a', sizeof long_url);
    memcpy(long_url, "https://d.example/", 18);
    long_url[8193] = '\0';
    struct create ok = alias("refuse-1");
    struct create bad[12];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        bad[i] = ok;
    }
    bad[0].code = "abc";
    bad[1].code = "abcdefghijklmnopqrstuvwxyz12345";
    bad[2].code = "abc/d";
    bad[3].code = "abcd\n";
    bad[4].url = "";
    bad[5].url = long_url;
    bad[6].url = "https://d.example/\r\nSet-Cookie: a=b";
    bad[7].url = "https://d.example/\xc3\xa4";
    bad[8].owner = "";
    bad[9].owner = "a b";
    bad[10].source = "other";
    bad[11].create_id = "\\x00";
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *outcome = create_on(writer, &bad[i]);
        if (strcmp(outcome, "23514") != 0) {
            fail_msg("bad create %zu: %s", i, outcome);
        }
    }
    ok.url = NULL;
    assert_string_equal("23514", create_on(writer, &ok));
    long_url[8192] = '\0';
    ok.url = long_url;
    assert_string_equal("created", create_on(writer, &ok));
    assert_int_equal(
        8192, test_db_int64(redirector, "SELECT octet_length(url) FROM dunlin.link_find('refuse-1')"));
}

static void test_get_is_the_owners(void **state) {
    (void)state;
    struct create create = alias("mine-1");
    assert_string_equal("created", create_on(writer, &create));
    assert_string_equal("mine-1", test_db_text(writer, "SELECT code FROM dunlin.link_get('mine-1', 'me')"));
    assert_string_equal("mine-1", test_db_text(writer, "SELECT code FROM dunlin.link_get('mine-1', NULL)"));
    assert_string_equal("", test_db_text(writer, "SELECT code FROM dunlin.link_get('mine-1', 'you')"));
    assert_string_equal("", test_db_text(writer, "SELECT code FROM dunlin.link_get('absent-1', NULL)"));
}

static void test_find(void **state) {
    (void)state;
    struct create create = alias("find-1");
    assert_string_equal("created", create_on(writer, &create));
    test_db_run(superuser, "UPDATE dunlin.links SET redirect_status = 301, max_age = 60, permanent = true,"
                           " forward_query = true, version = 7 WHERE code = 'find-1'");
    assert_string_equal("find-1|7|1|-|301|60|t|f|t|" URL,
        test_db_text(redirector,
            "SELECT concat_ws('|', code, version, state, coalesce(expires_at_us::text, '-'),"
            " redirect_status, max_age, permanent, strict, forward_query, url)"
            " FROM dunlin.link_find('find-1')"));
    assert_string_equal(
        "t", test_db_text(redirector, "SELECT now_us BETWEEN dunlin.database_now() - 60000000 AND"
                                      " dunlin.database_now() FROM dunlin.link_find('find-1')"));
    assert_string_equal("", test_db_text(redirector, "SELECT code FROM dunlin.link_find('FIND-1')"));
    assert_string_equal("", test_db_text(redirector, "SELECT code FROM dunlin.link_find(NULL)"));
}

// Expired from the very instant on, swept or not; disabled, deleted and swept links as they are stored.
static void test_retired_links_have_no_url(void **state) {
    (void)state;
    test_db_run(superuser,
        "INSERT INTO dunlin.links (code, long_url, owner_id, source, state, create_id, created_at, "
        "updated_at, expires_at)"
        " SELECT 'state-' || c, CASE WHEN s < 3 THEN '" URL "' END, 'me', 'alias', s, '" ID_A "',"
        "  now() - interval '1 day', now(), e FROM (VALUES"
        "  ('a', 1, now() + interval '1 hour'), ('b', 2, NULL), ('c', 3, NULL), ('d', 4, now() - interval '1 "
        "hour'),"
        "  ('e', 1, now()), ('f', 2, now() - interval '1 second'), ('g', 3, now() - interval '1 second')) AS "
        "v (c, s, e)");
    static const char expected[] = "a1t\nb2t\nc3f\nd4f\ne4f\nf4f\ng3f";
    assert_string_equal(
        expected, test_db_text(redirector, "SELECT c || state || (url IS NOT NULL)::text::char(1)"
                                           " FROM unnest('{a,b,c,d,e,f,g}'::text[]) AS v (c),"
                                           " dunlin.link_find('state-' || c)"));
    assert_string_equal(expected, test_db_text(writer, "SELECT c || state || (url IS NOT NULL)::text::char(1)"
                                                       " FROM unnest('{a,b,c,d,e,f,g}'::text[]) AS v (c),"
                                                       " dunlin.link_get('state-' || c, 'me')"));
}

#define HASH_1 "decode(repeat('01', 32), 'hex')"
#define HASH_2 "decode(repeat('02', 32), 'hex')"

static void test_keys(void **state) {
    (void)state;
    assert_string_equal(
        "", test_db_sqlstate(writer, "SELECT dunlin.key_create('k1', " HASH_1 ", 'me', 'links')"));
    assert_string_equal(
        "", test_db_sqlstate(writer, "SELECT dunlin.key_create('k1', " HASH_1 ", 'me', 'links')"));
    assert_string_equal(
        "23505", test_db_sqlstate(writer, "SELECT dunlin.key_create('k1', " HASH_2 ", 'me', 'links')"));
    assert_string_equal(
        "23505", test_db_sqlstate(writer, "SELECT dunlin.key_create('k2', " HASH_1 ", 'me', 'links')"));
    assert_string_equal(
        "23514", test_db_sqlstate(writer, "SELECT dunlin.key_create('k2', " HASH_2 ", 'me', 'root')"));
    assert_string_equal(
        "23514", test_db_sqlstate(writer, "SELECT dunlin.key_create('k2', '\\x01', 'me', 'links')"));
    assert_string_equal(
        "", test_db_sqlstate(writer, "SELECT dunlin.key_create('k2', " HASH_2 ", 'op', 'operator')"));

    assert_string_equal(
        "(k1,me,links)", test_db_text(clicks, "SELECT r::text FROM dunlin.key_find(" HASH_1 ") AS r"));
    assert_string_equal(
        "(k2,op,operator)", test_db_text(writer, "SELECT r::text FROM dunlin.key_find(" HASH_2 ") AS r"));
    assert_string_equal("", test_db_text(writer, "SELECT r::text FROM dunlin.key_find('\\x01') AS r"));

    assert_string_equal("t", test_db_text(writer, "SELECT dunlin.key_revoke('k1')"));
    int64_t revoked_us = test_db_int64(writer, "SELECT revoked_at_us FROM dunlin.key_list() WHERE id = 'k1'");
    assert_string_equal("t", test_db_text(writer, "SELECT dunlin.key_revoke('k1')"));
    assert_int_equal(
        revoked_us, test_db_int64(writer, "SELECT revoked_at_us FROM dunlin.key_list() WHERE id = 'k1'"));
    assert_string_equal("f", test_db_text(writer, "SELECT dunlin.key_revoke('k9')"));
    assert_string_equal("", test_db_text(writer, "SELECT r::text FROM dunlin.key_find(" HASH_1 ") AS r"));
    assert_string_equal("k1 me links t\nk2 op operator f",
        test_db_text(writer,
            "SELECT concat_ws(' ', id, owner, scope, revoked_at_us IS NOT NULL) FROM dunlin.key_list()"
            " WHERE created_at_us > 0"));
}

static int set_up(void **state) {
    (void)state;
    test = test_db_create();
    superuser = test_db_open(test, "superuser");
    writer = test_db_open(test, "writer");
    redirector = test_db_open(test, "redirector");
    clicks = test_db_open(test, "clicks");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    db_free(superuser);
    db_free(writer);
    db_free(redirector);
    db_free(clicks);
    test_db_drop(test);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_gives_the_link),
        cmocka_unit_test(test_taken_and_replayed),
        cmocka_unit_test(test_replay_after_change),
        cmocka_unit_test(test_two_creates_at_once),
        cmocka_unit_test(test_counter_must_cover),
        cmocka_unit_test(test_expiry_must_come),
        cmocka_unit_test(test_the_table_refuses),
        cmocka_unit_test(test_get_is_the_owners),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_retired_links_have_no_url),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
