// SPDX-License-Identifier: MIT
#include "common/target/target.h"
#include "services/redirector/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/redirector/answer_check.h"

#define NOW (INT64_C(1764547200) * US_PER_S)

static char target[] = "https://example.com/a?b=c#d";

static struct cached_link good_link(void) {
    return (struct cached_link){
        .code = "abcdefg",
        .version = 1,
        .state = LINK_ACTIVE,
        .redirect_status = 302,
        .url = target,
        .url_len = sizeof target - 1,
    };
}

static void expect_redirect(const struct cached_link *link, bool prefetch, const char *cache_control) {
    struct answer answer;
    answer_init(&answer, 500);
    assert_true(redirect_answer(&answer, link, NOW, prefetch, "text/html"));
    assert_int_equal(answer.status, link->redirect_status);
    expect_header(&answer, "Location", link->url);
    expect_header(&answer, "Cache-Control", cache_control);
    expect_header(&answer, "X-Robots-Tag", "noindex");
    expect_header(&answer, "X-Content-Type-Options", "nosniff");
    expect_header(&answer, "Referrer-Policy", NULL);
    expect_header(&answer, "Vary", NULL);
    assert_int_equal(answer.body.len, 0);
    assert_false(answer.close);
    answer_done(&answer);
}

static void expect_error(const struct cached_link *link, int http_status) {
    static const char *const accepts[] = {NULL, "text/html"};
    for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
        struct answer answer;
        answer_init(&answer, 200);
        assert_false(redirect_answer(&answer, link, NOW, false, accepts[i]));
        assert_int_equal(answer.status, http_status);
        expect_error_headers(&answer);
        expect_header(&answer, "Vary", "Accept");
        expect_header(&answer, "Content-Type",
            accepts[i] != NULL ? "text/html; charset=utf-8" : "application/problem+json");
        assert_true(answer.body.len > 0);
        if (link->url != NULL && link->url[0] != '\0')
            assert_null(strstr(buf_text(&answer.body), link->url));
        answer_done(&answer);
    }
}

static void an_active_link_redirects(void **state) {
    (void)state;
    static const int statuses[] = {301, 302, 307, 308};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct cached_link link = good_link();
        link.redirect_status = statuses[i];
        expect_redirect(&link, false, "private, no-store");
    }
}

static void the_longest_target_fits(void **state) {
    (void)state;
    struct cached_link link = good_link();
    link.url = base_calloc(1, TARGET_MAX + 2);
    memset(link.url, 'a', TARGET_MAX);
    memcpy(link.url, "http://h/", 9);
    link.url_len = TARGET_MAX;
    expect_redirect(&link, false, "private, no-store");
    link.url[TARGET_MAX] = 'a';
    link.url_len++;
    expect_error(&link, 500);
    free(link.url);
}

static void a_link_says_how_long_it_may_be_kept(void **state) {
    (void)state;
    static const struct {
        uint32_t max_age;
        bool permanent;
        int64_t left_us; // until its expiry; 0: it has none
        const char *value;
    } rows[] = {
        {0, false, 0, "private, no-store"},
        {60, false, 0, "private, max-age=60"},
        {31536000, false, 0, "private, max-age=31536000"},
        {0, true, 0, "public, max-age=86400"},
        {60, true, 0, "public, max-age=86400"},
        {0, false, 3600 * US_PER_S, "private, no-store"},
        {60, false, 61 * US_PER_S, "private, max-age=60"},
        {60, false, 60 * US_PER_S, "private, max-age=60"},
        {60, false, 60 * US_PER_S - 1, "private, max-age=59"},
        {60, false, US_PER_S, "private, max-age=1"},
        {60, false, US_PER_S - 1, "private, no-store"},
        {60, false, 1, "private, no-store"},
        {0, true, 86401 * US_PER_S, "public, max-age=86400"},
        {0, true, 86399 * US_PER_S + 999999, "public, max-age=86399"},
        {0, true, 999999, "private, no-store"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cached_link link = good_link();
        link.max_age = rows[i].max_age;
        link.permanent = rows[i].permanent;
        link.has_expiry = rows[i].left_us != 0;
        link.expires_at = link.has_expiry ? NOW + rows[i].left_us : 0;
        expect_redirect(&link, false, rows[i].value);
        expect_redirect(&link, true, "private, no-store");
    }
}

static void a_retired_link_is_gone(void **state) {
    (void)state;
    static const enum link_state retired[] = {LINK_DELETED, LINK_EXPIRED};
    for (size_t i = 0; i < ARRAY_LEN(retired); i++) {
        struct cached_link link = good_link();
        link.state = retired[i];
        expect_error(&link, 410);
        link.url = NULL;
        link.url_len = 0;
        expect_error(&link, 410);
    }
    static const int64_t ago_us[] = {0, 1, US_PER_DAY};
    for (size_t i = 0; i < ARRAY_LEN(ago_us); i++) {
        struct cached_link link = good_link();
        link.has_expiry = true;
        link.expires_at = NOW - ago_us[i];
        expect_error(&link, 410);
        link.state = LINK_DISABLED;
        expect_error(&link, 410);
    }
}

static void a_disabled_link_is_not_found(void **state) {
    (void)state;
    struct cached_link link = good_link();
    link.state = LINK_DISABLED;
    expect_error(&link, 404);
    link.url = NULL;
    link.url_len = 0;
    expect_error(&link, 404);
    link = good_link();
    link.state = (enum link_state)9; // of a later version
    expect_error(&link, 404);
}

static void what_was_planted_never_gets_into_a_header(void **state) {
    (void)state;
    static const struct {
        const char *url;
        size_t len;
    } planted[] = {
        {"https://example.com/\r\nSet-Cookie: a=b", 36},
        {"https://example.com/\n", 21},
        {"https://example.com/\r", 21},
        {"https://example.com/\0x", 22},
        {"https://example.com/\x7f", 21},
        {"https://example.com/\xc3\xbc", 22},
        {"https://example.com/a b", 23},
        {" https://example.com/", 21},
        {"javascript:alert(1)", 19},
        {"JavaScript:https://example.com/", 31},
        {"data:text/html,x", 16},
        {"//example.com/", 14},
        {"/api/v1/links", 13},
        {"ftp://example.com/", 18},
        {"https:/example.com/", 19},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(planted); i++) {
        struct cached_link link = good_link();
        link.url = base_strndup(planted[i].url, planted[i].len);
        link.url_len = planted[i].len;
        expect_error(&link, 500);
        free(link.url);
    }
    struct cached_link link = good_link();
    link.url = NULL;
    link.url_len = 0;
    expect_error(&link, 500);
}

static void looking_ahead_is_told_from_a_visit(void **state) {
    (void)state;
    static const struct {
        const char *sec_purpose, *purpose, *x_purpose, *x_moz;
        bool prefetch;
    } rows[] = {
        {NULL, NULL, NULL, NULL, false},
        {"prefetch", NULL, NULL, NULL, true},
        {"prefetch;prerender", NULL, NULL, NULL, true},
        {"prefetch;anonymous-client-ip", NULL, NULL, NULL, true},
        {"Prerender", NULL, NULL, NULL, true},
        {"PREFETCH", NULL, NULL, NULL, true},
        {"preview", NULL, NULL, NULL, false},
        {"", "", "", "", false},
        {"navigation", "fetch", "none", "x", false},
        {NULL, "prefetch", NULL, NULL, true},
        {NULL, "Preview", NULL, NULL, true},
        {NULL, "prerender", NULL, NULL, false},
        {NULL, NULL, "PreFetch", NULL, true},
        {NULL, NULL, "preview", NULL, true},
        {NULL, NULL, NULL, "prefetch", true},
        {NULL, NULL, NULL, "PREVIEW", true},
        {"x", "x", "x", "prefetch", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(
            redirect_is_prefetch(rows[i].sec_purpose, rows[i].purpose, rows[i].x_purpose, rows[i].x_moz),
            rows[i].prefetch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_active_link_redirects),
        cmocka_unit_test(the_longest_target_fits),
        cmocka_unit_test(a_link_says_how_long_it_may_be_kept),
        cmocka_unit_test(a_retired_link_is_gone),
        cmocka_unit_test(a_disabled_link_is_not_found),
        cmocka_unit_test(what_was_planted_never_gets_into_a_header),
        cmocka_unit_test(looking_ahead_is_told_from_a_visit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
