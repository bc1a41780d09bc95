// SPDX-License-Identifier: MIT
#include "services/clicks/fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void counts_by_code_and_day(void **state) {
    (void)state;
    struct fold fold;
    fold_init(&fold);
    fold_add(&fold, "aaaaaab", 20001, 1);
    fold_add(&fold, "aaaaaaa", 20002, 3);
    fold_add(&fold, "aaaaaaa", 20001, 1);
    fold_add(&fold, "aaaaaaa", 20001, 4);
    fold_add(&fold, "Zzzz", -1, 2);
    assert_int_equal(fold.clicks, 11);
    assert_int_equal(fold.count, 4);
    fold_sort(&fold);
    static const struct fold_entry expected[] = {
        {.code = "Zzzz", .day = -1, .clicks = 2},
        {.code = "aaaaaaa", .day = 20001, .clicks = 5},
        {.code = "aaaaaaa", .day = 20002, .clicks = 3},
        {.code = "aaaaaab", .day = 20001, .clicks = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        assert_string_equal(fold.entries[i].code, expected[i].code);
        assert_int_equal(fold.entries[i].len, strlen(expected[i].code));
        assert_int_equal(fold.entries[i].day, expected[i].day);
        assert_int_equal(fold.entries[i].clicks, expected[i].clicks);
    }
    fold_done(&fold);
}

static void codes_that_begin_alike_are_apart(void **state) {
    (void)state;
    struct fold fold;
    fold_init(&fold);
    fold_add(&fold, "aaaa", 1, 1);
    fold_add(&fold, "aaaaa", 1, 1);
    fold_add(&fold, "AAAA", 1, 1);
    assert_int_equal(fold.count, 3);
    fold_done(&fold);
}

#define MANY 100000

static void add_many(struct fold *fold, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < MANY; i++) {
            char code[CODES_TEXT];
            (void)snprintf(code, sizeof code, "c%06d", i);
            fold_add(fold, code, i % 3, 1);
        }
}

static void grows_and_sorts(void **state) {
    (void)state;
    struct fold fold;
    fold_init(&fold);
    add_many(&fold, 2);
    assert_int_equal(fold.count, MANY);
    assert_int_equal(fold.clicks, 2 * MANY);
    fold_sort(&fold);
    for (size_t i = 0; i < fold.count; i++) {
        assert_int_equal(fold.entries[i].clicks, 2);
        assert_true(i == 0 || strcmp(fold.entries[i - 1].code, fold.entries[i].code) < 0);
    }
    fold_done(&fold);
}

static void starts_over_after_a_clear(void **state) {
    (void)state;
    struct fold fold;
    fold_init(&fold);
    fold_clear(&fold);
    for (int i = 0; i < 2;
         i++) { // the first time with memory that is given back, then with memory that is kept
        if (i == 0)
            add_many(&fold, 1);
        fold_add(&fold, "aaaaaaa", 7, 1);
        fold_sort(&fold);
        fold_clear(&fold);
        assert_int_equal(fold.count, 0);
        assert_int_equal(fold.clicks, 0);
        fold_add(&fold, "aaaaaaa", 7, 5);
        assert_int_equal(fold.count, 1);
        assert_int_equal(fold.entries[0].clicks, 5);
    }
    fold_done(&fold);
}

int main(void) {
    crypto_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_code_and_day),
        cmocka_unit_test(codes_that_begin_alike_are_apart),
        cmocka_unit_test(grows_and_sorts),
        cmocka_unit_test(starts_over_after_a_clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
