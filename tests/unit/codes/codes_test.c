// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LAST_COUNTER UINT64_C(27732715023887) // 62^7 / 8 + 62^8 / 8 - 1

static const struct codes_key key = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

// The table of docs/codes.md. These must never change: they are on posters.
static const struct golden {
    unsigned slot;
    uint64_t counter;
    const char *code;
} golden[] = {
    {0, 0, "IVi5Z9J"},
    {6, 0, "znNedBK"},
    {0, 1, "Fe68hR5"},
    {6, 1, "Biaoyez"},
    {0, 2, "nTKZ86P"},
    {6, 2, "3NBXVke"},
    {0, 1000, "Vd1Kie2"},
    {6, 1000, "26poTjF"},
    {0, CODES_COUNTERS_7 - 1, "aFBr2Cd"},
    {6, CODES_COUNTERS_7 - 1, "7ajEt4O"},
    {0, CODES_COUNTERS_7, "7zcWq9bc"},
    {6, CODES_COUNTERS_7, "3cl1HQeR"},
    {0, LAST_COUNTER, "FUUl1kEI"},
    {6, LAST_COUNTER, "ksu88ufz"},
};

static void golden_codes_stay(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(golden); i++) {
        char code[CODES_TEXT];
        assert_true(codes_encode(&key, golden[i].slot, golden[i].counter, code));
        assert_string_equal(code, golden[i].code);
        unsigned slot = 99;
        uint64_t counter = 99;
        assert_true(codes_decode(&key, golden[i].code, &slot, &counter));
        assert_int_equal(slot, golden[i].slot);
        assert_int_equal(counter, golden[i].counter);
    }
}

static void slots_and_counters_come_back(void **state) {
    (void)state;
    static const uint64_t bases[] = {0, 4294967296, CODES_COUNTERS_7 - 300, LAST_COUNTER - 599};
    for (size_t i = 0; i < ARRAY_LEN(bases); i++)
        for (uint64_t counter = bases[i]; counter < bases[i] + 600; counter++)
            for (unsigned slot = 0; slot < CODES_SLOTS; slot++) {
                char code[CODES_TEXT];
                unsigned slot_back = 99;
                uint64_t counter_back = 99;
                assert_true(codes_encode(&key, slot, counter, code));
                assert_int_equal(strlen(code), counter < CODES_COUNTERS_7 ? 7 : 8);
                assert_true(codes_is_generated_shape(code, strlen(code)));
                assert_true(codes_decode(&key, code, &slot_back, &counter_back));
                assert_int_equal(slot_back, slot);
                assert_int_equal(counter_back, counter);
            }
}

static void past_the_last_counter_there_is_no_code(void **state) {
    (void)state;
    char code[CODES_TEXT] = "kept";
    assert_false(codes_encode(&key, 0, LAST_COUNTER + 1, code));
    assert_false(codes_encode(&key, 7, UINT64_MAX, code));
    assert_string_equal(code, "kept");
}

static void the_extreme_texts_decode(void **state) {
    (void)state;
    static const char *const texts[] = {"0000000", "zzzzzzz", "00000000", "zzzzzzzz"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        unsigned slot;
        uint64_t counter;
        char code[CODES_TEXT];
        assert_true(codes_decode(&key, texts[i], &slot, &counter));
        assert_int_equal(counter >= CODES_COUNTERS_7, strlen(texts[i]) == 8);
        assert_true(codes_encode(&key, slot, counter, code));
        assert_string_equal(code, texts[i]);
    }
}

static void other_texts_do_not_decode(void **state) {
    (void)state;
    static const char *const texts[] = {"", "a", "abcdef", "abcdefghi", "abc-efg", "abcdef_", "abcdef ",
        "abcd\xc3\xa9g", "abc/efg", "abc[efg", "abc@efg"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        unsigned slot = 99;
        uint64_t counter = 99;
        assert_false(codes_decode(&key, texts[i], &slot, &counter));
        assert_int_equal(slot, 99);
        assert_int_equal(counter, 99);
    }
}

static void shapes_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool plausible, generated;
    } rows[] = {
        {"", false, false},
        {"abc", false, false},
        {"abcd", true, false},
        {"abcdef", true, false},
        {"abcdefg", true, true},
        {"0189AZaz", true, true},
        {"abcdefghi", true, false},
        {"abc-efg", true, false},
        {"abc_efgh", true, false},
        {"____", true, false},
        {"abcdefghijklmnopqrstuvwxyz0123", true, false},
        {"abcdefghijklmnopqrstuvwxyz01234", false, false},
        {"abc.efg", false, false},
        {"abc%efg", false, false},
        {"abcd\xef\xbc\xa1", false, false},
        {"abcd\n", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(codes_is_plausible(rows[i].text, strlen(rows[i].text)), rows[i].plausible);
        assert_int_equal(codes_is_generated_shape(rows[i].text, strlen(rows[i].text)), rows[i].generated);
    }
    assert_false(codes_is_plausible("abc\0efg", 7));
    assert_false(codes_is_generated_shape("abc\0efg", 7));
}

static void keys_are_32_hex_digits(void **state) {
    (void)state;
    struct codes_key parsed;
    memset(&parsed, 0x55, sizeof parsed);
    assert_false(codes_key_parse("000102030405060708090a0b0c0d0e", &parsed));
    assert_false(codes_key_parse("000102030405060708090a0b0c0d0e0f00", &parsed));
    assert_false(codes_key_parse("000102030405060708090a0b0c0d0e0g", &parsed));
    assert_int_equal(parsed.bytes[0], 0x55);
    assert_true(codes_key_parse("000102030405060708090a0B0C0D0E0F", &parsed));
    assert_memory_equal(parsed.bytes, key.bytes, sizeof key.bytes);
}

static void fingerprints_tell_keys_apart(void **state) {
    (void)state;
    uint8_t fingerprint[CODES_FINGERPRINT];
    uint8_t second[CODES_FINGERPRINT];
    char hex[2 * CODES_FINGERPRINT + 1];
    struct codes_key other = key;
    other.bytes[15] ^= 1;
    codes_fingerprint(&key, fingerprint);
    codes_fingerprint(&other, second);
    crypto_hex(hex, fingerprint, sizeof fingerprint);
    assert_string_equal(hex, "0d6446053d5c7da3");
    assert_memory_not_equal(fingerprint, second, sizeof fingerprint);
}

int main(void) {
    crypto_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_codes_stay),
        cmocka_unit_test(slots_and_counters_come_back),
        cmocka_unit_test(past_the_last_counter_there_is_no_code),
        cmocka_unit_test(the_extreme_texts_decode),
        cmocka_unit_test(other_texts_do_not_decode),
        cmocka_unit_test(shapes_are_told_apart),
        cmocka_unit_test(keys_are_32_hex_digits),
        cmocka_unit_test(fingerprints_tell_keys_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
