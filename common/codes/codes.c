// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"

#include <string.h>

#define POW3 UINT64_C(238328)                  // 62^3
#define POW4 UINT64_C(14776336)                // 62^4
#define COUNTERS_8 (POW4 * POW4 / CODES_SLOTS) // per slot, after CODES_COUNTERS_7

_Static_assert(CODES_COUNTERS_7 *CODES_SLOTS == POW3 * POW4, "the slots share 62^7 without a rest");
_Static_assert(COUNTERS_8 *CODES_SLOTS == POW4 * POW4, "the slots share 62^8 without a rest");

static const struct codes_domain domain_7 = {.a = POW3, .b = POW4, .len = 7};
static const struct codes_domain domain_8 = {.a = POW4, .b = POW4, .len = 8};

// In ASCII order, so that codes sort as their numbers do.
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static bool is_digit(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

static uint64_t digit_value(char digit) {
    if (digit <= '9')
        return (uint64_t)(digit - '0');
    if (digit <= 'Z')
        return (uint64_t)(digit - 'A') + 10;
    return (uint64_t)(digit - 'a') + 36;
}

bool codes_key_parse(const char *hex, struct codes_key *out) {
    struct codes_key key;
    if (!crypto_unhex(key.bytes, sizeof key.bytes, hex))
        return false;
    *out = key;
    return true;
}

void codes_fingerprint(const struct codes_key *key, uint8_t out[CODES_FINGERPRINT]) {
    static const char domain[] = "dunlin codes key fingerprint 1";
    uint8_t input[sizeof domain + sizeof key->bytes]; // the NUL of the domain string included
    uint8_t hash[CRYPTO_HASH];
    memcpy(input, domain, sizeof domain);
    memcpy(input + sizeof domain, key->bytes, sizeof key->bytes);
    crypto_blake2b(hash, input, sizeof input);
    memcpy(out, hash, CODES_FINGERPRINT);
}

bool codes_encode(const struct codes_key *key, unsigned slot, uint64_t counter, char out[CODES_TEXT]) {
    REQUIRE(slot < CODES_SLOTS);
    const struct codes_domain *domain = &domain_7;
    if (counter >= CODES_COUNTERS_7) {
        domain = &domain_8;
        counter -= CODES_COUNTERS_7;
        if (counter >= COUNTERS_8)
            return false;
    }
    uint64_t n = codes_permute(key, domain, counter * CODES_SLOTS + slot);
    for (unsigned i = domain->len; i > 0; i--) {
        out[i - 1] = digits[n % 62];
        n /= 62;
    }
    out[domain->len] = '\0';
    return true;
}

bool codes_decode(const struct codes_key *key, const char *code, unsigned *slot, uint64_t *counter) {
    size_t len = strnlen(code, CODES_MAX_LEN + 1);
    if (!codes_is_generated_shape(code, len))
        return false;
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        n = n * 62 + digit_value(code[i]);
    n = codes_permute_inverse(key, len == 7 ? &domain_7 : &domain_8, n);
    *slot = (unsigned)(n % CODES_SLOTS);
    *counter = n / CODES_SLOTS + (len == 7 ? 0 : CODES_COUNTERS_7);
    return true;
}

bool codes_is_plausible(const char *text, size_t len) {
    if (len < CODES_ALIAS_MIN || len > CODES_ALIAS_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_digit(text[i]) && text[i] != '_' && text[i] != '-')
            return false;
    return true;
}

bool codes_is_generated_shape(const char *text, size_t len) {
    if (len < CODES_MIN_LEN || len > CODES_MAX_LEN)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_digit(text[i]))
            return false;
    return true;
}
