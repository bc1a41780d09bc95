// SPDX-License-Identifier: MIT
#include "common/buf/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static void expect_bytes(const struct buf *buf, const char *bytes, size_t len) {
    assert_int_equal(buf->len, len);
    assert_memory_equal(buf_text(buf), bytes, len);
    assert_int_equal(buf_text(buf)[len], '\0');
}

static void it_grows_as_it_is_filled(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 1000);
    assert_null(buf.data);
    expect_bytes(&buf, "", 0);
    buf_puts(&buf, "");
    buf_append(&buf, NULL, 0);
    buf_printf(&buf, "%s", "");
    expect_bytes(&buf, "", 0);
    buf_puts(&buf, "one");
    buf_putc(&buf, ' ');
    buf_append(&buf, "t\0o", 3);
    buf_printf(&buf, " %s %05d", "three", 4);
    expect_bytes(&buf, "one t\0o three 00004", 19);
    buf_putc(&buf, '\0');
    assert_int_equal(buf.len, 20);
    for (int i = 0; i < 98; i++)
        buf_printf(&buf, "%010d", i);
    assert_int_equal(buf.len, 1000);
    assert_memory_equal(buf.data + 990, "0000000097", 11);
    assert_true(buf_ok(&buf));
    buf_done(&buf);
    buf_done(&buf);
    expect_bytes(&buf, "", 0);
}

static void the_limit_is_exact_and_drops_whole_pieces(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 10);
    buf_puts(&buf, "12345678");
    buf_puts(&buf, "9a");
    assert_true(buf_ok(&buf));
    buf_puts(&buf, "");
    buf_printf(&buf, "%s", "");
    assert_true(buf_ok(&buf));
    buf_putc(&buf, 'b');
    assert_false(buf_ok(&buf));
    expect_bytes(&buf, "123456789a", 10);

    buf_clear(&buf);
    assert_true(buf_ok(&buf));
    expect_bytes(&buf, "", 0);
    buf_puts(&buf, "1234567");
    buf_printf(&buf, "%d", 8901);
    assert_false(buf_ok(&buf));
    expect_bytes(&buf, "1234567", 7);
    buf_putc(&buf, 'x'); // failure is sticky, also for what would fit
    assert_false(buf_ok(&buf));
    expect_bytes(&buf, "1234567", 7);
    buf_done(&buf);
    assert_true(buf_ok(&buf));
}

static void any_limit_is_held_at_any_step(void **state) {
    (void)state;
    char piece[40];
    memset(piece, 'x', sizeof piece);
    for (size_t limit = 0; limit < 200; limit++) {
        for (size_t step = 1; step <= sizeof piece; step++) {
            struct buf buf;
            buf_init(&buf, limit);
            while (buf_ok(&buf))
                buf_append(&buf, piece, step);
            assert_int_equal(buf.len, limit / step * step);
            buf_done(&buf);
        }
    }
}

static void a_huge_piece_is_refused(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    buf_puts(&buf, "abc");
    buf_append(&buf, "x", SIZE_MAX);
    assert_false(buf_ok(&buf));
    expect_bytes(&buf, "abc", 3);
    buf_done(&buf);
}

static void what_cannot_be_printed_is_an_overflow(void **state) {
    (void)state;
    static const wchar_t no_character[] = {0x7fffffff, 0};
    struct buf buf;
    buf_init(&buf, 100);
    buf_printf(&buf, "%ls", no_character);
    assert_false(buf_ok(&buf));
    expect_bytes(&buf, "", 0);
    buf_done(&buf);
}

static void clearing_keeps_the_memory(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    buf_clear(&buf);
    expect_bytes(&buf, "", 0);
    buf_puts(&buf, "something");
    const char *data = buf.data;
    buf_clear(&buf);
    expect_bytes(&buf, "", 0);
    buf_puts(&buf, "other");
    assert_ptr_equal(buf.data, data);
    expect_bytes(&buf, "other", 5);
    buf_done(&buf);
}

static void taking_gives_the_bytes_away(void **state) {
    (void)state;
    struct buf buf;
    size_t len = 99;
    buf_init(&buf, 6);
    char *bytes = buf_take(&buf, &len);
    assert_string_equal(bytes, "");
    assert_int_equal(len, 0);
    free(bytes);
    buf_append(&buf, "a\0b", 3);
    buf_puts(&buf, "too long");
    bytes = buf_take(&buf, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "a\0b", 4);
    free(bytes);
    expect_bytes(&buf, "", 0);
    buf_puts(&buf, "sixsix"); // the limit is still the same, the overflow forgotten
    assert_true(buf_ok(&buf));
    bytes = buf_take(&buf, NULL);
    assert_string_equal(bytes, "sixsix");
    free(bytes);
    buf_done(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_as_it_is_filled),
        cmocka_unit_test(the_limit_is_exact_and_drops_whole_pieces),
        cmocka_unit_test(any_limit_is_held_at_any_step),
        cmocka_unit_test(a_huge_piece_is_refused),
        cmocka_unit_test(what_cannot_be_printed_is_an_overflow),
        cmocka_unit_test(clearing_keeps_the_memory),
        cmocka_unit_test(taking_gives_the_bytes_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
