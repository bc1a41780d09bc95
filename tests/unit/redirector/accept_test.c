// SPDX-License-Identifier: MIT
#include "common/base/base.h"
#include "services/redirector/accept.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_all(const char *const *accepts, size_t count, bool names) {
    for (size_t i = 0; i < count; i++)
        if (accept_names(accepts[i], "text/html") != names)
            fail_msg("Accept: %s", accepts[i]);
}

static void html_is_named(void **state) {
    (void)state;
    static const char *const accepts[] = {
        "text/html",
        "TEXT/Html",
        " text/html ",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
        "application/json, text/html",
        "application/json;q=1.0,\ttext/html;q=0.1",
        "text/html;q=0.001",
        "text/html;q=1",
        "text/html;q=1.000",
        "text/html ; q=0.5",
        "text/html;Q=0.5",
        "text/html;level=1",
        "text/html;level=1;q=0.4",
        "text/html;charset=utf-8, */*;q=0",
        ",,text/html,,",
        "text/html;",
        "text/html;q=0, text/html;level=2",
    };
    expect_all(accepts, ARRAY_LEN(accepts), true);
}

static void html_is_not_named(void **state) {
    (void)state;
    static const char *const accepts[] = {
        NULL,
        "",
        " ",
        ",",
        ";",
        "*/*",
        "text/*",
        "text/plain",
        "application/json",
        "application/problem+json",
        "text/html;q=0",
        "text/html;q=0.0",
        "text/html;q=0.000, */*",
        "text/html; q=0",
        "text/html;Q=0;ext=1",
        "text/html;level=1;q=0",
        "text/html;q=",
        "text/htmlx",
        "text/htm",
        "xtext/html",
        "application/text/html",
        "text/html+xml",
        "text / html",
        "application/json;profile=text/html",
    };
    expect_all(accepts, ARRAY_LEN(accepts), false);
}

static void other_types_can_be_asked_for(void **state) {
    (void)state;
    assert_true(accept_names("text/html;q=0, text/csv;q=0.2", "text/csv"));
    assert_false(accept_names("text/csv;q=0, text/html;q=0.2", "text/csv"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(html_is_named),
        cmocka_unit_test(html_is_not_named),
        cmocka_unit_test(other_types_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
