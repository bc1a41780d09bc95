// SPDX-License-Identifier: MIT
#include "services/redirector/escape.h"
#include "services/redirector/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct parsed {
    enum status status;
    struct problem why;
    struct query_parameter from, to;
};

static struct parsed parse(const char *query) {
    struct query_parameter known[] = {{.name = "from"}, {.name = "to"}};
    struct parsed parsed = {0};
    parsed.status = query_parse(query, known, ARRAY_LEN(known), &parsed.why);
    parsed.from = known[0];
    parsed.to = known[1];
    return parsed;
}

static void expect_values(const char *query, const char *from, const char *to) {
    struct parsed parsed = parse(query);
    assert_int_equal(parsed.status, STATUS_OK);
    assert_int_equal(parsed.why.status, STATUS_OK);
    assert_int_equal(parsed.from.given, from != NULL);
    assert_int_equal(parsed.to.given, to != NULL);
    assert_string_equal(parsed.from.value, from != NULL ? from : "");
    assert_string_equal(parsed.to.value, to != NULL ? to : "");
}

static void expect_violation(const char *query, const char *field, const char *rule_part) {
    struct parsed parsed = parse(query);
    assert_int_equal(parsed.status, STATUS_INVALID_ARGUMENT);
    assert_int_equal(parsed.why.status, STATUS_INVALID_ARGUMENT);
    assert_string_not_equal(parsed.why.reason, "MALFORMED_QUERY");
    assert_int_equal(parsed.why.violation_count, 1);
    assert_string_equal(parsed.why.violations[0].field, field);
    assert_non_null(strstr(parsed.why.violations[0].rule, rule_part));
}

static void known_parameters_are_decoded_once(void **state) {
    (void)state;
    expect_values(NULL, NULL, NULL);
    expect_values("", NULL, NULL);
    expect_values("&&", NULL, NULL);
    expect_values("from=2026-12-01", "2026-12-01", NULL);
    expect_values("to=2&from=1", "1", "2");
    expect_values("&from=1&&to=2&", "1", "2");
    expect_values("from", "", NULL);
    expect_values("from=", "", NULL);
    expect_values("from=a=b=", "a=b=", NULL);
    expect_values("from=a%20b+c", "a b+c", NULL);
    expect_values("from=%2561", "%61", NULL);
    expect_values("from=a%26to=x", "a&to=x", NULL);
    expect_values("%66rom=1&t%6F=2", "1", "2");
    expect_values("from=%C3%BC", "\xc3\xbc", NULL);
    expect_values("from=\xc3\xbc", "\xc3\xbc", NULL);
}

static void broken_rules_are_named(void **state) {
    (void)state;
    expect_violation("limit=1", "limit", "not a parameter");
    expect_violation("FROM=1", "FROM", "not a parameter");
    expect_violation("=1", "", "not a parameter");
    expect_violation("from=1&fro%6D=1", "from", "twice");
    expect_violation("from&from", "from", "twice");
    expect_violation("from=%00", "from", "%00");
    expect_violation("to=1&from=a%00b", "from", "%00");
    static const char *const malformed[] = {
        "from=%", "from=%2", "from=%g1", "from=%1g", "from=%%20", "from=a%2&to=1"};
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++)
        expect_violation(malformed[i], "from", "malformed escape");
    expect_violation("fr%=1", "query", "malformed escape");
    expect_violation("fr%00om=1", "query", "%00");
}

static void what_is_not_utf8_is_malformed(void **state) {
    (void)state;
    static const char *const queries[] = {"from=%FF", "from=\xff", "from=%C3", "from=%ED%A0%80",
        "from=%C0%AF", "from=%F4%90%80%80", "%FF=1", "to=1&x%80=2", "limit=%FF", "limit=1&from=%FF",
        "from=%zz&to=%FF", "from=1&from=%FF", "%C3&%BC"};
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        struct parsed parsed = parse(queries[i]);
        assert_int_equal(parsed.status, STATUS_INVALID_ARGUMENT);
        assert_string_equal(parsed.why.reason, "MALFORMED_QUERY");
        assert_int_equal(parsed.why.violation_count, 0);
    }
}

static void values_have_a_bound(void **state) {
    (void)state;
    char query[8 + 3 * QUERY_VALUE_MAX];
    char value[QUERY_VALUE_MAX + 1] = "";
    memset(value, 'a', QUERY_VALUE_MAX);
    (void)snprintf(query, sizeof query, "from=%s", value);
    expect_values(query, value, NULL);
    (void)snprintf(query, sizeof query, "from=%sa", value);
    expect_violation(query, "from", "at most 256 bytes");
    (void)snprintf(query, sizeof query, "%sa=1", value);
    expect_violation(query, "query", "at most 256 bytes");
    // Counted as decoded.
    (void)snprintf(query, sizeof query, "from=");
    for (size_t i = 0; i < QUERY_VALUE_MAX; i++)
        memcpy(query + 5 + 3 * i, "%61", 4);
    expect_values(query, value, NULL);
    char unknown[QUERY_VALUE_MAX + 1] = "";
    memset(unknown, 'x', 200);
    struct parsed parsed = parse(unknown);
    assert_int_equal(parsed.why.violation_count, 1);
    assert_int_equal(strlen(parsed.why.violations[0].field), PROBLEM_FIELD_MAX - 1);
}

static void every_escape_is_one_byte(void **state) {
    (void)state;
    for (int upper = 0; upper < 2; upper++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[8];
            size_t at = 0;
            (void)snprintf(text, sizeof text, upper == 0 ? "%%%02x" : "%%%02X", (unsigned)byte);
            assert_int_equal(escape_next(text, 3, &at), byte);
            assert_int_equal(at, 3);
            at = 0;
            assert_int_equal(escape_next(text, 2, &at), -1);
            text[0] = (char)byte;
            at = 0;
            if (byte == '%')
                continue;
            assert_int_equal(escape_next(text, 1, &at), byte);
            assert_int_equal(at, 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_parameters_are_decoded_once),
        cmocka_unit_test(broken_rules_are_named),
        cmocka_unit_test(what_is_not_utf8_is_malformed),
        cmocka_unit_test(values_have_a_bound),
        cmocka_unit_test(every_escape_is_one_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
