// SPDX-License-Identifier: MIT
#include "common/utf8/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONE 0xdeadbeefU

// Asks about bytes that end where their memory does.
static size_t next(const uint8_t *bytes, size_t len, uint32_t *point) {
    char *exact = base_calloc(len > 0 ? len : 1, 1);
    memcpy(exact, bytes, len);
    *point = NONE;
    size_t step = utf8_next(exact, len, point);
    assert_int_equal(utf8_is_valid(exact, len), step == len);
    free(exact);
    return step;
}

static size_t encode(uint32_t point, uint8_t out[4]) {
    if (point < 0x80) {
        out[0] = (uint8_t)point;
        return 1;
    }
    size_t len = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out[0] = (uint8_t)(marks[len] | point);
    return len;
}

static void every_code_point_comes_back(void **state) {
    (void)state;
    for (uint32_t point = 0; point <= 0x110010; point++) {
        uint8_t bytes[5];
        uint32_t found = NONE;
        size_t len = encode(point, bytes);
        bool exists = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
        bytes[len] = 'x';
        if (utf8_next((const char *)bytes, len + 1, &found) != (exists ? len : 0) ||
            found != (exists ? point : NONE))
            fail_msg("U+%04X", point);
    }
}

// RFC 3629 section 4, row by row: how many bytes the character has, 0 for none.
static size_t length_by_grammar(const uint8_t bytes[4]) {
    static const struct {
        size_t len;
        uint8_t first_low, first_high, second_low, second_high;
    } rows[] = {
        {1, 0x00, 0x7f, 0x00, 0xff},
        {2, 0xc2, 0xdf, 0x80, 0xbf},
        {3, 0xe0, 0xe0, 0xa0, 0xbf},
        {3, 0xe1, 0xec, 0x80, 0xbf},
        {3, 0xed, 0xed, 0x80, 0x9f},
        {3, 0xee, 0xef, 0x80, 0xbf},
        {4, 0xf0, 0xf0, 0x90, 0xbf},
        {4, 0xf1, 0xf3, 0x80, 0xbf},
        {4, 0xf4, 0xf4, 0x80, 0x8f},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (bytes[0] < rows[i].first_low || bytes[0] > rows[i].first_high)
            continue;
        if (bytes[1] < rows[i].second_low || bytes[1] > rows[i].second_high)
            return 0;
        for (size_t j = 2; j < rows[i].len; j++)
            if (bytes[j] < 0x80 || bytes[j] > 0xbf)
                return 0;
        return rows[i].len;
    }
    return 0;
}

static void nothing_but_the_grammar_is_taken(void **state) {
    (void)state;
    static const uint8_t tails[] = {0x00, 0x7f, 0x80, 0xa5, 0xbf, 0xc0, 0xff};
    for (unsigned first_two = 0; first_two < 0x10000; first_two++) {
        for (size_t i = 0; i < ARRAY_LEN(tails) * ARRAY_LEN(tails); i++) {
            const uint8_t bytes[4] = {(uint8_t)(first_two >> 8), (uint8_t)first_two,
                tails[i / ARRAY_LEN(tails)], tails[i % ARRAY_LEN(tails)]};
            uint32_t point = NONE;
            if (utf8_next((const char *)bytes, 4, &point) != length_by_grammar(bytes))
                fail_msg("%02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
        }
    }
}

static void a_cut_character_is_none(void **state) {
    (void)state;
    static const uint32_t points[] = {'a', 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff};
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        uint8_t bytes[4];
        uint32_t point;
        size_t len = encode(points[i], bytes);
        assert_int_equal(next(bytes, len, &point), len);
        assert_int_equal(point, points[i]);
        for (size_t cut = 0; cut < len; cut++) {
            assert_int_equal(next(bytes, cut, &point), 0);
            assert_int_equal(point, NONE);
        }
    }
}

static void texts_are_valid_from_end_to_end(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        bool valid;
    } rows[] = {
        {"", 0, true},
        {"abc", 3, true},
        {"a\0b", 3, true},
        {"\xea\xb5\xac\xea\xb8\x80", 6, true},
        {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", 11, true},
        {"\xef\xbb\xbfx", 4, true},
        {"abc\xff", 4, false},
        {"\x80"
         "abc",
            4, false},
        {"ab\xc3", 3, false},
        {"\xc3\xbc\xc3", 3, false},
        {"\xed\xa0\xbd\xed\xb8\x80", 6, false}, // two surrogates
        {"\xc0\xaf", 2, false},
        {"\xf8\x88\x80\x80\x80", 5, false},
        {"\xe4", 1, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(utf8_is_valid(rows[i].bytes, rows[i].len), rows[i].valid);
    assert_true(utf8_is_valid(NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_comes_back),
        cmocka_unit_test(nothing_but_the_grammar_is_taken),
        cmocka_unit_test(a_cut_character_is_none),
        cmocka_unit_test(texts_are_valid_from_end_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
