// SPDX-License-Identifier: MIT
#include "services/clicks/clicks_rpc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TODAY 20788

static void assert_days(struct clicks_span span, int32_t from, int32_t to) {
    struct problem why = {0};
    assert_int_equal(clicks_span_resolve(&span, TODAY, &why), STATUS_OK);
    assert_int_equal(span.from, from);
    assert_int_equal(span.to, to);
}

static void assert_refused(struct clicks_span span, const char *field) {
    struct problem why = {0};
    assert_int_equal(clicks_span_resolve(&span, TODAY, &why), STATUS_INVALID_ARGUMENT);
    assert_int_equal(why.violation_count, 1);
    assert_string_equal(why.violations[0].field, field);
}

static struct clicks_span both(int32_t from, int32_t to) {
    return (struct clicks_span){.has_from = true, .has_to = true, .from = from, .to = to};
}

static struct clicks_span from_alone(int32_t from) {
    return (struct clicks_span){.has_from = true, .from = from};
}

static struct clicks_span to_alone(int32_t to) {
    return (struct clicks_span){.has_to = true, .to = to};
}

static void fills_in_what_is_not_said(void **state) {
    (void)state;
    assert_days((struct clicks_span){0}, TODAY - 29, TODAY);
    assert_days(from_alone(TODAY), TODAY, TODAY);
    assert_days(from_alone(TODAY - 3659), TODAY - 3659, TODAY);
    assert_days(to_alone(100), 71, 100);
    assert_days(to_alone(TODAY + 5), TODAY - 24, TODAY + 5);
    assert_days(to_alone(-719162), -719162, -719162); // there is no day before it
    assert_days(both(5, 5), 5, 5);
    assert_days(both(0, 3659), 0, 3659);
}

static void refuses_what_breaks_a_rule(void **state) {
    (void)state;
    assert_refused(both(6, 5), "from");
    assert_refused(from_alone(TODAY + 1), "from");
    assert_refused(both(0, 3660), "to");
    assert_refused(from_alone(TODAY - 3660), "from");
    assert_refused(both(INT32_MIN, INT32_MAX), "from");
    assert_refused(to_alone(INT32_MAX), "to");
    assert_refused(to_alone(INT32_MIN), "to");
    assert_refused(both(-719162, 2932896), "to");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_in_what_is_not_said),
        cmocka_unit_test(refuses_what_breaks_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
