// SPDX-License-Identifier: MIT
#include "services/redirector/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_route(const char *path, enum route_kind kind, const char *code) {
    struct route route;
    memset(&route, 0x55, sizeof route);
    route_parse(path, &route);
    if (route.kind != kind || strcmp(route.code, code) != 0)
        fail_msg("%s: kind %d, code \"%s\"", path, (int)route.kind, route.code);
}

static void a_code_takes_one_trailing_slash(void **state) {
    (void)state;
    expect_route("/Ab3xYz9", ROUTE_CODE, "Ab3xYz9");
    expect_route("/Ab3xYz9/", ROUTE_CODE, "Ab3xYz9");
    expect_route("/Foo1", ROUTE_CODE, "Foo1");
    expect_route("/foo1", ROUTE_CODE, "foo1");
    expect_route("/my_own-alias", ROUTE_CODE, "my_own-alias");
    expect_route("/api-docs", ROUTE_CODE, "api-docs");
    expect_route("/apiary/", ROUTE_CODE, "apiary");
    expect_route("/abcd/store/", ROUTE_NONE, "");
    static const char *const others[] = {
        "//Ab3xYz9", "/Ab3xYz9//", "//Ab3xYz9/", "/Ab3xYz9/x", "/Ab3xYz9/x/", "//", "///", "Ab3xYz9", ""};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_NONE, "");
}

static void a_code_is_decoded_once(void **state) {
    (void)state;
    expect_route("/%61bcd", ROUTE_CODE, "abcd");
    expect_route("/a%62%63d", ROUTE_CODE, "abcd");
    expect_route("/%61%62%63%64/", ROUTE_CODE, "abcd");
    expect_route("/%5Fb%2dd", ROUTE_CODE, "_b-d");
    expect_route("/%5fb%2Dd", ROUTE_CODE, "_b-d");
    static const char *const others[] = {"/abcd%2F", "/abcd%2f", "/%2Fabcd", "/%2561bcd", "/abcd%00",
        "/%00abcd", "/abcd%00/", "/abcd%", "/abcd%6", "/abcd%6/", "/abcd%6g", "/abcd%g6", "/%%61bcd",
        "/abcd%0d%0a", "/%25s", "/%25b%25b", "/abc%20d", "/a%20EX%201", "/abcd%3Fx", "/abcd%23"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_NONE, "");
}

static void other_characters_are_no_code(void **state) {
    (void)state;
    static const char *const others[] = {"/ab[c]", "/a[bcd]", "/ab;cd", "/ab:cd", "/ab@cd", "/ab.cd",
        "/ab~cd", "/ab+cd", "/ab|cd", "/abcd'", "/\"><bcd", "/{abcd}", "/%F0%9F%98%80", "/go%F0%9F%98%80go",
        "/\xf0\x9f\x98\x80", "/%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7", "/%EA%B5%AC%EA%B8%80",
        "/\xea\xb5\xac\xea\xb8\x80", "/%EF%BC%A1%EF%BC%A2%EF%BC%A3%EF%BC%A4", "/%ff%fe%fd%fc"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_NONE, "");
}

static void dot_segments_lead_nowhere(void **state) {
    (void)state;
    static const char *const others[] = {"/.", "/..", "/...", "/./", "/../", "/./abcd", "/../abcd",
        "/abcd/..", "/x/../abcd", "/%2e%2e", "/%2e%2e/abcd", "/..%2Fabcd", "/../api/v1/links",
        "/../../../etc/passwd"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_NONE, "");
}

static void a_code_has_4_to_30_characters(void **state) {
    (void)state;
    static const char *const others[] = {"/a", "/abc", "/abc/", "/c%2F", "/%61bc",
        "/abcdefghijklmnopqrstuvwxyz01234", "/abcdefghijklmnopqrstuvwxyz01234/",
        "/%61bcdefghijklmnopqrstuvwxyz01234"};
    expect_route("/abcd", ROUTE_CODE, "abcd");
    expect_route("/abcdefghijklmnopqrstuvwxyz0123", ROUTE_CODE, "abcdefghijklmnopqrstuvwxyz0123");
    expect_route("/%61bcdefghijklmnopqrstuvwxyz012%33/", ROUTE_CODE, "abcdefghijklmnopqrstuvwxyz0123");
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_NONE, "");
    char path[9000] = "/";
    memset(path + 1, 'a', sizeof path - 2);
    expect_route(path, ROUTE_NONE, "");
    for (size_t i = 1; i + 3 < sizeof path; i += 3)
        memcpy(path + i, "%61", 3);
    path[sizeof path - 2] = '\0';
    expect_route(path, ROUTE_NONE, "");
}

static void pages_have_their_paths(void **state) {
    (void)state;
    expect_route("/", ROUTE_HOME, "");
    expect_route("*", ROUTE_SERVER, "");
    expect_route("/robots.txt", ROUTE_ROBOTS, "");
    expect_route("/favicon.ico", ROUTE_FAVICON, "");
    static const char *const others[] = {
        "/robots.txt/", "/Robots.txt", "/favicon.ico/", "/*", "**", "/index.html"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_NONE, "");
}

static void the_api_has_its_paths(void **state) {
    (void)state;
    expect_route("/api/v1/links", ROUTE_API_LINKS, "");
    expect_route("/api/v1/links/Ab3xYz9", ROUTE_API_LINK, "Ab3xYz9");
    expect_route("/api/v1/links/%41b3xYz9", ROUTE_API_LINK, "Ab3xYz9");
    expect_route("/api/v1/links/Ab3xYz9/clicks", ROUTE_API_CLICKS, "Ab3xYz9");
    // What can't be a code is 404 too, but only to a known caller.
    static const char *const codeless[] = {"/api/v1/links/abc", "/api/v1/links/.", "/api/v1/links/..",
        "/api/v1/links/a[b]c", "/api/v1/links/abcd%2F", "/api/v1/links/abcd%00", "/api/v1/links/abcd%zz",
        "/api/v1/links/%F0%9F%98%80", "/api/v1/links/abcdefghijklmnopqrstuvwxyz01234"};
    for (size_t i = 0; i < ARRAY_LEN(codeless); i++) {
        char clicks[128];
        (void)snprintf(clicks, sizeof clicks, "%s/clicks", codeless[i]);
        expect_route(codeless[i], ROUTE_API_LINK, "");
        expect_route(clicks, ROUTE_API_CLICKS, "");
    }
    static const char *const others[] = {"/api", "/api/", "/api//", "/api/v1", "/api/v1/", "/api/v1/links/",
        "/api/v1/links//", "/api/v1/links//clicks", "/api/v1/links/Ab3xYz9/", "/api/v1/links/Ab3xYz9//clicks",
        "/api/v1/links/Ab3xYz9/clicks/", "/api/v1/links/Ab3xYz9/clicksx", "/api/v1/links/Ab3xYz9/events",
        "/api/v1/linksx", "/api/v1/link", "/api/v1/Links", "/api/v2/links", "/api//v1/links", "/api/../abcd",
        "/api/v1/links:batch"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        expect_route(others[i], ROUTE_API_NONE, "");
}

static void each_route_offers_its_methods(void **state) {
    (void)state;
    static const char *const names[] = {
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"};
    static const struct {
        enum route_kind kind;
        bool api;
        const char *allow;
    } rows[] = {
        {ROUTE_HOME, false, "GET, HEAD"},
        {ROUTE_ROBOTS, false, "GET, HEAD"},
        {ROUTE_FAVICON, false, "GET, HEAD"},
        {ROUTE_SERVER, false, "OPTIONS"},
        {ROUTE_CODE, false, "GET, HEAD"},
        {ROUTE_NONE, false, "GET, HEAD"},
        {ROUTE_API_LINKS, true, "POST, OPTIONS"},
        {ROUTE_API_LINK, true, "GET, HEAD, OPTIONS"},
        {ROUTE_API_CLICKS, true, "GET, HEAD, OPTIONS"},
        {ROUTE_API_NONE, true, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(route_allow(rows[i].kind), rows[i].allow);
        assert_int_equal(route_is_api(rows[i].kind), rows[i].api);
        // No name of a method is part of another's.
        for (int method = WEB_GET; method <= WEB_CONNECT; method++)
            assert_int_equal(route_offers(rows[i].kind, (enum web_method)method),
                strstr(rows[i].allow, names[method]) != NULL);
        assert_false(route_offers(rows[i].kind, WEB_OTHER));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_takes_one_trailing_slash),
        cmocka_unit_test(a_code_is_decoded_once),
        cmocka_unit_test(other_characters_are_no_code),
        cmocka_unit_test(dot_segments_lead_nowhere),
        cmocka_unit_test(a_code_has_4_to_30_characters),
        cmocka_unit_test(pages_have_their_paths),
        cmocka_unit_test(the_api_has_its_paths),
        cmocka_unit_test(each_route_offers_its_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
