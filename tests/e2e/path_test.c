// SPDX-License-Identifier: MIT
// The whole path over HTTP, against one real fleet: create, follow, count, read.
#include "common/cache/cache.h"
#include "common/db/db.h"
#include "common/instant/instant.h"
#include "common/linkcache/linkcache.h"
#include "tests/e2e/path.h"
#include "tests/support/json_get.h"
#include "tests/support/links.h"
#include "tests/support/raw.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stack *path_stack;

static int group_setup(void **state) {
    (void)state;
    path_stack = stack_up();
    return 0;
}

static int group_teardown(void **state) {
    (void)state;
    stack_down(path_stack);
    return 0;
}

static void ask_with_key(const char *target, const char *key, const char *fields, struct http_answer *out) {
    http_ask(path_stack->url, &(struct http_request){.target = target, .key = key, .fields = fields}, out);
}

void path_expect_field(const struct http_answer *answer, const char *name, const char *value) {
    const char *seen = http_field(answer, name);
    if (seen == NULL || http_field_count(answer, name) != 1)
        fail_msg("%s is there %zu times", name, http_field_count(answer, name));
    assert_string_equal(seen, value);
}

void path_expect_no_field(const struct http_answer *answer, const char *name) {
    if (http_field(answer, name) != NULL)
        fail_msg("%s: %s", name, http_field(answer, name));
}

// ---- create

static void expect_recent(const char *text) {
    int64_t instant = 0;
    assert_true(instant_parse(text, strlen(text), &instant));
    assert_true(text[strlen(text) - 1] == 'Z');
    int64_t age_us = base_wall_us() - instant;
    assert_true(age_us > -60 * US_PER_S && age_us < 60 * US_PER_S);
}

static void expect_new_link(const struct json_doc *doc, const char *code, const char *url) {
    char short_url[320];
    int64_t version = 0;
    (void)snprintf(short_url, sizeof short_url, "%s/%s", path_stack->url, code);
    assert_string_equal(links_text(doc, "short_url"), short_url);
    assert_string_equal(links_text(doc, "url"), url);
    assert_string_equal(links_text(doc, "owner"), "demo");
    assert_string_equal(links_text(doc, "state"), "active");
    assert_true(json_get_int64(json_root(doc), "version", &version));
    assert_int_equal(version, 1);
    expect_recent(links_text(doc, "created_at"));
    assert_string_equal(links_text(doc, "updated_at"), links_text(doc, "created_at"));
}

static void creates_a_link(void **state) {
    (void)state;
    struct http_answer answer;
    http_post_json(path_stack->url, LINKS_PATH, path_stack->api_key,
        "{\"url\":\"https://dest.example/a?b=c#d\"}", &answer);
    assert_int_equal(answer.status, 201);
    struct json_doc *doc = links_json(&answer);
    const char *code = links_text(doc, "code");
    assert_int_equal(strlen(code), CODES_MIN_LEN);
    assert_true(codes_is_generated_shape(code, strlen(code)));
    expect_new_link(doc, code, "https://dest.example/a?b=c#d");
    assert_string_equal(links_text(doc, "source"), "range");
    assert_true(json_get_is(json_root(doc), "expires_at", JSON_NULL));
    char location[64];
    (void)snprintf(location, sizeof location, LINKS_PATH "/%s", code);
    path_expect_field(&answer, "Location", location);
    path_expect_field(&answer, "Content-Type", "application/json");
    path_expect_field(&answer, "ETag", "\"1\"");
    path_expect_field(&answer, "X-Content-Type-Options", "nosniff");
    assert_non_null(http_field(&answer, "X-Request-Id"));
    json_doc_free(doc);
    http_answer_done(&answer);
}

static void creates_an_alias_once(void **state) {
    (void)state;
    struct http_answer answer;
    struct process_result key;
    http_post_json(path_stack->url, LINKS_PATH, path_stack->api_key,
        "{\"url\":\"https://dest.example/"
        "spring\",\"alias\":\"spring-sale\",\"expires_at\":\"2099-01-31T10:20:00+01:00\"}",
        &answer);
    assert_int_equal(answer.status, 201);
    struct json_doc *doc = links_json(&answer);
    assert_string_equal(links_text(doc, "code"), "spring-sale");
    assert_string_equal(links_text(doc, "source"), "alias");
    assert_string_equal(links_text(doc, "expires_at"), "2099-01-31T09:20:00Z");
    expect_new_link(doc, "spring-sale", "https://dest.example/spring");
    json_doc_free(doc);
    http_answer_done(&answer);
    link_must_redirect(path_stack, "spring-sale", "https://dest.example/spring");

    stack_ctl(path_stack, NULL, &key, WORDS("key", "create", "--owner", "rival"));
    assert_int_equal(key.code, 0);
    key.out[strcspn(key.out, "\n")] = '\0';
    const char *const keys[] = {path_stack->api_key, key.out};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        http_post_json(path_stack->url, LINKS_PATH, keys[i],
            "{\"url\":\"https://other.example/\",\"alias\":\"spring-sale\"}", &answer);
        links_expect_problem(&answer, 409, "urn:dunlin:problem:alias-taken", NULL);
        http_answer_done(&answer);
    }
    process_result_done(&key);
    link_must_redirect(path_stack, "spring-sale", "https://dest.example/spring");
}

static void one_url_twice_is_two_links(void **state) {
    (void)state;
    struct link first, second;
    link_create(path_stack, "{\"url\":\"https://dest.example/twice\"}", &first);
    link_create(path_stack, "{\"url\":\"https://dest.example/twice\"}", &second);
    assert_string_not_equal(first.code, second.code);
}

// ---- follow

static void expect_redirect(const struct http_answer *answer, const char *location) {
    assert_int_equal(answer->status, 302);
    path_expect_field(answer, "Location", location);
    path_expect_field(answer, "Cache-Control", "private, no-store");
    path_expect_field(answer, "X-Robots-Tag", "noindex");
    path_expect_field(answer, "X-Content-Type-Options", "nosniff");
    path_expect_field(answer, "X-Request-Id", "e2e.1_A-z");
    path_expect_no_field(answer, "Referrer-Policy");
    path_expect_no_field(answer, "Set-Cookie");
}

static void follows_get_and_head_on_one_connection(void **state) {
    (void)state;
    static const char target[] = "https://dest.example/%7euser/%zz?q=a+b&r=%2B&t=%20x;y='(!*)'#frag?ment";
    struct link link;
    char json[256], path[64];
    (void)snprintf(json, sizeof json, "{\"url\":\"%s\"}", target);
    link_create(path_stack, json, &link);
    (void)snprintf(path, sizeof path, "/%s", link.code);
    struct http_client *client = http_client_open(path_stack->url);
    assert_non_null(client);
    static const char *const methods[] = {"HEAD", "GET", "HEAD", "GET"};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        struct http_answer answer;
        http_client_send(
            client, &(struct http_request){
                        .method = methods[i], .target = path, .fields = "X-Request-Id: e2e.1_A-z\r\n"});
        http_client_read(client, strcmp(methods[i], "HEAD") == 0, &answer);
        expect_redirect(&answer, target);
        http_answer_done(&answer);
    }
    http_client_close(client);
}

// ---- errors

static void expect_error_page(const char *target, const char *method, int status) {
    static const char *const accepts[] = {"Accept: text/html,*/*;q=0.1\r\n", "Accept: */*\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
        struct http_answer answer;
        http_ask(path_stack->url,
            &(struct http_request){.method = method, .target = target, .fields = accepts[i]}, &answer);
        path_expect_field(&answer, "Vary", "Accept");
        path_expect_field(&answer, "Cache-Control", "no-store");
        path_expect_field(&answer, "X-Robots-Tag", "noindex");
        path_expect_field(&answer, "Referrer-Policy", "no-referrer");
        path_expect_field(&answer, "X-Content-Type-Options", "nosniff");
        path_expect_no_field(&answer, "Location");
        if (i == 0) {
            assert_int_equal(answer.status, status);
            path_expect_field(&answer, "Content-Type", "text/html; charset=utf-8");
            assert_non_null(strstr(buf_text(&answer.body), "<!doctype html>"));
        } else {
            links_expect_problem(&answer, status, "about:blank", NULL);
        }
        http_answer_done(&answer);
    }
}

static void refuses_what_is_not_there_or_not_offered(void **state) {
    (void)state;
    struct link link;
    char target[64];
    link_create(path_stack, "{\"url\":\"https://dest.example/offered\"}", &link);
    (void)snprintf(target, sizeof target, "/%s", link.code);
    expect_error_page("/0000000", "GET", 404);
    expect_error_page("/abc", "GET", 404);
    expect_error_page("/no-such-alias", "GET", 404);
    static const char *const unoffered[] = {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"};
    for (size_t i = 0; i < ARRAY_LEN(unoffered); i++) {
        struct http_answer answer;
        expect_error_page(target, unoffered[i], 405);
        http_ask(path_stack->url, &(struct http_request){.method = unoffered[i], .target = target}, &answer);
        path_expect_field(&answer, "Allow", "GET, HEAD");
        http_answer_done(&answer);
    }
    expect_error_page(target, "BREW", 501);
    expect_error_page("/0000000", "get", 501);
}

static void an_expired_link_is_gone(void **state) {
    (void)state;
    char instant[INSTANT_TEXT], json[160], target[64];
    struct link link;
    int64_t expires_at = base_wall_us() + 2 * US_PER_S;
    instant_format(expires_at, instant);
    (void)snprintf(
        json, sizeof json, "{\"url\":\"https://dest.example/soon\",\"expires_at\":\"%s\"}", instant);
    link_create(path_stack, json, &link);
    (void)snprintf(target, sizeof target, "/%s", link.code);
    link_must_redirect(path_stack, link.code, "https://dest.example/soon");
    AWAIT(5, link_follow(path_stack, target) == 410);
    assert_true(base_wall_us() >= expires_at);
    expect_error_page(target, "GET", 410);

    struct http_answer answer;
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s", link.code);
    ask_with_key(target, path_stack->api_key, NULL, &answer);
    assert_int_equal(answer.status, 200);
    path_expect_field(&answer, "ETag", "\"1-expired\"");
    struct json_doc *doc = links_json(&answer);
    assert_string_equal(links_text(doc, "state"), "expired");
    assert_true(json_get_is(json_root(doc), "url", JSON_NULL));
    json_doc_free(doc);
    http_answer_done(&answer);
    assert_int_equal(link_try_create(path_stack,
                         "{\"url\":\"https://dest.example/\",\"expires_at\":\"2020-01-01T00:00:00Z\"}"),
        422);
}

// ---- read

static void gets_a_link_and_not_twice(void **state) {
    (void)state;
    struct link link;
    char target[64];
    struct http_answer answer;
    link_create(path_stack, "{\"url\":\"https://dest.example/read\"}", &link);
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s", link.code);
    ask_with_key(target, path_stack->api_key, NULL, &answer);
    assert_int_equal(answer.status, 200);
    path_expect_field(&answer, "ETag", "\"1\"");
    struct json_doc *doc = links_json(&answer);
    assert_string_equal(links_text(doc, "code"), link.code);
    expect_new_link(doc, link.code, "https://dest.example/read");
    json_doc_free(doc);
    http_answer_done(&answer);

    static const char *const same[] = {"\"1\"", "W/\"1\"", "\"0\", \"1\"", "*"};
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        char fields[64];
        (void)snprintf(fields, sizeof fields, "If-None-Match: %s\r\n", same[i]);
        ask_with_key(target, path_stack->api_key, fields, &answer);
        assert_int_equal(answer.status, 304);
        path_expect_field(&answer, "ETag", "\"1\"");
        assert_int_equal(answer.body.len, 0);
        http_answer_done(&answer);
    }
    ask_with_key(target, path_stack->api_key, "If-None-Match: \"2\"\r\n", &answer);
    assert_int_equal(answer.status, 200);
    http_answer_done(&answer);
}

static void a_link_is_its_owners(void **state) {
    (void)state;
    struct process_result key;
    struct link link;
    char target[64];
    struct http_answer answer;
    stack_ctl(path_stack, NULL, &key, WORDS("key", "create", "--owner", "stranger"));
    assert_int_equal(key.code, 0);
    key.out[strcspn(key.out, "\n")] = '\0';
    link_create(path_stack, "{\"url\":\"https://dest.example/mine\"}", &link);
    for (int clicks = 0; clicks < 2; clicks++) {
        (void)snprintf(target, sizeof target, LINKS_PATH "/%s%s", link.code, clicks ? "/clicks" : "");
        ask_with_key(target, key.out, NULL, &answer);
        links_expect_problem(&answer, 404, NULL, NULL);
        http_answer_done(&answer);
        ask_with_key(target, NULL, NULL, &answer);
        links_expect_problem(&answer, 401, NULL, NULL);
        path_expect_field(&answer, "WWW-Authenticate", "Bearer");
        http_answer_done(&answer);
        ask_with_key(target, "no-such-key", NULL, &answer);
        links_expect_problem(&answer, 401, NULL, NULL);
        http_answer_done(&answer);
    }
    process_result_done(&key);
}

// ---- caches

static void redis_holds_a_new_link_and_may_lose_it(void **state) {
    (void)state;
    struct link link;
    link_create(path_stack, "{\"url\":\"https://dest.example/cached\"}", &link);

    struct db *db = db_create(&(struct db_options){.conninfo = path_stack->pg, .application = "dunlin-test"});
    struct db_rows *rows;
    assert_int_equal(db_call(db, 0, "SELECT dunlin.database_jumps()", 0, NULL, &rows), STATUS_OK);
    char key[LINKCACHE_KEY];
    linkcache_key(key, db_int64(rows, 0, 0), link.code);
    db_rows_free(rows);
    db_free(db);

    struct cache *cache = NULL;
    struct buf value;
    struct cached_link held = {0};
    buf_init(&value, 65536);
    assert_int_equal(cache_create(path_stack->redis, US_PER_S, &cache, NULL), STATUS_OK);
    assert_int_equal(cache_get(cache, key, &value), STATUS_OK);
    assert_true(linkcache_unpack(link.code, value.data, value.len, &held));
    assert_string_equal(held.url, "https://dest.example/cached");
    assert_int_equal(held.state, LINK_ACTIVE);
    assert_int_equal(held.version, 1);
    cached_link_done(&held);

    struct raw *raw = raw_open(path_stack->redis);
    struct buf line;
    buf_init(&line, 256);
    assert_non_null(raw);
    assert_true(raw_send(raw, "FLUSHALL\r\n", 10) && raw_read_line(raw, &line));
    assert_string_equal(buf_text(&line), "+OK");
    raw_close(raw);
    buf_done(&line);
    buf_clear(&value);
    assert_int_equal(cache_get(cache, key, &value), STATUS_NOT_FOUND);
    link_must_redirect(path_stack, link.code, "https://dest.example/cached");
    link_must_redirect(path_stack, link.code, "https://dest.example/cached");
    cache_free(cache);
    buf_done(&value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creates_a_link),
        cmocka_unit_test(creates_an_alias_once),
        cmocka_unit_test(one_url_twice_is_two_links),
        cmocka_unit_test(follows_get_and_head_on_one_connection),
        cmocka_unit_test(refuses_what_is_not_there_or_not_offered),
        cmocka_unit_test(an_expired_link_is_gone),
        cmocka_unit_test(gets_a_link_and_not_twice),
        cmocka_unit_test(a_link_is_its_owners),
        cmocka_unit_test(clicks_are_counted_within_5_seconds),
        cmocka_unit_test(clicks_are_told_per_day),
        cmocka_unit_test(clicks_refuses_bad_spans),
        cmocka_unit_test(ctl_creates_and_gets),
        cmocka_unit_test(ctl_counts),
        cmocka_unit_test(ctl_decodes),
        cmocka_unit_test(ctl_makes_keys),
        cmocka_unit_test(ctl_says_refused_usage_and_unavailable),
        cmocka_unit_test(redis_holds_a_new_link_and_may_lose_it),
    };
    return cmocka_run_group_tests_name("e2e/path", tests, group_setup, group_teardown);
}
