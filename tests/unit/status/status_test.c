// SPDX-License-Identifier: MIT
#include "common/status/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// The numbers are gRPC's and go over the wire.
static void each_status_keeps_its_number_and_meaning(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int http;
        bool retryable;
    } rows[] = {
        {"OK", 200, false},
        {"CANCELLED", 499, false},
        {"UNKNOWN", 500, false},
        {"INVALID_ARGUMENT", 422, false},
        {"DEADLINE_EXCEEDED", 503, true},
        {"NOT_FOUND", 404, false},
        {"ALREADY_EXISTS", 409, false},
        {"PERMISSION_DENIED", 403, false},
        {"RESOURCE_EXHAUSTED", 503, true},
        {"FAILED_PRECONDITION", 409, false},
        {"ABORTED", 409, true},
        {"OUT_OF_RANGE", 422, false},
        {"UNIMPLEMENTED", 501, false},
        {"INTERNAL", 500, false},
        {"UNAVAILABLE", 503, true},
        {"DATA_LOSS", 500, false},
        {"UNAUTHENTICATED", 401, false},
    };
    assert_int_equal(STATUS_COUNT, ARRAY_LEN(rows));
    for (uint32_t i = 0; i < STATUS_COUNT; i++) {
        enum status status = status_from_wire(i);
        assert_int_equal(status, i);
        assert_string_equal(status_name(status), rows[i].name);
        assert_int_equal(status_http(status), rows[i].http);
        assert_int_equal(status_is_retryable(status), rows[i].retryable);
    }
    assert_int_equal(STATUS_UNAVAILABLE, 14);
    assert_int_equal(STATUS_UNAUTHENTICATED, 16);
}

static void other_numbers_are_unknown(void **state) {
    (void)state;
    static const uint32_t numbers[] = {STATUS_COUNT, STATUS_COUNT + 1, 255, 65536, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        assert_int_equal(status_from_wire(numbers[i]), STATUS_UNKNOWN);
        assert_string_equal(status_name((enum status)numbers[i]), "UNKNOWN");
        assert_int_equal(status_http((enum status)numbers[i]), 500);
        assert_false(status_is_retryable((enum status)numbers[i]));
    }
}

static void setting_a_problem_forgets_the_last_one(void **state) {
    (void)state;
    struct problem why;
    memset(&why, 0x55, sizeof why);
    assert_int_equal(
        problem_set(&why, STATUS_NOT_FOUND, "GONE", "no %s, %d times", "link", 3), STATUS_NOT_FOUND);
    assert_int_equal(why.status, STATUS_NOT_FOUND);
    assert_string_equal(why.reason, "GONE");
    assert_string_equal(why.message, "no link, 3 times");
    assert_int_equal(why.retry_after_s, 0);
    assert_int_equal(why.violation_count, 0);
}

static void texts_are_cut(void **state) {
    (void)state;
    char text[1000] = "";
    memset(text, 'x', sizeof text - 1);
    struct problem why = {0};
    (void)problem_set(&why, STATUS_INTERNAL, text, "%s", text);
    assert_int_equal(strlen(why.reason), sizeof why.reason - 1);
    assert_int_equal(strlen(why.message), sizeof why.message - 1);
    (void)problem_violate(&why, text, "%s", text);
    assert_int_equal(strlen(why.violations[0].field), PROBLEM_FIELD_MAX - 1);
    assert_int_equal(strlen(why.violations[0].rule), PROBLEM_RULE_MAX - 1);
    assert_int_equal(why.violations[1].field[0], '\0');
}

static void the_first_broken_rule_sets_the_status(void **state) {
    (void)state;
    struct problem why = {0};
    assert_int_equal(problem_violate(&why, "url", "must be %d", 1), STATUS_INVALID_ARGUMENT);
    assert_int_equal(problem_violate(&why, "alias", "must be 2"), STATUS_INVALID_ARGUMENT);
    assert_int_equal(why.status, STATUS_INVALID_ARGUMENT);
    assert_string_equal(why.reason, "INVALID_FIELD");
    assert_true(why.message[0] != '\0');
    assert_int_equal(why.violation_count, 2);
    assert_string_equal(why.violations[0].field, "url");
    assert_string_equal(why.violations[0].rule, "must be 1");
    assert_string_equal(why.violations[1].field, "alias");
}

static void a_broken_rule_keeps_a_status_that_is_set(void **state) {
    (void)state;
    struct problem why = {0};
    (void)problem_set(&why, STATUS_ALREADY_EXISTS, "ALIAS_TAKEN", "taken");
    assert_int_equal(problem_violate(&why, "alias", "is taken"), STATUS_ALREADY_EXISTS);
    assert_string_equal(why.reason, "ALIAS_TAKEN");
    assert_string_equal(why.message, "taken");
    assert_int_equal(why.violation_count, 1);
}

static void only_so_many_rules_are_kept(void **state) {
    (void)state;
    struct problem why = {0};
    for (int i = 0; i < PROBLEM_VIOLATIONS_MAX + 3; i++)
        assert_int_equal(problem_violate(&why, "field", "rule %d", i), STATUS_INVALID_ARGUMENT);
    assert_int_equal(why.violation_count, PROBLEM_VIOLATIONS_MAX);
    assert_string_equal(why.violations[0].rule, "rule 0");
    assert_string_equal(why.violations[PROBLEM_VIOLATIONS_MAX - 1].rule, "rule 7");
}

static void nobody_has_to_ask_why(void **state) {
    (void)state;
    assert_int_equal(problem_set(NULL, STATUS_ABORTED, "X", "x"), STATUS_ABORTED);
    assert_int_equal(problem_violate(NULL, "x", "x"), STATUS_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_keeps_its_number_and_meaning),
        cmocka_unit_test(other_numbers_are_unknown),
        cmocka_unit_test(setting_a_problem_forgets_the_last_one),
        cmocka_unit_test(texts_are_cut),
        cmocka_unit_test(the_first_broken_rule_sets_the_status),
        cmocka_unit_test(a_broken_rule_keeps_a_status_that_is_set),
        cmocka_unit_test(only_so_many_rules_are_kept),
        cmocka_unit_test(nobody_has_to_ask_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
