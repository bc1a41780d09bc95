// SPDX-License-Identifier: MIT
#include "common/buf/buf.h"
#include "common/codes/codes.h"
#include "tests/e2e/cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL "\"url\":\"https://dest.example/api\""
#define LITERAL(text) (text), sizeof(text) - 1

void aliases_are_of_one_alphabet(void **state) {
    (void)state;
    static const char *const refused[] = {"promo?x=1", "/lead", "ab#cd", "ab cd", "ab%cd", "ab;cd", "ab:cd",
        "ab@cd", "ab[cd]", "\\\"><b>", "%s%s", "%n%n%n", "ab\\\\cd", "ab\\r\\ncd", "ab.cd", "ab~cd", " abcd",
        "abcd ", "abc", "abcdefghijklmnopqrstuvwxyz-0123", "abcdefg", "ABCDEFGH"};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        cases_expect_alias_refused(42, refused[i]);
    static const char *const taken[] = {
        "ab-4", "----", "____", "abcdef", "abcdefghi", "0_0-Z", "abcdefghijklmnopqrstuvwxyz-012"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        char body[128];
        struct link link;
        (void)snprintf(
            body, sizeof body, "{\"url\":\"https://dest.example/api/%zu\",\"alias\":\"%s\"}", i, taken[i]);
        link_create(cases_stack, body, &link);
        assert_string_equal(link.code, taken[i]);
        // At the very address that was answered.
        assert_int_equal(strncmp(link.short_url, cases_stack->url, strlen(cases_stack->url)), 0);
        cases_expect_get(42, link.short_url + strlen(cases_stack->url), 302);
    }
}

void our_own_routes_are_no_aliases(void **state) {
    (void)state;
    static const char *const aliases[] = {"api", "stats", "health", "healthz", "readyz", "metrics", "admin",
        "login", "static", "robots", "ADMIN", "Login", "mEtRiCs", "admin/", "login/", "favicon.ico",
        "robots.txt", ".well-known"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        cases_expect_alias_refused(52, aliases[i]);
    cases_expect_get(52, "/robots.txt", 200);
    cases_expect_get(52, "/favicon.ico", 204);
    cases_expect_get(52, "/", 200);
    cases_expect_get(52, "/api", 404);
}

void json_of_wrong_kinds_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *body;
        int status;
        const char *field;
    } rows[] = {
        {"null", 422, "body"},
        {"[]", 422, "body"},
        {"\"x\"", 422, "body"},
        {"5", 422, "body"},
        {"{}", 422, "url"},
        {"{\"url\":null}", 422, "url"},
        {"{\"url\":5}", 422, "url"},
        {"{\"url\":true}", 422, "url"},
        {"{\"url\":{}}", 422, "url"},
        {"{\"url\":\"\"}", 422, "url"},
        {"{\"url\":[\"https://dest.example\"]}", 422, "url"},
        {"{" URL ",\"alias\":\"\"}", 422, "alias"},
        {"{" URL ",\"alias\":{}}", 422, "alias"},
        {"{" URL ",\"alias\":88888888}", 422, "alias"},
        {"{" URL ",\"expires_at\":true}", 422, "expires_at"},
        {"{" URL ",\"expires_at\":4102444800}", 422, "expires_at"},
        {"{" URL ",\"expires_at\":\"\"}", 422, "expires_at"},
        {"{" URL ",\"expires_at\":\"2099-01-01\"}", 422, "expires_at"},
        {"{" URL ",\"expires_at\":\"2099-01-01T00:00:00\"}", 422, "expires_at"},
        {"{" URL ",\"expires_at\":\"2099-01-01T00:00:60Z\"}", 422, "expires_at"},
        {"{" URL ",\"expires_at\":\"2000-01-01T00:00:00Z\"}", 422, "expires_at"},
        {"{" URL ",\"color\":\"red\"}", 422, "color"},
        {"{" URL ",\"URL\":\"https://dest.example\"}", 422, "URL"},
        {"{\"url\":null,\"color\":1}", 422, "color"},
        {"", 400, NULL},
        {" ", 400, NULL},
        {"\xef\xbb\xbf{" URL "}", 400, NULL},
        {"{" URL, 400, NULL},
        {"{" URL "}}", 400, NULL},
        {"{" URL "} x", 400, NULL},
        {"{" URL "," URL "}", 400, NULL},
        {"{" URL ",\"x\":1,\"x\":2}", 400, NULL},
        {"{'url':'https://dest.example'}", 400, NULL},
        {"{" URL ",}", 400, NULL},
        {"{\"url\":NaN}", 400, NULL},
        {"{\"url\":1e999}", 400, NULL},
        {"{\"url\":99999999999999999999}", 400, NULL},
        {"{\"url\":\"https://dest.example/\\ud800\"}", 400, NULL},
        {"{" URL ",\"alias\":null}", 201, NULL},
        {"{" URL ",\"alias\":null,\"expires_at\":null}", 201, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        cases_expect_create(88, rows[i].body, 0, rows[i].status, rows[i].field);
}

void json_that_is_not_utf8_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *body;
        size_t len;
    } rows[] = {
        {LITERAL("{\"url\":\"https://dest.example/\xc0\xaf\"}")},
        {LITERAL("{\"url\":\"https://dest.example/\xe2\x28\"}")},
        {LITERAL("{\"url\":\"https://dest.example/\xff\"}")},
        {LITERAL("{\"url\":\"https://dest.example/caf\xe9\"}")},
        {LITERAL("{\"url\":\"https://dest.example/\xed\xa0\x80\"}")},
        {LITERAL("{\"url\":\"https://dest.example/\xf4\x90\x80\x80\"}")},
        {LITERAL("{" URL ",\"\xff\":1}")},
        {LITERAL("{\"url\":\"https://dest.example/\0\"}")},
        {LITERAL("{" URL "}\0")},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        cases_expect_create(27, rows[i].body, rows[i].len, 400, NULL);
}

// As JSON nests: opened and closed, or opened alone.
static void expect_depth(const char *before, size_t depth, bool closed, int status, const char *field) {
    struct buf body;
    buf_init(&body, (size_t)4 * 1024 * 1024);
    buf_puts(&body, before);
    for (size_t i = 0; i < depth; i++)
        buf_putc(&body, '[');
    for (size_t i = 0; closed && i < depth; i++)
        buf_putc(&body, ']');
    buf_puts(&body, closed ? "}" : "");
    assert_true(buf_ok(&body));
    cases_expect_create(90, body.data, body.len, status, field);
    buf_done(&body);
}

void deep_json_is_refused(void **state) {
    (void)state;
    static const char *const before[] = {"{\"x\":", "{" URL ",\"x\":", "{\"url\":"};
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        expect_depth(before[i], 31, true, 422, i == 2 ? "url" : "x"); // 32 with the object
        expect_depth(before[i], 32, true, 400, NULL);
        expect_depth(before[i], 64, true, 400, NULL);
        expect_depth(before[i], 2048, true, 400, NULL);
        expect_depth(before[i], 10000, true, 400, NULL);
        expect_depth(before[i], 10000, false, 400, NULL);
        expect_depth(before[i], 60000, false, 400, NULL);
        expect_depth(before[i], 1000000, true, 413, NULL);
    }
}
