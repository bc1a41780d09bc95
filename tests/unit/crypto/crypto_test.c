// SPDX-License-Identifier: MIT
#include "common/crypto/crypto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state) {
    (void)state;
    crypto_init();
    crypto_init();
    return 0;
}

// The published vectors: key 00 01 … 0f, message 00 01 … (n - 1).
static void siphash_gives_the_published_values(void **state) {
    (void)state;
    uint8_t key[CRYPTO_SIPHASH_KEY];
    uint8_t message[16];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = message[i] = (uint8_t)i;
    assert_int_equal(crypto_siphash(key, "", 0), UINT64_C(0x726fdb47dd0e0e31));
    assert_int_equal(crypto_siphash(key, message, 1), UINT64_C(0x74f839c593dc67fd));
    assert_int_equal(crypto_siphash(key, message, 8), UINT64_C(0x93f5f5799a932462));
    assert_int_equal(crypto_siphash(key, message, 15), UINT64_C(0xa129ca6149be45e5));
}

static void hash_is_blake2b_256(void **state) {
    (void)state;
    uint8_t hash[CRYPTO_HASH];
    char hex[2 * CRYPTO_HASH + 1];
    crypto_blake2b(hash, "", 0);
    crypto_hex(hex, hash, sizeof hash);
    assert_string_equal(hex, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    crypto_blake2b(hash, "abc", 3);
    crypto_hex(hex, hash, sizeof hash);
    assert_string_equal(hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void hex_goes_both_ways(void **state) {
    (void)state;
    uint8_t bytes[256];
    uint8_t back[256];
    char hex[2 * 256 + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    crypto_hex(hex, bytes, sizeof bytes);
    assert_int_equal(strlen(hex), 512);
    assert_memory_equal(hex, "000102", 6);
    assert_string_equal(hex + 506, "fdfeff");
    assert_true(crypto_unhex(back, sizeof back, hex));
    assert_memory_equal(bytes, back, sizeof bytes);
    assert_true(crypto_unhex(back, 2, "aBCd"));
    assert_int_equal(back[0], 0xab);
    assert_int_equal(back[1], 0xcd);
    crypto_hex(hex, bytes, 0);
    assert_string_equal(hex, "");
}

static void what_is_not_hex_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "", "a", "abc", "abcde", "abcdef", "abcg", "ab d", " abc", "+1ab", "0xab"};
    uint8_t out[2];
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(crypto_unhex(out, sizeof out, wrong[i]));
}

static void random_bytes_differ(void **state) {
    (void)state;
    uint8_t first[32] = {0};
    uint8_t second[32] = {0};
    crypto_random(first, sizeof first);
    crypto_random(second, sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
    assert_int_not_equal(crypto_random_u64(), crypto_random_u64());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_gives_the_published_values),
        cmocka_unit_test(hash_is_blake2b_256),
        cmocka_unit_test(hex_goes_both_ways),
        cmocka_unit_test(what_is_not_hex_is_refused),
        cmocka_unit_test(random_bytes_differ),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
