// SPDX-License-Identifier: MIT
#include "services/redirector/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/redirector/answer_check.h"

static void expect_page(enum route_kind kind, const char *type, const char *part) {
    struct answer answer;
    answer_init(&answer, 404);
    assert_true(pages_answer(&answer, kind));
    assert_int_equal(answer.status, 200);
    expect_header(&answer, "Content-Type", type);
    expect_header(&answer, "Cache-Control", "public, max-age=3600");
    expect_header(&answer, "Referrer-Policy", "no-referrer");
    expect_header(&answer, "X-Content-Type-Options", "nosniff");
    expect_header(&answer, "X-Robots-Tag", NULL);
    assert_non_null(strstr(buf_text(&answer.body), part));
    answer_done(&answer);
}

static void home_is_a_small_page(void **state) {
    (void)state;
    expect_page(ROUTE_HOME, "text/html; charset=utf-8", "<h1>Dunlin</h1>");
}

static void robots_are_kept_from_the_api(void **state) {
    (void)state;
    expect_page(ROUTE_ROBOTS, "text/plain; charset=utf-8", "User-agent: *\nDisallow: /api/\n");
}

static void there_is_no_icon(void **state) {
    (void)state;
    struct answer answer;
    answer_init(&answer, 404);
    assert_true(pages_answer(&answer, ROUTE_FAVICON));
    assert_int_equal(answer.status, 204);
    expect_header(&answer, "Cache-Control", "public, max-age=86400");
    expect_header(&answer, "Content-Type", NULL);
    assert_int_equal(answer.body.len, 0);
    answer_done(&answer);
}

static void other_routes_are_no_pages(void **state) {
    (void)state;
    static const enum route_kind others[] = {ROUTE_SERVER, ROUTE_CODE, ROUTE_NONE, ROUTE_API_LINKS,
        ROUTE_API_LINK, ROUTE_API_CLICKS, ROUTE_API_NONE};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct answer answer;
        answer_init(&answer, 404);
        assert_false(pages_answer(&answer, others[i]));
        assert_int_equal(answer.status, 404);
        assert_int_equal(answer.header_count, 1);
        assert_int_equal(answer.body.len, 0);
        answer_done(&answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_is_a_small_page),
        cmocka_unit_test(robots_are_kept_from_the_api),
        cmocka_unit_test(there_is_no_icon),
        cmocka_unit_test(other_routes_are_no_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
