// SPDX-License-Identifier: MIT
// Statistics queries as a worker answers them, on a real Postgres (DUNLIN_TEST_PG) and without Kafka.
#include "common/auth/auth.h"
#include "common/instant/instant.h"
#include "dunlin/v1/clicks.pb-c.h"
#include "services/clicks/clicks.h"
#include "services/clicks/clicks_rpc.h"
#include "tests/support/test_db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct test_db *test_db;
static struct db *superuser;
static struct clicks clicks;
static struct rpc_worker worker;
static char owner_key[AUTH_KEY_TEXT];
static char other_key[AUTH_KEY_TEXT];
static char operator_key[AUTH_KEY_TEXT];
static int32_t today;

static void make_key(char key[AUTH_KEY_TEXT], const char *id, const char *owner, const char *scope) {
    char hash[AUTH_HASH_HEX];
    char sql[512];
    auth_make_key(key, hash);
    (void)snprintf(
        sql, sizeof sql, "SELECT dunlin.key_create('%s', '\\x%s', '%s', '%s')", id, hash, owner, scope);
    test_db_run(superuser, sql);
}

static void put_clicks(const char *code, int32_t day, int count) {
    char sql[512];
    (void)snprintf(sql, sizeof sql,
        "INSERT INTO dunlin.clicks_daily (code, day, clicks) VALUES ('%s', date '1970-01-01' + %d, %d)", code,
        (int)day, count);
    test_db_run(superuser, sql);
}

static int open_all(void **state) {
    (void)state;
    test_db = test_db_create();
    superuser = test_db_open(test_db, "superuser");
    make_key(owner_key, "k1", "owner", "links");
    make_key(other_key, "k2", "other", "links");
    make_key(operator_key, "k3", "ops", "operator");
    test_db_run(superuser,
        "INSERT INTO dunlin.links (code, long_url, owner_id, source, create_id, created_at, updated_at) "
        "SELECT c, 'https://dest.example/', 'owner', 'alias', decode(repeat('00', 16), 'hex'), now(), now() "
        "FROM unnest('{some-link,never-clicked}'::text[]) AS c");
    today = instant_day(base_wall_us());
    put_clicks("some-link", today, 3);
    put_clicks("some-link", today - 29, 4);
    put_clicks("some-link", today - 30, 5);
    put_clicks("nobodys", today, 9);
    clicks.config.pg_url = test_db_conninfo(test_db, "clicks");
    clicks_rpc_open(&clicks, 0, &worker);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    clicks_rpc_close(&clicks, &worker);
    db_free(superuser);
    test_db_drop(test_db);
    return 0;
}

// ---- a call

struct answer {
    bool ok;
    int32_t from, to;
    uint64_t total, lifetime;
    size_t day_count;
    struct {
        int32_t day;
        uint64_t clicks;
    } days[CLICKS_DAYS_MAX];
};

static void copy_answer(const Dunlin__V1__GetClicksResponse *response, void *closure_data) {
    struct answer *answer = closure_data;
    memset(answer, 0, sizeof *answer);
    if (response == NULL)
        return;
    answer->ok = true;
    answer->from = response->from_day;
    answer->to = response->to_day;
    answer->total = response->total;
    answer->lifetime = response->lifetime;
    answer->day_count = response->n_days;
    for (size_t i = 0; i < response->n_days; i++) {
        answer->days[i].day = response->days[i]->day;
        answer->days[i].clicks = response->days[i]->clicks;
    }
}

static struct answer *call(const char *key, const char *code, const int32_t *from, const int32_t *to) {
    static struct answer answer;
    struct rpc_context context = {.deadline_us = base_monotonic_us() + 10 * US_PER_S};
    if (key != NULL)
        (void)snprintf(context.authorization, sizeof context.authorization, "Bearer %s", key);
    Dunlin__V1__GetClicksRequest request = DUNLIN__V1__GET_CLICKS_REQUEST__INIT;
    request.code = (char *)(uintptr_t)code;
    request.has_from_day = from != NULL;
    request.has_to_day = to != NULL;
    request.from_day = from != NULL ? *from : 0;
    request.to_day = to != NULL ? *to : 0;
    const struct rpc_context *before = rpc_context_swap(&context);
    dunlin__v1__clicks__get_clicks(worker.services[0], &request, copy_answer, &answer);
    (void)rpc_context_swap(before);
    return &answer;
}

static void assert_refused(const struct answer *answer, enum status status) {
    assert_false(answer->ok);
    assert_int_equal(rpc_outcome()->status, status);
}

// ---- tests

static void the_last_thirty_days(void **state) {
    (void)state;
    const struct answer *answer = call(owner_key, "some-link", NULL, NULL);
    assert_true(answer->ok);
    assert_int_equal(answer->from, today - 29);
    assert_int_equal(answer->to, today);
    assert_int_equal(answer->day_count, 30);
    for (size_t i = 0; i < 30; i++) {
        assert_int_equal(answer->days[i].day, today - 29 + (int32_t)i);
        assert_int_equal(answer->days[i].clicks, i == 0 ? 4 : i == 29 ? 3 : 0);
    }
    assert_int_equal(answer->total, 7);
    assert_int_equal(answer->lifetime, 12);
}

static void the_longest_span(void **state) {
    (void)state;
    int32_t from = today - 3659;
    const struct answer *answer = call(owner_key, "some-link", &from, NULL);
    assert_true(answer->ok);
    assert_int_equal(answer->day_count, CLICKS_DAYS_MAX);
    assert_int_equal(answer->days[0].day, from);
    assert_int_equal(answer->total, 12);
    from--;
    assert_refused(call(owner_key, "some-link", &from, NULL), STATUS_INVALID_ARGUMENT);
    assert_string_equal(rpc_outcome()->violations[0].field, "from");
}

static void days_far_away_are_zero(void **state) {
    (void)state;
    int32_t first = -719162;
    const struct answer *answer = call(owner_key, "some-link", &first, &first);
    assert_true(answer->ok);
    assert_int_equal(answer->day_count, 1);
    assert_int_equal(answer->total, 0);
    int32_t last = 2932896;
    answer = call(owner_key, "some-link", NULL, &last);
    assert_true(answer->ok);
    assert_int_equal(answer->day_count, 30);
}

static void a_link_without_clicks_is_all_zero(void **state) {
    (void)state;
    const struct answer *answer = call(owner_key, "never-clicked", NULL, NULL);
    assert_true(answer->ok);
    assert_int_equal(answer->day_count, 30);
    assert_int_equal(answer->total, 0);
    assert_int_equal(answer->lifetime, 0);
}

static void only_its_owner_and_operators_see_a_link(void **state) {
    (void)state;
    assert_refused(call(other_key, "some-link", NULL, NULL), STATUS_NOT_FOUND);
    assert_string_equal(rpc_outcome()->reason, "LINK_NOT_FOUND");
    assert_true(call(operator_key, "some-link", NULL, NULL)->ok);
    assert_refused(call(owner_key, "nobodys", NULL, NULL), STATUS_NOT_FOUND);
    assert_refused(call(owner_key, "no such code", NULL, NULL), STATUS_NOT_FOUND);
    assert_refused(call(owner_key, "", NULL, NULL), STATUS_NOT_FOUND);
}

static void a_key_is_needed(void **state) {
    (void)state;
    assert_refused(call(NULL, "some-link", NULL, NULL), STATUS_UNAUTHENTICATED);
    assert_refused(call("dk_unknown", "some-link", NULL, NULL), STATUS_UNAUTHENTICATED);
    // Nobody learns of a rule without a key.
    int32_t day = INT32_MAX;
    assert_refused(call(NULL, "some-link", &day, NULL), STATUS_UNAUTHENTICATED);
}

static void a_bad_span_names_its_field(void **state) {
    (void)state;
    int32_t from = 10;
    int32_t to = 9;
    assert_refused(call(owner_key, "some-link", &from, &to), STATUS_INVALID_ARGUMENT);
    assert_string_equal(rpc_outcome()->violations[0].field, "from");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_thirty_days),
        cmocka_unit_test(the_longest_span),
        cmocka_unit_test(days_far_away_are_zero),
        cmocka_unit_test(a_link_without_clicks_is_all_zero),
        cmocka_unit_test(only_its_owner_and_operators_see_a_link),
        cmocka_unit_test(a_key_is_needed),
        cmocka_unit_test(a_bad_span_names_its_field),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
