// SPDX-License-Identifier: MIT
#include "tests/e2e/cases.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

void one_trailing_slash_is_the_same_link(void **state) {
    (void)state;
    static const struct {
        const char *before, *after;
        int status;
    } rows[] = {
        {"/", "", 302},
        {"/", "/", 302},
        {"/", "/?x=1", 302},
        {"//", "", 404},
        {"/", "//", 404},
        {"/", "%2F", 404},
        {"/", "/x", 404},
    };
    struct link link;
    link_create(cases_stack, "{\"url\":\"https://dest.example/slash\",\"alias\":\"slash-40\"}", &link);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char target[80];
        (void)snprintf(target, sizeof target, "%s%s%s", rows[i].before, link.code, rows[i].after);
        cases_expect_get(40, target, rows[i].status);
    }
    cases_expect_alias_refused(40, "slash-41/");
}

void dot_segments_stay_among_links(void **state) {
    (void)state;
    static const char *const aliases[] = {".", "..", "...", "....", "%2e%2e", "a/../b"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        cases_expect_alias_refused(44, aliases[i]);
    struct link link;
    char target[80];
    link_create(cases_stack, "{\"url\":\"https://dest.example/dots\"}", &link);
    static const char *const before[] = {"/..", "/x/..", "/.", "/%2e%2e", "/api/..", "/..%2f.."};
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        (void)snprintf(target, sizeof target, "%s/%s", before[i], link.code);
        cases_expect_get(44, target, 404);
    }
    cases_expect_get(44, "/../../../../etc/passwd", 404);
    cases_expect_get(44, "/..%2f..%2f..%2fetc%2fpasswd", 404);
}

void escaped_letters_are_the_same_link(void **state) {
    (void)state;
    struct link link;
    link_create(cases_stack, "{\"url\":\"https://dest.example/escaped\",\"alias\":\"abcd\"}", &link);
    static const char *const spellings[] = {"abcd", "%61bcd", "a%62%63d", "%61%62%63%64/"};
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++)
        link_must_redirect(cases_stack, spellings[i], "https://dest.example/escaped");
    link_await_clicks(cases_stack, "abcd", (int64_t)ARRAY_LEN(spellings), 5);
    cases_expect_get(46, "/%2561bcd", 404); // decoded once
}

void letter_case_tells_links_apart(void **state) {
    (void)state;
    struct link link;
    link_create(cases_stack, "{\"url\":\"https://dest.example/upper\",\"alias\":\"Foo-48\"}", &link);
    cases_expect_get(48, "/foo-48", 404);
    link_create(cases_stack, "{\"url\":\"https://dest.example/lower\",\"alias\":\"foo-48\"}", &link);
    link_must_redirect(cases_stack, "Foo-48", "https://dest.example/upper");
    link_must_redirect(cases_stack, "foo-48", "https://dest.example/lower");
    cases_expect_get(48, "/FOO-48", 404);
    link_await_clicks(cases_stack, "Foo-48", 1, 5);
    link_await_clicks(cases_stack, "foo-48", 1, 5);
}

void codes_are_ascii(void **state) {
    (void)state;
    static const char *const aliases[] = {
        "\xf0\x9f\x98\x80\xf0\x9f\x98\x80",                                         // an emoji, twice
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", // a family
        "\xea\xb5\xac\xea\xb8\x80", "caf\xc3\xa9-50",
        "\\u0441\\u0430fe", // Cyrillic look-alikes
    };
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        cases_expect_alias_refused(50, aliases[i]);
    cases_expect_get(50, "/%EA%B5%AC%EA%B8%80", 404);
    cases_expect_get(50, "/\xea\xb5\xac\xea\xb8\x80", 400);
    cases_expect_get(50, "/%F0%9F%98%80", 404);
    cases_expect_get(50, "/\xf0\x9f\x98\x80", 400);
}

// ---- HEAD

static bool differs_by_itself(const char *name) {
    return strcasecmp(name, "Date") == 0 || strcasecmp(name, "X-Request-Id") == 0;
}

static void expect_same_fields(
    const char *target, const struct http_answer *get, const struct http_answer *head) {
    if (get->status != head->status || get->field_count != head->field_count)
        fail_msg("case 60: %s: GET %d with %zu fields, HEAD %d with %zu", target, get->status,
            get->field_count, head->status, head->field_count);
    for (size_t i = 0; i < get->field_count; i++) {
        const char *value = http_field(head, get->fields[i].name);
        assert_non_null(value);
        if (!differs_by_itself(get->fields[i].name))
            assert_string_equal(value, get->fields[i].value);
    }
    assert_int_equal(head->body.len, 0);
}

// Both ways on one connection, which stays usable.
static void expect_head_as_get(const char *target, const char *key, int status) {
    struct http_client *client = http_client_open(cases_stack->url);
    struct http_answer answers[3];
    static const char *const methods[] = {"GET", "HEAD", "GET"};
    assert_non_null(client);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        http_client_send(client, &(struct http_request){.method = methods[i], .target = target, .key = key});
        http_client_read(client, i == 1, &answers[i]);
        if (answers[i].status != status)
            fail_msg("case 60: %s %s: status %d, not %d", methods[i], target, answers[i].status, status);
    }
    expect_same_fields(target, &answers[0], &answers[1]);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        http_answer_done(&answers[i]);
    http_client_close(client);
}

void head_answers_as_get(void **state) {
    (void)state;
    struct link link;
    char target[80];
    link_create(cases_stack, "{\"url\":\"https://dest.example/head\"}", &link);
    (void)snprintf(target, sizeof target, "/%s", link.code);
    expect_head_as_get(target, NULL, 302);
    (void)snprintf(target, sizeof target, LINKS_PATH "/%s", link.code);
    expect_head_as_get(target, cases_stack->api_key, 200);
    expect_head_as_get("/unknown-60", NULL, 404);
    cases_run_sql(
        "INSERT INTO dunlin.links (code, owner_id, source, state, create_id, created_at, updated_at) VALUES "
        "('ended-60', 'demo', 'alias', 4, decode(repeat('00', 16), 'hex'), now(), now())");
    expect_head_as_get("/ended-60", NULL, 410);
    cases_expect_alive(60);
}

// ---- Host

void our_own_address_is_never_the_hosts_word(void **state) {
    (void)state;
    static const char *const fields[] = {
        "Host: evil.example\r\n",
        "Host: evil.example:8080\r\nX-Forwarded-Host: evil.example\r\n",
        "Host: evil.example\r\nX-Forwarded-Proto: javascript\r\n",
        "Host: evil.example\r\nForwarded: host=evil.example;proto=javascript\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct http_answer answer;
        const struct http_request create = {.method = "POST",
            .target = LINKS_PATH,
            .key = cases_stack->api_key,
            .type = "application/json",
            .fields = fields[i],
            .body = "{\"url\":\"https://dest.example/host\"}"};
        http_ask(cases_stack->url, &create, &answer);
        assert_int_equal(answer.status, 201);
        assert_int_equal(strncmp(http_field(&answer, "Location"), LINKS_PATH "/", strlen(LINKS_PATH) + 1), 0);
        struct json_doc *doc = links_json(&answer);
        const char *short_url = links_text(doc, "short_url");
        assert_int_equal(strncmp(short_url, cases_stack->url, strlen(cases_stack->url)), 0);
        assert_null(strstr(buf_text(&answer.body), "evil"));
        json_doc_free(doc);
        http_answer_done(&answer);
        static const char *const accepts[] = {"Accept: text/html\r\n", ""};
        for (size_t j = 0; j < ARRAY_LEN(accepts); j++) {
            char both[256];
            (void)snprintf(both, sizeof both, "%s%s", fields[i], accepts[j]);
            http_ask(
                cases_stack->url, &(struct http_request){.target = "/unknown-74", .fields = both}, &answer);
            assert_int_equal(answer.status, 404);
            assert_null(strstr(buf_text(&answer.body), "evil"));
            assert_null(http_field(&answer, "Location"));
            http_answer_done(&answer);
        }
    }
    cases_expect_alive(74);
}
