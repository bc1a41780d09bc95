// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"
#include "common/codes/reserved.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char alphabet_rule[] = "An alias may hold only the ASCII letters, digits, '_' and '-'.";
static const char length_rule[] = "An alias must have 4 to 30 characters.";
static const char reserved_rule[] = "This word is reserved, in any letter case.";
static const char shape_rule[] =
    "An alias of 7 or 8 characters must hold a '_' or '-', because generated codes look like that.";

static void expect_accepted(const char *alias) {
    struct problem why = {0};
    assert_int_equal(codes_check_alias(alias, strlen(alias), &why), STATUS_OK);
    assert_int_equal(why.status, STATUS_OK);
    assert_int_equal(why.violation_count, 0);
    assert_true(codes_is_plausible(alias, strlen(alias)));
}

static void expect_refused(const char *alias, size_t len, const char *rule) {
    struct problem why = {0};
    assert_int_equal(codes_check_alias(alias, len, &why), STATUS_INVALID_ARGUMENT);
    assert_int_equal(why.violation_count, 1);
    assert_string_equal(why.violations[0].field, "alias");
    assert_string_equal(why.violations[0].rule, rule);
}

static void good_aliases_pass(void **state) {
    (void)state;
    static const char *const aliases[] = {"launch", "Foo1", "foo1", "my-alias", "my_link", "----", "2026",
        "abcdefghi", "abcdefghijklmnopqrstuvwxyz0123", "apiary", "statistics"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        expect_accepted(aliases[i]);
}

static void other_characters_are_refused(void **state) {
    (void)state;
    static const char *const aliases[] = {"promo?x=1", "/lead", "a#bcd", "a bcd", "a%bcd", "a;bcd", "a:bcd",
        "a@bcd", "a[b]c", "\"><bcd", ".", "..", "...", "%2e%2e", "a/../b", "store/", "favicon.ico",
        "robots.txt", ".well-known", "login/", "abcd\n", "abcd\x7f", "go\xf0\x9f\x98\x80go",
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
        "\xea\xb5\xac\xea\xb8\x80", "\xef\xbc\xa1\xef\xbc\xa2\xef\xbc\xa3\xef\xbc\xa4"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        expect_refused(aliases[i], strlen(aliases[i]), alphabet_rule);
    expect_refused("abc\0def", 7, alphabet_rule);
}

static void other_lengths_are_refused(void **state) {
    (void)state;
    static const char *const aliases[] = {"", "a", "abc", "API", "abcdefghijklmnopqrstuvwxyz01234"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        expect_refused(aliases[i], strlen(aliases[i]), length_rule);
}

static void reserved_words_are_refused_in_any_letter_case(void **state) {
    (void)state;
    static const char *const aliases[] = {"stats", "health", "healthz", "readyz", "metrics", "admin", "login",
        "logout", "static", "assets", "robots", "favicon", "about", "help", "docs", "status", "ADMIN",
        "Login", "mEtRiCs", "HealthZ", "well-known", "Well-Known"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        expect_refused(aliases[i], strlen(aliases[i]), reserved_rule);
}

static void generated_shapes_are_refused(void **state) {
    (void)state;
    static const char *const aliases[] = {"abcdefg", "abcdefgh", "1234567", "Campaign"};
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        expect_refused(aliases[i], strlen(aliases[i]), shape_rule);
}

static void the_list_is_lower_case_and_sorted(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codes_reserved); i++) {
        for (const char *at = codes_reserved[i]; *at != '\0'; at++)
            assert_true(islower((unsigned char)*at) || *at == '-');
        if (i > 0)
            assert_true(strcmp(codes_reserved[i - 1], codes_reserved[i]) < 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_aliases_pass),
        cmocka_unit_test(other_characters_are_refused),
        cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(reserved_words_are_refused_in_any_letter_case),
        cmocka_unit_test(generated_shapes_are_refused),
        cmocka_unit_test(the_list_is_lower_case_and_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
