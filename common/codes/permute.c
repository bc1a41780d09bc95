// SPDX-License-Identifier: MIT
#include "common/codes/codes.h"

#define ROUNDS 10

// The round function's input is 10 bytes: round, code length, half as little-endian 64 bits. Its 64-bit
// output is reduced modulo a or b, at most 62^4 < 2^24: a residue's chance is off from uniform by less than
// 2^-40 of itself.
static uint64_t round_value(const struct codes_key *key, unsigned round, unsigned len, uint64_t half) {
    uint8_t input[10] = {(uint8_t)round, (uint8_t)len};
    for (unsigned i = 0; i < 8; i++)
        input[2 + i] = (uint8_t)(half >> (8 * i));
    return crypto_siphash(key->bytes, input, sizeof input);
}

static void check_domain(const struct codes_domain *domain, uint64_t n) {
    REQUIRE(domain->a > 0 && domain->b > 0 && domain->len <= UINT8_MAX);
    // Halves below 2^32 keep the sums and the product inside 64 bits.
    REQUIRE(domain->a <= UINT32_MAX && domain->b <= UINT32_MAX);
    REQUIRE(n < domain->a * domain->b);
}

uint64_t codes_permute(const struct codes_key *key, const struct codes_domain *domain, uint64_t n) {
    check_domain(domain, n);
    uint64_t left = n / domain->b;
    uint64_t right = n % domain->b;
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (round % 2 == 0)
            left = (left + round_value(key, round, domain->len, right) % domain->a) % domain->a;
        else
            right = (right + round_value(key, round, domain->len, left) % domain->b) % domain->b;
    }
    return left * domain->b + right;
}

uint64_t codes_permute_inverse(const struct codes_key *key, const struct codes_domain *domain, uint64_t n) {
    check_domain(domain, n);
    uint64_t left = n / domain->b;
    uint64_t right = n % domain->b;
    for (unsigned round = ROUNDS; round-- > 0;) {
        if (round % 2 == 0)
            left = (left + domain->a - round_value(key, round, domain->len, right) % domain->a) % domain->a;
        else
            right = (right + domain->b - round_value(key, round, domain->len, left) % domain->b) % domain->b;
    }
    return left * domain->b + right;
}
