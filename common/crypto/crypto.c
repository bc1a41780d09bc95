// SPDX-License-Identifier: MIT
#include "common/crypto/crypto.h"

#include <sodium.h>
#include <string.h>

_Static_assert(CRYPTO_SIPHASH_KEY == crypto_shorthash_siphash24_KEYBYTES, "the key's size is libsodium's");
_Static_assert(CRYPTO_HASH == crypto_generichash_blake2b_BYTES, "the hash's size is libsodium's default");

void crypto_init(void) {
    // 1: it was initialised before, which tests do.
    REQUIRE(sodium_init() >= 0);
}

void crypto_random(void *out, size_t len) {
    randombytes_buf(out, len);
}

uint64_t crypto_random_u64(void) {
    uint64_t number;
    randombytes_buf(&number, sizeof number);
    return number;
}

uint64_t crypto_siphash(const uint8_t key[CRYPTO_SIPHASH_KEY], const void *bytes, size_t len) {
    uint8_t out[crypto_shorthash_siphash24_BYTES];
    REQUIRE(crypto_shorthash_siphash24(out, bytes, len, key) == 0);
    uint64_t number = 0;
    for (size_t i = sizeof out; i > 0; i--)
        number = number << 8 | out[i - 1];
    return number;
}

void crypto_blake2b(uint8_t out[CRYPTO_HASH], const void *bytes, size_t len) {
    REQUIRE(crypto_generichash_blake2b(out, CRYPTO_HASH, bytes, len, NULL, 0) == 0);
}

void crypto_hex(char *out, const void *bytes, size_t len) {
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = bytes;
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[in[i] >> 4];
        *out++ = digits[in[i] & 15];
    }
    *out = '\0';
}

static int digit_value(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

bool crypto_unhex(void *out, size_t len, const char *hex) {
    if (strnlen(hex, 2 * len + 1) != 2 * len)
        return false;
    uint8_t *bytes = out;
    for (size_t i = 0; i < len; i++) {
        int high = digit_value(hex[2 * i]);
        int low = digit_value(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
