// SPDX-License-Identifier: MIT
#include "common/buf/buf.h"
#include "common/db/db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_numbers(void **state) {
    (void)state;
    char text[DB_INT64_TEXT];
    assert_string_equal(db_param_int64(text, 0), "0");
    assert_string_equal(db_param_int64(text, INT64_MAX), "9223372036854775807");
    assert_string_equal(db_param_int64(text, INT64_MIN), "-9223372036854775808");
    assert_ptr_equal(db_param_int64(text, 7), text);
}

static void test_array_of_numbers(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 1000);
    db_array_begin(&buf);
    db_array_end(&buf);
    assert_string_equal(buf_text(&buf), "{}");
    buf_clear(&buf);
    db_array_begin(&buf);
    db_array_int64(&buf, 1);
    db_array_int64(&buf, -2);
    db_array_int64(&buf, INT64_MAX);
    db_array_end(&buf);
    assert_string_equal(buf_text(&buf), "{1,-2,9223372036854775807}");
    buf_done(&buf);
}

static void test_array_of_texts(void **state) {
    (void)state;
    static const char *const texts[] = {"", "a", "NULL", "{", "}", ",", "a\"b", "\\", "\\\"", "a b\r\n"};
    struct buf buf;
    buf_init(&buf, 1000);
    db_array_begin(&buf);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        db_array_text(&buf, texts[i], strlen(texts[i]));
    db_array_end(&buf);
    assert_true(buf_ok(&buf));
    assert_string_equal(buf_text(&buf),
        "{\"\",\"a\",\"NULL\",\"{\",\"}\",\",\",\"a\\\"b\",\"\\\\\",\"\\\\\\\"\",\"a b\r\n\"}");
    buf_done(&buf);
}

static void test_array_is_bounded(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 8);
    db_array_begin(&buf);
    db_array_text(&buf, "abcdefgh", 8);
    db_array_end(&buf);
    assert_false(buf_ok(&buf));
    buf_done(&buf);
}

static void test_nul_fails(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    db_array_begin(&buf);
    db_array_text(&buf, "a\0b", 3);
    db_array_end(&buf);
    assert_false(buf_ok(&buf));
    buf_done(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_array_of_numbers),
        cmocka_unit_test(test_array_of_texts),
        cmocka_unit_test(test_array_is_bounded),
        cmocka_unit_test(test_nul_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
