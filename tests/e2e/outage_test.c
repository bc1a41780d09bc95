// SPDX-License-Identifier: MIT
// Each real process of a fleet stopped in turn: redirects go on, what needs the missing part says so at once,
// and all works again once it is back.
#include "common/cache/cache.h"
#include "common/db/db.h"
#include "common/linkcache/linkcache.h"
#include "tests/support/json_get.h"
#include "tests/support/links.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_REDIS "https://dest.example/in-redis"
#define IN_POSTGRES "https://dest.example/in-postgres"
#define ANY "{\"url\":\"https://dest.example/any\"}"
#define BACK_S 20 // how long the fleet may take to notice that a part is back

static struct stack *stack;
static struct link cached;   // Redis holds it
static struct link uncached; // Redis doesn't
static int64_t jumps;

// ---- the fleet

static struct cache *open_cache(void) {
    struct cache *cache = NULL;
    assert_int_equal(cache_create(stack->redis, US_PER_S, &cache, NULL), STATUS_OK);
    return cache;
}

static bool redis_holds(const char *code) {
    char key[LINKCACHE_KEY];
    struct buf value;
    struct cache *cache = open_cache();
    linkcache_key(key, jumps, code);
    buf_init(&value, 65536);
    bool held = cache_get(cache, key, &value) == STATUS_OK;
    buf_done(&value);
    cache_free(cache);
    return held;
}

static void forget_in_redis(const char *code) {
    char key[LINKCACHE_KEY];
    struct cache *cache = open_cache();
    linkcache_key(key, jumps, code);
    assert_int_equal(cache_delete(cache, key), STATUS_OK);
    cache_free(cache);
}

static int group_setup(void **state) {
    (void)state;
    struct db_rows *rows;
    stack = stack_up();
    struct db *db = db_create(&(struct db_options){.conninfo = stack->pg, .application = "dunlin-test"});
    assert_int_equal(db_call(db, 0, "SELECT dunlin.database_jumps()", 0, NULL, &rows), STATUS_OK);
    jumps = db_int64(rows, 0, 0);
    db_rows_free(rows);
    db_free(db);
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    stack_down(stack);
    return 0;
}

// Whatever the test before left behind, everything runs; and one link is in Redis, one is not.
static int test_setup(void **state) {
    (void)state;
    struct process_result result;
    stack_dev(stack, NULL, &result, WORDS("up"));
    assert_int_equal(result.code, 0);
    process_result_done(&result);
    AWAIT(BACK_S, link_try_create(stack, ANY) == 201);
    AWAIT(BACK_S, (link_create(stack, "{\"url\":\"" IN_REDIS "\"}", &cached), redis_holds(cached.code)));
    link_create(stack, "{\"url\":\"" IN_POSTGRES "\"}", &uncached);
    forget_in_redis(uncached.code);
    return 0;
}

// ---- what is asked of it

static bool links_answer(void) {
    char target[96];
    struct http_answer answer;
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s", cached.code);
    http_ask(stack->url, &(struct http_request){.target = target, .key = stack->api_key}, &answer);
    bool good = answer.status == 200;
    http_answer_done(&answer);
    return good;
}

static bool creates_work(void) {
    return link_try_create(stack, ANY) == 201;
}

static void expect_redirects(void) {
    link_must_redirect(stack, cached.code, IN_REDIS);
    link_must_redirect(stack, uncached.code, IN_POSTGRES);
}

// 503 within 1 s, saying when to come back; `reason` ends the problem's type, NULL for any, "" for none.
static void expect_unavailable(const struct http_request *request, const char *reason) {
    struct http_answer answer;
    char type[96];
    (void)snprintf(type, sizeof type, "%s%s",
        reason == NULL || reason[0] == '\0' ? "about:blank" : "urn:dunlin:problem:",
        reason == NULL ? "" : reason);
    http_ask(stack->url, request, &answer);
    links_expect_problem(&answer, 503, reason == NULL ? NULL : type, NULL);
    if (answer.took_us > US_PER_S)
        fail_msg("%s: 503 after %d ms", request->target, (int)(answer.took_us / US_PER_MS));
    assert_non_null(http_field(&answer, "Retry-After"));
    assert_string_equal(http_field(&answer, "Cache-Control"), "no-store");
    http_answer_done(&answer);
}

static void expect_no_create(const char *json, const char *reason) {
    expect_unavailable(&(struct http_request){.method = "POST",
                           .target = LINKS_PATH,
                           .key = stack->api_key,
                           .type = "application/json",
                           .body = json},
        reason);
}

static void expect_no_read(const char *suffix, const char *reason) {
    char target[96];
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s%s", cached.code, suffix);
    expect_unavailable(&(struct http_request){.target = target, .key = stack->api_key}, reason);
}

static void visit(int times) {
    for (int i = 0; i < times; i++)
        link_must_redirect(stack, cached.code, IN_REDIS);
}

// ---- one part after the other

static void without_the_writer(void **state) {
    (void)state;
    stack_stop_part(stack, "writer");
    expect_redirects();
    for (int i = 0; i < 3; i++) {
        expect_no_create(ANY, "peer-unreachable");
        expect_no_read("", "peer-unreachable");
    }
    assert_int_equal(link_clicks(stack, uncached.code) >= 0, true); // the clicks service answers on its own
    stack_start_part(stack, "writer", NULL);
    AWAIT(BACK_S, creates_work());
    assert_true(links_answer());
}

// The writer goes on with the block that it holds; a small one shows the end of it.
static void without_keyrange(void **state) {
    (void)state;
    static const char *const small_blocks[] = {"BLOCK_SIZE_MIN", "20", NULL};
    stack_stop_part(stack, "writer");
    stack_start_part(stack, "writer", small_blocks);
    AWAIT(BACK_S, creates_work());
    stack_stop_part(stack, "keyrange");
    int created = 0;
    while (created < 2000 && creates_work())
        created++;
    // At least what was left of the first block; a block that was claimed ahead may come on top.
    assert_in_range(created, 1, 1999);
    print_message("%d creates until the counter values were used up\n", created);
    expect_no_create(ANY, "keyrange-unavailable");
    expect_redirects();
    assert_int_equal(
        link_try_create(stack, "{\"url\":\"https://dest.example/alias\",\"alias\":\"without-keyrange\"}"),
        201);
    assert_true(links_answer());
    stack_start_part(stack, "keyrange", NULL);
    AWAIT(BACK_S, creates_work());
    stack_stop_part(stack, "writer");
    stack_start_part(stack, "writer", NULL);
}

static void without_clicks(void **state) {
    (void)state;
    visit(1);
    link_await_clicks(stack, cached.code, 1, 5);
    stack_stop_part(stack, "clicks");
    visit(5);
    expect_redirects();
    for (int i = 0; i < 3; i++)
        expect_no_read("/clicks", "peer-unreachable");
    assert_true(creates_work());
    assert_true(links_answer());
    stack_start_part(stack, "clicks", NULL);
    AWAIT(BACK_S, link_clicks(stack, cached.code) >= 0);
    link_await_clicks(stack, cached.code, 7, BACK_S);
    link_await_clicks(stack, uncached.code, 1, 5);
}

static void without_kafka(void **state) {
    (void)state;
    visit(1);
    link_await_clicks(stack, cached.code, 1, 5);
    stack_stop_part(stack, "kafka");
    visit(5);
    expect_redirects();
    assert_true(creates_work());
    assert_true(links_answer());
    assert_int_equal(link_clicks(stack, cached.code), 1); // what is counted can be read
    stack_start_part(stack, "kafka", NULL);
    link_await_clicks(stack, cached.code, 7, 30);
    visit(1);
    link_await_clicks(stack, cached.code, 8, 5);
}

static bool new_link_is_cached(void) {
    struct link link;
    link_create(stack, ANY, &link);
    return redis_holds(link.code);
}

static void without_redis(void **state) {
    (void)state;
    stack_stop_part(stack, "redis");
    for (int i = 0; i < 20; i++)
        expect_redirects();
    assert_int_equal(link_follow(stack, "/unknown-code"), 404);
    assert_true(creates_work());
    assert_true(links_answer());
    assert_true(link_clicks(stack, cached.code) >= 0);
    stack_start_part(stack, "redis", NULL);
    AWAIT(BACK_S, new_link_is_cached());
    expect_redirects();
}

static void without_postgres(void **state) {
    (void)state;
    char target[64];
    (void)snprintf(target, sizeof target, "/%s", uncached.code);
    stack_stop_part(stack, "postgres");
    for (int i = 0; i < 3; i++) {
        visit(1);
        expect_unavailable(&(struct http_request){.target = target}, "");
        expect_unavailable(
            &(struct http_request){.target = "/unknown-code"}, ""); // no 404 that is a failure in disguise
        expect_no_create(ANY, NULL);
        expect_no_create("{\"url\":\"https://dest.example/alias\",\"alias\":\"without-postgres\"}", NULL);
        expect_no_read("", NULL);
        expect_no_read("/clicks", NULL);
    }
    stack_start_part(stack, "postgres", NULL);
    AWAIT(BACK_S, link_follow(stack, target) == 302);
    AWAIT(BACK_S, creates_work());
    AWAIT(BACK_S, link_clicks(stack, cached.code) == 3);
    AWAIT(BACK_S, link_follow(stack, "/unknown-code") == 404);
}

// ---- the order of starts

static size_t log_size(const char *part) {
    char *said = stack_logs(stack, part);
    size_t size = strlen(said);
    free(said);
    return size;
}

static bool said_since(const char *part, size_t size, const char *what) {
    char *said = stack_logs(stack, part);
    bool found = strlen(said) > size && strstr(said + size, what) != NULL;
    free(said);
    return found;
}

static void services_wait_for_what_they_need(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *said[3];
    } services[] = {
        {"redirector", {"can't connect to Postgres", "can't connect to Redis", "\"msg\":\"not ready\""}},
        {"clicks", {"waiting for Postgres", "waiting for Kafka", "\"msg\":\"not ready\""}},
        {"writer", {"waiting for Postgres", "is the keyrange service reachable?", "\"msg\":\"not ready\""}},
        {"keyrange", {"waiting for Postgres", "\"msg\":\"not ready\"", "\"msg\":\"starting\""}},
    };
    static const char *const backends[] = {"kafka", "redis", "postgres"};
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        stack_stop_part(stack, services[i].name);
    for (size_t i = 0; i < ARRAY_LEN(backends); i++)
        stack_stop_part(stack, backends[i]);
    for (size_t i = 0; i < ARRAY_LEN(services); i++) {
        // ./dev would wait until it is ready.
        struct process_result result;
        size_t size = log_size(services[i].name);
        struct process *start = stack_dev_start(stack, WORDS("start", services[i].name));
        for (size_t j = 0; j < ARRAY_LEN(services[i].said); j++)
            AWAIT(10, said_since(services[i].name, size, services[i].said[j]));
        process_signal(start, SIGTERM);
        process_wait(start, 10 * US_PER_S, &result);
        process_result_done(&result);
        struct stack_part part = stack_status(stack, services[i].name);
        if (part.pid == 0 || part.ready)
            fail_msg("%s: pid %d, %s", services[i].name, part.pid, part.ready ? "ready" : "not ready");
    }
    for (size_t i = 0; i < ARRAY_LEN(backends); i++)
        stack_start_part(stack, backends[i], NULL);
    for (size_t i = 0; i < ARRAY_LEN(services); i++)
        AWAIT(BACK_S, stack_status(stack, services[i].name).ready);
    AWAIT(BACK_S, creates_work());
    expect_redirects();
    visit(1);
    link_await_clicks(stack, cached.code, 2, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_the_writer, test_setup),
        cmocka_unit_test_setup(without_keyrange, test_setup),
        cmocka_unit_test_setup(without_clicks, test_setup),
        cmocka_unit_test_setup(without_kafka, test_setup),
        cmocka_unit_test_setup(without_redis, test_setup),
        cmocka_unit_test_setup(without_postgres, test_setup),
        cmocka_unit_test_setup(services_wait_for_what_they_need, test_setup),
    };
    return cmocka_run_group_tests_name("e2e/outage", tests, group_setup, group_teardown);
}
